"""Trains two GPT-style blocks for a few steps, eagerly and compiled, and compares the losses.

python examples/gpt_block.py [cuda]
"""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH, STEPS = 101, 64, 4, 32, 4, 5


class Block(nn.Module):
    """Pre-norm causal self-attention and an MLP, each with a residual."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class Model(nn.Module):
    """Token and position embeddings, blocks, and a tied output layer."""

    def __init__(self, blocks: int = 2):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS) for _ in range(blocks)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        logits = self.norm(self.blocks(x)) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model: nn.Module, device: str, *, compiled: bool) -> list[float]:
    """Losses of a few Adam steps on one batch."""
    step = torch.compile(model, backend="stepwell") if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator).to(device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = step(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(device: str = "cpu") -> None:
    torch.manual_seed(0)
    model = Model().to(device)
    eager = train(copy.deepcopy(model), device, compiled=False)
    compiled = train(model, device, compiled=True)
    for step, (expected, loss) in enumerate(zip(eager, compiled, strict=True)):
        print(f"step {step}: eager {expected:.6f}, compiled {loss:.6f}")
    torch.testing.assert_close(torch.tensor(compiled), torch.tensor(eager), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main(*sys.argv[1:])

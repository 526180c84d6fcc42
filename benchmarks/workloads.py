"""The rows of the benchmark, as plain torch functions with the shapes at which they run.

Nothing here knows of a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

Shape = tuple[int, ...]
Inputs = tuple[Tensor, ...]

MATRICES = {"wide": (2048, 8192), "tall": (65536, 64), "prime": (2039, 8191), "ragged": (1021, 1031)}
"""f32 matrices of 64, 16, 64 and 4 MiB; both extents of the last two are prime."""
BF16_MATRICES = {"wide": (4096, 8192), "tall": (131072, 64), "prime": (4093, 8191), "ragged": (2039, 1031)}
CLASSES = {"wide": (512, 32768), "tall": (128, 32768), "prime": (509, 32749), "ragged": (31, 32003)}


@dataclass(frozen=True)
class Workload:
    """One row: a function, how to make its inputs for a shape, and whether its backward is what is timed.

    `traffic` counts the tensors of the row's shape that any implementation must read or write; 0 says that
    memory does not bound the row.
    """

    name: str
    function: Callable[..., Tensor]
    inputs: Callable[[Shape], Inputs]
    traffic: int
    shapes: Mapping[str, Shape] = field(default_factory=lambda: MATRICES)
    backward: bool = False


# -- functions ---------------------------------------------------------------------------------------


def tiny(x: Tensor) -> Tensor:
    return x + 1


def pointwise(x: Tensor, y: Tensor) -> Tensor:
    return torch.relu(x * y + 1) * torch.sigmoid(y) - x


def chain_of_30(x: Tensor) -> Tensor:
    for step in range(10):
        x = torch.tanh(x * (1 + step / 10) - 0.1)
    return x


def softmax(x: Tensor) -> Tensor:
    return functional.softmax(x, dim=-1)


def layer_norm_residual(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x + residual, weight.shape, weight, bias)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, list(weight.shape), weight)


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return torch.add(x, self.mlp(self.norms[1](x)))


def transformer(blocks: nn.Module, x: Tensor, *parameters: Tensor) -> Tensor:
    """A loss of a stack of blocks with these parameters."""
    names = [name for name, _ in blocks.named_parameters()]
    output: Tensor = functional_call(blocks, dict(zip(names, parameters, strict=True)), (x,))
    return output.square().mean()


# -- inputs ------------------------------------------------------------------------------------------


def matrices(count: int, dtype: torch.dtype = torch.float32) -> Callable[[Shape], Inputs]:
    return lambda shape: tuple(torch.randn(shape).to(dtype) for _ in range(count))


def rows_and_vectors(rows: int, vectors: int, dtype: torch.dtype = torch.float32) -> Callable[[Shape], Inputs]:
    """Matrices and vectors as long as their last dimension, as norms take them."""
    return lambda shape: (*matrices(rows, dtype)(shape), *matrices(vectors, dtype)(shape[-1:]))


def logits_and_targets(shape: Shape) -> Inputs:
    return torch.randn(shape), torch.randint(shape[-1], shape[:1])


def _transformer_row(name: str, width: int = 128, heads: int = 4, depth: int = 4) -> Workload:
    torch.manual_seed(0)
    blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))

    def inputs(shape: Shape) -> Inputs:
        return torch.randn(shape), *blocks.parameters()

    return Workload(name, partial(transformer, blocks), inputs, 0, {"small": (8, 64, width)}, backward=True)


# -- rows --------------------------------------------------------------------------------------------

_FORWARD = (
    Workload("pointwise", pointwise, matrices(2), 3),
    Workload("chain of 30", chain_of_30, matrices(1), 2),
    Workload("gelu", functional.gelu, matrices(1), 2),
    Workload("softmax", softmax, matrices(1), 2),
    Workload("layer norm + residual", layer_norm_residual, rows_and_vectors(2, 2), 3),
    Workload("rms norm bf16", rms_norm, rows_and_vectors(1, 1, torch.bfloat16), 2, BF16_MATRICES),
    Workload("cross entropy", functional.cross_entropy, logits_and_targets, 1, CLASSES),
)

_BACKWARD_TRAFFIC = {
    "pointwise": 5,
    "chain of 30": 3,
    "gelu": 3,
    "softmax": 3,
    "layer norm + residual": 3,  # the sum is saved, and one gradient serves both terms
    "rms norm bf16": 3,
    "cross entropy": 2,
}

WORKLOADS = (
    Workload("tiny", tiny, matrices(1), 0, {"small": (64,)}),
    *_FORWARD,
    *(
        replace(row, name=f"{row.name} backward", traffic=_BACKWARD_TRAFFIC[row.name], backward=True)
        for row in _FORWARD
    ),
    Workload("sum", torch.sum, matrices(1), 1),
    Workload("row sum", partial(torch.sum, dim=1), matrices(1), 1),
    Workload("column sum", partial(torch.sum, dim=0), matrices(1), 1),
    _transformer_row("transformer backward"),
)

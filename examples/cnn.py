"""Trains a small CNN with batch norm, then runs it in inference mode, eagerly and compiled.

python examples/cnn.py [cuda]
"""

from __future__ import annotations

import copy
import sys

import torch
from torch import nn


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def train_and_predict(model: nn.Module, device: str, *, compiled: bool) -> torch.Tensor:
    """The logits after three steps of SGD; batch norm's running statistics are updated on the way."""
    run = torch.compile(model, backend="stepwell") if compiled else model
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(8, 3, 32, 32, generator=generator).to(device)
    labels = torch.randint(0, 10, (8,), generator=generator).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(run(images), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits: torch.Tensor = run(images)
    return logits


def main(device: str = "cpu") -> None:
    torch.manual_seed(0)
    model = make_model().to(device)
    eager = train_and_predict(copy.deepcopy(model), device, compiled=False)
    compiled = train_and_predict(model, device, compiled=True)
    torch.testing.assert_close(compiled, eager, rtol=1e-3, atol=1e-4)
    print(f"largest difference of the logits: {(compiled - eager).abs().max():.2e}")


if __name__ == "__main__":
    main(*sys.argv[1:])

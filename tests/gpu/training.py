"""Trains a small model with Adam, eagerly and compiled, for tests that compare the losses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def losses(device: torch.device, steps: int, *wraps: Wrap) -> list[list[float]]:
    """The losses of all steps for each way of wrapping the function that is trained, from the same beginning."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).to(device)
    x, y = torch.randn(40, 32, device=device), torch.randn(40, 8, device=device)
    return [_trained(copy.deepcopy(model), wrap, x, y, steps) for wrap in wraps]


def _trained(model: nn.Module, wrap: Wrap, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_of = wrap(lambda x, y: nn.functional.mse_loss(model(x), y))
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found

"""Symbolic sizes: one compiled kernel serves every size, and machine code is made twice at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from stepwell.backends.native import jit
from stepwell.runtime import compiler


@pytest.fixture
def compiled_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The LLVM texts of all kernels compiled from now on."""
    texts: list[str] = []
    compile_modules = jit.compile_modules

    def counting(batch: Iterable[str], **options: Any) -> Any:
        batch = list(batch)
        texts.extend(batch)
        return compile_modules(batch, **options)

    monkeypatch.setattr(compiler, "compile_modules", counting)
    return texts


def test_fifty_batch_sizes_compile_twice(compiled_texts: list[str]) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.LayerNorm(32), nn.Linear(32, 4))
    compiled = torch.compile(model, backend="stepwell")
    counts: list[int] = []
    for batch in range(3, 53):
        x = torch.randn(batch, 16)
        gradients = [_gradients(run, model, x) for run in (compiled, model)]
        for found, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        counts.append(len(compiled_texts))
    assert counts[0] > 0
    assert len(set(counts[1:])) == 1


def _gradients(run: Callable[..., torch.Tensor], model: nn.Module, x: torch.Tensor) -> Sequence[torch.Tensor]:
    return torch.autograd.grad(run(x).square().mean(), list(model.parameters()))


@pytest.mark.parametrize("sizes", [(4, 7), (9, 33), (2, 100), (64, 2000), (5, 3)])
def test_both_sizes_may_be_symbolic(sizes: tuple[int, int]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1).sum(0) + x[:, 1:].mean() + F.pad(x, (1, 2)).flip(1).amax()

    x = torch.randn(*sizes)
    compiled = torch.compile(function, backend="stepwell", dynamic=True)
    torch.testing.assert_close(compiled(x), function(x))


def test_sizes_that_are_products_and_quotients() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        return x.reshape(rows * columns // 2, 2).transpose(0, 1).contiguous().view(-1)[: rows * 2] * x.shape[0]

    compiled = torch.compile(function, backend="stepwell", dynamic=True)
    for sizes in ((4, 6), (10, 8), (3, 14)):
        x = torch.randn(*sizes)
        assert torch.equal(compiled(x), function(x))

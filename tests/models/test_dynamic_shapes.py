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


def test_a_size_that_depends_on_data() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(x > 0).sum(0) + 1

    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for seed in range(3):
            torch.manual_seed(seed)
            x = torch.randn(5, 8)
            assert torch.equal(compiled(x), function(x))


def _mixed(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    y = torch.softmax(x, -1)[1:, : columns // 2] * rows
    return (y.cumsum(0) + x[:-1, -(columns // 2) :]).reshape(-1).view(columns // 2, -1).amax(1)


def test_fifty_sizes_of_a_marked_dim_are_one_compile(compiled_texts: list[str]) -> None:
    compiled = torch.compile(_mixed, backend="stepwell")
    counts = set()
    for rows in range(3, 53):
        x = torch.randn(rows, 12)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), _mixed(x))
        counts.add(len(compiled_texts))
    assert len(counts) == 1


def test_fifty_shapes_under_dynamic_are_one_compile(compiled_texts: list[str]) -> None:
    compiled = torch.compile(_mixed, backend="stepwell", dynamic=True)
    counts = set()
    for rows in range(3, 53):
        x = torch.randn(rows, 2 * (rows % 7) + 4)
        torch.testing.assert_close(compiled(x), _mixed(x))
        counts.add(len(compiled_texts))
    assert len(counts) == 1


def test_sizes_0_and_1_have_graphs_of_their_own(compiled_texts: list[str]) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + y, (x * 2).sum(0), torch.cat([x, y]).relu(), x.mean()

    compiled = torch.compile(function, backend="stepwell", dynamic=True)
    counts = []
    for rows in (5, 9, 1, 0, 7, 1, 0):
        x, y = torch.randn(rows, 4), torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x, y), function(x, y), equal_nan=True)
        counts.append(len(compiled_texts))
    assert counts[0] == counts[1]
    assert counts[-1] == counts[3]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: x[k:] + 1,
        lambda x, k: x[:-k] + 1,
        lambda x, k: x[-k:] * 2,
        lambda x, k: x[k:-k, ::2] * 2,
        lambda x, k: x[-k - 1 : -1].softmax(0),
        lambda x, k: x[::k].sum(1),
        lambda x, k: x.narrow(0, k, x.shape[0] - 2 * k).exp(),
        lambda x, k: torch.cat([x[k:], x[:k]]).roll(k, 1),
        lambda x, k: x.flatten()[k * x.shape[1] : x.shape[0] * x.shape[1] // 2 * 2 : 2] - k,
        lambda x, k: x.unfold(0, k, 1).sum(-1) * (x.shape[0] // k),
    ],
    ids=["from", "to-negative", "last", "both", "negative-both", "step", "narrow", "rotate", "products", "windows"],
)
def test_slices_with_negative_and_symbolic_bounds(function: Callable[..., torch.Tensor]) -> None:
    compiled = torch.compile(function, backend="stepwell", dynamic=True)
    for rows, columns, k in ((9, 6, 2), (14, 5, 3), (33, 8, 6), (100, 7, 4)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x, k), function(x, k))


def test_integers_may_be_negative(compiled_texts: list[str]) -> None:
    def function(x: torch.Tensor, k: int) -> torch.Tensor:
        return x * k + max(k, 0) * 2 + min(k, 0) + k // 3 + k % 3

    compiled = torch.compile(function, backend="stepwell", dynamic=True)
    x = torch.randn(5)
    for k in (7, -7, 5, -4, -100):
        torch.testing.assert_close(compiled(x, k), function(x, k))

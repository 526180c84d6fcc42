"""Triton kernels that a compiled function launches: part of its graph, run as eager runs them.

Without a GPU Triton refuses to launch; there these tests put torch in the place of the kernel.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="a user of Triton has it")

import stepwell
from stepwell.tests.behaviour.comparison import check, compiled, same
from stepwell.tests.behaviour.user_kernels import BLOCK, PROGRAMS, as_an_operator, between_kernels, weighted_sum

SIZE = 3 * BLOCK + 5


def arguments(size: int = SIZE) -> list[Tensor]:
    return [torch.randn(size), torch.randn(size)]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Lets torch do what the kernel would, lists the grids, and has Dynamo believe in a device."""
    grids: list[Any] = []

    def run(
        x: Tensor, y: Tensor, out: Tensor, count: int, weight: float, BLOCK: int, *, grid: Any, **options: Any
    ) -> None:
        grids.append(grid({"BLOCK": BLOCK}) if callable(grid) else grid)
        out.view(-1)[:count] = x.view(-1)[:count] + y.view(-1)[:count] * weight

    monkeypatch.setattr(weighted_sum, "run", run)
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda **_: True)
    return grids


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_eager(name: str, launched: list[Any]) -> None:
    check(PROGRAMS[name], arguments)
    assert {next(iter(grid)) for grid in launched} == {4}


def test_one_graph_with_kernels_around(launched: list[Any]) -> None:
    explanation = stepwell.explain(between_kernels, *arguments())
    [graph] = explanation.graphs
    assert [extern.target for extern in graph.externs] == ["higher_order.triton_kernel_wrapper_functional"]
    assert {"exp", "add"} in [set(kernel.ops) for kernel in graph.kernels]


def test_any_size(launched: list[Any]) -> None:
    fast = compiled(between_kernels)
    for size in (5, 200, 1000):
        x, y = arguments(size)
        same(fast(x, y), between_kernels(x, y))
    assert {next(iter(grid)) for grid in launched} == {1, 2, 8}


def test_gradients_of_an_operator(launched: list[Any]) -> None:
    x, y = (tensor.requires_grad_() for tensor in arguments())
    found, expected = compiled(as_an_operator)(x, y), as_an_operator(x, y)
    same(found, expected)
    same(torch.autograd.grad(found.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks what happens where nothing can be launched")
def test_without_a_device_it_raises_what_eager_raises() -> None:
    messages = []
    for function in (between_kernels, compiled(between_kernels)):
        with pytest.raises(RuntimeError) as raised:
            function(*arguments())
        messages.append(str(raised.value))
    assert messages[0] == messages[1]

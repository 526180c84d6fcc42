"""What one pass over memory can do is one kernel: forward, and at most two for a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import stepwell

ROWS, COLUMNS, CLASSES = 64, 384, 32_000

Case = tuple[Callable[..., torch.Tensor], list[torch.Tensor]]


def _random(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype)


def pointwise_chain() -> Case:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for step in range(10):
            x = torch.tanh(x) * 1.5 + step
        return x

    return chain, [_random(ROWS, COLUMNS)]


def softmax() -> Case:
    return lambda x: torch.softmax(x, -1), [_random(ROWS, COLUMNS)]


def masked_softmax() -> Case:
    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.masked_fill(mask, float("-inf")), -1)

    return masked, [_random(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS) < 0.3]


def layer_norm_with_residual() -> Case:
    def norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x + residual, (COLUMNS,), weight, bias)

    return norm, [_random(ROWS, COLUMNS), _random(ROWS, COLUMNS), _random(COLUMNS), _random(COLUMNS)]


def rms_norm_in_bf16() -> Case:
    data = [_random(ROWS, COLUMNS, dtype=torch.bfloat16), _random(COLUMNS, dtype=torch.bfloat16)]
    return lambda x, weight: F.rms_norm(x, (COLUMNS,), weight), data


def cross_entropy() -> Case:
    return lambda x, target: F.cross_entropy(x, target), [_random(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))]


CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (
        pointwise_chain, softmax, masked_softmax, layer_norm_with_residual, rms_norm_in_bf16, cross_entropy,
    )
}  # fmt: skip


def _launches(graphs: Any) -> int:
    return sum(kernel.launches for graph in graphs for kernel in graph.kernels)


@pytest.mark.parametrize("name", CASES)
def test_forward_is_one_kernel(name: str) -> None:
    function, inputs = CASES[name]()
    explained = stepwell.explain(function, *inputs)
    assert _launches(explained.graphs) == 1, str(explained)
    assert not explained.externs


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_at_most_two_kernels(name: str) -> None:
    function, inputs = CASES[name]()
    for value in inputs:
        value.requires_grad_(value.is_floating_point())

    def step(*arguments: torch.Tensor) -> torch.Tensor:
        return function(*arguments)

    explained = stepwell.explain(step, *inputs)
    forward, backward = explained.graphs
    assert _launches([forward]) == 1, str(explained)
    assert _launches([backward]) <= 2, str(explained)
    assert not explained.externs


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_eager(name: str) -> None:
    function, inputs = CASES[name]()
    expected = function(*inputs)
    found = torch.compile(function, backend="stepwell")(*inputs)
    exact = function(*(value.double() if value.is_floating_point() else value for value in inputs))
    eager_error = (expected.double() - exact).abs().max()
    scale = exact.abs().max() * torch.finfo(expected.dtype).eps
    assert (found.double() - exact).abs().max() <= 2 * eager_error + 2 * scale

"""Pooling and its gradients against eager, in both of the ways in which gradients of maxima are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from stepwell.frontend.builder import GraphBuilder
from stepwell.tests.behaviour.comparison import compiled


class Geometry(NamedTuple):
    """Of the windows of a pooling, and the size of the images."""

    kernel: Any
    stride: Any
    padding: Any = 0
    dilation: Any = 1
    ceil_mode: bool = False
    size: tuple[int, int] = (13, 11)


GEOMETRIES = {
    "side by side": Geometry(2, 2),
    "overlapping": Geometry(3, 2, 1),
    "one step": Geometry(3, 1, 1),
    "with gaps between windows": Geometry(2, 3),
    "different along both axes": Geometry((3, 2), (2, 3), (1, 0)),
    "beyond the end": Geometry(3, 2, 1, 1, True, (12, 12)),
    "one window": Geometry((13, 11), 1),
    "steps as wide as images": Geometry(3, 8, 1),
    "dilated": Geometry(3, 2, 1, 2),
}

LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "channels-last": lambda x: x.to(memory_format=torch.channels_last),
    "a slice": lambda x: torch.cat([x, x], -1)[..., 1 : 1 + x.shape[-1]],
    "one image": lambda x: x[0],
}


COMBINATIONS = [
    *((geometry, "contiguous") for geometry in GEOMETRIES),
    *((geometry, "channels-last") for geometry in ("side by side", "beyond the end", "dilated")),
    *(("overlapping", layout) for layout in LAYOUTS if layout != "contiguous"),
]


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows add to their maxima, or elements look at their windows."""
    if request.param == "as on a GPU":
        monkeypatch.setattr(GraphBuilder, "is_on_cpu", False)


def results_and_gradient(function: Callable[..., Any], x: Tensor) -> tuple[Any, Tensor]:
    x = x.detach().requires_grad_()
    results = function(x)
    pooled = results[0] if isinstance(results, tuple) else results
    weights = torch.arange(pooled.numel(), dtype=torch.float32).cos().reshape(pooled.shape)
    (gradient,) = torch.autograd.grad(pooled, x, weights.to(pooled.dtype))
    return results, gradient


def compare(function: Callable[..., Any], x: Tensor, **options: Any) -> None:
    found, expected = (results_and_gradient(one, x) for one in (compiled(function, **options), function))
    tolerance = 8 * torch.finfo(x.dtype).eps  # eager rounds narrow sums at each step
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    for one, other in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        assert one.stride() == other.stride()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("geometry", "layout"), COMBINATIONS)
def test_maxima(geometry: str, layout: str) -> None:
    kernel, stride, padding, dilation, ceil_mode, size = GEOMETRIES[geometry]
    strict = geometry != "dilated"  # elements do not look for dilated windows

    def pool(x: Tensor) -> tuple[Tensor, Tensor]:
        return functional.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)

    torch.manual_seed(0)
    compare(pool, LAYOUTS[layout](torch.randn(2, 3, *size).round(decimals=1)), strict=strict)


@pytest.mark.parametrize(("geometry", "layout"), [pair for pair in COMBINATIONS if pair[0] != "dilated"])
def test_means(geometry: str, layout: str) -> None:
    kernel, stride, padding, _, ceil_mode, size = GEOMETRIES[geometry]

    def pool(x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad=layout == "contiguous")

    torch.manual_seed(0)
    compare(pool, LAYOUTS[layout](torch.randn(2, 3, *size)))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).to(dtype)
    compare(lambda x: functional.max_pool2d(x, 3, 2, 1), x)
    compare(lambda x: functional.avg_pool2d(x, 3, 2, 1), x)


@pytest.mark.usefixtures("way")
def test_padding_is_never_the_maximum() -> None:
    """Not even of windows that hold nothing but -inf."""
    x = torch.full((1, 2, 6, 6), -math.inf)
    x[0, 1, 2:4, 2:4] = 1.0
    compare(lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    compare(lambda x: functional.max_pool2d(x, 5, 1, 2, return_indices=True), x)


@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_padding_is_never_the_maximum_of_dilated_windows(dilation: int) -> None:
    x = torch.full((1, 1, 9, 9), -math.inf)
    compare(lambda x: functional.max_pool2d(x, 3, 2, 1, dilation, return_indices=True), x)


@pytest.mark.usefixtures("way")
def test_the_gradient_goes_to_the_last_nan_or_the_first_maximum() -> None:
    x = torch.zeros(1, 1, 6, 6)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = x[0, 0, 4, 4] = math.nan
    compare(lambda x: functional.max_pool2d(x, 3, 3, return_indices=True), x)


@pytest.mark.usefixtures("way")
def test_sizes_that_vary() -> None:
    """One graph serves all sizes after the second."""

    def pool(x: Tensor) -> Tensor:
        return functional.max_pool2d(x, 3, 2, 1) + functional.avg_pool2d(x, 3, 2, 1)

    fast = compiled(pool, strict=True)
    for rows, columns in ((9, 8), (12, 7), (5, 16), (6, 6), (21, 3)):
        torch.manual_seed(rows)
        x = torch.randn(2, 3, rows, columns)
        torch.testing.assert_close(results_and_gradient(fast, x), results_and_gradient(pool, x))

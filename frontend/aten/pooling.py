"""Pooling as reductions over sliding windows, and its gradients as sums over the windows that hold an element.

Only 2-d pooling with static kernels; everything else is an extern.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import INT64, is_float
from ...ir.expr import Expr, as_expr, product
from ..builder import Declined, GraphBuilder, Value, isnan, where
from .creation import padded
from .registry import imports


def _pair(value: Any) -> list[int]:
    pair = [value] if isinstance(value, int) else list(value)
    return pair * 2 if len(pair) == 1 else pair


def _windows(
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outside: Any,
    counts: Sequence[Expr],
) -> Value:
    """All windows of the last two dims, padded with a value: (…, rows, columns, kernel rows, kernel columns)."""
    low, high = [0] * x.rank, [0] * x.rank
    for axis in range(2):
        dim = x.rank - 2 + axis
        low[dim] = padding[axis]
        high[dim] = _missing(x.sizes[dim], counts[axis], kernel[axis], stride[axis], padding[axis], dilation[axis])
    windows = padded(x, low, high, outside)
    view = windows.builder.emit(graph.WindowOp.make(windows.ssa, kernel, stride, dilation))
    for axis in range(2):  # without ceil_mode rows past the last window may be left over
        view = view.slice(x.rank - 2 + axis, 0, counts[axis])
    return view


def _missing(size: Expr, count: Expr, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many elements the last window reaches past the end."""
    if not size.is_constant or not count.is_constant:
        return padding  # right without ceil_mode, which is refused for such sizes
    last = (count.constant - 1) * stride + (kernel - 1) * dilation + 1
    return max(0, last - padding - size.constant)


def _checked(self: Value, ceil_mode: bool, *geometry: Sequence[Any]) -> None:
    static = all(isinstance(value, int) for values in geometry for value in values)
    known = not ceil_mode or all(size.is_constant for size in self.sizes[-2:])
    if self.rank not in (3, 4) or not is_float(self.element) or not static or not known:
        raise Declined


# -- maximum -----------------------------------------------------------------------------------------


@imports("aten.max_pool2d_with_indices")
def max_pool(
    builder: GraphBuilder,
    self: Value,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Value, Value]:
    """The index is that in the plane, of the first maximum in the window, or, as in eager, of the last NaN in it."""
    kernel, pad, spread = _pair(kernel_size), _pair(padding), _pair(dilation)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad, spread)
    *outer, rows, columns = builder.sizes
    windows = _windows(self, kernel, step, pad, spread, -math.inf, (rows, columns))
    flat = windows.reshape([*outer, rows, columns, kernel[0] * kernel[1]])
    last = [flat.rank - 1]
    nan = where(isnan(flat), builder.iota(flat.sizes[-1]), -1).max(last)
    offset = where(nan >= 0, nan, flat.reduce(graph.ArgMaxOp, last))
    row = builder.binary(graph.FloorDivOp, offset, kernel[1])
    column = offset - row * kernel[1]
    row = row * spread[0] + builder.iota(rows, -pad[0], step[0]).unsqueeze(1)
    column = column * spread[1] + builder.iota(columns, -pad[1], step[1])
    return flat.max(last), row * self.sizes[-1] + column


@imports("aten.max_pool2d_with_indices_backward")
def max_pool_backward(
    builder: GraphBuilder,
    grad_output: Value,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """Each element takes the gradient of those windows whose maximum it is."""
    kernel, pad, spread = _pair(kernel_size), _pair(padding), _pair(dilation)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad, spread)
    if spread != [1, 1]:
        raise Declined
    *_, rows, columns = self.sizes
    place = builder.iota(rows).unsqueeze(1) * columns + builder.iota(columns)

    def share(grad: Value, index: Value) -> Value:
        return where(index.equals(place), grad, 0)

    return _sum_over_windows(builder, self, [grad_output.up(), indices], kernel, step, pad, share)


def _sum_over_windows(
    builder: GraphBuilder,
    self: Value,
    pooled: Sequence[Value],
    kernel: Sequence[int],
    step: Sequence[int],
    pad: Sequence[int],
    share: Any,
) -> Value:
    """Σ over the windows that hold each element of `share(values of the pooled tensors at the window)`."""
    sizes, counts = self.sizes[-2:], pooled[0].sizes[-2:]
    axes = [
        [_window_of(builder, sizes[axis], counts[axis], kernel[axis], step[axis], pad[axis], back)
         for back in range(-(-kernel[axis] // step[axis]))]
        for axis in range(2)
    ]  # fmt: skip
    total: Value | None = None
    for (row, row_holds), (column, column_holds) in itertools.product(*axes):
        holds = row_holds.unsqueeze(1) & column_holds
        place = [row.unsqueeze(1).broadcast(sizes).ssa, column.broadcast(sizes).ssa]
        dims = [self.rank - 2, self.rank - 1]
        values = [builder.emit(graph.IndexOp.make(value.ssa, place, dims, "unchecked")) for value in pooled]
        part = where(holds, share(*values), 0)
        total = part if total is None else total + part
    assert total is not None
    return total


def _window_of(
    builder: GraphBuilder, size: Expr, count: Expr, kernel: int, step: int, pad: int, back: int
) -> tuple[Value, Value]:
    """For each index along an axis the `back`-th last window that could hold it, and whether it does."""
    index = builder.iota(size, pad)
    window = builder.binary(graph.FloorDivOp, index, step) - back
    inside = (window >= 0) & (window < builder.full(count, INT64, [size]))
    return window, inside & (index < window * step + kernel)


# -- average -----------------------------------------------------------------------------------------


def _divisor(
    builder: GraphBuilder,
    sizes: Sequence[Expr],
    counts: Sequence[Expr],
    kernel: Sequence[int],
    step: Sequence[int],
    pad: Sequence[int],
    count_include_pad: bool,
) -> Value:
    """How many elements each window averages, as i64 of (rows, columns)."""
    extents = []
    for axis in range(2):
        start = builder.iota(counts[axis], -pad[axis], step[axis])
        border = pad[axis] if count_include_pad else 0
        end = builder.binary(graph.MinimumOp, start + kernel[axis], sizes[axis] + border)
        extents.append(end - builder.binary(graph.MaximumOp, start, -border))
    return extents[0].unsqueeze(1) * extents[1]


@imports("aten.avg_pool2d")
def avg_pool(
    builder: GraphBuilder,
    self: Value,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    kernel, pad = _pair(kernel_size), _pair(padding)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad)
    counts = builder.sizes[-2:]
    windows = _windows(self.up(), kernel, step, pad, [1, 1], 0, counts)
    total = windows.sum([windows.rank - 2, windows.rank - 1])
    if divisor_override:
        return total / divisor_override
    if not any(pad) and not ceil_mode:
        return total / product(map(as_expr, kernel))
    divisor = _divisor(builder, self.sizes[-2:], counts, kernel, step, pad, count_include_pad)
    return total / divisor.to(total.element)


@imports("aten.avg_pool2d_backward")
def avg_pool_backward(
    builder: GraphBuilder,
    grad_output: Value,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    kernel, pad = _pair(kernel_size), _pair(padding)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad)
    grad = grad_output.up()
    if divisor_override:
        shared = grad / divisor_override
    else:
        counts = grad.sizes[-2:]
        divisor = _divisor(builder, self.sizes[-2:], counts, kernel, step, pad, count_include_pad)
        shared = grad / divisor.to(grad.element)
    return _sum_over_windows(builder, self, [shared], kernel, step, pad, lambda value: value)

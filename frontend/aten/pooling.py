"""Pooling as reductions over sliding windows, and its gradients as sums over the windows that hold an element.

Only 2-d pooling with static kernels; everything else is an extern.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import INT32, INT64, is_float
from ...ir.expr import ONE, Expr, as_expr, product
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
    """The index is that in the plane, of the first maximum in the window, or, as in eager, of the last NaN in it.

    Where all elements of a window are -inf, padding is no less; it is never the maximum even so.
    """
    kernel, pad, spread = _pair(kernel_size), _pair(padding), _pair(dilation)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad, spread)
    *outer, rows, columns = builder.sizes
    windows = _windows(self, kernel, step, pad, spread, -math.inf, (rows, columns))
    flat = windows.reshape([*outer, rows, columns, kernel[0] * kernel[1]])
    last = [flat.rank - 1]
    numbers = builder.iota(flat.sizes[-1]).to(INT32)  # as many lanes as those of f32
    nan = where(isnan(flat), numbers, -1).max(last)
    offset = where(nan >= 0, nan, flat.reduce(graph.ArgMaxOp, last).to(INT32))
    kernel_row = builder.binary(graph.FloorDivOp, offset, kernel[1])
    row, column = kernel_row.to(INT64), (offset - kernel_row * kernel[1]).to(INT64)
    row = _after_padding(row, rows, step[0], pad[0], spread[0], 1)
    column = _after_padding(column, columns, step[1], pad[1], spread[1], 0)
    row = row * spread[0] + builder.iota(rows, -pad[0], step[0]).unsqueeze(1)
    column = column * spread[1] + builder.iota(columns, -pad[1], step[1])
    return flat.max(last), row * self.sizes[-1] + column


def _after_padding(place: Value, count: Expr, step: int, pad: int, spread: int, behind: int) -> Value:
    """Places in windows, those of low padding moved up to the first element; `behind` dims follow that of windows."""
    if not pad:
        return place
    builder = place.builder
    first = builder.binary(graph.FloorDivOp, builder.iota(count, pad + spread - 1, -step), spread)
    first = first.reshape([count, *[ONE] * behind])
    return builder.binary(graph.MaximumOp, place, first)


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
    """Each window adds its gradient to the element that is its maximum, or each element takes the gradients of its
    windows: four times as many for 3×3 in steps of 2, but threads of a GPU do not meet, and channels fill lanes.
    """
    kernel, pad, spread = _pair(kernel_size), _pair(padding), _pair(dilation)
    step = _pair(stride) if stride else kernel
    _checked(self, ceil_mode, kernel, step, pad, spread)
    rows, columns = self.sizes[-2:]
    if builder.is_on_cpu and (self.strides[-1] == ONE or spread != [1, 1]):
        outer, count = self.sizes[:-2], product(grad_output.sizes[-2:])
        grad, places = (value.reshape([*outer, count]) for value in (grad_output.up(), indices))
        zeros = builder.full(0, grad.element, [*outer, rows * columns])
        scattered = graph.ScatterOp.make(zeros.ssa, places.ssa, grad.ssa, len(outer), "unchecked", "add")
        return builder.emit(scattered).reshape(self.sizes)
    if spread != [1, 1]:
        raise Declined
    place = builder.iota(rows, 0, columns).unsqueeze(1) + builder.iota(columns)
    at = _at_elements(self, [(grad_output.up(), 0), (indices, -1)], kernel, step, pad)
    return _sum(where(index.equals(place), grad, 0) for grad, index in at)


def _at_elements(
    self: Value, pooled: Sequence[tuple[Value, Any]], kernel: Sequence[int], step: Sequence[int], pad: Sequence[int]
) -> Iterator[list[Value]]:
    """Pooled tensors as seen by each element of what was pooled: at the last window that could hold it along either
    axis, the one before, and so on. Where a window does not hold it they have the number given with them."""
    backs = [range(-(-kernel[axis] // step[axis])) for axis in range(2)]
    for back in itertools.product(*backs):
        found = []
        for value, outside in pooled:
            for axis in range(2):
                dim = self.rank - 2 + axis
                first = pad[axis] - back[axis] * step[axis]
                width = min(step[axis], kernel[axis] - back[axis] * step[axis])
                value = _spread(value, dim, self.sizes[dim], kernel[axis], step[axis], first, width, outside)
            found.append(value)
        yield found


def _spread(value: Value, dim: int, size: Expr, kernel: int, step: int, first: int, width: int, outside: Any) -> Value:
    """Along a dim element i gets what window `(i + first) // step` has, if `(i + first) % step < width`."""
    low, high = [0] * (value.rank + 1), [0] * (value.rank + 1)
    high[dim + 1] = step - width
    sizes = value.sizes
    copies = value.unsqueeze(dim + 1).broadcast([*sizes[: dim + 1], as_expr(width), *sizes[dim + 1 :]])
    spread = padded(copies, low, high, outside).reshape([*sizes[:dim], sizes[dim] * step, *sizes[dim + 1 :]])
    low, high = [0] * value.rank, [0] * value.rank
    low[dim], high[dim] = max(0, -first), kernel  # elements behind the last window are fewer than one holds
    return padded(spread, low, high, outside).slice(dim, max(0, first), size)


def _sum(terms: Iterable[Value]) -> Value:
    return functools.reduce(operator.add, terms)


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
    return _sum(part for (part,) in _at_elements(self, [(shared, 0)], kernel, step, pad))

"""Tensors made of numbers: full, ranges, triangles, joined and padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import FLOAT64, UINT8, is_float, is_integer
from ...ir.expr import ExprLike, as_expr
from ...ir.graph import DataAttr
from ..builder import Declined, GraphBuilder, Operand, Value, where
from .registry import Row, imports, overload

# -- one number --------------------------------------------------------------------------------------


def _filled(number: int) -> Row:
    return lambda builder, *arguments, **options: builder.full(number, builder.element, builder.sizes)


imports("aten.zeros", "aten.zeros_like", "aten.new_zeros", "aten.zero")(_filled(0))
imports("aten.ones", "aten.ones_like", "aten.new_ones")(_filled(1))
_EMPTY = (
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.new_empty.default",
    "aten.empty_strided.default",
    "aten.empty_permuted.default",
    "aten.new_empty_strided.default",
    "prims.empty_strided.default",
)
imports(*_EMPTY)(_filled(0))

ALLOCATIONS = frozenset(map(overload, _EMPTY))
"""Operators that compute nothing."""


@imports("aten.full", "aten.full_like", "aten.fill.Scalar", "prims.full", "prims.full_like")
def full(builder: GraphBuilder, size: Any, fill_value: Operand, *arguments: Any, **options: Any) -> Value:
    if isinstance(fill_value, Value):
        return fill_value.to(builder.element).broadcast(builder.sizes)
    return builder.full(fill_value, builder.element, builder.sizes)


@imports("aten.new_full")
def new_full(builder: GraphBuilder, self: Value, size: Any, fill_value: Operand, **options: Any) -> Value:
    return full(builder, size, fill_value)


@imports("aten.scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(builder: GraphBuilder, s: Operand, **options: Any) -> Value:
    return full(builder, (), s)


@imports("aten.fill.Tensor")
def fill_tensor(builder: GraphBuilder, self: Value, value: Value) -> Value:
    return value.to(builder.element).broadcast(builder.sizes)


# -- ranges ------------------------------------------------------------------------------------------


@imports("prims.iota")
def iota(builder: GraphBuilder, length: ExprLike, *, start: ExprLike, step: ExprLike, **options: Any) -> Value:
    return builder.iota(length, start, step)


@imports("aten.arange.start_step")
def arange(builder: GraphBuilder, start: Operand, end: Operand, step: Operand = 1, **options: Any) -> Value:
    size = builder.sizes[0]
    if not any(isinstance(bound, float | Value) for bound in (start, step)) and not is_float(builder.element):
        return builder.iota(size, start, step)  # type: ignore[arg-type]
    if is_integer(builder.element) or any(isinstance(bound, Value) for bound in (start, step)):
        raise Declined
    return builder.iota(size).to(FLOAT64) * step + start


@imports("aten.arange.start")
def arange_start(builder: GraphBuilder, start: Operand, end: Operand, **options: Any) -> Value:
    return arange(builder, start, end)


@imports("aten.arange")
def arange_end(builder: GraphBuilder, end: Operand, **options: Any) -> Value:
    return arange(builder, 0, end)


@imports("aten.eye", "aten.eye.m")
def eye(builder: GraphBuilder, *arguments: Any, **options: Any) -> Value:
    rows, columns = builder.sizes
    return builder.iota(rows).unsqueeze(1).equals(builder.iota(columns))


def _diagonals(self: Value, diagonal: int) -> tuple[Value, Value]:
    """Column and shifted row of each element of the trailing matrix."""
    *_, rows, columns = self.sizes
    return self.builder.iota(columns), self.builder.iota(rows, diagonal).unsqueeze(1)


@imports("aten.tril")
def tril(builder: GraphBuilder, self: Value, diagonal: int = 0) -> Value:
    column, row = _diagonals(self, diagonal)
    return where(column <= row, self, 0)


@imports("aten.triu")
def triu(builder: GraphBuilder, self: Value, diagonal: int = 0) -> Value:
    column, row = _diagonals(self, diagonal)
    return where(column >= row, self, 0)


# -- joining and padding -----------------------------------------------------------------------------


@imports("aten.cat")
def cat(builder: GraphBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    """Empty vectors may stand among tensors of any rank; they add nothing."""
    parts = [part for part in tensors if part.rank == len(builder.sizes)]
    parts = [part.to(builder.element) for part in parts if not _is_empty_vector(part)] or parts
    if len(parts) == 1:
        return parts[0]
    return builder.emit(graph.CatOp.make([part.ssa for part in parts], parts[0].dim(dim)))


def _is_empty_vector(part: Value) -> bool:
    return part.sizes == (as_expr(0),)


@imports("aten.stack")
def stack(builder: GraphBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    position = dim % len(builder.sizes)
    parts = [part.to(builder.element).unsqueeze(position).ssa for part in tensors]
    return builder.emit(graph.CatOp.make(parts, position))


@imports("aten.constant_pad_nd")
def constant_pad(builder: GraphBuilder, self: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    """Padding is listed from the last dim on; a negative one cuts."""
    low: list[Any] = [0] * self.rank
    high: list[Any] = [0] * self.rank
    for position in range(len(pad) // 2):
        dim = self.rank - 1 - position
        low[dim], high[dim] = pad[2 * position], pad[2 * position + 1]
    if not all(isinstance(count, int) for count in (*low, *high)) or isinstance(value, Value):
        raise Declined
    if self.element == UINT8 and not builder.symbols.domain.is_nonnegative(as_expr(value)):
        raise Declined  # eager wraps negative numbers in other operators only
    return padded(_cut(self, low, high), [max(0, n) for n in low], [max(0, n) for n in high], value)


def _cut(self: Value, low: Sequence[Any], high: Sequence[Any]) -> Value:
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        removed = max(0, -before) + max(0, -after)
        if removed:
            self = self.slice(dim, max(0, -before), self.sizes[dim] - removed)
    return self


def padded(x: Value, low: Sequence[ExprLike], high: Sequence[ExprLike], value: Any) -> Value:
    if not any((*low, *high)):
        return x
    return x.builder.emit(graph.PadOp.make(x.ssa, low, high, DataAttr.of(x.element, value)))

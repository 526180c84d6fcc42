"""Views: permutations, reshapes, broadcasts, slices, and what torch expresses by strides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import numpy_dtype
from ...ir.expr import ONE, ZERO, Expr, ExprLike, as_expr, contiguous_strides, maximum, minimum
from ...ir.shapes import tensor_type
from ..builder import Declined, GraphBuilder, Value, element_for
from .registry import imports

# -- the same value ----------------------------------------------------------------------------------


@imports("aten.alias", "aten.detach", "aten.lift_fresh", "prims.view_of", "aten.lift")
def alias(builder: GraphBuilder, self: Value) -> Value:
    return self


# -- reshapes ----------------------------------------------------------------------------------------


@imports(
    "aten.view",
    "aten._unsafe_view",
    "aten._reshape_copy",
    "aten._reshape_alias",
    "aten.view_copy",
    "aten.unsqueeze",
    "aten.squeeze",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.unsqueeze_copy",
    "aten.squeeze_copy",
    "aten.squeeze_copy.dim",
    "aten.squeeze_copy.dims",
)
def reshape(builder: GraphBuilder, self: Value, *arguments: Any) -> Value:
    """All of them keep the order of the elements; the result's sizes say the rest."""
    return self.reshape(builder.sizes)


@imports("aten.expand", "aten.expand_copy")
def expand(builder: GraphBuilder, self: Value, size: Any, *, implicit: bool = False) -> Value:
    return self.broadcast(builder.sizes)


@imports("aten.repeat")
def repeat(builder: GraphBuilder, self: Value, repeats: Sequence[Any]) -> Value:
    """Each dim becomes (repeats, size), broadcast along the first."""
    sizes = [ONE] * (len(repeats) - self.rank) + list(self.sizes)
    if not sizes:
        return self
    apart = [extent for size in sizes for extent in (ONE, size)]
    repeated = [extent for count, size in zip(repeats, sizes, strict=True) for extent in (as_expr(count), size)]
    return self.reshape(apart).broadcast(repeated).reshape(builder.sizes)


@imports("aten.view.dtype")
def view_dtype(builder: GraphBuilder, self: Value, dtype: Any) -> Value:
    element = element_for(dtype)
    if numpy_dtype(element).itemsize != numpy_dtype(self.element).itemsize:
        raise Declined
    return self if element == self.element else builder.emit(graph.BitcastOp.make(self.ssa, element))


# -- permutations ------------------------------------------------------------------------------------


@imports("aten.permute", "aten.permute_copy")
def permute(builder: GraphBuilder, self: Value, dims: Sequence[int]) -> Value:
    return self.permute(dims)


@imports("aten.transpose.int", "aten.transpose_copy.int")
def transpose(builder: GraphBuilder, self: Value, dim0: int, dim1: int) -> Value:
    order = [*range(self.rank)]
    if order:
        first, second = self.dim(dim0), self.dim(dim1)
        order[first], order[second] = second, first
    return self.permute(order)


@imports("aten.t", "aten.t_copy")
def t(builder: GraphBuilder, self: Value) -> Value:
    return self.permute([*reversed(range(self.rank))])


@imports("aten.flip")
def flip(builder: GraphBuilder, self: Value, dims: Sequence[int]) -> Value:
    flipped = sorted({self.dim(dim) for dim in dims}) if self.rank else []
    return builder.emit(graph.FlipOp.make(self.ssa, flipped)) if flipped else self


# -- slices ------------------------------------------------------------------------------------------


def position_in(builder: GraphBuilder, position: ExprLike, size: Expr) -> Expr:
    """An index that may count from the end, counted from the start. A symbol's sign may be known at run time alone."""
    expr = as_expr(position)
    is_negative = builder.symbols.simplify(minimum(maximum(-expr, 0), 1))  # as a number
    return expr + is_negative * size


def clamped(builder: GraphBuilder, position: ExprLike, size: Expr) -> Expr:
    """A bound of a slice: counted from the start, within [0, size]."""
    found = position_in(builder, position, size)
    return builder.symbols.simplify(minimum(maximum(found, 0), size))


def slice_start(builder: GraphBuilder, self: Value, dim: int, start: ExprLike | None) -> Expr:
    return ZERO if start is None else clamped(builder, start, self.sizes[dim])


@imports("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    builder: GraphBuilder, self: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Value:
    dim = self.dim(dim)
    return self.slice(dim, slice_start(builder, self, dim, start), builder.sizes[dim], step)


@imports("aten.select.int", "aten.select_copy.int")
def select(builder: GraphBuilder, self: Value, dim: int, index: Any) -> Value:
    dim = self.dim(dim)
    return self.slice(dim, position_in(builder, index, self.sizes[dim]), 1).reshape(builder.sizes)


@imports("aten.narrow_copy")
def narrow(builder: GraphBuilder, self: Value, dim: int, start: Any, length: Any) -> Value:
    dim = self.dim(dim)
    return self.slice(dim, position_in(builder, start, self.sizes[dim]), length)


@imports(
    "aten.split.Tensor",
    "aten.split_with_sizes",
    "aten.unsafe_split.Tensor",
    "aten.unsafe_split_with_sizes",
    "aten.split_with_sizes_copy",
)
def split(builder: GraphBuilder, self: Value, split_size: Any, dim: int = 0) -> list[Value]:
    """Part after part, each as long as its result."""
    dim = self.dim(dim)
    parts, start = [], ZERO
    for position in range(len(builder.results)):
        length = builder.result_sizes(position)[dim]
        parts.append(self.slice(dim, start, length))
        start = start + length
    return parts


@imports("aten.unbind.int", "aten.unbind_copy.int")
def unbind(builder: GraphBuilder, self: Value, dim: int = 0) -> list[Value]:
    dim = self.dim(dim)
    return [
        self.slice(dim, position, 1).reshape(builder.result_sizes(position)) for position in range(len(builder.results))
    ]


# -- by strides --------------------------------------------------------------------------------------


def _strided(
    builder: GraphBuilder, self: Value, offset: ExprLike, sizes: Sequence[ExprLike], strides: Sequence[ExprLike]
) -> Value:
    return builder.emit(graph.AsStridedOp.make(self.ssa, offset, tensor_type(self.element, sizes, strides)))


def _row_major(builder: GraphBuilder, self: Value) -> Value:
    """The value in row-major memory, whose strides then say where its elements lie."""
    if self.strides == contiguous_strides(self.sizes):
        return self
    return builder.emit(graph.CopyOp.make(self.ssa, tensor_type(self.element, self.sizes)))


@imports("aten.as_strided", "aten.as_strided_copy")
def as_strided(
    builder: GraphBuilder, self: Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Value:
    """The offset counts from the storage's start, ours from the operand's first element.

    What may lie outside of the operand is for eager, which knows all of its storage, to find or to refuse.
    """
    return _strided(builder, self, offset_within(builder, self, size, stride, storage_offset), size, stride)


def offset_within(
    builder: GraphBuilder, self: Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any
) -> Expr:
    """Where elements so laid out begin, from the operand's first element on, if all lie within the operand."""
    offset = ZERO if storage_offset is None else as_expr(storage_offset) - builder.operand_offset()
    sizes = tuple(map(as_expr, size))
    room = _last(self.sizes, self.strides) - offset - _last(sizes, map(as_expr, stride))
    if ZERO not in sizes and not all(map(builder.symbols.domain.is_nonnegative, (offset, room))):
        raise Declined
    return offset


def _last(sizes: tuple[Expr, ...], strides: Iterable[Expr]) -> Expr:
    """How far after the first element the last one lies in memory; -1 where there is none."""
    if ZERO in sizes:
        return as_expr(-1)
    return sum(((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)), ZERO)


@imports("aten.diagonal", "aten.diagonal_copy")
def diagonal(builder: GraphBuilder, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    self = _row_major(builder, self)
    first, second = self.dim(dim1), self.dim(dim2)
    strides = self.strides
    kept = [dim for dim in range(self.rank) if dim not in (first, second)]
    start = strides[second] * offset if offset >= 0 else strides[first] * -offset
    along = strides[first] + strides[second]
    return _strided(builder, self, start, builder.sizes, [*(strides[dim] for dim in kept), along])


@imports("aten.unfold", "aten.unfold_copy")
def unfold(builder: GraphBuilder, self: Value, dimension: int, size: int, step: int) -> Value:
    if not self.rank:
        return self.reshape(builder.sizes)
    self = _row_major(builder, self)
    dim = self.dim(dimension)
    strides = list(self.strides)
    window = strides[dim]
    strides[dim] = window * step
    return _strided(builder, self, 0, builder.sizes, [*strides, window])


@imports("aten.roll")
def roll(builder: GraphBuilder, self: Value, shifts: Any, dims: Any = ()) -> Value:
    if not dims:
        flat = self.reshape([self.count])
        return roll(builder, flat, shifts, [0]).reshape(self.sizes)
    rolled = self
    for shift, position in zip(shifts, dims, strict=True):
        rolled = _rolled(builder, rolled, shift, self.dim(position))
    return rolled


def _rolled(builder: GraphBuilder, x: Value, shift: Any, dim: int) -> Value:
    size = x.sizes[dim]
    if not size.is_constant or not isinstance(shift, int):
        raise Declined
    moved = shift % size.constant if size.constant else 0
    if not moved:
        return x
    parts = [x.slice(dim, size - moved, moved), x.slice(dim, 0, size - moved)]
    return builder.emit(graph.CatOp.make([part.ssa for part in parts], dim))

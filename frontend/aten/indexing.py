"""Gathers, scatters and advanced indexing. Each names the check of `graph.BOUNDS` that eager makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import BOOL, INT32, INT64
from ...ir.expr import ONE, ZERO, Expr, ExprLike, as_expr, contiguous_strides
from ..builder import Declined, GraphBuilder, Operand, Value, broadcast_sizes, where
from .registry import Row, imports
from .views import offset_within, position_in, slice_start

_COMBINERS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
"""torch's name of a scatter's reduction → combiner."""


INDEX_TYPES = (INT64, INT32)
"""Of tensors that hold indices; masks, which select by position, are for externs."""


def _indices(indices: Sequence[Value | None]) -> tuple[list[Value], list[int]]:
    """Index tensors of common sizes, and the dims that they stand for."""
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    _needs(bool(given) and all(index.element in INDEX_TYPES for _, index in given))
    sizes: tuple[Expr, ...] = ()
    for _, index in given:
        sizes = broadcast_sizes(sizes, index.sizes)
    return [index.broadcast(sizes) for _, index in given], [dim for dim, _ in given]


def _needs(condition: bool) -> None:
    """Leaves a call to eager, which handles it in a way of its own or raises, unless the condition holds."""
    if not condition:
        raise Declined


def _not_empty(builder: GraphBuilder, size: Expr) -> bool:
    return builder.symbols.domain.is_less(ZERO, size)


# -- reading -----------------------------------------------------------------------------------------


def _index(bounds: str) -> Row:
    def row(builder: GraphBuilder, self: Value, indices: Sequence[Value | None]) -> Value:
        places, dims = _indices(indices)
        return builder.emit(graph.IndexOp.make(self.ssa, [place.ssa for place in places], dims, bounds))

    return row


imports("aten.index.Tensor")(_index("index"))
imports("aten._unsafe_index.Tensor")(_index("wrapped"))


@imports("aten._unsafe_masked_index")
def masked_index(
    builder: GraphBuilder, self: Value, mask: Value, indices: Sequence[Value | None], fill: Operand
) -> Value:
    """Indices are good where the mask holds; they are clamped elsewhere."""
    places, dims = _indices(indices)
    found = builder.emit(graph.IndexOp.make(self.ssa, [place.ssa for place in places], dims, "wrapped"))
    return where(mask, found, builder.operand(fill, found.element))


@imports("aten.embedding")
def embedding(
    builder: GraphBuilder,
    weight: Value,
    indices: Value,
    padding_idx: Any = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    _needs(_not_empty(builder, weight.sizes[0]))
    return builder.emit(graph.IndexOp.make(weight.ssa, [indices.ssa], [0], "select"))


@imports("aten.index_select")
def index_select(builder: GraphBuilder, self: Value, dim: int, index: Value) -> Value:
    _needs(self.rank > 0 and _not_empty(builder, self.sizes[self.dim(dim)]))
    place = index.reshape([index.count])
    return builder.emit(graph.IndexOp.make(self.ssa, [place.ssa], [self.dim(dim)], "select"))


@imports("aten.gather")
def gather(builder: GraphBuilder, self: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    _needs(self.rank == index.rank > 0 and index.element in INDEX_TYPES)
    return builder.emit(graph.GatherOp.make(self.ssa, index.ssa, self.dim(dim)))


@imports("aten.take")
def take(builder: GraphBuilder, self: Value, index: Value) -> Value:
    flat = self.reshape([self.count])
    return builder.emit(graph.IndexOp.make(flat.ssa, [index.ssa], [0], "index"))


# -- writing -----------------------------------------------------------------------------------------


def _accumulating(value: Value, combiner: str | None) -> Value:
    """What is combined is combined in f32 for bf16 and f16."""
    return value if combiner is None else value.up()


def _put(
    builder: GraphBuilder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    combiner: str | None,
    bounds: str,
) -> Value:
    if self.element == BOOL and combiner == "add":
        combiner = "or"
    places, dims = _indices(indices)
    x = _accumulating(self, combiner)
    sizes = graph.indexed_sizes(x.sizes, dims, places[0].sizes)
    values = values.to(x.element).broadcast(sizes)
    return builder.emit(
        graph.IndexPutOp.make(x.ssa, values.ssa, [place.ssa for place in places], dims, bounds, combiner)
    )


def _needs_one_type(self: Value, values: Value) -> None:
    """Eager does not convert what it writes, and refuses; torch's fake tensors let it pass."""
    _needs(values.element == self.element)


def _masked_put(self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value | None:
    """`self[mask] = number` chooses elementwise."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.element != BOOL or values.count != ONE or accumulate:
        return None
    sizes = [*mask.sizes, *[ONE] * (self.rank - mask.rank)]
    return where(mask.reshape(sizes).broadcast(self.sizes), values.to(self.element).reshape([]), self)


@imports("aten.index_put")
def index_put(
    builder: GraphBuilder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    masked = _masked_put(self, indices, values, accumulate)
    if masked is not None:
        return masked
    _needs_one_type(self, values)
    return _put(builder, self, indices, values, "add" if accumulate else None, "index")


@imports("aten._unsafe_index_put")
def unsafe_index_put(
    builder: GraphBuilder,
    self: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    _needs_one_type(self, values)
    return _put(builder, self, indices, values, "add" if accumulate else None, "wrapped")


@imports("aten._unsafe_masked_index_put_accumulate")
def masked_index_put(
    builder: GraphBuilder, self: Value, mask: Value, indices: Sequence[Value | None], values: Value
) -> Value:
    _needs_one_type(self, values)
    return _put(builder, self, indices, where(mask, values, 0), "add", "wrapped")


@imports("aten.embedding_dense_backward")
def embedding_backward(
    builder: GraphBuilder,
    grad_output: Value,
    indices: Value,
    num_weights: Any,
    padding_idx: Any,
    scale_grad_by_freq: bool,
) -> Value:
    if scale_grad_by_freq:
        raise Declined
    grad = grad_output.up()
    if not isinstance(padding_idx, int) or padding_idx >= 0:
        grad = where(indices.equals(padding_idx).unsqueeze(indices.rank), 0, grad)
    zeros = builder.full(0, grad.element, builder.sizes)
    return _put(builder, zeros, [indices], grad, "add", "select")


def _scatter(builder: GraphBuilder, self: Value, dim: int, index: Value, src: Operand, combiner: str | None) -> Value:
    _needs(self.rank == index.rank > 0 and index.element in INDEX_TYPES)
    x = _accumulating(self, combiner)
    if isinstance(src, Value) and src.rank:
        _needs(src.rank == index.rank)
        _needs_one_type(self, src)
        value = src.to(x.element)
        for position, size in enumerate(index.sizes):
            value = value.slice(position, 0, size)
    elif isinstance(src, Value):
        value = src.to(x.element).broadcast(index.sizes)
    else:
        value = builder.full(src, x.element, index.sizes)
    return builder.emit(graph.ScatterOp.make(x.ssa, index.ssa, value.ssa, self.dim(dim), "gather", combiner))


@imports("aten.scatter.src", "aten.scatter.value")
def scatter(builder: GraphBuilder, self: Value, dim: int, index: Value, src: Operand) -> Value:
    return _scatter(builder, self, dim, index, src, None)


@imports("aten.scatter_add")
def scatter_add(builder: GraphBuilder, self: Value, dim: int, index: Value, src: Value) -> Value:
    if self.element == BOOL:
        raise Declined
    return _scatter(builder, self, dim, index, src, "add")


@imports("aten.scatter_reduce.two")
def scatter_reduce(
    builder: GraphBuilder,
    self: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    if not include_self or reduce not in _COMBINERS or self.element == BOOL:
        raise Declined
    return _scatter(builder, self, dim, index, src, _COMBINERS[reduce])


@imports("aten.index_add")
def index_add(builder: GraphBuilder, self: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Value:
    _needs(self.element != BOOL)
    _needs_one_type(self, source)
    values = source.up() if alpha == 1 else source.up() * alpha
    return _along(builder, self, dim, index, values, "add", "select" if self.rank == 1 else "gather")


@imports("aten.index_copy")
def index_copy(builder: GraphBuilder, self: Value, dim: int, index: Value, source: Value) -> Value:
    _needs(index.element == INT64)
    _needs_one_type(self, source)
    return _along(builder, self, dim, index, source, None, "copy")


def _along(
    builder: GraphBuilder, self: Value, dim: int, index: Value, source: Value, combiner: str | None, bounds: str
) -> Value:
    """Writes slices of the source to the places along a dim."""
    _needs(source.rank == self.rank > 0)
    place = index.reshape([index.count])
    indices = [None] * self.dim(dim)
    return _put(builder, self, [*indices, place], source, combiner, bounds)


@imports("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(builder: GraphBuilder, self: Value, dim: int, index: Value, value: Operand) -> Value:
    _needs(self.rank > 0 and index.element == INT64)
    fill = value if isinstance(value, Value) else builder.full(value, self.element)
    place = index.reshape([index.count])
    indices = [None] * self.dim(dim)
    return _put(builder, self, [*indices, place], fill, None, "index")


# -- slices that are written -------------------------------------------------------------------------


@imports("aten.slice_scatter")
def slice_scatter(
    builder: GraphBuilder,
    self: Value,
    src: Value,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: Any = 1,
) -> Value:
    dim = self.dim(dim)
    return _inserted(builder, self, src, dim, slice_start(builder, self, dim, start), step)


def _inserted(builder: GraphBuilder, self: Value, src: Value, dim: int, start: ExprLike, step: ExprLike = 1) -> Value:
    value = src.to(self.element)
    if value.sizes == self.sizes:
        return value
    starts: list[ExprLike] = [0] * self.rank
    steps: list[ExprLike] = [1] * self.rank
    starts[dim], steps[dim] = start, step
    return builder.emit(graph.InsertSliceOp.make(self.ssa, value.ssa, starts, steps))


@imports("aten.select_scatter")
def select_scatter(builder: GraphBuilder, self: Value, src: Value, dim: int, index: Any) -> Value:
    dim = self.dim(dim)
    return _inserted(builder, self, src.unsqueeze(dim), dim, position_in(builder, index, self.sizes[dim]))


@imports("aten.slice_backward")
def slice_backward(
    builder: GraphBuilder, grad_output: Value, input_sizes: Any, dim: int, start: Any, end: Any, step: Any
) -> Value:
    zeros = builder.full(0, grad_output.element, builder.sizes)
    return slice_scatter(builder, zeros, grad_output, dim, start, end, step)


@imports("aten.select_backward")
def select_backward(builder: GraphBuilder, grad_output: Value, input_sizes: Any, dim: int, index: Any) -> Value:
    zeros = builder.full(0, grad_output.element, builder.sizes)
    return select_scatter(builder, zeros, grad_output, dim, index)


@imports("aten.as_strided_scatter")
def as_strided_scatter(
    builder: GraphBuilder,
    self: Value,
    src: Value,
    size: Sequence[Any],
    stride: Sequence[Any],
    storage_offset: Any = None,
) -> Value:
    """On a row-major tensor, a scatter into its elements in row-major order."""
    if self.strides != contiguous_strides(self.sizes):
        raise Declined
    place = builder.full(offset_within(builder, self, size, stride, storage_offset), INT64)
    for dim, step in enumerate(stride):
        sizes = tuple(map(as_expr, size))
        place = place + builder.index_along(dim, sizes) * step
    place = place.broadcast(size)
    flat = self.reshape([self.count])
    value = src.to(self.element).reshape([src.count])
    index = place.reshape([src.count])
    scattered = graph.ScatterOp.make(flat.ssa, index.ssa, value.ssa, 0, "unchecked")
    return builder.emit(scattered).reshape(self.sizes)

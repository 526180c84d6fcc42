"""Reductions, statistics and scans. Sums of bf16 and f16 accumulate in f32, sums of integers in i64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, is_float
from ...ir.expr import ZERO, product
from ...ir.graph.reductions import ReductionOp
from ..builder import Declined, GraphBuilder, Value, absolute, exp, isinf, log, maximum, sqrt, where
from .registry import Row, imports

Dims = Sequence[int] | int | None


# -- sums and products -------------------------------------------------------------------------------


@imports("aten.sum", "aten.sum.dim_IntList")
def sum_(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return self.to(builder.element).up().sum(self.dims(dim), keepdim)


@imports("aten.mean", "aten.mean.dim")
def mean(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return self.to(builder.element).up().mean(self.dims(dim), keepdim)


@imports("aten.prod", "aten.prod.dim_int")
def prod(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    return self.to(builder.element).up().reduce(graph.ProdOp, self.dims(dim), keepdim)


@imports("aten.nansum")
def nansum(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Value:
    x = self.to(builder.element).up()
    x = where(x.differs(x), 0, x) if is_float(x.element) else x
    return x.sum(self.dims(dim), keepdim)


@imports("aten.cumsum")
def cumsum(builder: GraphBuilder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    return _scan(builder, self, dim, "add")


@imports("aten.cumprod")
def cumprod(builder: GraphBuilder, self: Value, dim: int, *, dtype: Any = None) -> Value:
    return _scan(builder, self, dim, "mul")


def _scan(builder: GraphBuilder, self: Value, dim: int, combiner: str) -> Value:
    """As eager on the CPU, f32 is accumulated in f64 and bf16 in f32. Results of bools are refused there."""
    if builder.element == BOOL:
        raise Declined
    x = self.to(builder.element).up()
    x = x.to(FLOAT64) if builder.element == FLOAT32 else x
    return builder.emit(graph.ScanOp.make(x.ssa, x.dim(dim), combiner)) if x.rank else x


# -- extrema -----------------------------------------------------------------------------------------


def _not_empty(self: Value, dims: Sequence[int]) -> None:
    """Eager raises for an extremum over nothing; the extern does so too."""
    if not all(self.builder.symbols.domain.is_less(ZERO, self.sizes[dim]) for dim in dims):
        raise Declined


def _extremum(op: type[ReductionOp]) -> Row:
    def row(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
        dims = self.dims(dim)
        _not_empty(self, dims)
        return self.reduce(op, dims, keepdim)

    return row


imports("aten.amax", "aten.max")(_extremum(graph.MaxOp))
imports("aten.amin", "aten.min")(_extremum(graph.MinOp))


def _arg(op: type[ReductionOp]) -> Row:
    def row(builder: GraphBuilder, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        x = self.reshape([self.count]) if dim is None or not self.rank else self
        position = 0 if dim is None else x.dim(dim)
        _not_empty(x, [position])
        index = x.reduce(op, [position], keepdim)
        return index.reshape(builder.sizes)

    return row


imports("aten.argmax")(_arg(graph.ArgMaxOp))
imports("aten.argmin")(_arg(graph.ArgMinOp))


def _with_index(op: type[ReductionOp], arg: type[ReductionOp]) -> Row:
    def row(builder: GraphBuilder, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        if not self.rank:
            return self, builder.full(0, INT64)
        position = self.dim(dim)
        _not_empty(self, [position])
        return self.reduce(op, [position], keepdim), self.reduce(arg, [position], keepdim)

    return row


imports("aten.max.dim")(_with_index(graph.MaxOp, graph.ArgMaxOp))
imports("aten.min.dim")(_with_index(graph.MinOp, graph.ArgMinOp))


@imports("aten.aminmax")
def aminmax(
    builder: GraphBuilder, self: Value, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    dims = self.dims(dim)
    _not_empty(self, dims)
    return self.reduce(graph.MinOp, dims, keepdim), self.reduce(graph.MaxOp, dims, keepdim)


def _logical(op: type[ReductionOp]) -> Row:
    def row(builder: GraphBuilder, self: Value, dim: Dims = None, keepdim: bool = False) -> Value:
        return self.to(BOOL).reduce(op, self.dims(dim), keepdim)

    return row


imports("aten.any", "aten.any.dim", "aten.any.dims")(_logical(graph.AnyOp))
imports("aten.all", "aten.all.dim", "aten.all.dims")(_logical(graph.AllOp))


@imports("aten.count_nonzero", "aten.count_nonzero.dim_IntList")
def count_nonzero(builder: GraphBuilder, self: Value, dim: Dims = None) -> Value:
    return self.to(BOOL).to(INT64).sum(self.dims(dim))


# -- moments -----------------------------------------------------------------------------------------


def widened(value: Value) -> Value:
    """In the type in which eager forms moments: on the CPU f64 for f32."""
    return value.to(FLOAT64) if value.element == FLOAT32 and value.builder.is_on_cpu else value.up()


def moments(x: Value, dims: Sequence[int], correction: float = 0) -> tuple[Value, Value]:
    """Variance and mean over the dims, kept at size 1; in two passes, which lose nothing to cancellation."""
    mean = x.mean(dims, keep=True)
    centred = x - mean
    return (centred * centred).sum(dims, keep=True) / degrees_of_freedom(x, dims, correction), mean


def degrees_of_freedom(x: Value, dims: Sequence[int], correction: float) -> float | Value:
    """The number of elements less the correction, but not below 0."""
    count = product(x.sizes[dim] for dim in dims)
    if count.is_constant:
        return max(count.constant - correction, 0.0)
    if not correction:
        return x.builder.full(count, x.element)
    return maximum(x.builder.full(count, x.element) - correction, 0.0)


def _dropped(value: Value, dims: Sequence[int], keep: bool) -> Value:
    sizes = [size for dim, size in enumerate(value.sizes) if keep or dim not in dims]
    return value.reshape(sizes)


def _correction(correction: float | None) -> float:
    return 1 if correction is None else correction


@imports("aten.var.correction")
def var(
    builder: GraphBuilder,
    self: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    dims = self.dims(dim)
    variance, _ = moments(widened(self), dims, _correction(correction))
    return _dropped(variance, dims, keepdim)


@imports("aten.std.correction")
def std(builder: GraphBuilder, self: Value, dim: Dims = None, **options: Any) -> Value:
    return sqrt(var(builder, self, dim, **options))


@imports("aten.var_mean.correction")
def var_mean(
    builder: GraphBuilder,
    self: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Value, Value]:
    dims = self.dims(dim)
    variance, mean = moments(widened(self), dims, _correction(correction))
    return _dropped(variance, dims, keepdim), _dropped(mean, dims, keepdim)


@imports("aten.std_mean.correction")
def std_mean(builder: GraphBuilder, self: Value, dim: Dims = None, **options: Any) -> tuple[Value, Value]:
    variance, mean = var_mean(builder, self, dim, **options)
    return sqrt(variance), mean


# -- exponentials and norms --------------------------------------------------------------------------


@imports("aten.logsumexp")
def logsumexp(builder: GraphBuilder, self: Value, dim: Dims, keepdim: bool = False) -> Value:
    x = self.to(builder.element).up()
    dims = self.dims(dim)
    _not_empty(x, dims)
    top = x.max(dims, keep=True)
    top = where(isinf(top), 0, top)
    return _dropped(log(exp(x - top).sum(dims, keep=True)) + top, dims, keepdim)


@imports("aten.linalg_vector_norm")
def vector_norm(
    builder: GraphBuilder,
    self: Value,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Value:
    x = self.to(builder.element).up()
    dims = self.dims(dim)
    if ord == 2:
        return sqrt((x * x).sum(dims, keepdim))
    if ord == 0:
        return x.differs(0).to(x.element).sum(dims, keepdim)
    magnitude = absolute(x)
    if ord == 1:
        return magnitude.sum(dims, keepdim)
    if math.isinf(ord):
        _not_empty(x, dims)
        return magnitude.reduce(graph.MaxOp if ord > 0 else graph.MinOp, dims, keepdim)
    powers = builder.binary(graph.PowOp, magnitude, ord).sum(dims, keepdim)
    return builder.binary(graph.PowOp, powers, 1 / ord)

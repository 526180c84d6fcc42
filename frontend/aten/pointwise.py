"""Elementwise ATen ops that are one or a few graph ops: arithmetic, comparison, logic, rounding, conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...ir import graph
from ...ir.dtypes import BOOL, is_float
from ...ir.expr import as_expr
from ...ir.graph.elementwise import BinaryOp, UnaryOp
from ..builder import (
    Declined,
    GraphBuilder,
    Operand,
    Value,
    absolute,
    exp,
    fma,
    isinf,
    isnan,
    log,
    log1p,
    maximum,
    minimum,
    reciprocal,
    rsqrt,
    sqrt,
    where,
)
from .registry import Row, imports

# -- unary -------------------------------------------------------------------------------------------

_IN_RESULT_TYPE: dict[str, type[UnaryOp]] = {
    "aten.exp": graph.ExpOp,
    "aten.exp2": graph.Exp2Op,
    "aten.expm1": graph.Expm1Op,
    "aten.log": graph.LogOp,
    "aten.log2": graph.Log2Op,
    "aten.log10": graph.Log10Op,
    "aten.log1p": graph.Log1pOp,
    "aten.sqrt": graph.SqrtOp,
    "aten.rsqrt": graph.RsqrtOp,
    "aten.reciprocal": graph.ReciprocalOp,
    "aten.sin": graph.SinOp,
    "aten.cos": graph.CosOp,
    "aten.tan": graph.TanOp,
    "aten.asin": graph.AsinOp,
    "aten.acos": graph.AcosOp,
    "aten.atan": graph.AtanOp,
    "aten.sinh": graph.SinhOp,
    "aten.cosh": graph.CoshOp,
    "aten.tanh": graph.TanhOp,
    "aten.asinh": graph.AsinhOp,
    "aten.acosh": graph.AcoshOp,
    "aten.atanh": graph.AtanhOp,
    "aten.erf": graph.ErfOp,
    "aten.erfc": graph.ErfcOp,
    "aten.sigmoid": graph.SigmoidOp,
    "aten.neg": graph.NegOp,
    "aten.abs": graph.AbsOp,
    "aten.relu": graph.ReluOp,
    "aten.bitwise_not": graph.NotOp,
}
"""Overload → op on its operand in the result's type; integers become floats where eager makes them so."""

_ROUNDING: dict[str, type[UnaryOp]] = {
    "aten.floor": graph.FloorOp,
    "aten.ceil": graph.CeilOp,
    "aten.trunc": graph.TruncOp,
    "aten.round": graph.RoundOp,
}
"""Overload → op that leaves integers as they are."""

_TESTS: dict[str, type[UnaryOp]] = {
    "aten.isnan": graph.IsNanOp,
    "aten.isinf": graph.IsInfOp,
}
"""Overload → test that no integer passes."""


def _in_result_type(op: type[UnaryOp]) -> Row:
    return lambda builder, self: builder.unary(op, self.to(builder.element))


def _rounding(op: type[UnaryOp]) -> Row:
    return lambda builder, self: builder.unary(op, self) if is_float(self.element) else self


def _test(op: type[UnaryOp]) -> Row:
    def row(builder: GraphBuilder, self: Value) -> Value:
        return builder.unary(op, self) if is_float(self.element) else builder.full(False, BOOL, self.sizes)

    return row


for _names, _row in ((_IN_RESULT_TYPE, _in_result_type), (_ROUNDING, _rounding), (_TESTS, _test)):
    for _name, _op in _names.items():
        imports(_name)(_row(_op))


@imports("aten.sign", "aten.sgn")
def sign(builder: GraphBuilder, self: Value) -> Value:
    return self if self.element == BOOL else builder.unary(graph.SignOp, self)


@imports("aten.signbit")
def signbit(builder: GraphBuilder, self: Value) -> Value:
    return builder.unary(graph.SignBitOp, self) if is_float(self.element) else self < 0


@imports("aten.logical_not")
def logical_not(builder: GraphBuilder, self: Value) -> Value:
    return ~self.to(BOOL)


@imports("aten.square")
def square(builder: GraphBuilder, self: Value) -> Value:
    return self * self


@imports("aten.frac")
def frac(builder: GraphBuilder, self: Value) -> Value:
    x = self.up()
    return x - builder.unary(graph.TruncOp, x)


@imports("aten.round.decimals")
def round_decimals(builder: GraphBuilder, self: Value, *, decimals: int = 0) -> Value:
    if decimals or not is_float(self.element):
        raise Declined
    return builder.unary(graph.RoundOp, self)


@imports("aten.nan_to_num")
def nan_to_num(
    builder: GraphBuilder,
    self: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    if not is_float(self.element):
        return self
    limits = torch.finfo(builder.dtype)
    finite = where(isnan(self), nan or 0.0, self)
    finite = where(finite.equals(math.inf), limits.max if posinf is None else posinf, finite)
    return where(finite.equals(-math.inf), limits.min if neginf is None else neginf, finite)


# -- arithmetic --------------------------------------------------------------------------------------


def _logical(op: type[BinaryOp], on_bool: type[BinaryOp]) -> Row:
    """A product or sum, which on bools is a logical op."""

    def row(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
        if builder.element == BOOL:
            return builder.binary(on_bool, *builder.promoted(self, other))
        return builder.binary(op, *builder.promoted(self, other))

    return row


imports("aten.mul.Tensor", "aten.mul.Scalar")(_logical(graph.MulOp, graph.AndOp))


def _scaled_sum(builder: GraphBuilder, first: Operand, second: Operand, factor: Any) -> Value:
    """`first + factor * second`, by fma as eager does it for floats; a scalar is rounded to the result's type first,
    as eager does it here and not in products."""
    whole = _WHOLE.get(factor) if isinstance(factor, int | float) else None
    if builder.element == BOOL:
        whole = graph.OrOp
        second = second if factor else False  # whose factor is a bool, too
    if whole is not None:
        return builder.binary(whole, *(builder.operand(operand, builder.element) for operand in (first, second)))
    x, y = builder.computed(first), builder.computed(second)
    return fma(y, builder.operand(factor, y.element), x)


_WHOLE: dict[float, type[BinaryOp]] = {1: graph.AddOp, -1: graph.SubOp}
"""The factors that make a plain sum or difference."""


@imports("aten.add.Tensor", "aten.add.Scalar")
def add(builder: GraphBuilder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    if isinstance(alpha, bool) and builder.element != BOOL:
        raise Declined
    return _scaled_sum(builder, self, other, alpha)


@imports("aten.sub.Tensor", "aten.sub.Scalar")
def sub(builder: GraphBuilder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
    if any(isinstance(operand, bool) for operand in (self, other, alpha)):
        raise Declined
    return _scaled_sum(builder, self, other, -alpha)


@imports("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(builder: GraphBuilder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
    return sub(builder, other, self, alpha)


@imports("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", "prims.div")
def div(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
    if not is_float(builder.element):
        return builder.binary(graph.TruncDivOp, *builder.promoted(self, other))
    return builder.binary(graph.DivOp, *builder.promoted(self, other))


_DIVISIONS: dict[str | None, type[BinaryOp]] = {
    None: graph.DivOp,
    "floor": graph.FloorDivOp,
    "trunc": graph.TruncDivOp,
}


@imports("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(builder: GraphBuilder, self: Operand, other: Operand, *, rounding_mode: str | None) -> Value:
    return builder.binary(_DIVISIONS[rounding_mode], *builder.promoted(self, other))


@imports("aten.floor_divide")
def floor_divide(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
    return builder.binary(graph.FloorDivOp, *builder.promoted(self, other))


_PROMOTING: dict[str, type[BinaryOp]] = {
    "aten.remainder.Tensor": graph.RemainderOp,
    "aten.remainder.Scalar": graph.RemainderOp,
    "aten.remainder.Scalar_Tensor": graph.RemainderOp,
    "aten.fmod.Tensor": graph.FmodOp,
    "aten.fmod.Scalar": graph.FmodOp,
    "aten.atan2": graph.Atan2Op,
    "aten.copysign.Tensor": graph.CopySignOp,
    "aten.copysign.Scalar": graph.CopySignOp,
    "aten.pow.Scalar": graph.PowOp,
    "aten.pow.Tensor_Tensor": graph.PowOp,
    "aten.maximum": graph.MaximumOp,
    "aten.minimum": graph.MinimumOp,
    "aten.bitwise_and.Tensor": graph.AndOp,
    "aten.bitwise_and.Scalar": graph.AndOp,
    "aten.bitwise_or.Tensor": graph.OrOp,
    "aten.bitwise_or.Scalar": graph.OrOp,
    "aten.bitwise_xor.Tensor": graph.XorOp,
    "aten.bitwise_xor.Scalar": graph.XorOp,
    "aten.bitwise_left_shift.Tensor": graph.ShlOp,
    "aten.bitwise_left_shift.Tensor_Scalar": graph.ShlOp,
    "aten.__lshift__.Tensor": graph.ShlOp,
    "aten.__lshift__.Scalar": graph.ShlOp,
    "aten.bitwise_right_shift.Tensor": graph.ShrOp,
    "aten.bitwise_right_shift.Tensor_Scalar": graph.ShrOp,
    "aten.__rshift__.Tensor": graph.ShrOp,
    "aten.__rshift__.Scalar": graph.ShrOp,
}
"""Overload → op on both operands in the result's type, to which eager rounds numbers, too."""


def _promoting(op: type[BinaryOp]) -> Row:
    def row(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
        return builder.binary(op, *(builder.operand(value, builder.element) for value in (self, other)))

    return row


for _name, _binary in _PROMOTING.items():
    imports(_name)(_promoting(_binary))


def _one_sided(pick: Callable[[Value, Operand], Value]) -> Row:
    """`fmax` and `fmin`: a number wins over NaN."""

    def row(builder: GraphBuilder, self: Value, other: Value) -> Value:
        x, y = self.to(builder.element), other.to(builder.element)
        if not is_float(builder.element):
            return pick(x, y)
        return where(isnan(x), y, where(isnan(y), x, pick(x, y)))

    return row


imports("aten.fmax")(_one_sided(maximum))
imports("aten.fmin")(_one_sided(minimum))


@imports("aten.addcmul")
def addcmul(builder: GraphBuilder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    x, a, b = (operand.to(builder.element).up() for operand in (self, tensor1, tensor2))
    return x + (a * b if value == 1 else a * value * b)


@imports("aten.addcdiv")
def addcdiv(builder: GraphBuilder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    x, a, b = (operand.to(builder.element).up() for operand in (self, tensor1, tensor2))
    return x + (a / b if value == 1 else a * value / b)


@imports("aten.native_dropout_backward")
def native_dropout_backward(builder: GraphBuilder, grad_output: Value, mask: Value, scale: float) -> Value:
    grad = grad_output.to(builder.element).up()
    return grad * mask.to(grad.element) * scale


@imports("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(builder: GraphBuilder, self: Value, end: Value, weight: Any) -> Value:
    x, y = self.to(builder.element).up(), end.to(builder.element).up()
    if isinstance(weight, Value):
        w = weight.to(builder.element).up()
        return where(absolute(w) < 0.5, fma(w, y - x, x), y - (y - x) * (1 - w))
    return fma(y - x, weight, x) if abs(weight) < 0.5 else y - (y - x) * (1 - weight)


@imports("aten.hypot")
def hypot(builder: GraphBuilder, self: Value, other: Value) -> Value:
    """Scaled by the larger side, so that no square overflows."""
    x, y = (absolute(value.to(builder.element).up()) for value in (self, other))
    large, small = maximum(x, y), minimum(x, y)
    ratio = where(large.equals(0), 0.0, small / large)
    length = large * sqrt(fma(ratio, ratio, builder.full(1.0, ratio.element, ratio.sizes)))
    return where(isinf(x) | isinf(y), math.inf, length)


@imports("aten.logaddexp")
def logaddexp(builder: GraphBuilder, self: Value, other: Value) -> Value:
    x, y = self.to(builder.element).up(), other.to(builder.element).up()
    equal = isinf(x) & x.equals(y)
    return where(equal, x, maximum(x, y) + log1p(exp(-absolute(x - y))))


@imports("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
def xlogy(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
    rounded = [value if isinstance(value, Value) else builder.full(value, builder.element) for value in (self, other)]
    x, y = map(builder.computed, rounded)
    return where(isnan(y), y, where(x.equals(0), 0.0, x * log(y)))


# -- powers ------------------------------------------------------------------------------------------


@imports("aten.pow.Tensor_Scalar")
def pow_scalar(builder: GraphBuilder, self: Value, exponent: Any) -> Value:
    if not is_float(builder.element) and not builder.symbols.domain.is_nonnegative(as_expr(exponent)):
        raise Declined  # eager refuses negative powers of integers
    x = self.to(builder.element)
    special = _POWERS.get(exponent) if isinstance(exponent, int | float) else None
    if special is not None and (is_float(builder.element) or exponent in (0, 1, 2, 3)):
        return special(x.up())
    return builder.binary(graph.PowOp, x, builder.operand(exponent, builder.element))


_POWERS: dict[float, Callable[[Value], Value]] = {
    0: lambda x: x.builder.full(1, x.element, x.sizes),
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    0.5: sqrt,
    -0.5: rsqrt,
    -1: reciprocal,
    -2: lambda x: reciprocal(x * x),
}
"""The exponents for which eager does not call `pow` either."""


# -- comparison and choice ---------------------------------------------------------------------------


def _comparison(predicate: str) -> Row:
    def row(builder: GraphBuilder, self: Operand, other: Operand) -> Value:
        element = builder.common_element(self, other)
        return builder.compare(predicate, builder.operand(self, element), builder.operand(other, element))

    return row


for _predicate in graph.PREDICATES:
    imports(f"aten.{_predicate}.Tensor", f"aten.{_predicate}.Scalar")(_comparison(_predicate))


def _logic(op: type[BinaryOp]) -> Row:
    return lambda builder, self, other: builder.binary(op, self.to(BOOL), other.to(BOOL))


for _name, _binary in {
    "aten.logical_and": graph.AndOp,
    "aten.logical_or": graph.OrOp,
    "aten.logical_xor": graph.XorOp,
}.items():
    imports(_name)(_logic(_binary))


@imports("aten.where.self")
def where_(builder: GraphBuilder, condition: Value, self: Value, other: Value) -> Value:
    return where(condition, self.to(builder.element), other.to(builder.element))


@imports("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(builder: GraphBuilder, self: Value, mask: Value, value: Operand) -> Value:
    return where(mask, builder.operand(value, self.element), self)


@imports("aten.clamp", "aten.clamp.Tensor")
def clamp(builder: GraphBuilder, self: Value, min: Operand | None = None, max: Operand | None = None) -> Value:
    """NaN stays NaN; where the bounds cross, the upper one wins."""
    x = self.to(builder.element)
    if min is not None:
        x = maximum(x, builder.operand(min, builder.element))
    return x if max is None else minimum(x, builder.operand(max, builder.element))


@imports("aten.hardtanh")
def hardtanh(builder: GraphBuilder, self: Value, min_val: Operand = -1, max_val: Operand = 1) -> Value:
    return clamp(builder, self, min_val, max_val)


@imports("aten.clamp_min", "aten.clamp_min.Tensor")
def clamp_min(builder: GraphBuilder, self: Value, min: Operand) -> Value:
    return clamp(builder, self, min)


@imports("aten.clamp_max", "aten.clamp_max.Tensor")
def clamp_max(builder: GraphBuilder, self: Value, max: Operand) -> Value:
    return clamp(builder, self, None, max)


@imports("aten.heaviside")
def heaviside(builder: GraphBuilder, self: Value, values: Value) -> Value:
    x, at_zero = self.to(builder.element), values.to(builder.element)
    return where(x.equals(0), at_zero, where(x > 0, builder.full(1, x.element), 0))


# -- conversion and copies ---------------------------------------------------------------------------


@imports("prims.convert_element_type", "aten._to_copy")
def convert(builder: GraphBuilder, self: Operand, *arguments: Any, **options: Any) -> Value:
    """`torch.func.vmap` has numbers converted, too."""
    return self.to(builder.element) if isinstance(self, Value) else builder.full(self, builder.element)


@imports("aten.clone", "prims.clone", "aten.lift_fresh_copy")
def clone(builder: GraphBuilder, self: Value, *, memory_format: Any = None) -> Value:
    return builder.emit(graph.CopyOp.make(self.ssa, builder.type))


@imports("aten.copy")
def copy(builder: GraphBuilder, self: Value, src: Value, non_blocking: bool = False) -> Value:
    return src.to(builder.element).broadcast(builder.sizes)

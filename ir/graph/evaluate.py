"""What elementwise ops compute, in NumPy: one row per op, exact where eager is exact.

bf16 and f16 compute in f32 and round once; functions that no machine rounds exactly are computed in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Operation
from xdsl.traits import Pure

from .. import arithmetic, plugins
from ..arithmetic import Array, DType, elementwise_python, float_to_integer, is_float, is_narrow, rounded, wrapped
from ..dtypes import element_of, numpy_dtype
from . import elementwise as ops

Function = Callable[..., Array]
"""(operands …) → the result in its type, or in a wider one."""

# -- functions of which floats and integers have their own -------------------------------------------


def _in_double(function: Function) -> Function:
    return lambda *operands: function(*(operand.astype(np.float64) for operand in operands))


def _by_kind(floats: Function, integers: Function) -> Function:
    return lambda *operands: (floats if is_float(operands[0].dtype) else integers)(*operands)


def _sign(value: Array) -> Array:
    return (value > 0).astype(value.dtype) - (value < 0).astype(value.dtype)


def _sigmoid(value: Array) -> Array:
    falling = rounded(np.exp(-value.astype(np.float64)), value.dtype)
    return 1 / (1 + falling)


def _checked(function: Function) -> Function:
    """An integer division, which raises as eager does where a divisor is 0."""

    def divide(lhs: Array, rhs: Array) -> Array:
        if (rhs == 0).any():
            raise RuntimeError("ZeroDivisionError")
        return function(lhs, rhs)

    return divide


def _probability(value: Array) -> Array:
    if not ((value >= 0) & (value <= 1)).all():
        raise RuntimeError(ops.ProbabilityOp.MESSAGE)
    return value


def _float_remainder(lhs: Array, rhs: Array) -> Array:
    """The exact rest with the divisor's sign; a rest of 0 has the dividend's."""
    rest = np.fmod(lhs, rhs)
    return np.where((rest != 0) & ((rest < 0) != (rhs < 0)), rest + rhs, rest)


def _float_floordiv(lhs: Array, rhs: Array) -> Array:
    """The nearest whole number to what is left after the remainder is taken off, as Python computes it."""
    quotient = (lhs - np.fmod(lhs, rhs)) / rhs
    rest = np.fmod(lhs, rhs)
    quotient = np.where((rest != 0) & ((rest < 0) != (rhs < 0)), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(np.zeros_like(lhs), lhs / rhs), whole)
    return np.where(rhs == 0, lhs / rhs, whole)


def _width(value: Array) -> int:
    return 8 * int(value.dtype.itemsize)


def _fits(value: Array, shift: Array) -> Array:
    return (shift >= 0) & (shift < _width(value))


def _shift_left(value: Array, shift: Array) -> Array:
    fits = _fits(value, shift)
    return np.where(fits, np.left_shift(value, np.where(fits, shift, 0)), np.zeros_like(value))


def _shift_right(value: Array, shift: Array) -> Array:
    """Beyond the width only the sign is left, or nothing of an unsigned number."""
    fits = _fits(value, shift)
    rest = np.right_shift(value, np.where(fits, shift, _width(value) - 1).astype(value.dtype))
    return rest if value.dtype.kind == "i" else np.where(fits, rest, np.zeros_like(value))


# -- the table ---------------------------------------------------------------------------------------

FUNCTIONS: dict[type[Operation], Function] = {
    ops.ExpOp: _in_double(np.exp),
    ops.Exp2Op: _in_double(np.exp2),
    ops.Expm1Op: _in_double(np.expm1),
    ops.LogOp: _in_double(np.log),
    ops.Log2Op: _in_double(np.log2),
    ops.Log10Op: _in_double(np.log10),
    ops.Log1pOp: _in_double(np.log1p),
    ops.SqrtOp: np.sqrt,
    ops.RsqrtOp: lambda value: 1 / np.sqrt(value),
    ops.ReciprocalOp: lambda value: 1 / value,
    ops.SinOp: _in_double(np.sin),
    ops.CosOp: _in_double(np.cos),
    ops.TanOp: _in_double(np.tan),
    ops.AsinOp: _in_double(np.arcsin),
    ops.AcosOp: _in_double(np.arccos),
    ops.AtanOp: _in_double(np.arctan),
    ops.SinhOp: _in_double(np.sinh),
    ops.CoshOp: _in_double(np.cosh),
    ops.TanhOp: _in_double(np.tanh),
    ops.AsinhOp: _in_double(np.arcsinh),
    ops.AcoshOp: _in_double(np.arccosh),
    ops.AtanhOp: _in_double(np.arctanh),
    ops.ErfOp: _in_double(elementwise_python(math.erf)),
    ops.ErfcOp: _in_double(elementwise_python(math.erfc)),
    ops.SigmoidOp: _sigmoid,
    ops.FloorOp: np.floor,
    ops.CeilOp: np.ceil,
    ops.RoundOp: np.rint,
    ops.TruncOp: np.trunc,
    ops.NegOp: np.negative,
    ops.AbsOp: np.abs,
    ops.SignOp: _sign,
    ops.ReluOp: lambda value: np.where(value < 0, np.zeros_like(value), value),
    ops.NotOp: np.invert,
    ops.IsNanOp: np.isnan,
    ops.IsInfOp: np.isinf,
    ops.SignBitOp: np.signbit,
    ops.AddOp: np.add,
    ops.SubOp: np.subtract,
    ops.MulOp: np.multiply,
    ops.DivOp: np.divide,
    ops.FloorDivOp: _by_kind(_float_floordiv, _checked(arithmetic.floor_quotient)),
    ops.TruncDivOp: _by_kind(lambda lhs, rhs: np.trunc(lhs / rhs), _checked(arithmetic.truncated_quotient)),
    ops.RemainderOp: _by_kind(_float_remainder, _checked(arithmetic.floor_rest)),
    ops.FmodOp: _by_kind(np.fmod, _checked(arithmetic.truncated_rest)),
    ops.PowOp: _by_kind(_in_double(arithmetic.power), arithmetic.integer_power),
    ops.MaximumOp: np.maximum,
    ops.MinimumOp: np.minimum,
    ops.Atan2Op: _in_double(np.arctan2),
    ops.CopySignOp: np.copysign,
    ops.AndOp: np.bitwise_and,
    ops.OrOp: np.bitwise_or,
    ops.XorOp: np.bitwise_xor,
    ops.ShlOp: _shift_left,
    ops.ShrOp: _shift_right,
    ops.SelectOp: np.where,
    ops.FmaOp: arithmetic.fused,
    ops.CopyOp: lambda value: value,
    ops.ProbabilityOp: _probability,
}

_COMPARISONS: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

# -- conversions -------------------------------------------------------------------------------------


def convert(value: Array, dtype: DType) -> Array:
    """A value in another type, as eager on the CPU converts it."""
    if dtype == np.bool_:
        return value != 0
    if is_float(dtype):
        return rounded(value, dtype)
    if is_float(value.dtype):
        return float_to_integer(value, dtype, through=64 if dtype in (np.int64, np.uint8) else 32)
    return value.astype(dtype)


def bitcast(value: Array, dtype: DType) -> Array:
    """The same bits; a byte counts as true unless it is 0."""
    return value != 0 if dtype == np.bool_ else value.view(dtype)


# -- ops ---------------------------------------------------------------------------------------------


def can_evaluate(op: Operation) -> bool:
    """Whether the op may be computed before the program runs: it neither raises nor gives what depends on the
    machine, as a float that no integer holds does."""
    if isinstance(op, ops.ConvertOp) and is_float(numpy_dtype(element_of(op.operand.type))):
        target = numpy_dtype(op.element)
        return is_float(target) or target == np.bool_
    return isinstance(op, ops.ElementwiseOp) and not isinstance(op, ops.BitcastOp) and op.has_trait(Pure)


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of an elementwise op on arrays of its operands' element types."""
    dtype = numpy_dtype(element_of(op.results[0].type))
    with np.errstate(all="ignore"):
        if isinstance(op, ops.ConvertOp | ops.BitcastOp):
            return (convert if isinstance(op, ops.ConvertOp) else bitcast)(operands[0], dtype)
        values = [value.astype(np.float32) if is_narrow(value.dtype) else value for value in operands]
        function = _COMPARISONS[op.predicate.data] if isinstance(op, ops.CompareOp) else FUNCTIONS[type(op)]
        result = function(*values)
        return rounded(result, dtype) if is_float(dtype) else wrapped(result, dtype)


plugins.load("stepwell.interpreters")

__all__ = ["Array", "can_evaluate", "evaluate"]

"""What `arith` and `math` compute, on NumPy arrays: one row per op, shared by the reference interpreters.

This is scalar arithmetic and nothing else: no row knows of shapes, memory or levels. Integers wrap, bf16 and f16
compute in f32 and round once, and functions that no machine rounds exactly are computed in f64. Where `arith` leaves
a result open (a division by 0, a shift beyond the width, a float that no integer holds) a row gives what our machine
code gives.
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    VectorType,
)
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Attribute, Operation

from .dtypes import numpy_dtype

Array: TypeAlias = Any
"""A NumPy array or a NumPy scalar: what a value of any type is while it is interpreted."""

DType: TypeAlias = np.dtype[Any]

Row: TypeAlias = Callable[..., Any]
"""(op, *operands) → the result, or a tuple of them."""

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def dtype_of(type_: Attribute) -> DType:
    """The NumPy type of a scalar, or of the elements of a block, buffer or tensor; signless integers are signed."""
    if isinstance(type_, VectorType | MemRefType | TensorType):
        type_ = type_.element_type
    return np.dtype(np.int64) if isinstance(type_, IndexType) else numpy_dtype(type_)


# -- numbers in a type -------------------------------------------------------------------------------


def is_float(dtype: DType) -> bool:
    return dtype.kind in "fV"  # V: ml_dtypes


def is_narrow(dtype: DType) -> bool:
    """Whether arithmetic on the type is done in f32."""
    return is_float(dtype) and dtype.itemsize == 2


def wide_dtype(dtype: DType) -> DType:
    return F32 if is_narrow(dtype) else dtype


def rounded(value: Array, dtype: DType) -> Array:
    """Floats in a type; narrow ones are reached by way of f32, as in eager."""
    return np.asarray(value).astype(wide_dtype(dtype)).astype(dtype)


def wrapped(value: Array, dtype: DType) -> Array:
    """Integers modulo the width of a type."""
    value = np.asarray(value)
    return (value & 1).astype(bool) if dtype == np.bool_ else value.astype(dtype)


def as_signed(value: Array) -> Array:
    """Integers as signed; a true i1 is -1."""
    value = np.asarray(value)
    return -value.astype(np.int8) if value.dtype == np.bool_ else value.view(f"i{value.itemsize}")


def as_unsigned(value: Array) -> Array:
    value = np.asarray(value)
    return value.astype(np.uint8) if value.dtype == np.bool_ else value.view(f"u{value.itemsize}")


def elementwise_python(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of one Python float for arrays, in f64."""
    lifted = np.frompyfunc(function, 1, 1)
    return lambda value: np.asarray(lifted(value), F64)


# -- functions that NumPy lacks or has otherwise -----------------------------------------------------


def _nearest_odd(exact: Fraction) -> float:
    """The f64 that is the number, or else the neighbour with an odd last bit: rounding it again to a narrower type
    gives what rounding the number once would."""
    near = float(exact)
    if Fraction(near) == exact or scalar_math.isinf(near) or np.float64(near).view(np.int64) & 1:
        return near
    return scalar_math.nextafter(near, scalar_math.inf if exact > Fraction(near) else -scalar_math.inf)


def fused(lhs: Array, rhs: Array, addend: Array) -> Array:
    """x * y + z, rounded once to the type of x."""
    dtype = np.asarray(lhs).dtype

    def one(x: Any, y: Any, z: Any) -> float:
        x, y, z = float(x), float(y), float(z)
        if not all(map(scalar_math.isfinite, (x, y, z))):
            return float(np.float64(x) * np.float64(y) + np.float64(z))
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if not exact:  # keeps the sign that IEEE 754 gives a zero
            return float(np.float64(x) * np.float64(y) + np.float64(z)) if x * y == 0 else 0.0
        try:
            return float(exact) if dtype == F64 else _nearest_odd(exact)
        except OverflowError:
            return scalar_math.copysign(scalar_math.inf, 1 if exact > 0 else -1)

    return np.asarray(np.frompyfunc(one, 3, 1)(lhs, rhs, addend), F64).astype(dtype)


def power(base: Array, exponent: Array) -> Array:
    """C's `pow` in f64; NumPy takes a square root for an exponent of 0.5, which differs at -inf and -0."""
    root = np.sqrt(np.where(base == -np.inf, np.inf, base)) + 0.0
    return np.where(exponent == 0.5, root, np.power(base, exponent))


def integer_power(base: Array, exponent: Array) -> Array:
    """Wraps; a negative exponent gives 0 except for a base of 1 or -1. The type is the base's."""
    base, exponent = np.asarray(base), np.asarray(exponent)
    result, square = np.ones_like(base), base
    for bit in range(8 * base.itemsize):
        result = np.where((exponent >> bit) & 1, result * square, result)
        square = square * square
    unit = np.where(exponent & 1, base, base * base)
    inverse = np.where((base == 1) | (base == np.array(-1).astype(base.dtype)), unit, np.zeros_like(base))
    return np.where(exponent < 0, inverse, result)


def _nonzero(divisor: Array) -> Array:
    return np.where(divisor == 0, np.ones_like(divisor), divisor)


def floor_quotient(lhs: Array, rhs: Array) -> Array:
    """Integers, rounded down; the least one divided by -1 wraps, and a divisor of 0 counts as 1."""
    return np.floor_divide(lhs, _nonzero(rhs))


def floor_rest(lhs: Array, rhs: Array) -> Array:
    """Integers, with the sign of the divisor."""
    return np.remainder(lhs, _nonzero(rhs))


def truncated_quotient(lhs: Array, rhs: Array) -> Array:
    """Integers, rounded towards 0."""
    inexact = (floor_rest(lhs, rhs) != 0) & ((lhs < 0) != (rhs < 0))
    return floor_quotient(lhs, rhs) + inexact.astype(np.asarray(lhs).dtype)


def truncated_rest(lhs: Array, rhs: Array) -> Array:
    """Integers, with the sign of the dividend."""
    return np.fmod(lhs, _nonzero(rhs))


def _ceil_quotient(lhs: Array, rhs: Array) -> Array:
    return floor_quotient(lhs, rhs) + (floor_rest(lhs, rhs) != 0).astype(np.asarray(lhs).dtype)


def float_to_integer(value: Array, dtype: DType, *, through: int) -> Array:
    """Truncates in an integer of `through` bits, which is the least one where the number does not fit, NaN included;
    narrower types take its low bits, as x86 does it."""
    limit = 2.0 ** (through - 1)
    number = np.asarray(value).astype(F64)
    fits = np.abs(number) < limit
    whole = np.where(fits, np.trunc(np.where(fits, number, 0.0)), -limit)
    return wrapped(whole.astype(np.int64), dtype)


def _truncate_float(value: Array, dtype: DType) -> Array:
    """Floats in a narrower type, rounded once: f64 is not rounded to f32 in between."""
    value = np.asarray(value)
    if value.dtype != F64 or not is_narrow(dtype):
        return value.astype(dtype)
    single = value.astype(F32)
    exact = single.astype(F64)
    away = np.where(value > exact, np.float32(np.inf), np.float32(-np.inf))
    even = (single.view(np.int32) & 1) == 0
    sticky = (exact != value) & np.isfinite(single) & even
    return np.where(sticky, np.nextafter(single, away), single).astype(dtype)


def _round_half_away(value: Array) -> Array:
    whole = np.trunc(value)
    return np.copysign(whole + np.where(np.abs(value - whole) >= 0.5, np.copysign(1.0, value), 0.0), value)


def _leading_zeros(value: Array) -> Array:
    left, bits = as_unsigned(value), 8 * np.asarray(value).itemsize
    return bits - sum((left >> np.array(bit, left.dtype) != 0).astype(np.int64) for bit in range(bits))


def _trailing_zeros(value: Array) -> Array:
    left, bits = as_unsigned(value), 8 * np.asarray(value).itemsize
    return sum(((left << np.array(bit, left.dtype)) == 0).astype(np.int64) for bit in range(bits))


_LOW = np.uint64(0xFFFFFFFF)
_PHILOX_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_STEPS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))


def philox(seed: Array, counter: Array, stream: int) -> Array:
    """The first word of Philox4x32-10 (Salmon et al., SC'11), as i32."""
    shift = np.uint64(32)
    counter, key = as_unsigned(counter), as_unsigned(seed)
    x0, x1 = counter & _LOW, counter >> shift
    x2, x3 = np.uint64(stream) & _LOW, np.uint64(stream) >> shift
    k0, k1 = key & _LOW, key >> shift
    for _ in range(10):
        first, second = _PHILOX_FACTORS[0] * x0, _PHILOX_FACTORS[1] * x2
        x0, x1, x2, x3 = second >> shift ^ x1 ^ k0, second & _LOW, first >> shift ^ x3 ^ k1, first & _LOW
        k0, k1 = (k0 + _PHILOX_STEPS[0]) & _LOW, (k1 + _PHILOX_STEPS[1]) & _LOW
    return np.asarray(x0).astype(np.uint32).view(np.int32)


# -- rows --------------------------------------------------------------------------------------------


def _float(function: Callable[..., Array]) -> Row:
    """On floats, narrow ones in f32."""

    def row(op: Operation, *operands: Array) -> Array:
        dtype = dtype_of(op.results[0].type)
        return rounded(function(*(np.asarray(operand).astype(wide_dtype(dtype)) for operand in operands)), dtype)

    return row


def _double(function: Callable[..., Array]) -> Row:
    """On floats, in f64."""

    def row(op: Operation, *operands: Array) -> Array:
        result = function(*(np.asarray(operand).astype(F64) for operand in operands))
        return rounded(result, dtype_of(op.results[0].type))

    return row


def _integer(function: Callable[..., Array], view: Callable[[Array], Array]) -> Row:
    def row(op: Operation, *operands: Array) -> Array:
        return wrapped(function(*map(view, operands)), dtype_of(op.results[0].type))

    return row


def _signed(function: Callable[..., Array]) -> Row:
    return _integer(function, as_signed)


def _unsigned(function: Callable[..., Array]) -> Row:
    return _integer(function, as_unsigned)


def _extended(function: Callable[[int, int], int], view: Callable[[Array], Array]) -> Row:
    """Both halves of a result of twice the width."""

    def row(op: Operation, lhs: Array, rhs: Array) -> tuple[Array, Array]:
        bits = 8 * np.asarray(lhs).itemsize
        whole = np.frompyfunc(function, 2, 1)(view(lhs).astype(object), view(rhs).astype(object))
        halves = (np.asarray(whole % (1 << bits)), np.asarray((whole >> bits) % (1 << bits)))
        low, high = (half.astype(f"u{bits // 8}") for half in halves)
        return wrapped(low, dtype_of(op.results[0].type)), wrapped(high, dtype_of(op.results[1].type))

    return row


# -- comparisons -------------------------------------------------------------------------------------

_ORDER: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def compare_floats(predicate: str, lhs: Array, rhs: Array) -> Array:
    """By the predicates of `arith.cmpf`."""
    lhs, rhs = np.asarray(lhs).astype(F64), np.asarray(rhs).astype(F64)
    unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate in ("false", "true"):
        return np.full(unordered.shape, predicate == "true")
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    holds = _ORDER[predicate[1:]](lhs, rhs)
    return holds | unordered if predicate[0] == "u" else holds & ~unordered


def compare_integers(predicate: str, lhs: Array, rhs: Array) -> Array:
    """By the predicates of `arith.cmpi`."""
    if predicate in ("eq", "ne"):
        return _ORDER[predicate](lhs, rhs)
    view = as_unsigned if predicate[0] == "u" else as_signed
    return _ORDER[predicate[1:]](view(lhs), view(rhs))


def _compare_floats(op: arith.CmpfOp, lhs: Array, rhs: Array) -> Array:
    return compare_floats(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], lhs, rhs)


def _compare_integers(op: arith.CmpiOp, lhs: Array, rhs: Array) -> Array:
    return compare_integers(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], lhs, rhs)


# -- conversions -------------------------------------------------------------------------------------


def _bitcast(value: Array, dtype: DType) -> Array:
    return np.asarray(value).view(dtype)


CONVERSIONS: dict[str, Callable[[Array, DType], Array]] = {
    "extf": lambda value, dtype: np.asarray(value).astype(dtype),
    "truncf": _truncate_float,
    "sitofp": lambda value, dtype: rounded(as_signed(value), dtype),
    "uitofp": lambda value, dtype: rounded(as_unsigned(value), dtype),
    "fptosi": lambda value, dtype: float_to_integer(value, dtype, through=64 if dtype.itemsize == 8 else 32),
    "fptoui": lambda value, dtype: float_to_integer(value, dtype, through=64),
    "extsi": lambda value, dtype: as_signed(value).astype(dtype),
    "extui": lambda value, dtype: as_unsigned(value).astype(dtype),
    "trunci": lambda value, dtype: wrapped(as_unsigned(value), dtype),
    "index_cast": lambda value, dtype: wrapped(as_signed(value), dtype),
    "bitcast": _bitcast,
}
"""Name of a cast of `arith` → (value, type of the result) → value."""


def _conversion(name: str) -> Row:
    return lambda op, value: CONVERSIONS[name](value, dtype_of(op.results[0].type))


def _constant(op: arith.ConstantOp) -> Array:
    dtype, attr = dtype_of(op.result.type), op.value
    if isinstance(attr, IntegerAttr | FloatAttr):
        return _number(attr.value.data, dtype)
    assert isinstance(attr, DenseIntOrFPElementsAttr)
    assert isinstance(attr.type, VectorType | TensorType)
    values = [_number(value, dtype) for value in attr.get_values()]
    return np.array(values, dtype).reshape(attr.type.get_shape())


def _number(value: float, dtype: DType) -> Array:
    return rounded(value, dtype) if is_float(dtype) else wrapped(np.asarray(value), dtype)


SCALARS: dict[type[Operation], Row] = {
    arith.ConstantOp: _constant,
    arith.SelectOp: lambda op, condition, lhs, rhs: np.where(condition, lhs, rhs),
    arith.CmpfOp: _compare_floats,
    arith.CmpiOp: _compare_integers,
    # floats
    arith.AddfOp: _float(np.add),
    arith.SubfOp: _float(np.subtract),
    arith.MulfOp: _float(np.multiply),
    arith.DivfOp: _float(np.divide),
    arith.NegfOp: _float(np.negative),
    arith.MaximumfOp: _float(np.maximum),
    arith.MinimumfOp: _float(np.minimum),
    arith.MaxnumfOp: _float(np.fmax),
    arith.MinnumfOp: _float(np.fmin),
    math.AbsFOp: _float(np.abs),
    math.CeilOp: _float(np.ceil),
    math.FloorOp: _float(np.floor),
    math.TruncOp: _float(np.trunc),
    math.RoundEvenOp: _float(np.rint),
    math.RoundOp: _float(_round_half_away),
    math.CopySignOp: _float(np.copysign),
    math.FmaOp: _float(fused),
    math.SqrtOp: _float(np.sqrt),
    math.RsqrtOp: _float(lambda value: 1 / np.sqrt(value)),
    math.AcosOp: _double(np.arccos),
    math.AcoshOp: _double(np.arccosh),
    math.AsinOp: _double(np.arcsin),
    math.AsinhOp: _double(np.arcsinh),
    math.AtanOp: _double(np.arctan),
    math.Atan2Op: _double(np.arctan2),
    math.AtanhOp: _double(np.arctanh),
    math.CbrtOp: _double(np.cbrt),
    math.CosOp: _double(np.cos),
    math.CoshOp: _double(np.cosh),
    math.ErfOp: _double(elementwise_python(scalar_math.erf)),
    math.ExpOp: _double(np.exp),
    math.Exp2Op: _double(np.exp2),
    math.ExpM1Op: _double(np.expm1),
    math.LogOp: _double(np.log),
    math.Log2Op: _double(np.log2),
    math.Log10Op: _double(np.log10),
    math.Log1pOp: _double(np.log1p),
    math.PowFOp: _double(power),
    math.FPowIOp: _double(power),
    math.SinOp: _double(np.sin),
    math.SinhOp: _double(np.sinh),
    math.TanOp: _double(np.tan),
    math.TanhOp: _double(np.tanh),
    # integers
    arith.AddiOp: _unsigned(np.add),
    arith.SubiOp: _unsigned(np.subtract),
    arith.MuliOp: _unsigned(np.multiply),
    arith.DivSIOp: _signed(truncated_quotient),
    arith.DivUIOp: _unsigned(floor_quotient),
    arith.FloorDivSIOp: _signed(floor_quotient),
    arith.CeilDivSIOp: _signed(_ceil_quotient),
    arith.CeilDivUIOp: _unsigned(_ceil_quotient),
    arith.RemSIOp: _signed(truncated_rest),
    arith.RemUIOp: _unsigned(truncated_rest),
    arith.MaxSIOp: _signed(np.maximum),
    arith.MinSIOp: _signed(np.minimum),
    arith.MaxUIOp: _unsigned(np.maximum),
    arith.MinUIOp: _unsigned(np.minimum),
    arith.AndIOp: _unsigned(np.bitwise_and),
    arith.OrIOp: _unsigned(np.bitwise_or),
    arith.XOrIOp: _unsigned(np.bitwise_xor),
    arith.ShLIOp: _unsigned(np.left_shift),
    arith.ShRUIOp: _unsigned(np.right_shift),
    arith.ShRSIOp: _signed(np.right_shift),
    arith.AddUIExtendedOp: _extended(lambda lhs, rhs: lhs + rhs, as_unsigned),
    arith.MulUIExtendedOp: _extended(lambda lhs, rhs: lhs * rhs, as_unsigned),
    arith.MulSIExtendedOp: _extended(lambda lhs, rhs: lhs * rhs, as_signed),
    math.AbsIOp: _signed(np.abs),
    math.IPowIOp: _signed(integer_power),
    math.CtPopOp: _unsigned(np.bitwise_count),
    math.CountLeadingZerosOp: _unsigned(_leading_zeros),
    math.CountTrailingZerosOp: _unsigned(_trailing_zeros),
    # conversions
    arith.ExtFOp: _conversion("extf"),
    arith.TruncFOp: _conversion("truncf"),
    arith.SIToFPOp: _conversion("sitofp"),
    arith.UIToFPOp: _conversion("uitofp"),
    arith.FPToSIOp: _conversion("fptosi"),
    arith.FPToUIOp: _conversion("fptoui"),
    arith.ExtSIOp: _conversion("extsi"),
    arith.ExtUIOp: _conversion("extui"),
    arith.TruncIOp: _conversion("trunci"),
    arith.IndexCastOp: _conversion("index_cast"),
    arith.BitcastOp: _conversion("bitcast"),
}
"""Op of `arith` or `math` → what it computes."""

# -- combiners ---------------------------------------------------------------------------------------

Values: TypeAlias = Sequence[Array]


def _numbers(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """On floats in f32 at least, on integers with wrapping; NumPy's functions on bools saturate, as eager's do."""

    def combine(left: Array, right: Array) -> Array:
        dtype = np.asarray(left).dtype
        if not is_float(dtype):
            return function(left, right)
        return rounded(function(left.astype(wide_dtype(dtype)), right.astype(wide_dtype(dtype))), dtype)

    return combine


def _on_unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda left, right: wrapped(function(as_unsigned(left), as_unsigned(right)), np.asarray(left).dtype)


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": _numbers(np.add),
    "mul": _numbers(np.multiply),
    "max": _numbers(np.maximum),
    "min": _numbers(np.minimum),
    "maxu": _on_unsigned(np.maximum),
    "minu": _on_unsigned(np.minimum),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _takes_right(better: Callable[[Array, Array], Array], left: Values, right: Values) -> Array:
    """Where the right one of two pairs (key, index) wins: NaN over numbers, then the key, then the smaller index."""
    (key, index), (other, other_index) = left, right
    key, other = (value.astype(F64) if is_float(value.dtype) else value for value in (key, other))
    earlier = other_index < index
    nan, other_nan = key != key, other != other
    among_numbers = better(other, key) | ((other == key) & earlier)
    return np.where(nan | other_nan, other_nan & (~nan | earlier), among_numbers)


def combine(name: str, left: Values, right: Values) -> tuple[Array, ...]:
    """One combination of the combiner of that name, element by element."""
    if name in ("argmax", "argmin"):
        takes = _takes_right(np.greater if name == "argmax" else np.less, left, right)
        return tuple(np.where(takes, other, one) for one, other in zip(left, right, strict=True))
    return (_COMBINE[name](left[0], right[0]),)


# -- interpretation ----------------------------------------------------------------------------------


def run_row(row: Row) -> Callable[..., PythonValues]:
    """A row as a function of an interpreter."""

    def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        result = row(op, *args)
        return result if isinstance(result, tuple) else (result,)

    return run


def functions_of_rows(name: str, rows: Mapping[type[Operation], Row]) -> type[InterpreterFunctions]:
    """A class of interpreter functions with one for each row."""
    members = {op.name: impl(op)(run_row(row)) for op, row in rows.items()}
    return register_impls(type(name, (InterpreterFunctions,), members))


ScalarFunctions = functions_of_rows("ScalarFunctions", SCALARS)

__all__ = [
    "CONVERSIONS", "SCALARS", "Array", "DType", "ScalarFunctions", "as_signed", "as_unsigned", "combine",
    "compare_floats", "compare_integers", "dtype_of", "elementwise_python", "float_to_integer", "floor_quotient",
    "floor_rest", "functions_of_rows", "fused", "integer_power", "is_float", "is_narrow", "philox", "power", "rounded",
    "truncated_quotient", "truncated_rest", "wide_dtype", "wrapped",
]  # fmt: skip

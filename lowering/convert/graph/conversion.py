"""Conversion of a scalar from one element type to another, as eager does it on the CPU.

Narrow floats are reached by way of f32, also from f64 and from integers, so these round twice as in eager.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from ....ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT8, compute_type, is_float
from ....ir.loop import scalar_type
from .scalars import Scalars


def is_unsigned(element: Attribute) -> bool:
    return element in (BOOL, UINT8)


def widen(scalars: Scalars, value: SSAValue) -> SSAValue:
    """The value in the type that eager computes in: f32 for bf16 and f16."""
    return scalars.cast(arith.ExtFOp, value, compute_type(value.type))


def narrow(scalars: Scalars, value: SSAValue, type_: Attribute) -> SSAValue:
    """A float rounded to the type; f64 to bf16 or f16 by way of f32."""
    if value.type == FLOAT64 and type_ != FLOAT64:
        value = scalars.cast(arith.TruncFOp, value, FLOAT32)
    return scalars.cast(arith.TruncFOp, value, type_)


def convert(scalars: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """The value of element type `source` as one of element type `target`."""
    if source == target:
        return value
    if target == BOOL:
        return is_nonzero(scalars, value)
    if not is_float(target):
        return _to_integer(scalars, value, target) if is_float(source) else _resize(scalars, value, source, target)
    if not is_float(source):
        op = arith.UIToFPOp if is_unsigned(source) else arith.SIToFPOp
        return narrow(scalars, scalars.cast(op, value, compute_type(target)), target)
    wide = widen(scalars, value)
    return scalars.cast(arith.ExtFOp, wide, FLOAT64) if target == FLOAT64 else narrow(scalars, wide, target)


def is_nonzero(scalars: Scalars, value: SSAValue) -> SSAValue:
    """Whether a number counts as true; NaN does."""
    if isinstance(value.type, AnyFloat):
        value = widen(scalars, value)
        return scalars.compare("une", value, scalars.constant(0.0, value.type))
    return value if value.type == BOOL else scalars.compare("ne", value, scalars.constant(0, value.type))


def _to_integer(scalars: Scalars, value: SSAValue, target: Attribute) -> SSAValue:
    """Through i32 (i64 for uint8 and i64), of which narrower types take the low bits."""
    through = i64 if target in (INT64, UINT8) else i32
    whole = scalars.cast(arith.FPToSIOp, widen(scalars, value), through)
    return scalars.cast(arith.TruncIOp, whole, scalar_type(target))


def _resize(scalars: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A wider integer by the sign of the source, a narrower one by its low bits."""
    type_ = scalar_type(target)
    assert isinstance(value.type, IntegerType)
    assert isinstance(type_, IntegerType)
    if value.type.width.data > type_.width.data:
        return scalars.cast(arith.TruncIOp, value, type_)
    return scalars.cast(arith.ExtUIOp if is_unsigned(source) else arith.ExtSIOp, value, type_)


def reinterpret(scalars: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """The same bits in another type of the same width in memory, where a bool takes a byte."""
    if BOOL in (source, target):
        return convert(scalars, value, source, target)
    return scalars.cast(arith.BitcastOp, value, scalar_type(target))

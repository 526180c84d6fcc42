"""Quotients and remainders, as eager on the CPU has them.

Integers: a division by zero is recorded for the call to raise, the least number divided by -1 wraps. Floats:
remainders are exact. IR has no float remainder, so f32 divides in f64 by steps that each settle 48 bits.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from ....ir import loop
from ....ir.dtypes import FLOAT64
from .scalars import Scalars, known_number

# -- integers ----------------------------------------------------------------------------------------


def _checked(scalars: Scalars, divisor: SSAValue) -> None:
    """Records the error of a division by zero."""
    if known_number(divisor) in (None, 0):
        nonzero = scalars.compare("ne", divisor, scalars.constant(0, divisor.type))
        scalars.append(loop.AssertOp.make(nonzero, scalars.constant(0, i64), "RuntimeError", "ZeroDivisionError"))


def _safe_signed(scalars: Scalars, divisor: SSAValue) -> SSAValue:
    """The divisor, 1 in place of 0 and -1."""
    _checked(scalars, divisor)
    if known_number(divisor) not in (None, 0, -1):
        return divisor
    one = scalars.constant(1, divisor.type)
    is_unit = scalars.compare("ule", scalars.apply(arith.AddiOp, divisor, one), one)
    return scalars.select(is_unit, one, divisor)


def _signed_quotient(scalars: Scalars, op: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    safe = _safe_signed(scalars, rhs)
    quotient = scalars.apply(op, lhs, safe)
    if safe is rhs:
        return quotient
    negated = scalars.apply(arith.SubiOp, scalars.constant(0, lhs.type), lhs)
    return scalars.select(scalars.compare("eq", rhs, scalars.constant(-1, rhs.type)), negated, quotient)


def truncating_quotient(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return _signed_quotient(scalars, arith.DivSIOp, lhs, rhs)


def flooring_quotient(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return _signed_quotient(scalars, arith.FloorDivSIOp, lhs, rhs)


def truncating_rest(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return scalars.apply(arith.RemSIOp, lhs, _safe_signed(scalars, rhs))


def flooring_rest(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """The rest with the divisor's sign."""
    rest = truncating_rest(scalars, lhs, rhs)
    zero = scalars.constant(0, rest.type)
    opposite = scalars.compare("slt", scalars.apply(arith.XOrIOp, rest, rhs), zero)
    wrong = scalars.apply(arith.AndIOp, scalars.compare("ne", rest, zero), opposite)
    return scalars.select(wrong, scalars.apply(arith.AddiOp, rest, rhs), rest)


def _safe_unsigned(scalars: Scalars, divisor: SSAValue) -> SSAValue:
    _checked(scalars, divisor)
    if known_number(divisor) not in (None, 0):
        return divisor
    is_zero = scalars.compare("eq", divisor, scalars.constant(0, divisor.type))
    return scalars.select(is_zero, scalars.constant(1, divisor.type), divisor)


def unsigned_quotient(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return scalars.apply(arith.DivUIOp, lhs, _safe_unsigned(scalars, rhs))


def unsigned_rest(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return scalars.apply(arith.RemUIOp, lhs, _safe_unsigned(scalars, rhs))


# -- floats ------------------------------------------------------------------------------------------

STEP_BITS = 48
"""Bits of the quotient that one step settles: few enough that the rounded quotient is off by less than 1/16."""

STEPS = 6
"""Enough of them for the largest quotient of two f32 numbers, 2^277."""


def float_truncating_quotient(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return scalars.apply(math.TruncOp, scalars.apply(arith.DivfOp, lhs, rhs))


def float_truncating_rest(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """`fmod` of f32, exact: the rest of |lhs| by |rhs| with the sign of lhs.

    Each step subtracts the nearest multiple of |rhs| * 2^(48 k) by a fused multiply-add. The rest is then at most
    0.57 times that in magnitude and has at most 25 significant bits, so no step rounds.
    """
    size, divisor = (scalars.apply(math.AbsFOp, value) for value in (lhs, rhs))
    rest, wide = (scalars.cast(arith.ExtFOp, value, FLOAT64) for value in (size, divisor))
    inverse = scalars.apply(arith.DivfOp, scalars.constant(1.0, FLOAT64), wide)
    for step in reversed(range(STEPS)):
        rest = _reduced(scalars, rest, _scaled(scalars, wide, step), _scaled(scalars, inverse, -step))
    negative = scalars.compare("olt", rest, scalars.constant(0.0, FLOAT64))
    rest = scalars.select(negative, scalars.apply(arith.AddfOp, rest, wide), rest)
    rest = scalars.cast(arith.TruncFOp, rest, lhs.type)
    infinity = scalars.constant(float("inf"), lhs.type)
    below = scalars.apply(
        arith.AndIOp, scalars.compare("oeq", divisor, infinity), scalars.compare("olt", size, infinity)
    )
    return scalars.apply(math.CopySignOp, scalars.select(below, size, rest), lhs)


def _scaled(scalars: Scalars, value: SSAValue, step: int) -> SSAValue:
    if step == 0:
        return value
    return scalars.apply(arith.MulfOp, value, scalars.constant(2.0 ** (STEP_BITS * step), FLOAT64))


def _reduced(scalars: Scalars, rest: SSAValue, divisor: SSAValue, inverse: SSAValue) -> SSAValue:
    """The rest minus the nearest multiple of the divisor."""
    quotient = scalars.apply(math.RoundEvenOp, scalars.apply(arith.MulfOp, rest, inverse))
    return scalars.apply(math.FmaOp, scalars.apply(arith.NegfOp, quotient), divisor, rest)


def _wrong_sign(scalars: Scalars, rest: SSAValue, rhs: SSAValue) -> SSAValue:
    """Whether a rest is not 0 and has another sign than the divisor."""
    zero = scalars.constant(0.0, rest.type)
    signs = scalars.apply(arith.XOrIOp, *(scalars.compare("olt", value, zero) for value in (rhs, rest)))
    return scalars.apply(arith.AndIOp, scalars.compare("une", rest, zero), signs)


def float_flooring_rest(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """`remainder`: the rest with the divisor's sign."""
    rest = float_truncating_rest(scalars, lhs, rhs)
    return scalars.select(_wrong_sign(scalars, rest, rhs), scalars.apply(arith.AddfOp, rest, rhs), rest)


def float_flooring_quotient(scalars: Scalars, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Python's `//` on floats: from the exact rest, snapped to the nearest integer."""
    zero, one = scalars.constant(0.0, lhs.type), scalars.constant(1.0, lhs.type)
    rest = float_truncating_rest(scalars, lhs, rhs)
    plain = scalars.apply(arith.DivfOp, lhs, rhs)
    quotient = scalars.apply(arith.DivfOp, scalars.apply(arith.SubfOp, lhs, rest), rhs)
    lower = scalars.apply(arith.SubfOp, quotient, one)
    quotient = scalars.select(_wrong_sign(scalars, rest, rhs), lower, quotient)
    whole = scalars.apply(math.FloorOp, quotient)
    far = scalars.compare("ogt", scalars.apply(arith.SubfOp, quotient, whole), scalars.constant(0.5, lhs.type))
    whole = scalars.select(far, scalars.apply(arith.AddfOp, whole, one), whole)
    signed_zero = scalars.apply(math.CopySignOp, zero, plain)
    whole = scalars.select(scalars.compare("oeq", quotient, zero), signed_zero, whole)
    return scalars.select(scalars.compare("oeq", rhs, zero), plain, whole)

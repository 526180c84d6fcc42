"""Quotients of f32 that need not branch, as the exact division does for numbers near the ends of the range, which takes
registers that rows are held in: by `1 + exp(…)`, and by one number for a whole row where results are narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from ...ir import tile, tt
from ...ir.tile.ops import element_of, shape_of
from ...ir.tt.ops import RECIPROCAL
from .tt_arith import ARITHMETIC
from .tt_builder import TritonBuilder

GREATEST = (2.0 - 2.0**-23) * 2.0**127
"""The greatest f32."""

FAR = 2.0**64
"""Divisors beyond it, and those below its reciprocal, are brought nearer to 1."""

NARROW_BITS = 16
"""Of an element that hides errors of some units of f32."""


def number_of(value: SSAValue) -> float | None:
    """The number that a block has in every lane, if it is a constant."""
    owner = value.owner
    if isinstance(owner, tile.BroadcastOp):
        return number_of(owner.operand)
    held = owner.value if isinstance(owner, arith.ConstantOp) else None
    return held.value.data if isinstance(held, FloatAttr) else None


def is_above_one(value: SSAValue) -> bool:
    """Whether a value is `1 + exp(…)` in f32, which the logistic function and SiLU divide by."""
    total = value.owner
    return (
        isinstance(total, arith.AddfOp)
        and element_of(value.type) == f32
        and any(number_of(term) == 1.0 for term in total.operands)
        and any(isinstance(term.owner, math.ExpOp | math.Exp2Op) for term in total.operands)
    )


def _emit_quotient(b: TritonBuilder, op: arith.DivfOp) -> None:
    divisor = op.rhs.owner
    if element_of(op.result.type) != f32:
        ARITHMETIC[type(op)](b, op)
    elif isinstance(divisor, tile.BroadcastOp) and is_rounded(op):
        b.values[op.result] = quotient_of_row(b, b.values[op.lhs], divisor)
    elif is_above_one(op.rhs):
        b.values[op.result] = quotient(b, b.values[op.lhs], b.values[op.rhs])
    else:
        ARITHMETIC[type(op)](b, op)


def is_rounded(op: arith.DivfOp) -> bool:
    """Whether all that is wanted of a quotient is its value in a narrow type."""
    wanted = [use.operation for use in op.result.uses]
    return all(
        isinstance(other, arith.TruncFOp) and element_of(other.result.type).bitwidth <= NARROW_BITS  # type: ignore[attr-defined]
        for other in wanted
    )


def quotient_of_row(b: TritonBuilder, x: SSAValue, divisor: tile.BroadcastOp) -> SSAValue:
    """x / d, where one d serves many x, by its reciprocal: right to a unit of f32. Both are first brought nearer to 1
    where d is so far from it that the reciprocal of a number that is not 0 would be infinite, or not normal."""
    d = b.values[divisor.operand]
    size, scale = b.op(math.AbsFOp, d), b.constant(1.0, d.type)
    for predicate, limit in (("ogt", FAR), ("olt", 1 / FAR)):
        beyond = b.add(tt.CmpFOp.make(predicate, size, b.constant(limit, d.type)))
        scale = b.add(tt.SelectOp.make(beyond, b.constant(1 / limit, d.type), scale))
    over = b.add(tt.PreciseDivFOp.make(b.constant(1.0, d.type), b.op(arith.MulfOp, d, scale)))
    scale, over = (b.spread(row, divisor.dim_list, shape_of(divisor.result.type)) for row in (scale, over))
    return b.op(arith.MulfOp, b.op(arith.MulfOp, x, scale), over)


def reciprocal(b: TritonBuilder, x: SSAValue) -> SSAValue:
    """1/x for x from 1 on, which may be infinite: an approximation, and a step of Newton's, which must not multiply an
    infinity by 0."""
    near, scale = near_reciprocal(b, x)
    scaled = b.op(arith.MulfOp, x, scale)
    left = b.op(math.FmaOp, negated(b, scaled), near, b.constant(1.0, x.type))
    return b.op(arith.MulfOp, b.op(math.FmaOp, near, left, near), scale)


def quotient(b: TritonBuilder, x: SSAValue, d: SSAValue) -> SSAValue:
    """x / d for d from 1 on, which may be infinite: by an approximation, and what that leaves of x, which is right to
    half a unit in the last place or a trace more. Of an infinity nothing is left; what is said to be is one, too.

    The exact division branches for the sake of other numbers, and takes registers that rows are held in.
    """
    near, scale = near_reciprocal(b, d)
    over = b.op(arith.MulfOp, near, scale)
    first = b.op(arith.MulfOp, x, over)
    finite = b.op(arith.MaxnumfOp, first, b.constant(-GREATEST, x.type))
    finite = b.op(arith.MinnumfOp, finite, b.constant(GREATEST, x.type))
    left = b.op(math.FmaOp, negated(b, d), finite, x)
    return b.op(math.FmaOp, left, over, first)


def near_reciprocal(b: TritonBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """(r, s), of which the product is within two units of 1/x for x from 1 on: the greatest numbers have reciprocals
    that are not normal, which the approximation makes 0."""
    scale = b.constant(2.0**-32, x.type)
    return b.add(tt.InlineAsmOp.make(RECIPROCAL, b.op(arith.MulfOp, x, scale))), scale


def negated(b: TritonBuilder, x: SSAValue) -> SSAValue:
    """-x, the greatest number in place of infinity."""
    return b.op(arith.MaxnumfOp, b.op(arith.MulfOp, x, b.constant(-1.0, x.type)), b.constant(-GREATEST, x.type))


QUOTIENTS: dict[type[Operation], Callable[[Any, Any], None]] = {arith.DivfOp: _emit_quotient}

__all__ = ["NARROW_BITS", "QUOTIENTS", "number_of", "reciprocal"]

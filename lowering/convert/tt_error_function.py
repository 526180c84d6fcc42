"""`1 + erf(x)` in kernels of products, where what follows a sum runs while the matrix units wait: a third of the
instructions of libdevice's function. Only where results are rounded to 11 bits or less, which hides its error of 3e-5
of the sum; for other kernels memory is the bound, so they take the library's.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from ...ir import tile, tt
from ...ir.tile.ops import element_of
from .tt_arith import ARITHMETIC
from .tt_products import ProductBuilder

LOG2_ERFC = (
    -1.6276460886001587,
    -0.9203594326972961,
    -0.14468218386173248,
    0.02650853618979454,
    -0.0021978290751576424,
)
"""log2(erfc(x)) = x P(x) for x from 0 on, the lowest power first; fitted on [0, 4] with erfc, at least 1e-3, as the
weight of errors. It falls to the end, so that erfc ends at 0; where erfc is 1e-5, 0.7 % of it are wrong."""

NARROW_BITS = 16
"""Of an element that hides such errors."""


def is_one(value: SSAValue) -> bool:
    """Whether a block is the number 1 in every lane."""
    owner = value.owner
    if isinstance(owner, tile.BroadcastOp):
        return is_one(owner.operand)
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr) and owner.value.value.data == 1.0


def sum_with_one(op: Operation) -> math.ErfOp | None:
    """The error function of f32 that an op adds 1 to, if that is what it does."""
    if not isinstance(op, arith.AddfOp) or element_of(op.result.type) != f32:
        return None
    for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if isinstance(value.owner, math.ErfOp) and is_one(other):
            return value.owner
    return None


def _emit_erf(b: ProductBuilder, op: math.ErfOp) -> None:
    """Nothing where all that is wanted is sums with 1."""
    if not b.rounds_products or any(sum_with_one(use.operation) is None for use in op.result.uses):
        ARITHMETIC[math.ErfOp](b, op)


def _emit_add(b: ProductBuilder, op: arith.AddfOp) -> None:
    erf = sum_with_one(op) if b.rounds_products else None
    if erf is None:
        ARITHMETIC[arith.AddfOp](b, op)
    else:
        b.values[op.result] = one_plus_erf(b, b.values[erf.operand])


def one_plus_erf(b: ProductBuilder, x: SSAValue) -> SSAValue:
    """`erfc(-x)`, as `erfc(|x|)` left of 0 and `2 - erfc(|x|)` right of it, which loses nothing by cancellation."""
    size = b.op(math.AbsFOp, x)
    polynomial = b.constant(LOG2_ERFC[-1], x.type)
    for coefficient in LOG2_ERFC[-2::-1]:
        polynomial = b.op(math.FmaOp, polynomial, size, b.constant(coefficient, x.type))
    tail = b.op(math.Exp2Op, b.op(arith.MulfOp, polynomial, size))
    rest = b.op(arith.SubfOp, b.constant(2.0, x.type), tail)
    return b.add(tt.SelectOp.make(b.add(tt.CmpFOp.make("olt", x, b.constant(0.0, x.type))), tail, rest))


def rounds_products(kernel: tile.KernelOp) -> bool:
    """Whether a kernel sums up products, and stores narrow floats only."""
    ops = [*kernel.walk()]
    stored = [op.value.type for op in ops if isinstance(op, tile.StoreOp | tile.StoreBoxOp | tile.ScatterOp)]
    narrow = all(element_of(type_).bitwidth <= NARROW_BITS for type_ in stored)  # type: ignore[attr-defined]
    return narrow and any(isinstance(op, tile.DotOp) for op in ops)


ERROR_FUNCTION: dict[type[Operation], Any] = {math.ErfOp: _emit_erf, arith.AddfOp: _emit_add}

__all__ = ["ERROR_FUNCTION", "rounds_products"]

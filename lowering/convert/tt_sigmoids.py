"""The logistic function, and `s (1 + f(x))` for a sigmoid f, erf or tanh, as GELU asks for it, in fewer instructions.

Of tanh it is the logistic function, which is nearer to the exact result than a sum that cancels. Of erf it is right to
4e-5 of the sum, so only where results are rounded to 11 bits or less: those come from memory so fast that libdevice's
would take longer. Kernels of products, where matrix units wait for what follows a sum, take fewer terms still.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, log2
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, f32
from xdsl.ir import Operation, SSAValue

from ...ir import tile, tt
from ...ir.tile.ops import element_of
from .tt_arith import ARITHMETIC
from .tt_products import ProductBuilder
from .tt_quotients import NARROW_BITS, number_of, reciprocal

LOG2_ERFC = (
    -1.6276460886001587,
    -0.9203594326972961,
    -0.14468218386173248,
    0.02650853618979454,
    -0.0021978290751576424,
)
"""log2(erfc(x)) = x P(x) for x from 0 on, the lowest power first; fitted on [0, 4] with erfc, at least 1e-3, as the
weight of errors. It falls to the end, so that erfc ends at 0; where erfc is 1e-5, 0.7 % of it are wrong."""

LOG2_ERFC_TO_THE_END = (
    -1.627951741218567,
    -0.9170835614204407,
    -0.15313072502613068,
    0.03495486453175545,
    -0.005867187865078449,
    0.0006867023766972125,
    -5.2469382353592664e-05,
    2.3364395929093007e-06,
    -4.579215229227884e-08,
)
"""The same, with errors of 4.5e-5 of erfc as far as f32 holds it (9.2), evaluated in f32. It falls to the end, too."""

Sigmoid = math.ErfOp | math.TanhOp


def scaled_sum(op: Operation) -> tuple[Sigmoid, float] | None:
    """(f, s) of an op that computes `s (1 + f)` in f32: `f + 1`, or `f * s + s`."""
    if not isinstance(op, arith.AddfOp | math.FmaOp) or element_of(op.results[0].type) != f32:
        return None
    for value in op.operands if isinstance(op, arith.AddfOp) else (op.a, op.b):
        others = {number_of(other) for other in op.operands if other is not value}
        scale = others.pop() if len(others) == 1 else None
        if isinstance(value.owner, Sigmoid) and scale is not None and scale > 0:
            return (value.owner, scale) if isinstance(op, math.FmaOp) or scale == 1.0 else None
    return None


def is_replaced(b: ProductBuilder, op: Sigmoid) -> bool:
    """Whether all that is wanted of a sigmoid are such sums, and kernels of this kind take them from here."""
    served = isinstance(op, math.TanhOp) or b.rounds_results
    return served and all(scaled_sum(use.operation) is not None for use in op.result.uses)


def _emit_sigmoid(b: ProductBuilder, op: Sigmoid) -> None:
    if not is_replaced(b, op):
        ARITHMETIC[type(op)](b, op)


def _emit_sum(b: ProductBuilder, op: arith.AddfOp | math.FmaOp) -> None:
    found = scaled_sum(op)
    if found is None or not is_replaced(b, found[0]):
        ARITHMETIC[type(op)](b, op)
    else:
        sigmoid, scale = found
        b.values[op.result] = SUMS[type(sigmoid)](b, b.values[sigmoid.operand], scale)


def one_plus_erf(b: ProductBuilder, x: SSAValue, scale: float) -> SSAValue:
    """`erfc(-x)`, as `erfc(|x|)` left of 0 and `2 - erfc(|x|)` right of it, which loses nothing by cancellation."""
    size = b.op(math.AbsFOp, x)
    coefficients = LOG2_ERFC if b.rounds_products else LOG2_ERFC_TO_THE_END
    polynomial = b.constant(coefficients[-1], x.type)
    for coefficient in coefficients[-2::-1]:
        polynomial = b.op(math.FmaOp, polynomial, size, b.constant(coefficient, x.type))
    tail = b.op(math.Exp2Op, b.op(math.FmaOp, polynomial, size, b.constant(log2(scale), x.type)))
    rest = b.op(arith.SubfOp, b.constant(2 * scale, x.type), tail)
    return b.add(tt.SelectOp.make(b.add(tt.CmpFOp.make("olt", x, b.constant(0.0, x.type))), tail, rest))


def one_plus_tanh(b: ProductBuilder, x: SSAValue, scale: float) -> SSAValue:
    """`2 / (1 + exp(-2x))`: the exponential may be 0 or infinite."""
    power = b.op(math.Exp2Op, b.op(arith.MulfOp, x, b.constant(-2 * log2(e), x.type)))
    below = b.op(arith.AddfOp, power, b.constant(1.0, x.type))
    return b.op(arith.MulfOp, reciprocal(b, below), b.constant(2 * scale, x.type))


SUMS: dict[type[Operation], Callable[[ProductBuilder, SSAValue, float], SSAValue]] = {
    math.ErfOp: one_plus_erf,
    math.TanhOp: one_plus_tanh,
}


def rounds_results(kernel: tile.KernelOp) -> bool:
    """Whether a kernel stores narrow floats only, and masks that such have decided."""
    stores = (op for op in kernel.walk() if isinstance(op, tile.StoreOp | tile.StoreBoxOp | tile.ScatterOp))
    return all(_is_rounded(op.value) for op in stores)


def _is_rounded(value: SSAValue) -> bool:
    element, owner = element_of(value.type), value.owner
    if isinstance(owner, tile.CompareOp):
        return all(number_of(operand) is not None or _is_rounded(operand) for operand in owner.operands)
    if isinstance(owner, arith.ExtFOp):
        return _is_rounded(owner.input)
    return isinstance(element, AnyFloat) and element.bitwidth <= NARROW_BITS


SIGMOIDS: dict[type[Operation], Any] = {
    math.ErfOp: _emit_sigmoid,
    math.TanhOp: _emit_sigmoid,
    arith.AddfOp: _emit_sum,
    math.FmaOp: _emit_sum,
}

__all__ = ["SIGMOIDS", "rounds_results"]

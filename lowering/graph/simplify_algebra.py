"""`graph-simplify-algebra`: identities that hold exactly, each on the element types for which it does.

Floats are not real numbers: `x + 0` turns -0 into 0, `x * 0` loses NaN, `x - x` is NaN at infinity. A rule says
for which types it is exact, and none is applied beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...ir import graph
from ...ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, element_of, is_float, is_integer
from ...ir.graph.attributes import DataAttr
from .patterns import may_replace, replace_with_value, rewrite, scalar_of


def _is_plus_zero(value: Any) -> bool:
    return bool(value == 0.0) and math.copysign(1.0, value) == 1.0


def _is_minus_zero(value: Any) -> bool:
    return bool(value == 0.0) and math.copysign(1.0, value) == -1.0


def _is_one(value: Any) -> bool:
    return bool(value == 1)


def _is_zero(value: Any) -> bool:
    return bool(value == 0)


@dataclass(frozen=True)
class Neutral:
    """`op(x, c) → x` for constants c that the test accepts, on the element types for which that is exact."""

    op: type[graph.BinaryOp]
    accepts: Callable[[Any], bool]
    types: Callable[[Attribute], bool]
    commutes: bool = False


NEUTRAL: tuple[Neutral, ...] = (
    Neutral(graph.AddOp, _is_zero, is_integer, commutes=True),
    Neutral(graph.AddOp, _is_minus_zero, is_float, commutes=True),  # x + -0 is x, also for x = -0
    Neutral(graph.SubOp, _is_zero, is_integer),
    Neutral(graph.SubOp, _is_plus_zero, is_float),
    Neutral(graph.MulOp, _is_one, lambda element: True, commutes=True),
    Neutral(graph.DivOp, _is_one, is_float),
    Neutral(graph.TruncDivOp, _is_one, is_integer),
    Neutral(graph.FloorDivOp, _is_one, is_integer),
    Neutral(graph.PowOp, _is_one, lambda element: True),
    Neutral(graph.OrOp, _is_zero, lambda element: True, commutes=True),
    Neutral(graph.XorOp, _is_zero, lambda element: True, commutes=True),
    Neutral(graph.ShlOp, _is_zero, lambda element: True),
    Neutral(graph.ShrOp, _is_zero, lambda element: True),
)

_NEUTRAL_BY_OP: dict[type[graph.BinaryOp], list[Neutral]] = {}
for _row in NEUTRAL:
    _NEUTRAL_BY_OP.setdefault(_row.op, []).append(_row)


class DropNeutralOperand(RewritePattern):
    """
    op(x, neutral element) → x

    Does not fire where the value would change for any x: `x + 0` on floats (x = -0), `x * 0`, `x - x`; nor
    where x has another layout than the result.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.BinaryOp, rewriter: PatternRewriter) -> None:
        for row in _NEUTRAL_BY_OP.get(type(op), ()):
            if not row.types(op.element):
                continue
            pairs = ((op.lhs, op.rhs), (op.rhs, op.lhs)) if row.commutes else ((op.lhs, op.rhs),)
            for kept, constant in pairs:
                if row.accepts(scalar_of(constant)) and may_replace(op, kept):
                    replace_with_value(rewriter, op, kept)
                    return


class AnnihilateIntegerProduct(RewritePattern):
    """
    x * 0 → 0 and x & 0 → 0

    Does not fire on floats: NaN * 0 and inf * 0 are NaN, -1 * 0 is -0.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp | graph.AndOp, rewriter: PatternRewriter) -> None:
        if is_float(op.element):
            return
        if any(scalar_of(operand) == 0 for operand in op.operands):
            rewriter.replace(op, graph.FullOp.build_from((), op.type, op.location, value=DataAttr.of(op.element, 0)))


class CancelIntegerDifference(RewritePattern):
    """
    x - x → 0 and x ^ x → 0

    Does not fire on floats: NaN - NaN and inf - inf are NaN.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SubOp | graph.XorOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs and not is_float(op.element):
            rewriter.replace(op, graph.FullOp.build_from((), op.type, op.location, value=DataAttr.of(op.element, 0)))


class DivideByPowerOfTwo(RewritePattern):
    """
    x / 2^k → x * 2^-k

    Does not fire for other divisors, whose reciprocal is rounded, nor where the reciprocal is not a normal number.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        divisor = scalar_of(op.rhs)
        if divisor is None or not 2.0**-14 <= abs(divisor) <= 2.0**14:  # both are normal in every float type
            return
        if abs(math.frexp(divisor)[0]) != 0.5:
            return
        value = DataAttr.of(op.element, 1.0 / divisor)
        factor = graph.FullOp.build_from((), op.rhs.type, op.location, value=value)
        rewriter.replace(op, (factor, graph.MulOp.make(op.lhs, SSAValue.get(factor), op.type, op.location)))


class SquareInsteadOfPower(RewritePattern):
    """
    x ** 2 → x * x and x ** 3 → x * x * x, as eager computes them

    Does not fire for other exponents.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        exponent = scalar_of(op.rhs)
        if exponent not in (2, 3) or op.element in (BFLOAT16, FLOAT16):
            return
        square = graph.MulOp.make(op.lhs, op.lhs, op.type, op.location)
        if exponent == 2:
            rewriter.replace(op, square)
        else:
            rewriter.replace(op, (square, graph.MulOp.make(SSAValue.get(square), op.lhs, op.type, op.location)))


class CancelInverse(RewritePattern):
    """
    neg(neg x) → x and not(not x) → x

    Does not fire where x has another layout than the result.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.NegOp | graph.NotOp, rewriter: PatternRewriter) -> None:
        inner = op.operand.owner
        if isinstance(inner, graph.NegOp | graph.NotOp) and inner.name == op.name and may_replace(op, inner.operand):
            replace_with_value(rewriter, op, inner.operand)


class DropIdempotent(RewritePattern):
    """
    f(f(x)) → f(x) for relu, abs, floor, ceil, trunc, round

    Does not fire where the inner result has another layout than the outer.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: graph.ReluOp | graph.AbsOp | graph.FloorOp | graph.CeilOp | graph.TruncOp | graph.RoundOp,
        rewriter: PatternRewriter,
    ) -> None:
        if type(op.operand.owner) is type(op) and may_replace(op, op.operand):
            replace_with_value(rewriter, op, op.operand)


class CollapseEqualOperands(RewritePattern):
    """
    max(x, x) → x, min(x, x) → x, x & x → x, x | x → x, select(c, x, x) → x

    Does not fire where x has another layout than the result.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: graph.MaximumOp | graph.MinimumOp | graph.AndOp | graph.OrOp | graph.SelectOp,
        rewriter: PatternRewriter,
    ) -> None:
        if op.lhs is op.rhs and may_replace(op, op.lhs):
            replace_with_value(rewriter, op, op.lhs)


class ChooseByConstant(RewritePattern):
    """
    select(true, x, y) → x and select(false, x, y) → y

    Does not fire on a condition that varies.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SelectOp, rewriter: PatternRewriter) -> None:
        condition = scalar_of(op.condition)
        if condition is None:
            return
        chosen = op.lhs if condition else op.rhs
        if may_replace(op, chosen):
            replace_with_value(rewriter, op, chosen)


_WIDER = {FLOAT32: (BFLOAT16, FLOAT16), FLOAT64: (BFLOAT16, FLOAT16, FLOAT32)}


class JoinConversions(RewritePattern):
    """
    convert(x : T → T) → x, and convert(convert(x : T → wider) → T) → x

    Does not fire where the middle type cannot hold every value of T: f32 → bf16 → f32 rounds.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ConvertOp, rewriter: PatternRewriter) -> None:
        if may_replace(op, op.operand):
            replace_with_value(rewriter, op, op.operand)
            return
        inner = op.operand.owner
        if not isinstance(inner, graph.ConvertOp) or not may_replace(op, inner.operand):
            return
        if element_of(inner.operand.type) in _WIDER.get(inner.element, ()):
            replace_with_value(rewriter, op, inner.operand)


PATTERNS: tuple[type[RewritePattern], ...] = (
    DropNeutralOperand, AnnihilateIntegerProduct, CancelIntegerDifference, DivideByPowerOfTwo,
    SquareInsteadOfPower, CancelInverse, DropIdempotent, CollapseEqualOperands, ChooseByConstant, JoinConversions,
)  # fmt: skip


class SimplifyAlgebra(ModulePass):
    """Apply identities that hold exactly for the element type at hand."""

    name = "graph-simplify-algebra"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [pattern() for pattern in PATTERNS])

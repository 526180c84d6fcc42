"""`graph-match-bias`: a product and the bias added to it become one op, which libraries compute in one pass."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...ir import graph
from ...ir.dtypes import FLOAT32, FLOAT64
from ...ir.shapes import sizes_of
from .patterns import rewrite


class AddBiasInProduct(RewritePattern):
    """
    add(matmul(x, y), broadcast(bias)) → matmul(x, y, bias)

    Does not fire when the product has other users, when the bias is a full matrix (a residual, which is better fused
    behind the product), or in bf16 and f16, where the product is rounded before the addition.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        if op.element not in (FLOAT32, FLOAT64):
            return
        for product, added in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            matmul, bias = product.owner, _row(added)
            if not isinstance(matmul, graph.MatmulOp) or matmul.bias is not None or bias is None:
                continue
            if product.has_one_use() and product.type == op.type:
                fused = graph.MatmulOp.make(matmul.lhs, matmul.rhs, bias, op.type, op.location)
                rewriter.replace(op, fused)
                return


def _row(value: SSAValue) -> SSAValue | None:
    """The vector that a value repeats for every row."""
    owner = value.owner
    if isinstance(owner, graph.BroadcastOp) and len(sizes_of(owner.operand.type)) == 1:
        return owner.operand
    return None


class MatchBias(ModulePass):
    """Join a product and the bias added to it into one op."""

    name = "graph-match-bias"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [AddBiasInProduct()])

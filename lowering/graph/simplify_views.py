"""`graph-simplify-views`: joins views of views, and drops those that change nothing."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...ir import graph
from ...ir.expr import ZERO
from .patterns import may_replace, replace_with_value, rewrite


class DropIdentityView(RewritePattern):
    """
    reshape, broadcast or permute of x to its own type → x; a slice of everything → x

    Does not fire where order or layout change, e.g. a permute of equal sizes.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ViewOp, rewriter: PatternRewriter) -> None:
        if may_replace(op, op.operand) and _keeps_order(op):
            replace_with_value(rewriter, op, op.operand)


def _keeps_order(op: graph.ViewOp) -> bool:
    if isinstance(op, graph.ReshapeOp | graph.BroadcastOp):
        return True
    if isinstance(op, graph.PermuteOp):
        return op.permutation == tuple(range(len(op.permutation)))
    if isinstance(op, graph.SliceOp):
        return all(start == ZERO for start in op.starts.results)  # of the same sizes, so from 0 in steps of 1
    return False


class JoinReshapes(RewritePattern):
    """
    reshape(reshape(x)) → reshape(x)

    Does not fire on views in between that reorder.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReshapeOp, rewriter: PatternRewriter) -> None:
        inner = op.operand.owner
        if isinstance(inner, graph.ReshapeOp):
            rewriter.replace(op, graph.ReshapeOp.build_from((inner.operand,), op.type, op.location))


class JoinPermutes(RewritePattern):
    """
    permute(permute(x, p), q) → permute(x, p[q])

    Does not fire on anything else than two permutes in a row.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PermuteOp, rewriter: PatternRewriter) -> None:
        inner = op.operand.owner
        if isinstance(inner, graph.PermuteOp):
            dims = [inner.permutation[dim] for dim in op.permutation]
            rewriter.replace(op, graph.PermuteOp.make(inner.operand, dims, op.type, op.location))


class JoinBroadcasts(RewritePattern):
    """
    broadcast(broadcast(x)) → broadcast(x)

    Does not fire on a reshape in between that moves dims.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.BroadcastOp, rewriter: PatternRewriter) -> None:
        inner = op.operand.owner
        if isinstance(inner, graph.BroadcastOp):
            rewriter.replace(op, graph.BroadcastOp.build_from((inner.operand,), op.type, op.location))


class SimplifyViews(ModulePass):
    """Join views of views and drop those that change nothing."""

    name = "graph-simplify-views"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [DropIdentityView(), JoinReshapes(), JoinPermutes(), JoinBroadcasts()])

"""What the patterns of the graph level share: constants as operands, and running patterns over a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriter, PatternRewriteWalker, RewritePattern

from ...ir import graph


def scalar_of(value: SSAValue) -> Any:
    """The number that a value holds in every element, if it is such a constant, else None."""
    owner = value.owner
    while isinstance(owner, graph.BroadcastOp | graph.ReshapeOp):
        owner = owner.operand.owner
    if isinstance(owner, graph.FullOp):
        return owner.scalar
    if isinstance(owner, graph.ConstantOp) and len(owner.value) == 1:
        return owner.value.scalar
    return None


def replace_with_value(rewriter: PatternRewriter, op: Operation, value: SSAValue) -> None:
    """Replaces an op by a value that exists, whose layout may differ only where nobody can see it."""
    rewriter.replace(op, (), [value])


def may_replace(op: graph.GraphOp, value: SSAValue) -> bool:
    """Whether a value can stand for an op's result: the same type, layout included."""
    return bool(value.type == SSAValue.get(op).type)


def rewrite(module: ModuleOp, patterns: Sequence[RewritePattern]) -> None:
    """Applies the patterns until none fires."""
    applier = GreedyRewritePatternApplier(list(patterns))
    PatternRewriteWalker(applier, apply_recursively=True).rewrite_module(module)

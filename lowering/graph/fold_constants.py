"""`graph-fold-constants`: computes at compile time what depends on constants alone."""

from __future__ import annotations

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...ir import graph
from ...ir.dtypes import element_of
from ...ir.expr import product
from ...ir.graph.attributes import DataAttr
from ...ir.graph.evaluate import Array, can_evaluate, evaluate
from .patterns import rewrite, scalar_of

LARGEST = 1024
"""Elements up to which a folded result is kept as data; larger ones cost more in the IR than at run time."""


class FoldUniform(RewritePattern):
    """
    op(full a, full b) → full op(a, b)

    Does not fire on ops that may raise, or whose value eager leaves to the machine (float to integer).
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ElementwiseOp, rewriter: PatternRewriter) -> None:
        if not can_evaluate(op):
            return
        scalars = [scalar_of(operand) for operand in op.operands]
        if any(scalar is None for scalar in scalars):
            return
        arrays = [_array(scalar, operand) for scalar, operand in zip(scalars, op.operands, strict=True)]
        folded = graph.FullOp.build_from((), op.type, op.location, value=DataAttr.of(op.element, evaluate(op, arrays)))
        rewriter.replace(op, folded)


class FoldElements(RewritePattern):
    """
    op(constant a, constant b) → constant op(a, b), for small ones

    Does not fire where a result would have more than `LARGEST` elements.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ElementwiseOp, rewriter: PatternRewriter) -> None:
        if not can_evaluate(op) or not any(isinstance(value.owner, graph.ConstantOp) for value in op.operands):
            return
        count = product(op.sizes).constant  # known, as that of a constant
        arrays = [_elements(operand, count) for operand in op.operands]
        if count > LARGEST or any(array is None for array in arrays):
            return
        value = DataAttr.of(op.element, evaluate(op, [array for array in arrays if array is not None]))
        rewriter.replace(op, graph.ConstantOp.make(value, op.type, op.location))


class FoldView(RewritePattern):
    """
    view(full a) → full a of the view's type

    Does not fire on `as_strided`, whose result depends on memory rather than on indices.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ViewOp, rewriter: PatternRewriter) -> None:
        source = op.operand.owner
        if isinstance(source, graph.FullOp) and not isinstance(op, graph.AsStridedOp):
            rewriter.replace(op, graph.FullOp.build_from((), op.type, op.location, value=source.value))


def _array(scalar: float, operand: SSAValue) -> Array:
    return DataAttr.of(element_of(operand.type), scalar).array


def _elements(value: SSAValue, count: int) -> Array | None:
    """All elements of a constant of so many, in row-major order."""
    if isinstance(value.owner, graph.ConstantOp):
        return value.owner.value.array
    scalar = scalar_of(value)
    return None if scalar is None else np.repeat(_array(scalar, value), count)


class FoldConstants(ModulePass):
    """Compute at compile time what depends on constants alone."""

    name = "graph-fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [FoldView(), FoldUniform(), FoldElements()])

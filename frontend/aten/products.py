"""Matrix products. `addmm` keeps its bias, because the product rounds once after adding it."""

from __future__ import annotations

from typing import Any

import torch

from ...ir import graph
from ...ir.dtypes import BOOL, compute_type
from ...ir.expr import ONE
from ...ir.graph.contractions import ProductOp
from ..builder import Declined, GraphBuilder, Value
from .registry import imports


def _product(op: type[ProductOp], lhs: Value, rhs: Value, bias: Value | None = None) -> Value:
    if lhs.element == BOOL or lhs.element != rhs.element or (bias and bias.element != lhs.element):
        raise Declined
    return lhs.builder.emit(op.make(lhs.ssa, rhs.ssa, bias.ssa if bias else None))


@imports("aten.mm")
def mm(builder: GraphBuilder, self: Value, mat2: Value) -> Value:
    return _product(graph.MatmulOp, self, mat2)


SMALL_MATRIX = 4096
"""Elements of a matrix up to which its product with a vector is a sum, which fuses with what is around it: a library
takes longer to be called."""


@imports("aten.bmm")
def bmm(builder: GraphBuilder, self: Value, mat2: Value) -> Value:
    if self.element == mat2.element != BOOL and _are_small_by_vectors(self, mat2):
        return (self * mat2.transpose()).sum([2], keep=True)
    return _product(graph.BatchMatmulOp, self, mat2)


def _are_small_by_vectors(lhs: Value, rhs: Value) -> bool:
    """Whether each product of a batch is a sum; those of bf16 are the matrix units'."""
    _, rows, depth = lhs.sizes
    size, wide = rows * depth, compute_type(lhs.element) == lhs.element
    return wide and rhs.sizes[2] == ONE and size.is_constant and size.constant <= SMALL_MATRIX


def _biased(op: type[ProductOp], bias: Value, lhs: Value, rhs: Value, beta: Any, alpha: Any) -> Value:
    """`beta * bias + alpha * (lhs @ rhs)`; in bf16 factors would need a product that is not yet rounded."""
    if beta == 1 and alpha == 1:
        return _product(op, lhs, rhs, bias)
    if compute_type(lhs.element) != lhs.element:
        raise Declined
    product = _product(op, lhs, rhs)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else bias * beta + product


@imports("aten.addmm")
def addmm(builder: GraphBuilder, self: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    return _biased(graph.MatmulOp, self, mat1, mat2, beta, alpha)


@imports("aten.baddbmm")
def baddbmm(
    builder: GraphBuilder, self: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    return _biased(graph.BatchMatmulOp, self, batch1, batch2, beta, alpha)


@imports("aten.mv")
def mv(builder: GraphBuilder, self: Value, vec: Value) -> Value:
    return (self.up() * vec.up()).sum([1])


@imports("aten.dot")
def dot(builder: GraphBuilder, self: Value, tensor: Value) -> Value:
    return (self.up() * tensor.up()).sum([0])


PRODUCTS = {torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.baddbmm}
"""What is computed by a product kernel of its own, into which the partitioner must not count on fusing."""

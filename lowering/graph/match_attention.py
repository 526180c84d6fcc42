"""`graph-match-attention`: scaled dot product attention that is spelled out becomes one library call.

The library never writes the matrix of scores to memory, which a product, a softmax and a product must.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...ir import graph
from ...ir.dtypes import FLOAT32, FLOAT64, element_of
from ...ir.expr import ONE, Expr
from ...ir.graph.attributes import Arguments, OperandRef
from ...ir.shapes import sizes_of, strides_of, tensor_type
from .patterns import rewrite, scalar_of

LIBRARY_CALL = "aten._scaled_dot_product_flash_attention_for_cpu.default"


@dataclass(frozen=True)
class Attention:
    """Queries, transposed keys, and the factor of their products."""

    query: SSAValue
    transposed_key: SSAValue
    scale: float


class CallAttention(RewritePattern):
    """
    batch_matmul(softmax(batch_matmul(q, kᵀ) * scale), v) → the library's attention on q, k, v

    Does not fire when the weights have other users (a gradient needs them), when a mask is added (a row that is
    masked whole is NaN here and 0 in the library), for other types than f32 and f64, or when the keys are not
    contiguous along their features.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.BatchMatmulOp, rewriter: PatternRewriter) -> None:
        if op.bias is not None or op.element not in (FLOAT32, FLOAT64):
            return
        scores = _softmax_operand(_through_reshapes(op.lhs))
        found = None if scores is None else _scaled_product(scores)
        if found is None:
            return
        key = graph.PermuteOp.make(found.transposed_key, (0, 2, 1), location=op.location)
        operands = (found.query, key.result, op.rhs)
        if any(strides_of(operand.type)[-1] != ONE for operand in operands):
            key.erase()  # its use of the keys would keep them
            return
        ops = [key, *_call(op, operands, found.scale)]
        rewriter.replace(op, ops, [SSAValue.get(ops[-1])])


def _call(op: graph.BatchMatmulOp, operands: tuple[SSAValue, ...], scale: float) -> list[Operation]:
    """The call on operands with one head each, and its result without the head."""
    heads = [_with_head(operand) for operand in operands]
    batch, length, width = op.sizes
    sizes = (batch, ONE, length, width)
    types = [tensor_type(op.element, sizes, _library_strides(*sizes)), tensor_type(FLOAT32, (batch, ONE, length))]
    inputs = [SSAValue.get(head) for head in heads]
    arguments = Arguments((OperandRef(0), OperandRef(1), OperandRef(2)), (("scale", scale),))
    call = graph.ExternOp.make(LIBRARY_CALL, inputs, arguments, types, location=op.location)
    output, *_ = call.results
    return [*heads, call, graph.ReshapeOp.build_from((output,), op.type, op.location)]


def _with_head(value: SSAValue) -> graph.AsStridedOp:
    """The same memory with a dim of one head after the batch."""
    sizes, strides = sizes_of(value.type), strides_of(value.type)
    type_ = tensor_type(
        element_of(value.type), (sizes[0], ONE, *sizes[1:]), (strides[0], sizes[1] * strides[1], *strides[1:])
    )
    return graph.AsStridedOp.make(value, 0, type_)


def _library_strides(batch: Expr, heads: Expr, length: Expr, width: Expr) -> tuple[Expr, ...]:
    """The library lays its result out with heads inside of the length."""
    return (length * heads * width, width, heads * width, ONE)


def _through_reshapes(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, graph.ReshapeOp) and value.has_one_use():
        value = value.owner.operand
    return value


def _softmax_operand(value: SSAValue) -> SSAValue | None:
    """s, if the value is exp(s - max s) over Σ exp(s - max s) along the last dim, used nowhere else."""
    quotient = value.owner
    if not isinstance(quotient, graph.DivOp | graph.MulOp) or not value.has_one_use():
        return None
    exponential, total = quotient.lhs.owner, _repeated(quotient.rhs, inverse=isinstance(quotient, graph.MulOp))
    if not isinstance(exponential, graph.ExpOp) or not isinstance(total, graph.SumOp):
        return None
    difference = exponential.operand.owner
    if total.operand is not exponential.result or not isinstance(difference, graph.SubOp):
        return None
    largest = _repeated(difference.rhs)
    if not isinstance(largest, graph.MaxOp) or largest.operand is not difference.lhs:
        return None
    last = (len(quotient.sizes) - 1,)
    private = _uses(exponential.result) == 2 and _uses(difference.lhs) == 2 and exponential.operand.has_one_use()
    return difference.lhs if private and total.reduced == largest.reduced == last else None


def _repeated(value: SSAValue, inverse: bool = False) -> Operation | None:
    """The op whose result, or its `inverse`, the value repeats along its last dim, where it was kept with size 1."""
    if not isinstance(value.owner, graph.BroadcastOp):
        return None
    kept: Operation | Block | None = value.owner.operand.owner
    if inverse:
        kept = kept.operand.owner if isinstance(kept, graph.ReciprocalOp) else None
    owner = kept.operand.owner if isinstance(kept, graph.ReshapeOp) else None
    return owner if isinstance(owner, Operation) else None


def _uses(value: SSAValue) -> int:
    return len(list(value.uses))


def _scaled_product(scores: SSAValue) -> Attention | None:
    """The product and the factor that make up the scores."""
    scale = 1.0
    owner = scores.owner
    if isinstance(owner, graph.MulOp | graph.DivOp) and (factor := scalar_of(owner.rhs)):
        scale = factor if isinstance(owner, graph.MulOp) else 1.0 / factor
        if not owner.lhs.has_one_use():
            return None
        scores = owner.lhs
    product = _through_reshapes(scores).owner
    if not isinstance(product, graph.BatchMatmulOp) or product.bias is not None:
        return None
    return Attention(product.lhs, product.rhs, float(scale))


class MatchAttention(ModulePass):
    """Make scaled dot product attention that is spelled out one library call."""

    name = "graph-match-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [CallAttention()])

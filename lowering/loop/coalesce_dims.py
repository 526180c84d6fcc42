"""`loop-coalesce-dims`: makes two neighbouring dimensions of a nest one where all accesses step through them evenly.

The accesses then hold divisions that vanish once they are linear offsets (`accesses.linear_offset`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import ZERO, Expr, contiguous_strides, dim, floordiv, mod
from ...ir.loop.ops import INDEX, AccessOp, extents_attr
from ...ir.shapes import strides_of
from ..analysis.accesses import Sizes, accessed, index_operands, linear_offset
from ..analysis.kernels import functions_with_kernels
from .nests import drop_index, replace_index


def buffer_strides(value: SSAValue) -> tuple[Expr, ...]:
    """Strides of a tensor, of a kernel's destination (those of its result) or of a local (row-major)."""
    if isinstance(value.owner, loop.LocalOp):
        return contiguous_strides(value.owner.sizes)
    if isinstance(value, BlockArgument) and isinstance(kernel := value.block.parent_op(), loop.KernelOp):
        return strides_of(kernel.results[value.index].type)
    return strides_of(value.type)


class Coalescer:
    """Coalesces the dimensions of the nests of one kernel."""

    def __init__(self, kernel: loop.KernelOp):
        self.kernel = kernel
        self.sizes = Sizes.at(kernel)
        self.offsets: dict[Operation, tuple[Sequence[SSAValue], Expr]] = {}

    def run(self) -> None:
        for op in self.kernel.body.walk():
            if isinstance(op, loop.ParallelOp | loop.ReduceOp):
                for position in range(op.rank - 2, -1, -1):
                    if self.is_even(op, position):
                        self.coalesce(op, position)

    def is_even(self, nest: loop.NestOp, position: int) -> bool:
        """Whether every step of the outer of two indices is as long as the whole range of the inner one."""
        outer, inner, extent = nest.indices[position], nest.indices[position + 1], nest.sizes[position + 1]
        for op in {use.operation: None for index in (outer, inner) for use in index.uses}:
            if not isinstance(op, AccessOp):
                return False
            step, inner_step = self.step(op, outer), self.step(op, inner)
            if step is None or inner_step is None or step != inner_step * extent:
                return False
        return True

    def step(self, op: AccessOp, index: SSAValue) -> Expr | None:
        """How far an access moves per step of an index; None where that differs."""
        if op not in self.offsets:
            self.offsets[op] = index_operands(op), self.offset(op)
        indices, offset = self.offsets[op]
        for position, operand in enumerate(indices):
            if operand is index:
                return offset.coefficient(position)
        return ZERO

    def offset(self, op: AccessOp) -> Expr:
        if isinstance(op, loop.ReadOp | loop.WriteOp):
            return linear_offset(op, buffer_strides(accessed(op)))
        return op.map.results[0]

    def coalesce(self, nest: loop.NestOp, position: int) -> None:
        """`nest (i, j) to (2, 3) { b(i, j) }  →  nest (n) to (6) { b(n floordiv 3, n mod 3) }`."""
        extents = list(nest.sizes)
        extent = extents[position + 1]
        outer, inner = nest.indices[position], nest.indices[position + 1]
        users = {use.operation for index in (outer, inner) for use in index.uses}
        joined = nest.block.insert_arg(INDEX, position)
        joined.name_hint = inner.name_hint
        nest.properties["extents"] = extents_attr(
            [*extents[:position], extents[position] * extent, *extents[position:]]
        )
        replace_index(outer, [joined], floordiv(dim(0), extent), self.sizes)
        replace_index(inner, [joined], mod(dim(0), extent), self.sizes)
        drop_index(nest, position + 2)
        drop_index(nest, position + 1)
        for user in users:
            self.offsets.pop(user, None)


class LoopCoalesceDims(ModulePass):
    """Make two neighbouring dimensions of a nest one where all accesses step through them evenly."""

    name = "loop-coalesce-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                Coalescer(kernel).run()

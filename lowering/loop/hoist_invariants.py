"""`loop-hoist-invariants`: computes scalars outside of the nests on whose indices they do not depend."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from ...ir import loop
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from .moves import detach

TRAPPING = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp)
"""Ops that may not run where the program would not run them."""


@cache
def is_pure(op: type[Operation]) -> bool:
    return op.has_trait(Pure)


class Hoister:
    """Hoists from the nests of one kernel, innermost first."""

    def __init__(self, kernel: loop.KernelOp):
        self.sizes = Sizes.at(kernel)

    def run(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, loop.NestOp):
                self.run(op.block)
                self.hoist(op)

    def hoist(self, nest: loop.NestOp) -> None:
        """`nest (i) { %v = f()  b }  →  %v = f()  nest (i) { b }`."""
        assert nest.parent is not None
        runs = all(self.sizes.is_positive(size) for size in nest.sizes)
        for op in list(nest.block.ops):
            if self.may_move(op, runs) and not any(is_inside(operand, nest.block) for operand in op.operands):
                detach(op)
                nest.parent.insert_op_before(op, nest)

    def may_move(self, op: Operation, runs: bool) -> bool:
        """Whether the op may run where the nest does not; `runs` says that the nest has iterations anyway."""
        if isinstance(op, loop.ReadOp):
            return isinstance(op.operands[0].type, TensorType) and runs  # a guard does not say that the nest runs
        return is_pure(type(op)) and not isinstance(op, loop.YieldOp) and (runs or not isinstance(op, TRAPPING))


def is_inside(value: SSAValue, block: Block) -> bool:
    """Whether a value is made anew by each run of the block."""
    return value.op.parent is block if isinstance(value, OpResult) else value.owner is block


class LoopHoistInvariants(ModulePass):
    """Compute scalars outside of the nests on whose indices they do not depend."""

    name = "loop-hoist-invariants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                Hoister(kernel).run(kernel.block)

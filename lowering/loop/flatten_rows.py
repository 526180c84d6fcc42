"""`loop-flatten-rows`: has a nest go over the elements of a row along the one dim along which they were reduced.

A program of a GPU that reduced a row of a group norm along one dim has its elements in registers. It finds them there
if the nest that uses them next, over channels and points, names them by the same index.
"""

from __future__ import annotations

from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import const
from ...ir.target import target_of
from ..analysis.accesses import all_ops, is_leaf, nests_of
from ..analysis.kernels import functions_with_kernels
from ..schedule.grid_plan import RESIDENT_ELEMENTS
from .coalesce_dims import Coalescer


def flatten_rows(kernel: loop.KernelOp) -> None:
    """`reduce (r) to (6) { read x[r] }  parallel (c, i) to (2, 3) { read x[c * 3 + i]  read w[c] }  →
    reduce (r) to (6) { read x[r] }  parallel (e) to (6) { read x[e]  read w[e floordiv 3] }`.

    Does not fire where the row does not fit in registers, or where the nests read nothing in common.
    """
    for op in all_ops(kernel.block):
        if not isinstance(op, loop.ParallelOp):
            continue
        reductions = [nest for nest in nests_of(op.block) if isinstance(nest, loop.ReduceOp) and is_leaf(nest)]
        for nest in nests_of(op.block):
            if isinstance(nest, loop.ParallelOp) and any(is_row(one, nest) for one in reductions):
                Coalescer(kernel).coalesce(nest, 0, nest.rank)


def is_row(reduction: loop.ReduceOp, nest: loop.ParallelOp) -> bool:
    """Whether a reduction goes along one dim over as many elements as a nest, of a tensor that both read."""
    if not is_leaf(nest) or not all(size.is_constant for size in nest.sizes):
        return False
    volume = prod(size.constant for size in nest.sizes)
    return (
        volume <= RESIDENT_ELEMENTS and reduction.sizes == (const(volume),) and bool(read_in(reduction) & read_in(nest))
    )


def read_in(nest: loop.NestOp) -> set[object]:
    return {op.source for op in nest.block.ops if isinstance(op, loop.ReadOp)}


class LoopFlattenRows(ModulePass):
    """Give a nest over the elements of a row the one dim of the row's reductions, if the target is a GPU."""

    name = "loop-flatten-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not target_of(op).is_gpu:
            return
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                flatten_rows(kernel)


__all__ = ["LoopFlattenRows"]

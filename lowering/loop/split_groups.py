"""`loop-split-groups`: splits the index of an element that is in a group into that of the group and one within it.

A group norm reads the mean of a group at all channels c by `c floordiv k`. Fusion joins nests along equal indices, of
which these two have none before the split. It pays on GPUs, where a group that fits in registers is then loaded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import const, product
from ...ir.shapes import sizes_of
from ...ir.target import target_of
from ..analysis.accesses import all_ops, is_leaf, nests_of, only
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from ..schedule.grid_plan import RESIDENT_ELEMENTS
from ..schedule.model import captured
from .nests import split_index


class GroupSplitter:
    """Splits an index of the nest of one kernel."""

    def __init__(self, kernel: loop.KernelOp):
        self.kernel = kernel

    def run(self) -> None:
        """`parallel (c, i) { read r[c floordiv k] }  →  parallel (g, e, i) { read r[g] }` with `e` less than `k`.

        Does not fire where sizes are unknown, where what is read was not reduced over the elements of the group, or
        where a group does not fit in registers.
        """
        nest = only(nests_of(self.kernel.block))
        if (
            not isinstance(nest, loop.ParallelOp)
            or not is_leaf(nest)
            or not all(size.is_constant for size in nest.sizes)
        ):
            return
        for read in [op for op in nest.block.ops if isinstance(op, loop.ReadOp)]:
            for index, members in quotients(read):
                if index in nest.indices and self.splits(nest, index, members, read.source):
                    return

    def splits(self, nest: loop.ParallelOp, index: SSAValue, members: int, source: SSAValue) -> bool:
        position = list(nest.indices).index(index)
        groups, rest = divmod(nest.sizes[position].constant, members)
        volume = members * prod(size.constant for size in nest.sizes[position + 1 :])
        if rest or volume > RESIDENT_ELEMENTS or not is_reduced(source, volume):
            return False
        split_index(nest, index, (const(groups), const(members)), Sizes.at(self.kernel))
        return True


def quotients(read: loop.ReadOp) -> Iterator[tuple[SSAValue, int]]:
    """The indices of which a read takes the quotient by a number, and that number."""
    for result in read.map.results:
        atom = result.as_atom
        if atom is not None and atom.kind == "floordiv":
            base, divisor = atom.args
            if base.as_dim is not None and divisor.is_constant:
                yield read.indices[base.as_dim], divisor.constant


def is_reduced(tensor: SSAValue, volume: int) -> bool:
    """Whether each element of a tensor, or of one of as many elements that it is made of, is a reduction of so many."""
    count = product(sizes_of(tensor.type))
    waiting, seen = [tensor], set[SSAValue]()
    while waiting:
        made = waiting.pop()
        kernel = made.owner
        if made in seen or not isinstance(kernel, loop.KernelOp):
            continue
        seen.add(made)
        if any(isinstance(op, loop.ReduceOp) and product(op.sizes) == const(volume) for op in all_ops(kernel.block)):
            return True
        waiting += [source for source in captured(kernel) if product(sizes_of(source.type)) == count]
    return False


class LoopSplitGroups(ModulePass):
    """Split the index of elements in groups, if the target is a GPU."""

    name = "loop-split-groups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not target_of(op).is_gpu:
            return
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                GroupSplitter(kernel).run()


__all__ = ["LoopSplitGroups"]

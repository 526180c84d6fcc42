"""`loop-distribute-nests`: makes kernels of the nests of a kernel that cannot share the programs of a GPU.

A program has registers and no memory of its own, so what one nest leaves for another must be cheap to compute again.
Where it is not, or where the nests share too few programs, each becomes a kernel, and the rest goes through memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import dim
from ...ir.loop.ops import INDEX, extents_attr
from ...ir.target import Target, target_of
from ..analysis.accesses import all_ops
from ..analysis.kernels import functions_with_kernels
from ..analysis.remaking import can_remake, writers_of
from ..schedule.grid_plan import GridPlanner
from ..schedule.model import KernelModel, nests_of
from .moves import detach, erase
from .split_phases import PhaseSplitter, phases_of

LEAST_WORK = 1 << 16
"""Scalar operations of a program below which it does not pay to have more programs."""


class Distributor:
    """Distributes the nest that the programs of one kernel share over the nests inside of it."""

    def __init__(self, kernel: loop.KernelOp, target: Target):
        self.kernel = kernel
        self.target = target

    def run(self) -> bool:
        """`kernel { parallel (i) { nest a  nest b } }  →  kernel { parallel (i) { nest a } }  kernel { … nest b … }`.

        Does not fire where all that the nests share can be made again, and programs are many or have little to do.
        Says whether it fired.
        """
        block = self.kernel.block
        nests = nests_of(block)
        if len(nests) > 1:
            return self.split()
        nest = nests[0] if nests else None
        if not isinstance(nest, loop.ParallelOp) or nest is not block.last_op or len(phases_of(nest.block)) < 2:
            return False
        if self.remakes_all() and not self.lacks_programs():
            return False
        self.distribute(nest)
        return self.split()

    def split(self) -> bool:
        """Makes kernels of the nests that stand side by side now."""
        before = self.kernel.parent
        PhaseSplitter(self.kernel).run()
        return before is not self.kernel.parent

    def remakes_all(self) -> bool:
        writers = writers_of(self.kernel)
        reads = [op for op in all_ops(self.kernel.block) if isinstance(op, loop.ReadOp) and op.source in writers]
        return all(can_remake(read, writers[read.source]) for read in reads)

    def lacks_programs(self) -> bool:
        """Whether more programs would pay for the scalars that then go through memory."""
        if any(isinstance(op, loop.LocalOp) for op in all_ops(self.kernel.block)):
            return False
        model = KernelModel(self.kernel)
        programs = max(model.hints.size(GridPlanner(model, self.target).plan().grid), 1)
        return programs < self.target.cores and model.work // programs >= LEAST_WORK

    # -- distribution --------------------------------------------------------------------------------

    def distribute(self, nest: loop.ParallelOp) -> None:
        """`parallel (i) { a  b }  →  parallel (i) { a }  parallel (i) { b }`, with what they share in locals."""
        for local in [op for op in nest.block.ops if isinstance(op, loop.LocalOp)]:
            self.widen(local, nest)
        phases = phases_of(nest.block)
        number = {op: k for k, phase in enumerate(phases) for op in phase}
        made = [loop.ParallelOp.make(nest.sizes) for _ in phases]
        for k, phase in enumerate(phases):
            for op in phase:
                self.share(op, k, number, nest, made)
        for phase, part in zip(phases, made, strict=True):
            self.move(phase, nest, part)
        erase(nest)
        for part in made:
            flatten(part)

    def widen(self, local: loop.LocalOp, nest: loop.ParallelOp) -> None:
        """Gives a local a row for each index of the nest, before the nest."""
        wide = loop.LocalOp.make(local.buffer.type.element_type, [*nest.sizes, *local.sizes])
        assert nest.parent is not None
        nest.parent.insert_op_before(wide, nest)
        places = [dim(k) for k in range(nest.rank)]
        for use in list(local.buffer.uses):
            op = use.operation
            assert isinstance(op, loop.ReadOp | loop.WriteOp)
            indices = [*nest.indices, *op.indices]
            access = [
                *places,
                *(
                    expr.substitute_dims([dim(nest.rank + k) for k in range(len(op.indices))])
                    for expr in op.map.results
                ),
            ]
            replaced: Operation
            if isinstance(op, loop.ReadOp):
                replaced = loop.ReadOp.make(wide.buffer, indices, access, op.guard, op.other)
                op.result.replace_all_uses_with(replaced.results[0])
            else:
                combiner = None if op.combiner is None else op.combiner.data
                replaced = loop.WriteOp.make(op.value, wide.buffer, indices, access, combiner)
            replaced.location = op.location
            assert op.parent is not None
            op.parent.insert_op_before(replaced, op)
            erase(op)
        erase(local)

    def share(
        self,
        op: Operation,
        phase: int,
        number: dict[Operation, int],
        nest: loop.ParallelOp,
        made: Sequence[loop.ParallelOp],
    ) -> None:
        """Hands results that later phases use on, by way of a local with an element for each index of the nest."""
        for result in op.results:
            users = {number[top(use.operation, nest)] for use in result.uses} - {phase}
            if not users:
                continue
            shared = loop.LocalOp.make(result.type, nest.sizes)
            assert nest.parent is not None
            nest.parent.insert_op_before(shared, nest)
            places = [dim(k) for k in range(nest.rank)]
            for later in sorted(users):
                read = loop.ReadOp.make(shared.buffer, list(nest.indices), places)
                made[later].block.add_op(read)
                for use in list(result.uses):
                    if number[top(use.operation, nest)] == later:
                        use.operation.operands[use.index] = read.result
            write = loop.WriteOp.make(result, shared.buffer, list(nest.indices), places)
            assert op.parent is not None
            op.parent.insert_op_after(write, op)
            number[write] = phase

    def move(self, phase: Sequence[Operation], nest: loop.ParallelOp, part: loop.ParallelOp) -> None:
        """Moves the ops of a phase, and what shares their results, to a nest of their own."""
        for op in phase:
            following = op.next_op
            detach(op)
            part.block.add_op(op)
            while isinstance(following, loop.WriteOp) and following not in phase and following.value in op.results:
                write, following = following, following.next_op
                detach(write)
                part.block.add_op(write)
        for old, new in zip(nest.indices, part.indices, strict=True):
            for use in list(old.uses):
                if part.is_ancestor(use.operation):
                    use.operation.operands[use.index] = new
        assert nest.parent is not None
        nest.parent.insert_op_before(part, nest)


def top(op: Operation, nest: loop.NestOp) -> Operation:
    """The op of a nest's own block that an op stands in."""
    while op.parent is not nest.block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def flatten(nest: loop.ParallelOp) -> None:
    """`parallel (i) { a  parallel (j) { b } }  →  parallel (i, j) { a  b }` where `a` is scalars without effects."""
    inner = nest.block.last_op
    if not isinstance(inner, loop.ParallelOp):
        return
    before = [op for op in nest.block.ops if op is not inner]
    if any(isinstance(op, loop.NestOp | loop.LocalOp | loop.WriteOp | loop.AssertOp) for op in before):
        return
    for index in list(inner.indices):
        index.replace_all_uses_with(nest.block.insert_arg(INDEX, len(nest.block.args)))
    nest.properties["extents"] = extents_attr([*nest.sizes, *inner.sizes])
    for op in list(inner.block.ops):
        detach(op)
        nest.block.add_op(op)
    erase(inner)
    flatten(nest)


class LoopDistributeNests(ModulePass):
    """Make kernels of nests that cannot share the programs of a GPU."""

    name = "loop-distribute-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        if not target.is_gpu:
            return
        changed = True
        while changed:
            changed = False
            for _, kernels in functions_with_kernels(op):
                for kernel in kernels:
                    changed = Distributor(kernel, target).run() or changed


__all__ = ["LoopDistributeNests"]

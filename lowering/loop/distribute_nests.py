"""`loop-distribute-nests`: makes kernels of the nests of a kernel that cannot share the programs of a GPU.

A program has registers and no memory of its own, so what one nest leaves for another must be cheap to compute again.
Where it is not, or where the nests share too few programs, each becomes a kernel, and the rest goes through memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import dim
from ...ir.loop.ops import INDEX, extents_attr
from ...ir.target import Target, target_of
from ..analysis.accesses import all_ops, enclosing_nests, index_operands, nests_of, only, set_access
from ..analysis.kernels import functions_with_kernels
from ..analysis.remaking import can_remake, writers_of
from ..analysis.sizes import Sizes
from ..schedule.grid_plan import GridPlanner
from ..schedule.model import KernelModel
from .moves import detach, erase
from .split_phases import REMADE, PhaseSplitter, phases_of

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
        apart = self.apart()
        nests = nests_of(block)
        if len(nests) > 1:
            return self.split(apart)
        if apart:
            return self.part(apart)
        nest = only(nests)
        if isinstance(nest, loop.ReduceOp):
            return self.free(nest)
        if not isinstance(nest, loop.ParallelOp) or nest is not block.last_op or not self.lacks_programs():
            return False
        if len(phases_of(nest.block)) < 2:
            rank = nest.rank
            absorb(nest)
            return nest.rank > rank
        self.distribute(nest, apart)
        return self.split(apart)

    def free(self, nest: loop.ReduceOp) -> bool:
        """`reduce (i) { nest a  write  yield x }  →  parallel (i) { nest a  write x }  reduce (i) { read x }`, with a
        kernel for each: rows that are written wait for none of the others, their sum does.

        Does not fire where rows are not written, for `loop-split-reductions` then cuts their sum, or there is little
        to do.
        """
        if not nests_of(nest.block) or not any(isinstance(op, loop.WriteOp) for op in all_ops(nest.block)):
            return False
        if KernelModel(self.kernel).work < LEAST_WORK:
            return False
        *body, last = nest.block.ops
        phases = [body, [last]]
        number = {op: k for k, phase in enumerate(phases) for op in phase}
        for op in reversed(body):
            self.share(op, nest, phases, number)
        self.move(phases[0], nest)
        return self.split(())

    def split(self, apart: Collection[loop.ReadOp]) -> bool:
        """Makes kernels of the nests that stand side by side now."""
        before = self.kernel.parent
        PhaseSplitter(self.kernel, apart).run()
        return before is not self.kernel.parent

    def apart(self) -> list[loop.ReadOp]:
        """The reads of what the kernel writes that cannot be made again."""
        writers = writers_of(self.kernel)
        reads = [op for op in all_ops(self.kernel.block) if isinstance(op, loop.ReadOp) and op.source in writers]
        return [read for read in reads if not can_remake(read, writers[read.source])]

    def part(self, apart: Collection[loop.ReadOp]) -> bool:
        """Distributes the nest around a read that must stand apart from a write, or the kernel if there is none."""
        writers = writers_of(self.kernel)
        for read in apart:
            nest = nest_around([read, *writers[read.source]])
            if nest is None:
                return self.split(apart)
            if not isinstance(nest, loop.ForOp) and len(phases_of(nest.block, apart)) > 1:
                self.distribute(nest, apart)
                self.split(self.apart())
                return True
        return False

    def lacks_programs(self) -> bool:
        """Whether more programs would pay for the scalars that then go through memory."""
        if any(isinstance(op, loop.LocalOp) for op in all_ops(self.kernel.block)):
            return False
        model = KernelModel(self.kernel)
        programs = model.sizes.volume([GridPlanner(model, self.target).plan().grid])
        return programs < self.target.cores and model.work // programs >= LEAST_WORK

    # -- distribution --------------------------------------------------------------------------------

    def distribute(self, nest: loop.NestOp, apart: Collection[loop.ReadOp]) -> None:
        """`nest (i) { a  b }  →  parallel (i) { a }  nest (i) { b }`, with what they share in locals."""
        for local in [op for op in nest.block.ops if isinstance(op, loop.LocalOp)]:
            self.widen(local, nest)
        phases = phases_of(nest.block, apart)
        number = {op: k for k, phase in enumerate(phases) for op in phase}
        for op in reversed([op for phase in phases for op in phase]):
            self.share(op, nest, phases, number)
        made = [self.move(phase, nest) for phase in phases[:-1]]
        for part in [*made, nest]:
            if isinstance(part, loop.ParallelOp):
                absorb(part)

    def widen(self, local: loop.LocalOp, nest: loop.NestOp) -> None:
        """Gives a local a row for each index of the nest, before the nest."""
        wide = loop.LocalOp.make(local.buffer.type.element_type, [*nest.sizes, *local.sizes])
        assert nest.parent is not None
        nest.parent.insert_op_before(wide, nest)
        sizes = Sizes.at(wide)
        for use in list(local.buffer.uses):
            op = use.operation
            assert isinstance(op, loop.ReadOp | loop.WriteOp)
            inner = [expr.substitute_dims([dim(nest.rank + k) for k in range(op.map.rank)]) for expr in op.map.results]
            set_access(op, [*nest.indices, *index_operands(op)], [*map(dim, range(nest.rank)), *inner], sizes)
        local.buffer.replace_all_uses_with(wide.buffer)
        erase(local)

    def share(
        self, op: Operation, nest: loop.NestOp, phases: list[list[Operation]], number: dict[Operation, int]
    ) -> None:
        """Hands results on to later phases: by way of a local with an element for each index of the nest, or made
        once more. Goes from the last op to the first, so that what is made once more finds its operands."""
        for result in op.results:
            users = {number[top(use.operation, nest)] for use in result.uses} - {number[op]}
            if not users:
                continue
            shared = None if isinstance(op, REMADE) else self.keep(result, nest, phases[number[op]], number)
            for later in users:
                again = op.clone() if shared is None else self.read(shared, nest)
                nest.block.insert_op_before(again, phases[later][0])
                phases[later].insert(0, again)
                number[again] = later
                for use in list(result.uses):
                    if number[top(use.operation, nest)] == later:
                        use.operation.operands[use.index] = SSAValue.get(again)

    def keep(
        self, result: SSAValue, nest: loop.NestOp, phase: list[Operation], number: dict[Operation, int]
    ) -> loop.LocalOp:
        """A local before the nest in which the nest leaves a value."""
        op = result.owner
        assert isinstance(op, Operation)
        assert nest.parent is not None
        shared = loop.LocalOp.make(result.type, nest.sizes)
        nest.parent.insert_op_before(shared, nest)
        write = loop.WriteOp.make(result, shared.buffer, list(nest.indices), [*map(dim, range(nest.rank))])
        nest.block.insert_op_after(write, op)
        phase.insert(phase.index(op) + 1, write)
        number[write] = number[op]
        return shared

    def read(self, shared: loop.LocalOp, nest: loop.NestOp) -> loop.ReadOp:
        return loop.ReadOp.make(shared.buffer, list(nest.indices), [*map(dim, range(nest.rank))])

    def move(self, phase: Sequence[Operation], nest: loop.NestOp) -> loop.ParallelOp:
        """Moves the ops of a phase to a nest of their own, before the one that they stood in."""
        part = loop.ParallelOp.make(nest.sizes)
        for op in phase:
            detach(op)
            part.block.add_op(op)
        for old, new in zip(nest.indices, part.indices, strict=True):
            for use in list(old.uses):
                if part.is_ancestor(use.operation):
                    use.operation.operands[use.index] = new
        assert nest.parent is not None
        nest.parent.insert_op_before(part, nest)
        return part


def nest_around(ops: Sequence[Operation]) -> loop.NestOp | None:
    """The innermost nest that holds all the ops."""
    first, *others = ops
    return next((nest for nest in enclosing_nests(first) if all(map(nest.is_ancestor, others))), None)


def top(op: Operation, nest: loop.NestOp) -> Operation:
    """The op of a nest's own block that an op stands in."""
    while op.parent is not nest.block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def absorb(nest: loop.ParallelOp) -> None:
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
    absorb(nest)


class LoopDistributeNests(ModulePass):
    """Make kernels of nests that cannot share the programs of a GPU."""

    name = "loop-distribute-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        if not target.is_gpu:
            return
        while any(Distributor(kernel, target).run() for _, found in functions_with_kernels(op) for kernel in found):
            pass


__all__ = ["LoopDistributeNests"]

"""`loop-split-phases`: makes kernels of the nests that stand one after the other in a large kernel.

A kernel is spread over threads by its one outermost nest. With several, that wait for each other, it would run on
one thread; as kernels of their own each is spread, and what a later one needs goes through memory. A kernel that
only clears and reads what its rows collect stays whole: its programs collect apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.shapes import tensor_type
from ..analysis.accumulation import accumulation_of
from ..analysis.kernels import functions_with_kernels
from ..schedule.model import KernelModel
from .hoist_invariants import is_pure
from .moves import detach, erase

LEAST_WORK = 1 << 16
"""Scalar operations below which a kernel stays whole: on one thread it takes less time than several launches."""

REMADE = (arith.ConstantOp, loop.IndexOp, arith.IndexCastOp)
"""Ops that are copied to where their result is needed, whatever they are made from: an index cannot lie in memory."""


def phases_of(block: Block, apart: Collection[loop.ReadOp] = ()) -> list[list[Operation]]:
    """The ops of a kernel, cut before each nest but the first, behind each parallel one, and between a read of `apart`
    and what writes there."""
    phase: list[Operation] = []
    phases, nest = [phase], None
    for op in block.ops:
        starts = isinstance(op, loop.NestOp) if nest is not None else False
        if starts or isinstance(nest, loop.ParallelOp) or reads_of_phase(op, phase, apart):
            phase, nest = [], None
            phases.append(phase)
        phase.append(op)
        if isinstance(op, loop.NestOp):
            nest = op
    return phases


def reads_of_phase(op: Operation, phase: Sequence[Operation], apart: Collection[loop.ReadOp]) -> bool:
    """Whether an op is or holds one of the reads, of what ops of a phase write."""
    sources = {read.source for read in apart if op.is_ancestor(read)}
    return bool(sources) and any(
        isinstance(inner, loop.WriteOp) and inner.target in sources for earlier in phase for inner in earlier.walk()
    )


def operands_of(ops: Sequence[Operation]) -> Iterator[tuple[Operation, int, SSAValue]]:
    """All operands of ops and of the ops inside of them."""
    for op in ops:
        for inner in op.walk():
            for position, operand in enumerate(inner.operands):
                yield inner, position, operand


@dataclass
class Phase:
    """What one kernel to make does: its ops, the buffers that it writes and the scalars that later ones need."""

    ops: list[Operation]
    writes: list[SSAValue] = field(default_factory=list)
    exports: list[SSAValue] = field(default_factory=list)


class PhaseSplitter:
    """Splits one kernel."""

    def __init__(self, kernel: loop.KernelOp, apart: Collection[loop.ReadOp] = ()):
        self.kernel = kernel
        self.phases = [Phase(ops) for ops in phases_of(kernel.block, apart)]
        self.number = {op: number for number, phase in enumerate(self.phases) for op in phase.ops}
        self.tensors: dict[SSAValue, SSAValue] = {}  # what buffers and scalars of the kernel hold so far
        self.types: dict[SSAValue, Attribute] = dict(zip(kernel.block.args, kernel.result_types, strict=True))
        for position, buffer in enumerate(kernel.block.args):
            init = kernel.init_of(position)
            if init is not None:
                self.tensors[buffer] = init

    def run(self) -> None:
        """`kernel { nest a  nest b }  →  kernel { nest a }  kernel { nest b }`.

        Does not fire where a phase neither writes nor makes a scalar that another one needs.
        """
        self.place_locals()
        for phase in self.phases:
            self.note_needs(phase)
        if not all(phase.writes or phase.exports for phase in self.phases):
            return
        for phase in self.phases:
            self.make_kernel(phase)
        for buffer, result in zip(self.kernel.block.args, self.kernel.results, strict=True):
            result.replace_all_uses_with(self.tensors[buffer])
        erase(self.kernel)

    def place_locals(self) -> None:
        """A local of one phase belongs to it; one of several becomes a tensor between kernels."""
        for local in [op for op in self.kernel.block.ops if isinstance(op, loop.LocalOp)]:
            users = {self.number[self.top(use.operation)] for use in local.buffer.uses}
            self.phases[self.number[local]].ops.remove(local)
            if len(users) == 1:
                (self.number[local],) = users
                phase = self.phases[self.number[local]]
                phase.ops = [local, *phase.ops]
            else:
                self.types[local.buffer] = tensor_type(local.buffer.type.element_type, local.sizes)

    def top(self, op: Operation) -> Operation:
        """The op of the kernel's own block that an op stands in."""
        while op.parent is not self.kernel.block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    def note_needs(self, phase: Phase) -> None:
        for op in (inner for outer in phase.ops for inner in outer.walk()):
            if isinstance(op, loop.WriteOp) and op.target in self.types and op.target not in phase.writes:
                phase.writes.append(op.target)
        for _, _, operand in operands_of(phase.ops):
            self.note_need(phase, operand)

    def is_remade(self, value: SSAValue) -> bool:
        """Whether a scalar is made once more where it is needed, from constants and what tensors hold: a kernel that
        left it in memory would have more to do than its nest, which then runs on one thread."""
        maker = value.owner
        if not isinstance(maker, Operation) or maker not in self.number:
            return value not in self.types
        reads_tensor = isinstance(maker, loop.ReadOp) and isinstance(maker.source.type, TensorType)
        made_anew = reads_tensor or is_pure(type(maker))
        return isinstance(maker, REMADE) or (made_anew and all(map(self.is_remade, maker.operands)))

    def note_need(self, phase: Phase, value: SSAValue) -> None:
        """Has the phase that makes a scalar export it, if it is another one and the scalar is not made anew."""
        maker = self.phases[self.number[value.op]] if isinstance(value, OpResult) and value.op in self.number else phase
        if maker is phase or value in self.types:
            return
        if self.is_remade(value):
            assert isinstance(value, OpResult)
            for operand in value.op.operands:
                self.note_need(phase, operand)
        elif value not in maker.exports:
            maker.exports.append(value)

    # -- kernels -------------------------------------------------------------------------------------

    def make_kernel(self, phase: Phase) -> None:
        scalars = [tensor_type(value.type, ()) for value in phase.exports]
        types = [*(self.types[buffer] for buffer in phase.writes), *scalars]
        inits = [self.tensors.get(buffer) for buffer in phase.writes]
        made = loop.KernelOp.make(self.kernel.kernel_name.data, types, inits)
        made.location = self.kernel.location
        assert self.kernel.parent is not None
        self.kernel.parent.insert_op_before(made, self.kernel)
        self.fill(made, phase)
        self.tensors.update(zip([*phase.writes, *phase.exports], made.results, strict=True))

    def fill(self, made: loop.KernelOp, phase: Phase) -> None:
        """Moves the ops of a phase into its kernel and has them use what is there."""
        for op in phase.ops:
            detach(op)
            made.block.add_op(op)
        known: dict[SSAValue, SSAValue] = dict(zip(phase.writes, made.block.args, strict=False))
        start = made.block.first_op
        assert start is not None
        for op, position, operand in list(operands_of(phase.ops)):
            replacement = self.replacement(start, operand, known)
            if replacement is not operand:
                op.operands[position] = replacement
        for value, destination in zip(phase.exports, made.block.args[len(phase.writes) :], strict=True):
            made.block.add_op(loop.WriteOp.make(value, destination, (), ()))

    def replacement(self, start: Operation, value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """What stands for a value in the kernel that begins with `start`: its own buffer, a tensor made before, a copy
        or what was read before `start`, or the value itself."""
        if value in known:
            return known[value]
        if value in self.types:
            return self.tensors[value]
        maker = value.owner
        if maker not in self.number or maker.parent is start.parent:
            return value
        made: Operation
        if self.is_remade(value):
            assert isinstance(maker, Operation)
            made = maker.clone({operand: self.replacement(start, operand, known) for operand in maker.operands})
        else:
            made = loop.ReadOp.make(self.tensors[value], (), ())
        assert start.parent is not None
        start.parent.insert_op_before(made, start)
        known[value] = SSAValue.get(made)
        return known[value]


class LoopSplitPhases(ModulePass):
    """Make kernels of the nests that stand one after the other in a large kernel."""

    name = "loop-split-phases"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                several = len(phases_of(kernel.block)) > 1 and accumulation_of(kernel) is None
                if several and KernelModel(kernel).work >= LEAST_WORK:
                    PhaseSplitter(kernel).run()

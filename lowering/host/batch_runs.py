"""`host-batch-runs`: runs of one kernel that need not wait for each other become one run of a kernel for all.

The batched kernel has the programs of all runs; a program's number says which run it belongs to, and so which buffers
it works on. Only GPUs gain from it, where starting a kernel takes longer than most of them run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...ir import host, tile
from ...ir.expr import dim, floordiv, mod
from ...ir.target import target_of
from ...ir.tile.ops import INDEX
from .in_place import kernels_of
from .memory import MemoryUse, erase, host_functions

MOST_ARGUMENTS = 500
"""Arguments of a kernel: CUDA has 4 KiB for them, 8 bytes each."""

ACCESSES = (tile.LoadOp, tile.StoreOp, tile.GatherOp, tile.ScatterOp)
"""Uses of a buffer that do not care which of several it is."""


# -- memory ------------------------------------------------------------------------------------------


class Overlaps:
    """Which memory of a function each value may lie in; slots of a workspace share it where they overlap."""

    def __init__(self, block: Block) -> None:
        self.use = MemoryUse(block)
        self.meeting: dict[SSAValue, set[SSAValue]] = {}
        slots: dict[SSAValue, list[host.SlotOp]] = {}
        for op in block.ops:
            if isinstance(op, host.SlotOp):
                slots.setdefault(op.workspace, []).append(op)
        for group in slots.values():
            self._note(group)

    def _note(self, slots: Sequence[host.SlotOp]) -> None:
        extents = {slot.buffer: extent(slot) for slot in slots}
        for buffer, own in extents.items():
            self.meeting[buffer] = {other for other, theirs in extents.items() if meet(own, theirs)}

    def of(self, values: Iterable[SSAValue]) -> set[SSAValue]:
        """The memory of values, each piece by what brought it into being."""
        return {root for value in values for root in self.use.roots[value]}

    def around(self, memory: set[SSAValue]) -> set[SSAValue]:
        """That memory and all that it overlaps."""
        return memory.union(*(self.meeting.get(root, ()) for root in memory))


def extent(slot: host.SlotOp) -> range | None:
    """The bytes of its workspace that a slot takes; None where sizes are unknown."""
    start, end = slot.byte_offset, slot.byte_offset + slot.buffer.type.byte_span
    return range(start.constant, end.constant) if start.is_constant and end.is_constant else None


def meet(first: range | None, second: range | None) -> bool:
    """Whether two extents in one workspace may overlap."""
    return first is None or second is None or (first.start < second.stop and second.start < first.stop)


# -- groups ------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Runs of one kernel at one place in the order, none of which needs another's results or memory; one run alone if
    the kernel can't join them."""

    joins: bool
    runs: list[host.RunOp] = field(default_factory=list)
    read: set[SSAValue] = field(default_factory=set)
    written: set[SSAValue] = field(default_factory=set)

    def takes(self, run: host.RunOp) -> bool:
        """Whether the run is one of the same kernel and sizes, and there is room for its arguments."""
        first, *_ = self.runs
        return (
            self.joins
            and run.kernel == first.kernel
            and run.symbols == first.symbols
            and (len(self.runs) + 1) * len(run.operands) + len(run.symbol_values) < MOST_ARGUMENTS
        )


class Batcher:
    """Batches the runs of one function; kernels are made once for equal groups."""

    def __init__(self, block: Block, kernels: Mapping[str, tile.KernelOp], made: dict[object, tile.KernelOp]):
        self.block = block
        self.kernels = kernels
        self.made = made

    def run(self) -> None:
        for op in self.block.ops:
            if isinstance(op, host.StretchOp) and has_repeated_kernel(op):
                self.rebuild(op, self.groups(op))

    @cached_property
    def overlaps(self) -> Overlaps:
        return Overlaps(self.block)

    def groups(self, stretch: host.StretchOp) -> list[Group]:
        """The runs in an order in which each still comes after all that it waits for."""
        groups: list[Group] = []
        for run in stretch.runs:
            read, written = self.overlaps.of(run.inputs), self.overlaps.of(run.outputs)
            around_read, around_written = self.overlaps.around(read), self.overlaps.around(written)
            first = 1 + max(
                (
                    position
                    for position, group in enumerate(groups)
                    if not around_read.isdisjoint(group.written)
                    or not around_written.isdisjoint(group.written)
                    or not around_written.isdisjoint(group.read)
                ),
                default=-1,
            )
            group = next((group for group in groups[first:] if group.takes(run)), None)
            if group is None:
                kernel = self.kernels.get(run.kernel_name)
                group = Group(kernel is not None and can_batch(kernel))
                groups.append(group)
            group.runs.append(run)
            group.read |= read
            group.written |= written
        return groups

    def rebuild(self, stretch: host.StretchOp, groups: Sequence[Group]) -> None:
        for run in stretch.runs:
            stretch.block.detach_op(run)
        for group in groups:
            if len(group.runs) == 1:
                stretch.block.add_ops(group.runs)
            else:
                stretch.block.add_op(self.batch(group.runs))

    def batch(self, runs: Sequence[host.RunOp]) -> host.RunOp:
        """`run @k(a); run @k(b)  →  run @k_batch(a, b)`; a buffer that all runs share is passed once."""
        first, *_ = runs
        kernel = self.kernels[first.kernel_name]
        columns = list(zip(*(run.operands for run in runs), strict=True))
        shared = tuple(len(set(column)) == 1 for column in columns)
        passed = [dict.fromkeys(column) if once else column for column, once in zip(columns, shared, strict=True)]
        split = len(first.inputs)
        key = kernel, len(runs), shared
        if key not in self.made:
            name = f"{kernel.sym_name.data}_batch_{len(self.made)}"
            self.made[key] = batched_kernel(kernel, name, len(runs), shared)
        inputs, outputs = ([value for column in part for value in column] for part in (passed[:split], passed[split:]))
        made = host.RunOp.make(self.made[key].sym_name.data, inputs, outputs, first.symbol_values)
        made.location = first.location
        for run in runs:
            run.erase()
        return made


def has_repeated_kernel(stretch: host.StretchOp) -> bool:
    names = [run.kernel_name for run in stretch.runs]
    return len(set(names)) < len(names)


# -- kernels -----------------------------------------------------------------------------------------


def can_batch(kernel: tile.KernelOp) -> bool:
    """Whether a kernel's programs need not know how many they are, nor all of a buffer at once."""
    buffers = [argument for argument in kernel.block.args if isinstance(argument.type, MemRefType)]
    return (
        kernel.finish is None
        and not any(isinstance(op, tile.GridSizeOp) for op in kernel.walk())
        and all(isinstance(use.operation, ACCESSES) for buffer in buffers for use in buffer.uses)
    )


def batched_kernel(kernel: tile.KernelOp, name: str, runs: int, shared: Sequence[bool]) -> tile.KernelOp:
    """The kernel with the programs of so many runs, one run's after the other's.

    `kernel @k(%x) grid (g) { p }  →  kernel @name(%x, %y) grid (n * g) { choose (p / g) from (%x, %y)  p mod g }`
    """
    block = kernel.block
    buffers = [argument for argument in block.args if isinstance(argument.type, MemRefType)]
    types = [argument.type for argument, once in zip(buffers, shared, strict=True) for _ in range(1 if once else runs)]
    made = tile.KernelOp.make(name, types, kernel.grid_size * runs, kernel.symbols, errors=kernel.error_table)
    made.attributes.update(kernel.attributes)
    made.location = kernel.location
    body, given = made.block, iter(made.block.args)
    program = tile.ProgramIdOp.make()
    number = tile.IndexOp.make([program.result], floordiv(dim(0), kernel.grid_size), INDEX)
    own = tile.IndexOp.make([program.result], mod(dim(0), kernel.grid_size), INDEX)
    body.add_ops([program, number, own])
    copies: dict[SSAValue, SSAValue] = {}
    for argument, once in zip(buffers, shared, strict=True):
        if once:
            copies[argument] = next(given)
            continue
        choice = tile.ChooseOp.make(number.result, [next(given) for _ in range(runs)])
        body.add_op(choice)
        copies[argument] = choice.result
    copies.update(zip(block.args[len(buffers) :], given, strict=True))
    for op in block.ops:
        if isinstance(op, tile.ProgramIdOp):
            copies[op.result] = own.result
        else:
            body.add_op(op.clone(copies))
    return made


@dataclass(frozen=True)
class HostBatchRuns(ModulePass):
    """Makes one run of those of one kernel that do not wait for each other, where the target is a GPU."""

    name = "host-batch-runs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not target_of(op).is_gpu:
            return
        kernels = kernels_of(op)
        made: dict[object, tile.KernelOp] = {}
        for func in host_functions(op):
            Batcher(func.body.block, kernels, made).run()
        op.body.block.add_ops(made.values())
        if made:
            erase_unused(op, kernels)


def erase_unused(module: ModuleOp, kernels: Mapping[str, tile.KernelOp]) -> None:
    """Erases kernels that nothing runs any more."""
    used = {run.kernel_name for run in module.walk() if isinstance(run, host.RunOp)}
    for name, kernel in kernels.items():
        if name not in used:
            erase(kernel)

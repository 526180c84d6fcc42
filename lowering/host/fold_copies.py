"""`host-fold-copies`: a new value that is only copied into a function's argument is written there directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import host, tile
from .in_place import kernels_of, run_overwrites_safely
from .memory import MemoryUse, erase, host_functions


@dataclass
class CopyFolder:
    """The folds of one block, and from where on each argument is written."""

    block: Block
    kernels: Mapping[str, tile.KernelOp]
    written_from: dict[SSAValue, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.use = MemoryUse(self.block)

    def run(self) -> None:
        for op in list(self.block.ops):
            if isinstance(op, host.CopyOp) and self.is_legal(op):
                self.fold(op)
        if self.written_from:
            self.separate()

    def is_legal(self, copy: host.CopyOp) -> bool:
        """Whether the source is memory of ours that nobody but us keeps, and nobody needs the old value of the target
        between the source's first write and the copy."""
        source, target = copy.source, copy.target
        return (
            isinstance(source.owner, host.AllocOp)
            and isinstance(target, BlockArgument)
            and source.type == target.type
            and not self._is_returned(source)
            and self._may_write_early(source, target, copy)
        )

    def _is_returned(self, source: SSAValue) -> bool:
        return isinstance(self.use.users[source][-1], host.ReturnOp)

    def _may_write_early(self, source: SSAValue, target: SSAValue, copy: host.CopyOp) -> bool:
        first = self.use.users[source][0]
        start, end = self.use.positions[first], self.use.positions[copy]
        readers = [op for op in self.use.users[target] if start <= self.use.positions[op] < end]
        return all(op is first for op in readers) and self._overwrites(first, source, target, bool(readers))

    def _overwrites(self, op: Operation, source: SSAValue, target: SSAValue, reads_target: bool) -> bool:
        """Whether the first writer of the source may work on the target's memory instead."""
        if isinstance(op, host.CopyOp):
            return op.target is source and (op.source is target or not reads_target)
        if not isinstance(op, host.RunOp) or source not in op.outputs or source in op.inputs:
            return False
        sharing = [value for value in op.operands if self.use.share(value, target)]
        if any(value is not target for value in sharing):
            return False
        kernel = self.kernels.get(op.kernel_name)
        return not sharing or (kernel is not None and run_overwrites_safely(kernel, op, target, source))

    def fold(self, copy: host.CopyOp) -> None:
        """`%n = host.alloc; host.run @k ins(…) outs(%n); host.copy %n, %x  →  host.run @k ins(…) outs(%x)`."""
        source, target = copy.source, copy.target
        (first, *_), allocation = self.use.users[source], source.owner
        assert isinstance(allocation, host.AllocOp)
        self.written_from[target] = self.use.positions[first]
        source.replace_all_uses_with(target)
        self.use.merge(source, target)
        for op in (copy, allocation, first):
            if op is not first or (isinstance(op, host.CopyOp) and op.source is op.target):
                erase(op)

    def separate(self) -> None:
        """Arguments may overlap at run time: one that is read while another is written is copied if they do."""
        start = min(self.written_from.values())
        readers = [argument for argument in self.block.args if self._is_read_from(argument, start)]
        if readers:
            self._insert_separate(readers, list(self.written_from))

    def _is_read_from(self, argument: SSAValue, start: int) -> bool:
        return (
            isinstance(argument.type, host.BufferType)
            and argument not in self.written_from
            and any(_reads(op) and self.use.positions[op] >= start for op in self.use.users[argument])
        )

    def _insert_separate(self, readers: Sequence[SSAValue], written: Sequence[SSAValue]) -> None:
        op = host.SeparateOp.make(readers, written)
        self.block.insert_op_before(op, self.block.first_op)  # type: ignore[arg-type]
        for old, new in zip(readers, op.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_uses_with_if(new, lambda use: use.operation is not op and _reads(use.operation))


def _reads(op: Operation) -> bool:
    return not isinstance(op, host.ReturnOp)


@dataclass(frozen=True)
class HostFoldCopies(ModulePass):
    """Writes a kernel's result straight into the argument that it is copied into, where nothing can tell."""

    name = "host-fold-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = kernels_of(op)
        for func in host_functions(op):
            CopyFolder(func.body.block, kernels).run()

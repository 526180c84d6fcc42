"""`host-plan-buffers`: what only kernels see lives in one workspace, in slots that buffers use in turn.

A buffer whose size an op of the body defines cannot be there before that op and the checks of that size: it lives in
a further workspace, which the first of its kind brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import host
from ...ir.definitions import definitions_of
from ...ir.expr import ZERO, Domain, Expr, ceildiv, maximum
from ...ir.shapes import symbol_intervals, symbol_ranges
from .memory import MemoryUse, erase, host_functions

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""

UNKNOWN_SIZE = 1024
"""What a symbol without a hint counts as when sizes are compared."""


@dataclass(frozen=True)
class Temporary:
    """A buffer of kernels only: when it lives, and how much it takes."""

    allocation: host.AllocOp
    first: int
    last: int
    size: Expr
    estimate: int

    def meets(self, other: Temporary) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass
class Slot:
    """A range of the workspace and the temporaries that share it, which never live at once."""

    size: Expr
    occupants: list[Temporary] = field(default_factory=list)

    def takes(self, temporary: Temporary) -> bool:
        return not any(temporary.meets(occupant) for occupant in self.occupants)


class Planner:
    """Assigns the temporaries of one function to slots, largest first."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        self.use = MemoryUse(func.body.block)
        self.domain = Domain({}, symbol_intervals(func))
        hints = {name: known.hint for name, known in symbol_ranges(func).items()}
        self.makers = {known.name: op for op in func.body.block.ops for known in definitions_of(op)}
        self.hints = {name: UNKNOWN_SIZE if hint is None else hint for name, hint in hints.items()}

    def run(self) -> None:
        by_origin: dict[Operation | None, list[Temporary]] = {}
        for temporary in self.temporaries():
            by_origin.setdefault(self._origin(temporary.size), []).append(temporary)
        for origin, temporaries in by_origin.items():
            self.rewrite(self.assign(temporaries), origin)

    def _origin(self, size: Expr) -> Operation | None:
        """The op from which on a size is known; None where the function's arguments give it."""
        makers = [self.makers[name] for name in size.symbols if name in self.makers]
        return max(makers, key=self.use.positions.__getitem__, default=None)

    def temporaries(self) -> list[Temporary]:
        allocations = [op for op in self.func.body.block.ops if isinstance(op, host.AllocOp)]
        return [self._temporary(op) for op in allocations if _only_kernels_see(op.buffer)]

    def _temporary(self, op: host.AllocOp) -> Temporary:
        assert isinstance(op.buffer.type, host.BufferType)
        size = ceildiv(maximum(op.buffer.type.byte_span, ZERO), ALIGNMENT) * ALIGNMENT
        first, last = self.use.first(op.buffer), self.use.last(op.buffer)
        return Temporary(op, first, last, self.domain.simplify(size), self._estimate(size))

    def _estimate(self, size: Expr) -> int:
        return int(size.evaluate(lambda leaf: self.hints.get(leaf.name, UNKNOWN_SIZE)))

    def assign(self, temporaries: Sequence[Temporary]) -> list[Slot]:
        slots: list[Slot] = []
        for temporary in sorted(temporaries, key=lambda known: -known.estimate):
            slot = next((slot for slot in slots if slot.takes(temporary)), None)
            if slot is None:
                slot = Slot(temporary.size)
                slots.append(slot)
            slot.size = self.domain.simplify(maximum(slot.size, temporary.size))
            slot.occupants.append(temporary)
        return slots

    def rewrite(self, slots: Sequence[Slot], origin: Operation | None) -> None:
        """`host.alloc → host.slot`, at the offset of the slots before it."""
        block = self.func.body.block
        workspace = host.WorkspaceOp.make(sum((slot.size for slot in slots), ZERO))
        workspace.workspace.name_hint = "workspace"
        allocations = (occupant.allocation for slot in slots for occupant in slot.occupants)
        first = block.first_op if origin is None else min(allocations, key=self.use.positions.__getitem__)
        block.insert_op_before(workspace, first)  # type: ignore[arg-type]
        offset = ZERO
        for slot in slots:
            for occupant in slot.occupants:
                _place(occupant.allocation, workspace.workspace, offset)
            offset = offset + slot.size


def _only_kernels_see(buffer: SSAValue) -> bool:
    uses = list(buffer.uses)
    return bool(uses) and all(isinstance(use.operation, host.RunOp) for use in uses)


def _place(allocation: host.AllocOp, workspace: SSAValue, offset: Expr) -> None:
    slot = host.SlotOp.make(workspace, offset, allocation.buffer.type)
    slot.location, slot.buffer.name_hint = allocation.location, allocation.buffer.name_hint
    block = allocation.parent
    assert block is not None
    block.insert_op_before(slot, allocation)
    allocation.buffer.replace_all_uses_with(slot.buffer)
    erase(allocation)


@dataclass(frozen=True)
class HostPlanBuffers(ModulePass):
    """Puts every buffer that only kernels see into a workspace; buffers that never live at once share a slot."""

    name = "host-plan-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in host_functions(op):
            Planner(func).run()

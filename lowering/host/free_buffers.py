"""`host-free-buffers`: drops every tensor after its last use, so that its storage is free for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import host
from .memory import host_functions

HELD = (host.ConstantOp, host.WeightOp, host.SlotOp)
"""Ops whose buffers are not references of this call."""


def _references(block: Block) -> Iterator[SSAValue]:
    """The tensors that the function holds by a name of its own."""
    values = [*block.args, *(result for op in block.ops if not isinstance(op, HELD) for result in op.results)]
    return (value for value in values if isinstance(value.type, host.BufferType))


def _last_uses(block: Block) -> dict[SSAValue, Operation]:
    """Value → the last op of the block in which it, or something in a region of it, is used."""
    last: dict[SSAValue, Operation] = {value: op for op in block.ops for value in op.results}
    for op in block.ops:
        last.update((operand, op) for inner in op.walk() for operand in inner.operands)
    return last


def insert_frees(block: Block) -> None:
    """One `host.free` behind each op for what it used last; the return needs none, nor an op just before it."""
    last = _last_uses(block)
    dying: dict[Operation, list[SSAValue]] = {}
    for value in _references(block):
        if (op := last.get(value, block.first_op)) is not None:
            dying.setdefault(op, []).append(value)
    for op, values in dying.items():
        if op is not block.last_op and op.next_op is not block.last_op:
            block.insert_op_after(host.FreeOp.make(values), op)


@dataclass(frozen=True)
class HostFreeBuffers(ModulePass):
    """Inserts a host.free after the last use of each tensor."""

    name = "host-free-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in host_functions(op):
            insert_frees(func.body.block)

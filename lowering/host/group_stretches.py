"""`host-group-stretches`: kernels with nothing of Python in between become one native call."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ...ir import host
from .memory import host_functions

PREPARATIONS = (
    host.AllocOp, host.WorkspaceOp, host.SlotOp, host.ViewOp, host.ConstantOp, host.WeightOp,
)  # fmt: skip
"""Ops that touch no element: they may come before kernels that they stood behind."""


def group_runs(block: Block) -> None:
    """`prepare; run; prepare; run  →  prepare; prepare; stretch { run; run }`, up to the next op of Python."""
    stretch: host.StretchOp | None = None
    for op in list(block.ops):
        if isinstance(op, host.RunOp):
            if stretch is None:
                stretch = host.StretchOp.make()
                stretch.location = op.location
                block.insert_op_before(stretch, op)
            stretch.block.add_op(block.detach_op(op))
        elif stretch is not None and isinstance(op, PREPARATIONS):
            block.insert_op_before(block.detach_op(op), stretch)
        else:
            stretch = None


@dataclass(frozen=True)
class HostGroupStretches(ModulePass):
    """Gathers runs of kernels into stretches, with allocations and views before them."""

    name = "host-group-stretches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in host_functions(op):
            group_runs(func.body.block)

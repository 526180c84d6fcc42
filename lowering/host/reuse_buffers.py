"""`host-reuse-buffers`: a kernel writes its result over an input that dies there, where that is provably safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...ir import host, tile
from .in_place import kernels_of, run_overwrites_safely
from .memory import MemoryUse, erase, host_functions


def reuse_inputs(block: Block, kernels: Mapping[str, tile.KernelOp]) -> None:
    """Visits runs in order, so that a chain of kernels comes to work in one buffer."""
    use = MemoryUse(block)
    for op in list(block.ops):
        if isinstance(op, host.RunOp) and (kernel := kernels.get(op.kernel_name)) is not None:
            for target in list(op.outputs):
                _reuse_for(target, op, kernel, use)


def _reuse_for(target: SSAValue, run: host.RunOp, kernel: tile.KernelOp, use: MemoryUse) -> None:
    """`%t = host.alloc; host.run @k ins(%s) outs(%t)  →  host.run @k ins(%s) outs(%s)`; does not fire when
    the result holds something before, the input lives on, is not ours, has another layout, or is read elsewhere."""
    allocation = target.owner
    if not isinstance(allocation, host.AllocOp) or use.first(target) != use.positions[run]:
        return
    for source in dict.fromkeys(run.inputs):
        if _may_give(source, target, run, use) and run_overwrites_safely(kernel, run, source, target):
            target.replace_all_uses_with(source)
            use.merge(target, source)
            erase(allocation)
            return


def _may_give(source: SSAValue, target: SSAValue, run: host.RunOp, use: MemoryUse) -> bool:
    return (
        isinstance(source.owner, host.AllocOp)
        and source.type == target.type
        and use.ends_at(source, run)
        and not any(value is not source and use.share(value, source) for value in run.operands)
        and source not in run.outputs
    )


@dataclass(frozen=True)
class HostReuseBuffers(ModulePass):
    """Writes a kernel's result over an input that dies there if every element is read just where it is written."""

    name = "host-reuse-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = kernels_of(op)
        for func in host_functions(op):
            reuse_inputs(func.body.block, kernels)

"""When a kernel may write a result over one of its inputs, shown from its tile code alone."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from ...ir import host, tile
from ...ir.tile.ops import WARPS, shape_of
from ..analysis.accesses import only

WARP_LANES = 32
"""Threads of a warp."""


def kernels_of(module: ModuleOp) -> dict[str, tile.KernelOp]:
    """The kernels of a module by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tile.KernelOp)}


def overwrites_safely(kernel: tile.KernelOp, source: SSAValue, target: SSAValue) -> bool:
    """Whether each element of `source` is read only in the step, and before the place, that writes it to `target`.

    Programs and steps write different elements, so it is enough that the one store and every load lie in the same
    block, address it by the same expression of the same values, and come in that order.
    """
    store = only([use.operation for use in target.uses])
    if not isinstance(store, tile.StoreOp) or store.combiner is not None or source.type != target.type:
        return False
    if not fills_threads(kernel, store.value.type):
        return False
    loads = [use.operation for use in source.uses]
    return not _used_in_finish(kernel, source, target) and all(_matches(load, store) for load in loads)


def fills_threads(kernel: tile.KernelOp, block: Attribute) -> bool:
    """Whether each lane of a block is one thread's, or all threads of a program run in step: of a smaller block
    several threads of a GPU hold copies, and a warp may load its copy when another has stored already."""
    warps = kernel.attributes.get(WARPS)
    if not isinstance(warps, IntegerAttr) or warps.value.data == 1:
        return True
    return prod(shape_of(block)) >= WARP_LANES * warps.value.data


def _used_in_finish(kernel: tile.KernelOp, *arguments: SSAValue) -> bool:
    if kernel.finish is None:
        return False
    positions = [kernel.block.args.index(argument) for argument in arguments]
    return any(kernel.finish.block.args[position].uses.get_length() for position in positions)


def _matches(load: object, store: tile.StoreOp) -> bool:
    """Whether a use of the source is a load of just the lanes that the store writes, before it."""
    return (
        isinstance(load, tile.LoadOp)
        and list(load.indices) == list(store.indices)
        and load.access == store.access
        and load.strides == store.strides
        and load.mask is store.mask
        and load.result.type == store.value.type
        and _comes_first(load, store)
    )


def _comes_first(load: tile.LoadOp, store: tile.StoreOp) -> bool:
    """Whether a load stands in the block of a store, before it."""
    op = store.prev_op
    while op is not None:
        if op is load:
            return True
        op = op.prev_op
    return False


def run_overwrites_safely(kernel: tile.KernelOp, run: host.RunOp, source: SSAValue, target: SSAValue) -> bool:
    """The same for buffers that a run passes; the source may be passed as several inputs."""
    inputs, outputs = list(run.inputs), list(run.outputs)
    written = kernel.block.args[len(inputs) + outputs.index(target)]
    read = [kernel.block.args[position] for position, value in enumerate(inputs) if value is source]
    return all(overwrites_safely(kernel, argument, written) for argument in read)

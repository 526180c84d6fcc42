"""`convert-graph-to-loop`: every native graph op becomes one `loop.kernel`, views become index maps.

Legal afterwards are kernels, `host.view`, and what the host does by itself: externs, products that a library computes,
weights, constants, copies into arguments, sizes. Kernels are not fused here; each new op has the location of the graph
op it is from.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import graph, host, loop, plugins
from ...ir.expr import dim
from ...ir.graph.storages import offsets_of, storages_of
from .graph.elementwise import elementwise
from .graph.errors import not_convertible
from .graph.externs import call_for, extern
from .graph.indexing import gather, index, index_put, scatter
from .graph.joining import cat, insert_slice, pad
from .graph.kernels import Kernel
from .graph.memory import Memory, insert_where_made
from .graph.products import has_kernel, product
from .graph.random import random
from .graph.reductions import index_reduction, reduction, scan
from .graph.sources import Constant, Element, Formula, Source, identity
from .graph.views import place_in_operand

LEGAL = (
    graph.BatchMatmulOp,
    graph.ConstantOp,
    graph.CopyIntoOp,
    graph.ExternOp,
    graph.MatmulOp,
    graph.SizeOp,
    graph.WeightOp,
    host.ViewOp,
    loop.KernelOp,
    ReturnOp,
)
"""What a function may hold afterwards; sizes only as `index` values."""

# -- what costs nothing: described, not computed -----------------------------------------------------


def _full(memory: Memory, op: graph.FullOp) -> Source:
    return Constant(op.scalar, op.element)


def _constant(memory: Memory, op: graph.ConstantOp) -> Source | None:
    """One number is said in the code that reads it; more are read from memory."""
    return Constant(op.value.scalar, op.element) if len(op.value) == 1 else None


def _iota(memory: Memory, op: graph.IotaOp) -> Source:
    return Formula(op.start.result + dim(0) * op.step.result, op.element)


def _size(memory: Memory, op: graph.SizeOp) -> Source | None:
    return Formula(op.expr, op.element) if isinstance(SSAValue.get(op).type, TensorType) else None


def _view(memory: Memory, op: graph.ViewOp) -> Source:
    place = place_in_operand(op)
    if place is not None:
        return memory.source(op.operand).through(place, memory.box(op.sizes))
    assert isinstance(op, graph.AsStridedOp)
    view = host.ViewOp.make(memory.tensor(op.operand), op.offset.result, op.type)
    return Element(insert_where_made(op.result, view), identity(len(op.sizes)))


DESCRIPTIONS: dict[type[Operation], Callable[[Memory, Any], Source | None]] = {
    graph.ViewOp: _view,
    graph.FullOp: _full,
    graph.ConstantOp: _constant,
    graph.IotaOp: _iota,
    graph.SizeOp: _size,
}
"""Family → what the elements of its result are; None where that is for memory to say."""

# -- what is computed --------------------------------------------------------------------------------

KERNELS: dict[type[Operation], Callable[[Memory, Any], Kernel]] = {
    graph.ElementwiseOp: elementwise,
    graph.IndexReductionOp: index_reduction,
    graph.ReductionOp: reduction,
    graph.ScanOp: scan,
    graph.RandomOp: random,
    graph.GatherOp: gather,
    graph.IndexOp: index,
    graph.ScatterOp: scatter,
    graph.IndexPutOp: index_put,
    graph.PadOp: pad,
    graph.InsertSliceOp: insert_slice,
    graph.CatOp: cat,
}
"""Family → the kernel of one of its ops."""


@cache
def family_of(op: type[Operation]) -> type[Operation] | None:
    """The closest class of an op for which there is a row."""
    return next((cls for cls in op.__mro__ if cls in DESCRIPTIONS or cls in KERNELS), None)


# -- functions ---------------------------------------------------------------------------------------


class FunctionConverter:
    """Converts the ops of one function in order, so that what an op reads is converted already."""

    def __init__(self, function: FuncOp) -> None:
        self.block = function.body.block
        self.memory = Memory(function)
        self.storages, self.offsets = storages_of(function), offsets_of(function)
        self.described: list[Operation] = []

    def run(self) -> None:
        for op in list(self.block.ops):
            self.convert(op)
        for op in reversed(self.described):
            if all(result.first_use is None for result in op.results):
                self.block.erase_op(op)

    def convert(self, op: Operation) -> None:
        family, call = family_of(type(op)), call_for(op)
        if call is not None:
            assert isinstance(op, graph.GraphOp)
            self.replace(op, extern(self.memory, op, call))
        elif isinstance(op, graph.ProductOp) and has_kernel(op):
            self.replace(op, product(self.memory, op).op)
        elif family in DESCRIPTIONS:
            self.describe(op, DESCRIPTIONS[family](self.memory, op))
        elif family in KERNELS:
            self.replace(op, KERNELS[family](self.memory, op).op)
        elif isinstance(op, LEGAL):
            self.give_memory(op)
        else:
            raise not_convertible(op)

    def describe(self, op: Operation, source: Source | None) -> None:
        if source is not None:
            self.memory.sources[SSAValue.get(op)] = source
        self.described.append(op)

    def replace(self, op: Operation, replacement: Operation) -> None:
        self.block.insert_op_before(replacement, op)
        for old, new in zip(op.results, replacement.results, strict=True):
            old.replace_all_uses_with(new)
        self.block.erase_op(op)

    def give_memory(self, op: Operation) -> None:
        """Gives an op that stays the tensors that it takes."""
        if isinstance(op, ReturnOp):
            tensors = self.memory.results(op.operands, self.storages, self.offsets)
        else:
            tensors = [self.memory.tensor(operand) for operand in op.operands]
        for position, (operand, tensor) in enumerate(zip(list(op.operands), tensors, strict=True)):
            if tensor is not operand:
                op.operands[position] = tensor


class ConvertGraphToLoop(ModulePass):
    """Turn every native graph op into one loop.kernel and every view into index maps of those who read it."""

    name = "convert-graph-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                FunctionConverter(function).run()


plugins.load("stepwell.conversions")

"""`loop-fold-kernels`: runs small kernels at compile time that read constants alone."""

from __future__ import annotations

from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...ir import graph, loop
from ...ir.definitions import symbols_of
from ...ir.dtypes import element_of
from ...ir.expr import product
from ...ir.graph.attributes import DataAttr
from ...ir.shapes import sizes_of, tensor_type
from ..analysis.accesses import all_ops
from ..analysis.kernels import functions_with_kernels
from ..applications import permitted
from ..graph.fold_constants import LARGEST
from ..schedule.model import captured
from .moves import erase

STRUCTURE = (loop.ParallelOp, loop.ReadOp, loop.WriteOp, loop.IndexOp, loop.YieldOp)

DOUBTFUL = (arith.FPToSIOp, arith.FPToUIOp, arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
"""What these give outside of their ranges is for the machine to say."""


def is_constant(kernel: loop.KernelOp) -> bool:
    """Whether a kernel reads constants alone and makes small tensors that only kernels read, by operations whose
    results are the same on every machine: functions may differ in their last place, sums in their order.

    What a program returns, or gives to an operator, is new memory in each call.
    """
    return (
        not kernel.operands
        and all(is_table(result) for result in kernel.results)
        and all(isinstance(tensor.owner, graph.ConstantOp) for tensor in captured(kernel))
        and all(is_exact(op) for op in all_ops(kernel.block))
        and not symbols_of(kernel)
    )


def is_table(result: SSAValue) -> bool:
    """Whether a tensor is as small and as plain as constants are, and kernels alone read it."""
    sizes = sizes_of(result.type)
    count = product(sizes)
    return (
        all(isinstance(use.operation, loop.ReadOp) for use in result.uses)
        and count.is_constant
        and count.constant <= LARGEST
        and result.type == tensor_type(element_of(result.type), sizes)
    )


def is_exact(op: Operation) -> bool:
    return isinstance(op, STRUCTURE) or (op.name.startswith("arith.") and not isinstance(op, DOUBTFUL))


def constants_of(kernel: loop.KernelOp) -> list[graph.ConstantOp]:
    """The constants that a kernel reads."""
    return [tensor.owner for tensor in captured(kernel) if isinstance(tensor.owner, graph.ConstantOp)]


def run(kernel: loop.KernelOp) -> list[graph.ConstantOp]:
    """The results of a kernel as constants."""
    # Importing it takes longer than lowering most programs, which have no such kernel.
    from ...ir.interpret import interpret

    made = {op: op.clone() for op in constants_of(kernel)}
    values: dict[SSAValue, SSAValue] = {op.result: copy.result for op, copy in made.items()}
    copy = kernel.clone(values)
    body = Block([*made.values(), copy, func.ReturnOp(*copy.results)])
    types = FunctionType.from_lists([], list(copy.result_types))
    arrays = interpret(ModuleOp([func.FuncOp("main", types, Region(body))]), ())
    return [
        graph.ConstantOp.make(DataAttr.of(element_of(result.type), array.ravel()), result.type, kernel.location)
        for result, array in zip(kernel.results, arrays, strict=True)
    ]


def fold(kernel: loop.KernelOp) -> None:
    """Puts constants in the place of a kernel and of those that it alone has read."""
    block, read = kernel.parent, constants_of(kernel)
    assert block is not None
    constants = run(kernel)
    block.insert_ops_before(constants, kernel)
    for result, constant in zip(kernel.results, constants, strict=True):
        result.replace_all_uses_with(constant.result)
    erase(kernel)
    for op in read:
        if not op.result.uses:
            erase(op)


class LoopFoldKernels(ModulePass):
    """Run small kernels that read constants alone, and keep their results."""

    name = "loop-fold-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                if is_constant(kernel) and permitted(partial(describe, kernel)):
                    fold(kernel)


def describe(kernel: loop.KernelOp) -> str:
    return f"run {kernel.kernel_name.data}"

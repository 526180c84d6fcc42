"""`loop-call-products`: hands products of matrices to the library where that was measured to take less time.

What had joined such a product becomes a kernel again, which reads what the library wrote.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import graph, host, loop
from ...ir.dtypes import element_of
from ...ir.expr import ZERO, dim
from ...ir.product_schedule import LIBRARY, PRODUCT
from ...ir.shapes import tensor_type
from ..analysis.accesses import only
from ..analysis.contractions import Contraction, contraction_of
from ..analysis.kernels import functions_with_kernels
from ..schedule.model import KernelModel
from ..schedule.product_plan import array_of
from .moves import erase


class Parting:
    """Parts one kernel in the library's product and the rest."""

    def __init__(self, kernel: loop.KernelOp, contraction: Contraction):
        self.kernel = kernel
        self.contraction = contraction
        self.model = KernelModel(kernel)
        self.extents = contraction.extents
        axes = {contraction.row, contraction.column}
        self.outer = [index for index in contraction.nest.indices if index not in axes]

    def run(self) -> bool:
        """`kernel { reduce { x y }  truncf  b }  →  matmul x, y  kernel { read  b }`.

        Does not fire, and says so, where the sum is used unrounded, where the library takes no such factors, or where
        rows and columns have more than one dim besides that of a batch.
        """
        rounded = rounded_sum(self.contraction)
        factors = self.factors()
        if rounded is None or factors is None:
            return False
        result, bias = rounded
        self.replace(result, self.call(*factors, bias))
        return True

    def factors(self) -> tuple[host.ViewOp, host.ViewOp] | None:
        """Both factors as tensors of two dims, or three with that of the batch."""
        found = self.contraction
        lhs = self.view(found.lhs, (found.row, found.depth))
        rhs = self.view(found.rhs, (found.depth, found.column))
        return None if lhs is None or rhs is None or len(self.outer) > 1 else (lhs, rhs)

    def view(self, read: loop.ReadOp, axes: tuple[SSAValue, SSAValue]) -> host.ViewOp | None:
        array = array_of(read, self.model.strides(read.source), self.extents, axes)
        if array is None or {one.index for one in array.dims} != {*self.outer, *axes}:
            return None
        by_index = {one.index: one for one in array.dims}
        dims = [by_index[index] for index in (*self.outer, *axes)]
        type_ = tensor_type(read.result.type, [one.size for one in dims], [one.stride for one in dims])
        return host.ViewOp.make(read.source, array.start, type_)

    def call(self, lhs: host.ViewOp, rhs: host.ViewOp, bias: SSAValue | None) -> SSAValue:
        kind = graph.BatchMatmulOp if self.outer else graph.MatmulOp
        sizes = [self.extents[index] for index in (*self.outer, self.contraction.row, self.contraction.column)]
        type_ = tensor_type(element_of(lhs.result.type), sizes)
        product = kind.make(lhs.result, rhs.result, bias, type_, self.kernel.location)
        assert self.kernel.parent is not None
        self.kernel.parent.insert_ops_before([lhs, rhs, product], self.kernel)
        return SSAValue.get(product)

    def replace(self, rounded: SSAValue, product: SSAValue) -> None:
        """Has the kernel read the product where it rounded the sum."""
        places = (*self.outer, self.contraction.row, self.contraction.column)
        read = loop.ReadOp.make(product, places, [dim(k) for k in range(len(places))])
        assert isinstance(rounded.owner, arith.TruncFOp)
        read.location = rounded.owner.location
        self.contraction.nest.block.insert_op_before(read, rounded.owner)
        rounded.replace_all_uses_with(read.result)
        erase_unused(rounded.owner)
        if (copied := self.copied(read)) is not None:
            view = host.ViewOp.make(product, ZERO, copied.type)
            assert self.kernel.parent is not None
            self.kernel.parent.insert_op_before(view, self.kernel)
            copied.replace_all_uses_with(view.result)
            erase(self.kernel)

    def copied(self, read: loop.ReadOp) -> SSAValue | None:
        """The one result of the kernel, if all that is left is to copy the product to memory that lies like it."""
        left = [op for op in self.contraction.nest.block.ops if op is not read]
        write = only(left)
        if not isinstance(write, loop.WriteOp):
            return None
        axes = (self.contraction.row, self.contraction.column)
        strides = self.model.strides(write.target)
        ours = array_of(read, KernelModel(self.kernel).strides(read.source), self.extents, axes)
        theirs = array_of(write, strides, self.extents, axes)
        return only(self.kernel.results) if ours == theirs else None


def rounded_sum(contraction: Contraction) -> tuple[SSAValue, SSAValue | None] | None:
    """What a sum of products is rounded to, and the bias that is added before."""
    total, bias = SSAValue.get(contraction.reduction), None
    user = only_user(total)
    if isinstance(user, arith.AddfOp):
        bias = added_row(user.rhs if user.lhs is total else user.lhs, contraction)
        if bias is None:
            return None
        user = only_user(user.result)
    narrow = contraction.lhs.result.type
    return (user.result, bias) if isinstance(user, arith.TruncFOp) and user.result.type == narrow else None


def added_row(value: SSAValue, contraction: Contraction) -> SSAValue | None:
    """The tensor of as many elements as there are columns, of the factors' type, of which a value is its column's."""
    read = value.owner.input.owner if isinstance(value.owner, arith.ExtFOp) else None
    if not isinstance(read, loop.ReadOp):
        return None
    column = contraction.column
    row = tensor_type(contraction.lhs.result.type, [contraction.extents[column]])
    found = (read.source.type, read.guard, [*read.indices], read.map.results)
    return read.source if found == (row, None, [column], (dim(0),)) else None


def only_user(value: SSAValue) -> Operation | None:
    use = only([*value.uses])
    return None if use is None else use.operation


def erase_unused(op: Operation) -> None:
    """Erases an op, and what only it used."""
    operands: Sequence[SSAValue] = [*op.operands]
    erase(op)
    for operand in operands:
        owner = operand.owner
        if isinstance(owner, Operation) and all(result.first_use is None for result in owner.results):
            erase_unused(owner)


class LoopCallProducts(ModulePass):
    """Hand products of matrices to the library where that was measured to take less time."""

    name = "loop-call-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                if kernel.attributes.get(PRODUCT) == StringAttr(LIBRARY):
                    del kernel.attributes[PRODUCT]
                    contraction = contraction_of(kernel)
                    if contraction is not None:
                        Parting(kernel, contraction).run()


__all__ = ["LoopCallProducts"]

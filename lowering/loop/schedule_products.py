"""`loop-schedule-products`: gives each product of matrices the schedule under which a GPU takes the least time for it.

A kernel that has a schedule keeps it: whoever measured knows better. Products of few rows get none, since they are
reductions like any other.
"""

from __future__ import annotations

from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.dtypes import numpy_dtype
from ...ir.product_schedule import PRODUCT, ProductAttr
from ...ir.target import target_of
from ..analysis.contractions import Contraction, contraction_of
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from ..schedule.model import KernelModel
from ..schedule.product_costs import FEW_ROWS, ProductSize, best_schedule
from ..schedule.product_plan import epilogue_of


def size_of(kernel: loop.KernelOp, contraction: Contraction) -> ProductSize:
    """The likely sizes of the product that a kernel computes."""
    sizes = Sizes.at(kernel)
    extents = {index: sizes.likely(size) for index, size in contraction.extents.items()}
    rows, columns, depth = (extents.pop(index) for index in (contraction.row, contraction.column, contraction.depth))
    width = numpy_dtype(contraction.lhs.result.type).itemsize
    return ProductSize(prod(extents.values()), rows, columns, depth, element_bytes=width)


def is_schedulable(contraction: Contraction) -> bool:
    """Whether the tiles of a product have two dims."""
    return bool(contraction.rows) and bool(contraction.columns)


class LoopScheduleProducts(ModulePass):
    """Give each product of matrices the schedule under which a GPU takes the least time for it."""

    name = "loop-schedule-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        if not target.is_gpu:
            return
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                contraction = contraction_of(kernel)
                if contraction is None or PRODUCT in kernel.attributes or not is_schedulable(contraction):
                    continue
                size = size_of(kernel, contraction)
                if size.rows > FEW_ROWS:
                    epilogue = epilogue_of(KernelModel(kernel), contraction)
                    kernel.attributes[PRODUCT] = ProductAttr(best_schedule(size, target, epilogue))


__all__ = ["LoopScheduleProducts", "size_of"]

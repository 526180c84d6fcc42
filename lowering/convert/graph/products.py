"""Products of matrices that become kernels, so that what follows them can join them; all others stay for a library.

A product accumulates in f32 and rounds once, its bias added.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....ir import graph
from ....ir.dtypes import FLOAT32, numpy_dtype
from ....ir.expr import ONE, ZERO, Expr, dim
from ....ir.product_schedule import MEASURE
from ....ir.shapes import sizes_of, strides_of
from ....ir.target import Target, target_of
from ...analysis.contractions import NARROW
from ...analysis.sizes import Sizes
from ...schedule.product_costs import FEW_ROWS, ProductSize, is_ours
from .conversion import narrow
from .kernels import Kernel
from .memory import Memory
from .sources import Element, identity

LEAST_ARCHITECTURE = 90
"""The first compute capability with an engine that copies boxes of arrays."""

STEP = 8
"""Elements of two bytes, or more, of which that engine's strides are multiples."""


def has_kernel(op: graph.ProductOp) -> bool:
    """Whether the product becomes a kernel: the machine has what it takes, the factors lie so that boxes of them can
    be copied, and a library would not be faster."""
    target = target_of(op)
    if not is_able(target) or op.element not in (*NARROW, FLOAT32) or ZERO in op.sizes or ZERO in sizes_of(op.lhs.type):
        return False
    size = size_of(op)
    if not all(is_dense(factor) for factor in (op.lhs, op.rhs)):
        return False
    if size.rows <= FEW_ROWS:
        return op.sizes[-2].is_constant and strides_of(op.rhs.type)[-2] == ONE and is_ours(size, target)
    return is_ours(size, target) or (is_measured(op) and not size.is_wide)


def is_able(target: Target) -> bool:
    return target.is_gpu and int(target.name.removeprefix("sm_")) >= LEAST_ARCHITECTURE


def is_measured(op: graph.ProductOp) -> bool:
    """Whether kernels of products will be timed against the library, which takes a kernel to begin with."""
    module = op.parent_op()
    while module is not None and MEASURE not in module.attributes:
        module = module.parent_op()
    return module is not None


def size_of(op: graph.ProductOp) -> ProductSize:
    """The likely sizes of a product."""
    sizes = Sizes.at(op)
    batch, rows, columns = [1, *(sizes.likely(size) for size in op.sizes)][-3:]
    width = numpy_dtype(op.element).itemsize
    return ProductSize(batch, rows, columns, sizes.likely(sizes_of(op.lhs.type)[-1]), element_bytes=width)


def is_dense(factor: SSAValue) -> bool:
    """Whether rows or columns are contiguous, and the others lie whole steps apart."""
    strides = strides_of(factor.type)
    outer = [stride for stride in strides if stride != ONE]
    return ONE in strides[-2:] and strides[-1] != strides[-2] and all(is_step(stride) for stride in outer)


def is_step(stride: Expr) -> bool:
    return stride != ZERO and all(coefficient % STEP == 0 for _, coefficient in stride.terms)


def product(memory: Memory, op: graph.ProductOp) -> Kernel:
    kernel = Kernel.of(memory, op)
    kernel.enter_parallel(op.sizes)
    rank = len(op.sizes)
    lead, row, column, depth = [dim(k) for k in range(rank - 2)], dim(rank - 2), dim(rank - 1), dim(rank)

    def body() -> Sequence[SSAValue]:
        lhs = read(kernel, memory, op.lhs, [*lead, row, depth])
        rhs = read(kernel, memory, op.rhs, [*lead, depth, column])
        return (kernel.apply(arith.MulfOp, lhs, rhs),)

    (total,) = kernel.reduce([sizes_of(op.lhs.type)[-1]], ["add"], [FLOAT32], body)
    if op.bias is not None:
        total = kernel.apply(arith.AddfOp, total, kernel.read_wide(op.bias, bias_place(op)))
    kernel.write(narrow(kernel, total, op.element))
    return kernel


def read(kernel: Kernel, memory: Memory, factor: SSAValue, place: Sequence[Expr]) -> SSAValue:
    """An element of a factor in f32; a factor is a tensor in memory, however it is made."""
    tensor = memory.tensor(factor)
    element = Element(tensor, identity(len(place))).read(kernel, kernel.indices, place)
    return element if element.type == FLOAT32 else kernel.cast(arith.ExtFOp, element, FLOAT32)


def bias_place(op: graph.ProductOp) -> list[Expr]:
    """Where the bias of an element lies, sizes aligned at their ends."""
    assert op.bias is not None
    sizes = sizes_of(op.bias.type)
    lead = len(op.sizes) - len(sizes)
    return [ZERO if size == ONE else dim(lead + position) for position, size in enumerate(sizes)]


__all__ = ["has_kernel", "product", "size_of"]

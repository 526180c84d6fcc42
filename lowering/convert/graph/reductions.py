"""Reductions and scans.

bf16 and f16 accumulate in f32; scans accumulate as eager's do, f32 in f64.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....ir import graph, loop
from ....ir.dtypes import BOOL, FLOAT32, FLOAT64, UINT8, compute_type, element_of, is_float
from ....ir.expr import contiguous_strides, dim, linearize, product
from ....ir.graph.base import integer_of
from ....ir.shapes import sizes_of
from .conversion import narrow
from .kernels import Kernel
from .sources import Values

COMBINER_OF: dict[type[Operation], str] = {
    graph.SumOp: "add",
    graph.ProdOp: "mul",
    graph.MaxOp: "max",
    graph.MinOp: "min",
    graph.AnyOp: "or",
    graph.AllOp: "and",
    graph.ArgMaxOp: "argmax",
    graph.ArgMinOp: "argmin",
}

_ON_BOOL = {"max": "or", "min": "and", "add": "or", "mul": "and", "maxu": "or", "minu": "and"}
_ON_UNSIGNED = {"max": "maxu", "min": "minu"}


def combiner_for(name: str, element: Attribute) -> str:
    """The combiner that does the same to scalars of an element type."""
    if element == BOOL:
        return _ON_BOOL.get(name, name)
    return _ON_UNSIGNED.get(name, name) if element == UINT8 else name


def _operand_place(op: graph.ReductionOp) -> tuple[Sequence[int], list[int]]:
    """The kept dims, and for each operand dim its position among the indices: kept dims first, then reduced ones."""
    reduced = op.reduced
    kept = [position for position in range(len(sizes_of(op.operand.type))) if position not in reduced]
    order = [*kept, *reduced]
    return kept, [order.index(position) for position in range(len(order))]


def reduction(values: Values, op: graph.ReductionOp) -> Kernel:
    kernel = Kernel.of(values, op)
    sizes, element = sizes_of(op.operand.type), element_of(op.operand.type)
    kept, positions = _operand_place(op)
    kernel.enter_parallel([sizes[position] for position in kept])
    place = [dim(position) for position in positions]
    name = combiner_for(COMBINER_OF[type(op)], element)
    type_ = compute_type(loop.scalar_type(element))

    def body() -> Sequence[SSAValue]:
        return (kernel.read_wide(op.operand, place),)

    reduced_sizes = [sizes[position] for position in op.reduced]
    (total,) = kernel.reduce(reduced_sizes, [name], [type_], body) if op.reduced else body()
    kernel.write(narrow(kernel, total, op.element) if is_float(op.element) else total)
    return kernel


MOST_SHORT = (1 << 31) - 1
"""Elements up to which places are kept in 32 bits while they are compared: as many lanes as those of f32."""


def index_reduction(values: Values, op: graph.IndexReductionOp) -> Kernel:
    """The extremum and where it is, of which the place is written: a row-major index among the reduced dims."""
    kernel = Kernel.of(values, op)
    sizes, element = sizes_of(op.operand.type), element_of(op.operand.type)
    kept, positions = _operand_place(op)
    kernel.enter_parallel([sizes[position] for position in kept])
    place = [dim(position) for position in positions]
    reduced_sizes = [sizes[position] for position in op.reduced]
    offset = linearize([dim(positions[k]) for k in op.reduced], contiguous_strides(reduced_sizes))
    type_ = i32 if element == UINT8 else compute_type(loop.scalar_type(element))
    extent = product(reduced_sizes)
    short = extent.is_constant and extent.constant <= MOST_SHORT

    def body() -> Sequence[SSAValue]:
        key = kernel.read_wide(op.operand, place)
        if element == UINT8:  # the combiner compares signed
            key = kernel.cast(arith.ExtUIOp, key, i32)
        found = kernel.index(kernel.indices, offset)
        return key, kernel.cast(arith.TruncIOp, found, i32) if short else found

    _, found = kernel.reduce(reduced_sizes, [COMBINER_OF[type(op)]], [type_, i32 if short else i64], body)
    kernel.write(kernel.cast(arith.ExtSIOp, found, i64) if short else found)
    return kernel


_STEP: dict[str, tuple[type[Operation], type[Operation], int]] = {
    "add": (arith.AddfOp, arith.AddiOp, 0),
    "mul": (arith.MulfOp, arith.MuliOp, 1),
}
"""Combiner → the op on floats, the op on integers, and where it starts."""


def scan(values: Values, op: graph.ScanOp) -> Kernel:
    kernel = Kernel.of(values, op)
    along, floats = integer_of(op.dim), is_float(op.element)
    on_floats, on_integers, start = _STEP[op.combiner.data]
    others = [position for position in range(len(op.sizes)) if position != along]
    order = [*others, along]
    place = [dim(order.index(position)) for position in range(len(order))]
    kernel.enter_parallel([op.sizes[position] for position in others])
    type_ = FLOAT64 if op.element == FLOAT32 else compute_type(loop.scalar_type(op.element))

    def body(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value = kernel.read_wide(op.operand, place)
        value = kernel.cast(arith.ExtFOp, value, type_) if floats else value
        total = kernel.apply(on_floats if floats else on_integers, *carried, value)
        kernel.write(narrow(kernel, total, op.element) if floats else total, place)
        return (total,)

    kernel.iterate(op.sizes[along], [kernel.constant(start, type_)], body)
    return kernel

"""How what products are made of is said in Triton's dialect: boxes by descriptors where the copy engine can move them,
else by pointers and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.dialects.arith import AddiOp, AndIOp
from xdsl.dialects.builtin import UnitAttr, i32, i64
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from ...ir import tile, tt
from ...ir.dtypes import FLOAT32
from ...ir.expr import ONE, ZERO, Expr, linearize
from ...ir.tile.ops import element_of, shape_of
from ..analysis.sizes import element_bytes
from .tt_builder import TritonBuilder

DESCRIPTOR_BYTES = 16
"""What the address of a described array, and all strides but the last, are multiples of."""

MOST_LANES, MOST_DIMS = 256, 5
"""Elements along one dim of a box, and dims of an array, that the copy engine takes."""


class ProductBuilder(TritonBuilder):
    """A builder for kernels of products. `describes` says whether addresses are aligned, so that descriptors serve,
    `rounds_results` whether all results are narrow, `rounds_products` whether there are products besides."""

    describes = False
    rounds_results = False
    rounds_products = False


def boxes_of(kernel: tile.KernelOp) -> Iterator[tile.BoxOp]:
    """The boxes that a kernel moves."""
    return (op for op in kernel.walk() if isinstance(op, tile.BoxOp))


def block_of(op: tile.BoxOp) -> SSAValue:
    """The block that a box becomes, or is."""
    return op.result if isinstance(op, tile.LoadBoxOp) else op.operands[0]


def is_describable(op: tile.BoxOp) -> bool:
    """Whether the copy engine can move the box, given an aligned buffer."""
    block = block_of(op).type
    width = element_bytes(element_of(block))
    *outer, last = op.array_strides
    steps = [*outer, op.array_start]
    return (
        last == ONE
        and len(outer) < MOST_DIMS
        and all(is_multiple(step, DESCRIPTOR_BYTES // width) for step in steps)
        and max(shape_of(block)) <= MOST_LANES
        and shape_of(block)[-1] * width >= DESCRIPTOR_BYTES
    )


def is_multiple(expr: Expr, number: int) -> bool:
    """Whether an expression is a multiple of a number for all values of its symbols."""
    return all(coefficient % number == 0 for _, coefficient in expr.terms)


def describe(b: ProductBuilder, op: tile.BoxOp) -> SSAValue:
    """The descriptor of the array that a box is of; one made before serves again."""
    lead = len(op.places) - len(shape_of(block_of(op).type))
    base = b.values[op.buffer]  # type: ignore[attr-defined]
    if op.array_start != ZERO:
        base = b.add(tt.AddPtrOp.make(base, b.expression(op.array_start, ())))
    sizes = [b.cast_integer(b.expression(size, ()), i32) for size in op.sizes]
    strides = [b.cast_integer(b.expression(stride, ()), i64) for stride in op.array_strides]
    return b.add(tt.MakeDescriptorOp.make(base, sizes, strides, [*[1] * lead, *shape_of(block_of(op).type)]))


def described(b: ProductBuilder, op: tile.BoxOp) -> bool:
    return b.describes and is_describable(op)


# -- boxes -------------------------------------------------------------------------------------------


def _places(b: ProductBuilder, op: tile.LoadBoxOp | tile.StoreBoxOp) -> list[SSAValue]:
    """Where a box begins, in the index type."""
    indices = [b.values[index] for index in op.indices]
    return [b.expression(place, indices) for place in op.places]


def _emit_load(b: ProductBuilder, op: tile.LoadBoxOp) -> None:
    shape = shape_of(op.result.type)
    if not described(b, op):
        pointers, mask = addressed(b, op)
        b.values[op.result] = b.load(pointers, element_of(op.result.type), mask, None)
        return
    places = [b.cast_integer(place, i32) for place in _places(b, op)]
    loaded = tt.DescriptorLoadOp.make(describe(b, op), places)
    b.append(loaded)
    b.values[op.result] = b.from_memory(reshaped(b, loaded.result, shape), element_of(op.result.type))


def _emit_store(b: ProductBuilder, op: tile.StoreBoxOp) -> None:
    value = b.in_memory(b.values[op.value])
    if not described(b, op):
        pointers, mask = addressed(b, op)
        b.append(tt.StoreOp.make(pointers, value, mask))
        return
    places = [b.cast_integer(place, i32) for place in _places(b, op)]
    lead = [1] * (len(op.places) - len(shape_of(op.value.type)))
    value = reshaped(b, value, [*lead, *shape_of(op.value.type)])
    b.append(tt.DescriptorStoreOp.make(describe(b, op), value, places))


def reshaped(b: ProductBuilder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    return value if tt.ops.shape_of(value.type) == tuple(shape) else b.add(tt.ReshapeOp.make(value, shape))


def addressed(b: ProductBuilder, op: tile.LoadBoxOp | tile.StoreBoxOp) -> tuple[SSAValue, SSAValue | None]:
    """Pointers to the elements of a box, and which of them lie within the array, if not all do for certain."""
    shape, places = shape_of(block_of(op).type), _places(b, op)
    lead = len(places) - len(shape)
    start = linearize(op.places, op.array_strides) + op.array_start
    offset = None if start == ZERO else b.expression(start, [b.values[index] for index in op.indices])
    mask: SSAValue | None = None
    for k, place in enumerate(places):
        if k >= lead and not fits(op.places[k], op.sizes[k], shape[k - lead]):
            inside = within(b, place, op.sizes[k], k - lead, shape)
            mask = inside if mask is None else b.op(AndIOp, mask, inside)
    return b.strided(b.values[op.buffer], offset, shape, op.array_strides[lead:]), mask


def fits(place: Expr, size: Expr, width: int) -> bool:
    """Whether whole boxes fill an array along a dim."""
    return size.is_constant and size.constant % width == 0 and is_multiple(place, width)


def within(b: ProductBuilder, place: SSAValue, size: Expr, position: int, shape: Sequence[int]) -> SSAValue:
    """Which lanes lie below the end of an array along one dim."""
    lanes = b.range(position, shape)
    own = [shape[position]]
    numbers = b.op(AddiOp, b.splat(place, own), lanes)
    inside = b.add(tt.CmpIOp.make("slt", numbers, b.splat(b.expression(size, ()), own)))
    return b.spread(inside, [position], shape)


# -- blocks ------------------------------------------------------------------------------------------


def _emit_dot(b: ProductBuilder, op: tile.DotOp) -> None:
    """Sums of f32 are apart from what is added to them, which Triton respects where a dot has a limit of this kind."""
    apart = shape_of(op.lhs.type)[1] if element_of(op.lhs.type) == FLOAT32 else 0
    b.values[op.result] = b.add(tt.DotOp.make(b.values[op.lhs], b.values[op.rhs], b.values[op.addend], most=apart))


def _emit_halves(b: ProductBuilder, op: tile.HalvesOp) -> None:
    """`[r, 2c] → [r, 2, c] → [r, c, 2]`, of which Triton splits the last dim."""
    *rest, last = shape_of(op.operand.type)
    rank = len(rest)
    pairs = b.add(tt.ReshapeOp.make(b.values[op.operand], [*rest, 2, last // 2]))
    turned = b.add(tt.TransOp.make(pairs, (*range(rank), rank + 1, rank)))
    made = tt.SplitOp.make(turned)
    b.append(made)
    b.values.update(zip(op.results, made.results, strict=True))


# -- loops -------------------------------------------------------------------------------------------


def sums_products(op: tile.ForOp) -> bool:
    """Whether a loop is that of a sum of products, or holds one: as many iterations are in flight as the kernel has
    stages."""
    return any(isinstance(inner, tile.DotOp) for inner in op.walk())


def mark_loop(op: tile.ForOp, loop: ForOp) -> None:
    """Has the loop over tiles become one with that of the sum, so that the next tile's factors come while a tile is
    finished."""
    if any(isinstance(inner, tile.ForOp) and sums_products(inner) for inner in op.block.ops):
        loop.attributes["tt.flatten"] = UnitAttr()


PRODUCTS: dict[type[Operation], Callable[[Any, Any], None]] = {
    tile.LoadBoxOp: _emit_load,
    tile.StoreBoxOp: _emit_store,
    tile.DotOp: _emit_dot,
    tile.HalvesOp: _emit_halves,
}

__all__ = [
    "PRODUCTS",
    "ProductBuilder",
    "boxes_of",
    "describe",
    "described",
    "is_describable",
    "mark_loop",
    "sums_products",
]

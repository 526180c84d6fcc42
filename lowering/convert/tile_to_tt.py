"""`convert-tile-to-tt`: makes every `tile.kernel` a `tt.func` that Triton compiles.

A function takes the arguments of its kernel: pointers for buffers, i32 for symbols whose range fits, else i64. A kernel
with a table of errors takes one more pointer, to an i64 that is 0: a failing lane stores its code in the upper 8 bits,
its value in the lower 56. How to launch it is said by discardable attributes: `stepwell.num_warps` and `num_stages`,
`grid` (a map of the symbols to programs), `symbols`, and `unaligned`: the function for addresses without promises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...ir import tile, tt
from ...ir.expr import ZERO, Expr
from ...ir.shapes import SYMBOLS, SymbolRange
from ...ir.tile.ops import DESCRIPTORS, INDEX_BITS, REGISTERS, STAGES, WARPS, BlockAccessOp
from ...ir.tt.ops import DIVISIBILITY, ERROR_SHIFT, ERRORS, GRID, UNALIGNED, element_of, pointer_type, shape_of
from ..analysis.atomics import atomic_kind
from ..analysis.sizes import element_bytes
from .tt_arith import ARITHMETIC, compare, unsupported
from .tt_builder import argument_type
from .tt_products import (
    PRODUCTS,
    ProductBuilder,
    boxes_of,
    describe,
    described,
    is_describable,
    mark_loop,
    sums_products,
)
from .tt_quotients import QUOTIENTS
from .tt_sigmoids import SIGMOIDS, rounds_results

ALIGNMENT = 16
"""Bytes of which every pointer is a multiple: what a launch promises, and must check."""

STAGED_BYTES = 96 << 10
"""Shared memory that loads of later iterations may take: two programs fit a multiprocessor."""

DEFAULTS = {WARPS: 4, STAGES: 3, INDEX_BITS: 64}


# -- functions ---------------------------------------------------------------------------------------


def number(kernel: tile.KernelOp, attribute: str) -> int:
    """What the schedule asks for, or the usual."""
    given = kernel.attributes.get(attribute)
    return int(given.value.data) if isinstance(given, IntegerAttr) else DEFAULTS[attribute]


def symbol_type(known: SymbolRange) -> IntegerType:
    """The type in which a symbol's value is passed."""
    return i32 if known.high is not None and known.high < 1 << 31 else i64


class FunctionConverter:
    """Makes one function."""

    def __init__(self, kernel: tile.KernelOp, *, aligned: bool = True):
        self.kernel = kernel
        self.aligned = aligned
        self.describes = aligned and DESCRIPTORS in kernel.attributes
        self.errors = kernel.error_table

    def convert(self) -> tt.FuncOp:
        kernel, symbols = self.kernel, self.kernel.symbols
        if kernel.finish is not None:
            raise unsupported(kernel, "a kernel without a finish region, since programs end in any order")
        buffers = [argument.type for argument in kernel.block.args if isinstance(argument.type, MemRefType)]
        pointers = [argument_type(buffer.element_type) for buffer in buffers]
        slot = [pointer_type(i64)] if self.errors else []
        types: list[Attribute] = [*pointers, *map(symbol_type, symbols), *slot]
        promise = {DIVISIBILITY: IntegerAttr(ALIGNMENT, i32)}
        promises = [promise if self.aligned and isinstance(type_, tt.PointerType) else {} for type_ in types]
        made = tt.FuncOp.make(kernel.sym_name.data, types, promises)
        made.attributes.update(self.attributes())
        made.location = kernel.location
        self.fill(made)
        return made

    def attributes(self) -> dict[str, Attribute]:
        kernel = self.kernel
        found: dict[str, Attribute] = {
            WARPS: IntegerAttr(number(kernel, WARPS), i32),
            STAGES: IntegerAttr(number(kernel, STAGES), i32),
            GRID: kernel.grid,
        }
        found.update({key: kernel.attributes[key] for key in (REGISTERS, SYMBOLS) if key in kernel.attributes})
        if kernel.errors is not None:
            found[ERRORS] = kernel.errors
        return found

    def fill(self, made: tt.FuncOp) -> None:
        kernel, count = self.kernel, len(self.kernel.symbols)
        first = len(kernel.block.args) - count
        index = i32 if number(kernel, INDEX_BITS) == 32 else i64
        ranges = {known.name: (known.low, known.high) for known in kernel.symbols}
        builder = KernelBuilder(made.block, index, {}, ranges)
        builder.values.update(zip(kernel.block.args[:first], made.block.args[:first], strict=True))
        passed = made.block.args[first : first + count]
        builder.symbols = {
            known.name: builder.cast_integer(value, index) for known, value in zip(kernel.symbols, passed, strict=True)
        }
        arguments = zip(kernel.block.args[first:], kernel.symbols, strict=True)
        builder.values.update((argument, builder.symbols[known.name]) for argument, known in arguments)
        builder.stages = number(kernel, STAGES)
        builder.grid = kernel.grid_size
        builder.slot = made.block.args[-1] if self.errors else None
        builder.describes = self.describes
        builder.rounds_results = rounds_results(kernel)
        sums = any(isinstance(op, tile.DotOp) for op in kernel.walk())
        builder.rounds_products = builder.rounds_in_place = builder.rounds_results and sums
        for op in boxes_of(kernel):
            if described(builder, op):
                describe(builder, op)  # before any loop
        builder.body(kernel.block)
        builder.append(tt.ReturnOp.make())


class KernelBuilder(ProductBuilder):
    """Emits the ops of one kernel."""

    stages: int
    grid: Expr
    slot: SSAValue | None

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.location = op.location
            emit = EMITTERS.get(type(op))
            if emit is None:
                raise unsupported(op, "an op that GPUs have")
            emit(self, op)

    def operands(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.values[value] for value in values]

    def optional(self, value: SSAValue | None) -> SSAValue | None:
        return None if value is None else self.values[value]


# -- control -----------------------------------------------------------------------------------------


def _emit_program(b: KernelBuilder, op: tile.ProgramIdOp) -> None:
    b.values[op.result] = b.cast_integer(b.add(tt.GetProgramIdOp.make()), b.index)


def _emit_grid_size(b: KernelBuilder, op: tile.GridSizeOp) -> None:
    b.values[op.result] = b.expression(b.grid, ())


def _emit_choose(b: KernelBuilder, op: tile.ChooseOp) -> None:
    """A chain of selects: the number of a program is the same in all of its threads, which therefore do not part."""
    number = b.values[op.number]
    *rest, chosen = b.operands(op.buffers)
    for position, pointer in reversed(list(enumerate(rest))):
        chosen = b.add(tt.SelectOp.make(compare(b, "eq", number, b.constant(position, number.type)), pointer, chosen))
    b.values[op.result] = chosen


def _emit_for(b: KernelBuilder, op: tile.ForOp) -> None:
    low, high = (b.expression(bound, b.operands(op.indices)) for bound in op.bounds.results)
    inits = b.operands(op.inits)
    block = Block(arg_types=[b.index, *(init.type for init in inits)])
    step = b.scalar(op.lanes, b.index)
    loop = scf.ForOp(low, high, step, inits, Region(block))
    mark_loop(op, loop)
    if not sums_products(op) and 0 < loaded_bytes(op) * (b.stages - 1) <= STAGED_BYTES:
        loop.attributes["tt.num_stages"] = IntegerAttr(b.stages, i32)
    with b.inside(block):
        b.values[op.index] = block.args[0]
        b.values.update(zip(op.carried, block.args[1:], strict=True))
        if op.mask is not None:
            lanes = b.range(0, [op.lanes])
            numbers = b.op(arith.AddiOp, b.splat(block.args[0], [op.lanes]), lanes)
            b.values[op.mask] = b.add(tt.CmpIOp.make("slt", numbers, b.splat(high, [op.lanes])))
        b.body(op.block)
    b.append(loop)
    b.values.update(zip(op.results, loop.results, strict=True))


def loaded_bytes(op: tile.ForOp) -> int:
    """What the loads of one iteration take in shared memory, where they wait if they come ahead of time."""
    loads = [inner.result.type for inner in op.block.ops if isinstance(inner, tile.LoadOp)]
    return sum(prod(tile.ops.shape_of(type_)) * element_bytes(tile.ops.element_of(type_)) for type_ in loads)


def _emit_yield(b: KernelBuilder, op: tile.YieldOp) -> None:
    b.append(scf.YieldOp(*b.operands(op.values)))


# -- memory ------------------------------------------------------------------------------------------


def pointers_of(
    b: KernelBuilder, op: BlockAccessOp, buffer: SSAValue, indices: Sequence[SSAValue], block: Attribute
) -> SSAValue:
    offset = None if op.offset == ZERO else b.expression(op.offset, b.operands(indices))
    return b.strided(b.values[buffer], offset, tile.ops.shape_of(block), op.lane_strides)


def _emit_load(b: KernelBuilder, op: tile.LoadOp) -> None:
    pointers = pointers_of(b, op, op.buffer, op.indices, op.result.type)
    element = tile.ops.element_of(op.result.type)
    b.values[op.result] = b.load(pointers, element, b.optional(op.mask), b.optional(op.other))


def _emit_gather(b: KernelBuilder, op: tile.GatherOp) -> None:
    pointers = scattered(b, op.buffer, op.offsets)
    element = tile.ops.element_of(op.result.type)
    b.values[op.result] = b.load(pointers, element, b.optional(op.mask), b.optional(op.other))


def scattered(b: KernelBuilder, buffer: SSAValue, offsets: SSAValue) -> SSAValue:
    """Pointers to elements at a block of offsets."""
    places = b.values[offsets]
    return b.add(tt.AddPtrOp.make(b.splat(b.values[buffer], shape_of(places.type)), places))


def _emit_store(b: KernelBuilder, op: tile.StoreOp) -> None:
    pointers = pointers_of(b, op, op.buffer, op.indices, op.value.type)
    store(b, op, pointers, b.values[op.value], b.optional(op.mask))


def _emit_scatter(b: KernelBuilder, op: tile.ScatterOp) -> None:
    store(b, op, scattered(b, op.buffer, op.offsets), b.values[op.value], b.optional(op.mask))


def store(
    b: KernelBuilder, op: tile.StoreOp | tile.ScatterOp, pointers: SSAValue, value: SSAValue, mask: SSAValue | None
) -> None:
    if op.combiner is None:
        b.append(tt.StoreOp.make(pointers, b.in_memory(value), mask))
        return
    element = element_of(value.type)
    kind = atomic_kind(op.combiner.data, element)
    if kind is None:
        raise unsupported(op, f"a combiner that GPUs have on {element}")
    b.append(tt.AtomicRMWOp.make(kind, pointers, value, mask))


def _emit_assert(b: KernelBuilder, op: tile.AssertOp) -> None:
    """Stores code and value as one word, which no other lane can tear; any failing lane may be the last."""
    assert b.slot is not None
    condition, value = b.values[op.condition], b.values[op.value]
    failed = b.op(arith.XOrIOp, condition, b.constant(1, condition.type))
    if op.mask is not None:
        failed = b.op(arith.AndIOp, failed, b.values[op.mask])
    wide = b.cast_integer(value, i64)
    low = b.op(arith.AndIOp, wide, b.constant((1 << ERROR_SHIFT) - 1, wide.type))
    word = b.op(arith.OrIOp, low, b.constant(op.code.value.data << ERROR_SHIFT, wide.type))
    b.append(tt.StoreOp.make(b.splat(b.slot, shape_of(word.type)), word, failed))


# -- blocks ------------------------------------------------------------------------------------------


def _emit_index(b: KernelBuilder, op: tile.IndexOp) -> None:
    value = b.expression(op.access.results[0], b.operands(op.indices))
    wanted = op.result.type
    b.values[op.result] = b.cast_integer(value, wanted) if isinstance(wanted, IntegerType) else value


def _emit_iota(b: KernelBuilder, op: tile.IotaOp) -> None:
    shape, dimension = tile.ops.shape_of(op.result.type), int(op.dimension.value.data)
    element = tile.ops.element_of(op.result.type)
    assert isinstance(element, IntegerType)
    numbers = b.cast_integer(b.add(tt.MakeRangeOp.make(shape[dimension])), element)
    b.values[op.result] = b.spread(numbers, [dimension], shape)


def _emit_broadcast(b: KernelBuilder, op: tile.BroadcastOp) -> None:
    b.values[op.result] = b.spread(b.values[op.operand], op.dim_list, tile.ops.shape_of(op.result.type))


def _emit_transpose(b: KernelBuilder, op: tile.TransposeOp) -> None:
    b.values[op.result] = b.add(tt.TransOp.make(b.values[op.operand], (1, 0)))


def _emit_nothing(b: KernelBuilder, op: tile.PrefetchOp) -> None:
    """A hint that GPUs need not: other warps run while one waits."""


EMITTERS: dict[type[Operation], Callable[[KernelBuilder, Any], None]] = {
    **ARITHMETIC,
    **PRODUCTS,
    **QUOTIENTS,
    **SIGMOIDS,
    tile.ProgramIdOp: _emit_program,
    tile.GridSizeOp: _emit_grid_size,
    tile.ChooseOp: _emit_choose,
    tile.ForOp: _emit_for,
    tile.YieldOp: _emit_yield,
    tile.LoadOp: _emit_load,
    tile.GatherOp: _emit_gather,
    tile.StoreOp: _emit_store,
    tile.ScatterOp: _emit_scatter,
    tile.AssertOp: _emit_assert,
    tile.IndexOp: _emit_index,
    tile.IotaOp: _emit_iota,
    tile.BroadcastOp: _emit_broadcast,
    tile.TransposeOp: _emit_transpose,
    tile.PrefetchOp: _emit_nothing,
}
"""Op of a tile kernel → what emits it; those of `ARITHMETIC` know of no kernel."""


class ConvertTileToTriton(ModulePass):
    """Make every tile.kernel a tt.func that Triton compiles."""

    name = "convert-tile-to-tt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [inner for inner in op.body.block.ops if isinstance(inner, tile.KernelOp)]:
            converter = FunctionConverter(kernel)
            made = converter.convert()
            op.body.block.insert_op_before(made, kernel)
            if converter.describes and any(is_describable(box) for box in boxes_of(kernel)):
                op.body.block.insert_op_before(unaligned(kernel, made), kernel)
            Rewriter.erase_op(kernel)


def unaligned(kernel: tile.KernelOp, made: tt.FuncOp) -> tt.FuncOp:
    """The function for addresses that descriptors cannot hold; the other one names it."""
    plain = FunctionConverter(kernel, aligned=False).convert()
    plain.properties["sym_name"] = made.attributes[UNALIGNED] = StringAttr(f"{made.sym_name.data}_unaligned")
    return plain


__all__ = ["ConvertTileToTriton"]

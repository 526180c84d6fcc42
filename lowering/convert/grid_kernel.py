"""Makes the tile kernel of a loop kernel for a GPU: a grid of programs on blocks of several axes."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from ...ir import loop, tile
from ...ir.expr import Expr
from ...ir.memory import size_of
from ...ir.shapes import SymbolRange, sizes_of, strides_of, symbol_ranges
from ...ir.target import Target
from ...ir.tile.ops import INDEX_BITS, REGISTERS, STAGES, WARPS, buffer_type
from ..schedule.grid_plan import GridPlan, GridPlanner
from ..schedule.model import KernelModel
from .grid_builder import GridBuilder, Layout
from .grid_nests import GridNests
from .nests import ops_before

SMALL = 1 << 31
"""Elements below which every offset into a tensor fits in 32 bits."""


class GridConverter:
    """Makes one tile kernel for a GPU."""

    def __init__(self, kernel: loop.KernelOp, name: str, target: Target):
        self.kernel = kernel
        self.name = name
        self.model = KernelModel(kernel)
        self.plan = self.choose(target)
        self.types = [*(value.type for value in self.model.inputs), *kernel.result_types]

    def choose(self, target: Target) -> GridPlan:
        return GridPlanner(self.model, target).plan()

    def convert(self) -> tuple[tile.KernelOp, tuple[str, ...]]:
        """The kernel, and the symbols whose values it takes."""
        symbols = self.symbols()
        buffers = [buffer_type(loop.scalar_type(type_.element_type)) for type_ in self.types]  # type: ignore[attr-defined]
        made = tile.KernelOp.make(self.name, buffers, self.plan.grid, symbols)
        made.location = self.kernel.location
        made.attributes.update({key: IntegerAttr(value, i32) for key, value in self.wishes().items()})
        builder = self.builder(made.block)
        self.emit(builder)
        erase_dead(made.block)
        if builder.errors:
            made.set_errors(builder.errors)
        return made, tuple(known.name for known in symbols)

    def wishes(self) -> dict[str, int]:
        """What the schedule asks of the GPU."""
        found = {WARPS: self.plan.warps, STAGES: self.plan.stages, INDEX_BITS: self.index_bits()}
        return found if self.plan.registers is None else {**found, REGISTERS: self.plan.registers}

    def symbols(self) -> list[SymbolRange]:
        names = self.model.symbols | self.plan.grid.symbols
        for type_ in self.types:
            names |= {name for expr in (*sizes_of(type_), *strides_of(type_)) for name in expr.symbols}
        known = symbol_ranges(self.kernel)
        ordered = sorted(names, key=lambda name: (len(name), name))
        return [known.get(name, SymbolRange(name, 0)) for name in ordered]

    def index_bits(self) -> int:
        """32 where every tensor, rounded up to whole blocks, is small for all values of the symbols."""
        ranges = {name: known.high for name, known in symbol_ranges(self.kernel).items()}
        spans = [span_of(sizes_of(type_), strides_of(type_), ranges) for type_ in self.types]
        return 32 if all(span is not None and 4 * span < SMALL for span in spans) else 64

    def builder(self, block: Block) -> GridBuilder:
        arguments = iter(block.args)
        places: dict[SSAValue, Layout] = {
            value: (next(arguments), strides_of(value.type)) for value in self.model.inputs
        }
        constant = {buffer for buffer, _ in places.values()}
        for destination, result in zip(self.kernel.block.args, self.kernel.results, strict=True):
            places[destination] = (next(arguments), strides_of(result.type))
        return GridBuilder(block, places, constant, i32 if self.index_bits() == 32 else i64, self.model.sizes)

    def emit(self, builder: GridBuilder) -> None:
        nests = GridNests(builder, self.model, self.plan)
        if self.plan.nest is None:
            nests.body(self.kernel.block)
            return
        program = builder.add(tile.ProgramIdOp.make())
        for op in ops_before(self.plan.nest):
            nests.op(op)
        nests.grid(self.plan.nest, program)


def span_of(sizes: tuple[Expr, ...], strides: tuple[Expr, ...], highs: Mapping[str, int | None]) -> int | None:
    """The most elements that a tensor spans; None if a symbol has no upper bound."""
    used = {name for expr in (*sizes, *strides) for name in expr.symbols}
    known = {name: high for name in used if (high := highs.get(name)) is not None}
    if len(known) < len(used):
        return None
    return 1 + sum(
        max(size_of(size, known), 1) * abs(size_of(stride, known)) for size, stride in zip(sizes, strides, strict=True)
    )


def erase_dead(block: Block) -> None:
    """Removes ops without effects whose results nobody uses, from the end on."""
    for op in list(block.ops)[::-1]:
        for region in op.regions:
            erase_dead(region.block)
        if is_trivially_dead(op):
            Rewriter.erase_op(op)


__all__ = ["GridConverter"]

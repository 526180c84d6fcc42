"""Makes the tile kernel of a product of matrices for a GPU.

Each program sums up tiles of the result from boxes of the factors; what follows the sum runs on the parts of a tile
that are in registers, as the points of any other kernel do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from ...ir import loop, tile
from ...ir.dtypes import FLOAT32
from ...ir.errors import LoweringError
from ...ir.expr import ZERO, Expr, ceildiv, const, delinearize, dim, floordiv, minimum, mod
from ...ir.product_schedule import ProductSchedule
from ...ir.target import Target
from ...ir.tile.ops import DESCRIPTORS, INDEX, element_of
from ..analysis.contractions import Contraction
from ..schedule.product_plan import GROUP, Array, ProductPlan, array_of, plan_product
from .grid_builder import Axis, GridBuilder, Run
from .grid_kernel import GridConverter
from .grid_nests import GridNests
from .nests import ops_before

ROWS, COLUMNS = range(2)
"""The axes of a tile."""


@dataclass(frozen=True)
class Place:
    """An index as an expression over one value of a program: `value * width + shift`."""

    value: SSAValue
    width: int = 1
    shift: int = 0


class ProductNests(GridNests):
    """Emits the body of a product, once for each part of a tile."""

    def __init__(self, converter: ProductConverter, builder: GridBuilder):
        super().__init__(builder, converter.model, converter.plan)
        self.product = converter.plan
        contraction = converter.contraction
        self.contraction = contraction
        self.extents = contraction.extents
        self.places: dict[SSAValue, Place] = {}
        self.strides = converter.model.strides

    # -- tiles -----------------------------------------------------------------------------------

    def emit(self, program: SSAValue) -> None:
        """The tiles of a program."""
        plan, builder = self.product, self.builder
        if not plan.is_persistent:
            self.tile(program)
            return
        count = ceildiv(plan.tiles - dim(0), const(plan.programs))
        made = tile.ForOp.make([program], ZERO, count)
        builder.append(made)
        with builder.inside(made.block):
            number = tile.IndexOp.make([made.index, program], dim(0) * plan.programs + dim(1), INDEX)
            self.tile(builder.add(number))
            builder.append(tile.YieldOp.make())

    def tile(self, number: SSAValue) -> None:
        """One tile of the result, by its number: its sum, and then what follows it, in parts."""
        builder, plan, nest = self.builder, self.product, self.contraction.nest
        row, column = self.locate(number)
        schedule = plan.schedule
        self.places[nest.indices[plan.row]] = Place(row, schedule.rows)
        self.places[nest.indices[plan.column]] = Place(column, schedule.columns)
        rows = self.run_along(nest.indices[plan.row], ROWS, schedule.rows, nest.sizes[plan.row])
        width = schedule.columns // schedule.parts
        for position, part in enumerate(self.parts(self.sum(), schedule.parts)):
            self.places[nest.indices[plan.column]] = Place(column, schedule.columns, position * width)
            columns = self.run_along(nest.indices[plan.column], COLUMNS, width, nest.sizes[plan.column])
            builder.over(part, (rows.axis, columns.axis))
            with (
                builder.running(nest.indices[plan.row], rows),
                builder.running(nest.indices[plan.column], columns),
            ):
                builder.values[SSAValue.get(self.contraction.reduction)] = part
                for op in nest.block.ops:
                    if op is not self.contraction.reduction:
                        self.op(op)

    def locate(self, number: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The row and column of a tile among tiles, by its number; binds the indices of the dims outside of it.

        Tiles go down `GROUP` rows before they go on to the next column.
        """
        builder, plan, nest = self.builder, self.product, self.contraction.nest
        down, across = plan.tile_counts
        rest = dim(0)
        if plan.outer:
            *indices, rest = delinearize(dim(0), [*(nest.sizes[k] for k in plan.outer), down * across])
            for k, expr in zip(plan.outer, indices, strict=True):
                builder.values[nest.indices[k]] = self.index([number], expr)
                self.places[nest.indices[k]] = Place(builder.values[nest.indices[k]])
        first = self.index([number], floordiv(rest, across * GROUP) * GROUP)
        within = self.index([number], mod(rest, across * GROUP))
        height = minimum(down - dim(0), const(GROUP))
        if down.is_constant and (down.constant % GROUP == 0 or down.constant < GROUP):
            height = const(min(GROUP, down.constant))
        row = self.index([first, within], dim(0) + mod(dim(1), height))
        return row, self.index([first, within], floordiv(dim(1), height))

    def index(self, values: Sequence[SSAValue], expr: Expr) -> SSAValue:
        return self.builder.add(tile.IndexOp.make(values, expr, INDEX))

    def run_along(self, index: SSAValue, position: int, width: int, size: Expr) -> Run:
        """The run of an index along an axis of the blocks of a part, from its place on."""
        place = self.places[index]
        base = self.index([place.value], dim(0) * place.width + place.shift)
        run = Run(Axis(position, width), base, None)
        if size.is_constant and size.constant % width == 0:
            return run
        return replace(run, mask=self.builder.lanes_below(run, size))

    # -- sums ------------------------------------------------------------------------------------

    def sum(self) -> SSAValue:
        """The tile of products, in f32. Factors of f32 are summed up step by step from zero, so that no chain of
        additions is long: matrix units, which multiply others, round their sums less often than lanes do."""
        builder, schedule = self.builder, self.product.schedule
        zero = builder.constant(0.0, FLOAT32)
        start = builder.add(tile.BroadcastOp.make(zero, [schedule.rows, schedule.columns], ()))
        count = ceildiv(self.extents[self.contraction.depth], schedule.depth)
        made = tile.ForOp.make((), ZERO, count, 1, [start])
        builder.append(made)
        (carried,) = made.carried
        with builder.inside(made.block):
            self.places[self.contraction.depth] = Place(made.index, schedule.depth)
            row, column = (self.contraction.nest.indices[k] for k in (self.product.row, self.product.column))
            lhs = self.factor(self.contraction.lhs, row, self.contraction.depth, schedule.rows, schedule.depth)
            rhs = self.factor(self.contraction.rhs, self.contraction.depth, column, schedule.depth, schedule.columns)
            if element_of(lhs.type) == FLOAT32:
                total = builder.binary(arith.AddfOp, carried, builder.add(tile.DotOp.make(lhs, rhs, start)))
            else:
                total = builder.add(tile.DotOp.make(lhs, rhs, carried))
            builder.append(tile.YieldOp.make([total]))
        return SSAValue.get(made)

    def factor(self, read: loop.ReadOp, first: SSAValue, second: SSAValue, rows: int, columns: int) -> SSAValue:
        """The box of a factor that this step needs, as it lies in memory, and turned if need be."""
        array = array_of(read, self.strides(read.source), self.extents, (first, second))
        if array is None:
            raise LoweringError("loop.read", expected="a factor of a product that is an array", got=str(read.map))
        turned = array.dims[-1].index is first
        shape = (columns, rows) if turned else (rows, columns)
        buffer, _ = self.builder.places[read.source]
        values, places = self.box_places(array)
        sizes, strides = [one.size for one in array.dims], [one.stride for one in array.dims]
        box = self.builder.add(tile.LoadBoxOp.make(buffer, values, places, sizes, strides, shape, array.start))
        return self.builder.add(tile.TransposeOp.make(box)) if turned else box

    def box_places(self, array: Array) -> tuple[list[SSAValue], list[Expr]]:
        """Where a box begins along each dim of an array."""
        found = [self.places[one.index] for one in array.dims]
        places = [dim(k) * place.width + place.shift for k, place in enumerate(found)]
        return [place.value for place in found], places

    def parts(self, value: SSAValue, count: int) -> list[SSAValue]:
        """A block cut into parts along its columns, in order."""
        if count == 1:
            return [value]
        made = tile.HalvesOp.make(value)
        self.builder.append(made)
        return [part for half in made.results for part in self.parts(half, count // 2)]

    # -- results ---------------------------------------------------------------------------------

    def op(self, op: Operation) -> None:
        if isinstance(op, loop.WriteOp):
            self.write(op)
        else:
            super().op(op)

    def write(self, op: loop.WriteOp) -> None:
        """A whole box where rows and columns of the destination are those of the tile."""
        nest, builder = self.contraction.nest, self.builder
        row, column = nest.indices[self.product.row], nest.indices[self.product.column]
        array = None
        if op.target in builder.places and op.combiner is None:
            array = array_of(op, builder.places[op.target][1], self.extents, (row, column))
        if array is None or array.dims[-1].index is not column or not array.is_contiguous:
            super().write(op)
            return
        value = builder.lift(builder.values[op.value], tuple(run.axis for run in builder.active))
        values, places = self.box_places(array)
        sizes, strides = [one.size for one in array.dims], [one.stride for one in array.dims]
        buffer, _ = builder.places[op.target]
        builder.append(tile.StoreBoxOp.make(value, buffer, values, places, sizes, strides, array.start))


class ProductConverter(GridConverter):
    """Makes the tile kernel of one product, under a schedule."""

    plan: ProductPlan

    def __init__(
        self, kernel: loop.KernelOp, name: str, target: Target, contraction: Contraction, schedule: ProductSchedule
    ):
        self.contraction = contraction
        self.schedule = schedule
        super().__init__(kernel, name, target)

    def choose(self, target: Target) -> ProductPlan:
        return plan_product(self.model, self.contraction, self.schedule, target)

    def emit(self, builder: GridBuilder) -> None:
        nests = ProductNests(self, builder)
        program = builder.add(tile.ProgramIdOp.make())
        for op in ops_before(self.contraction.nest):
            nests.op(op)
        nests.emit(program)

    def convert(self) -> tuple[tile.KernelOp, tuple[str, ...]]:
        made, symbols = super().convert()
        if self.schedule.descriptors:
            made.attributes[DESCRIPTORS] = UnitAttr()
        return made, symbols


__all__ = ["ProductConverter"]

"""Walks two dims in square tiles where some tensor is contiguous along one of them and the lanes run along the other.

What the lanes would read in strides comes to scratch first: squares of a few lanes are loaded along the contiguous
dim, transposed in registers, and stored for the body to read as it likes. Squares at the end of a dim overlap the ones
before, so none needs a mask.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...ir import loop, tile
from ...ir.expr import ONE, const, dim, linearize, minimum
from ...ir.tile.ops import INDEX
from ..schedule.model import Access
from ..schedule.plan import PACKED_TILE, SIDE, ParallelPlan
from .block_builder import Buffer, Place, new_index
from .nests import Body, NestEmitter, Span

ROWS, PITCH = (extent + SIDE for extent in PACKED_TILE)
"""Of a tile in scratch; a square at the end of a dim may begin before its tile does."""


class TiledEmitter:
    """Emits the loops of one plan over the crossed dim and the lanes."""

    def __init__(self, plan: ParallelPlan, emitter: NestEmitter, lanes: Span):
        assert plan.crossed is not None
        assert plan.lane is not None
        self.plan = plan
        self.emitter = emitter
        self.builder = emitter.builder
        self.row, self.column = plan.nest.indices[plan.crossed], plan.nest.indices[plan.lane]
        rows = Span.whole(self.row, plan.nest.sizes[plan.crossed])
        self.tiles, self.inside = zip(rows.cut(plan.tile[0]), lanes.cut(plan.tile[1]), strict=True)
        self.starts = [span.index for span in self.tiles]

    def emit(self, body: Body) -> Sequence[SSAValue]:
        """Down the rows of one column of tiles after the other."""

        def tile_body(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for access in self.plan.packed:
                self.pack(access)
            return self.emitter.loops(self.inside, (), body)

        return self.emitter.loops(self.tiles[::-1], (), tile_body)

    def pack(self, access: Access) -> None:
        """Copies the tile of one access to scratch, and has the body read it there."""
        read = access.op
        assert isinstance(read, loop.ReadOp)
        scratch = self.builder.add(tile.ScratchOp.make(read.result.type, ROWS * PITCH))
        squares = [Span(new_index(), span.low, span.high, span.indices, stride=SIDE) for span in self.inside]

        def square(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.copy_square(access, scratch, [span.index for span in squares])
            return ()

        self.emitter.loops(squares, (), square)
        self.builder.buffers[read.result] = Buffer(scratch, (const(PITCH), ONE))
        self.builder.moved[read] = Place(read.result, self.in_scratch((self.row, self.column)), IN_SCRATCH)

    def in_scratch(self, indices: Sequence[SSAValue]) -> list[SSAValue]:
        """The indices over which `IN_SCRATCH` is written."""
        return [indices[0], self.starts[0], indices[1], self.starts[1]]

    def copy_square(self, access: Access, scratch: SSAValue, starts: Sequence[SSAValue]) -> None:
        """Copies the square that begins at `starts`, or as much before as keeps it inside."""
        builder, values, sizes = self.builder, self.builder.values, self.plan.nest.sizes
        assert self.plan.crossed is not None
        assert self.plan.lane is not None
        for index, start, position in zip(
            (self.row, self.column), starts, (self.plan.crossed, self.plan.lane), strict=True
        ):
            first = minimum(dim(0), sizes[position] - SIDE)
            values[index] = builder.add(tile.IndexOp.make([values[start]], first, INDEX))
        stride = access.stride(self.column)
        assert stride is not None
        buffer, address = builder.locate(access.tensor, access.indices, access.op.map.results)
        square = tile.LoadOp.make(buffer.value, address.indices, address.offset, [SIDE, SIDE], [ONE, stride])
        place = linearize(IN_SCRATCH, (const(PITCH), ONE))
        corner = self.emitter.resolved(self.in_scratch((self.row, self.column)))
        builder.append(tile.StoreOp.make(builder.add(square), scratch, corner, place, [const(PITCH), ONE]))
        self.fetch_below(access, values[self.column])

    def fetch_below(self, access: Access, first: SSAValue) -> None:
        """Fetches the square in the next rows, a line for each of its columns."""

        def column(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            buffer, address = self.builder.locate(access.tensor, access.indices, access.op.map.results)
            below = address.offset + SIDE
            self.builder.append(tile.PrefetchOp.make(buffer.value, address.indices, below, SIDE))
            return ()

        if self.emitter.streams:
            self.emitter.loops([Span(self.column, dim(0), dim(0) + SIDE, (first,))], (), column)


IN_SCRATCH = (dim(0) - dim(1) + SIDE, dim(2) - dim(3) + SIDE)
"""Row and column in scratch, by row, first row of the tile, column, first column of the tile."""

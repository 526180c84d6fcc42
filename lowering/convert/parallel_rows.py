"""Emits the loops of a parallel plan: one program's rows, the loops inside of a row, and lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...ir import tile
from ...ir.expr import ONE, Expr, delinearize, dim, floordiv, minimum, mod
from ...ir.tile.ops import INDEX
from ..schedule.plan import ParallelPlan
from .block_builder import new_index
from .nests import NestEmitter, Span
from .square_tiles import TiledEmitter


class RowEmitter:
    """Emits the rows of the running program, whose number is `program`."""

    def __init__(self, plan: ParallelPlan, emitter: NestEmitter, program: SSAValue):
        self.plan = plan
        self.emitter = emitter
        self.program = program
        self.row = new_index()  # the number of a row among all rows

    @property
    def lane_chunk(self) -> Expr:
        """Which chunk of the lanes a program takes."""
        return mod(dim(0), self.plan.lane_chunks) if self.plan.prefix else dim(0)

    def span(self) -> Span:
        """The loop over the program's rows."""
        plan = self.plan
        low = floordiv(dim(0), plan.lane_chunks) * plan.rows
        high = minimum(low + plan.rows, plan.row_count) if plan.rows != ONE else low + 1
        return Span(self.row, low, high, (self.program,))

    def emit(self) -> None:
        if self.plan.prefix:
            self.emit_rows(self.span())
        else:
            self._inside(())

    def emit_rows(self, span: Span) -> None:
        """The rows of one loop."""

        def row(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._bind_prefix()
            return self._inside(())

        self.emitter.loops([span], (), row)

    def _bind_prefix(self) -> None:
        """The indices of the prefix dims, from the number of the row."""
        plan, builder = self.plan, self.emitter.builder
        row = builder.values[self.row]
        for k, expr in zip(plan.prefix, delinearize(dim(0), [plan.nest.sizes[k] for k in plan.prefix]), strict=True):
            whole = expr == dim(0)
            index = row if whole else builder.add(tile.IndexOp.make([row], expr, INDEX))
            builder.values[plan.nest.indices[k]] = index

    def _inside(self, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        nest = self.plan.nest
        inner = [Span.whole(nest.indices[k], nest.sizes[k]) for k in self.plan.inner]
        return self.emitter.loops(inner, (), self._lanes)

    def _lanes(self, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if self.plan.lane is None:
            return self._body(())
        span = self._lane_span()
        if self.plan.crossed is None:
            return self.emitter.loops([span], (), self._body)
        return TiledEmitter(self.plan, self.emitter, span).emit(self._body)

    def _body(self, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.emitter.body(self.plan.nest.block)
        return ()

    def _lane_span(self) -> Span:
        plan = self.plan
        assert plan.lane is not None
        index, size = plan.nest.indices[plan.lane], plan.nest.sizes[plan.lane]
        if plan.chunk is None:
            return Span.whole(index, size, plan.width)
        low = self.lane_chunk * plan.chunk
        return Span(index, low, minimum(low + plan.chunk, size), (self.program,), plan.width)

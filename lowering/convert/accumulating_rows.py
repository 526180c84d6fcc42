"""Emits the two regions of a kernel whose rows add to columns: what one program collects, and their combination."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ...ir import loop, tile
from ...ir.combiners import Combiner
from ...ir.expr import ZERO, contiguous_strides, dim, linearize, minimum
from ..schedule.plan import ROW_BLOCK, AccumulatingPlan
from .block_builder import Address, Buffer, new_index
from .nests import NestEmitter, Span
from .parallel_rows import RowEmitter


@dataclass(frozen=True)
class Collector:
    """A local into which rows combine, the lanes that its last dim is gone over by, and its copies: one for each
    program in `partials`, and one in `blocks`."""

    local: loop.LocalOp
    combiner: Combiner
    width: int
    partials: SSAValue
    blocks: SSAValue


class AccumulationEmitter:
    """Emits the two regions.

    A few rows are collected in a program's copy in `blocks`, which is then combined into that in `partials`, so that
    no element takes part in many additions one after the other.
    """

    def __init__(self, plan: AccumulatingPlan, emitter: NestEmitter, temporaries: Sequence[SSAValue]):
        self.plan = plan
        self.emitter = emitter
        self.builder = emitter.builder
        count = len(plan.parts.collected)
        partials, blocks = temporaries[:count], temporaries[count:]
        collected = plan.parts.collected.items()
        self.collectors = [
            Collector(local, combiner, width, partial, block)
            for (local, combiner), width, partial, block in zip(collected, plan.widths, partials, blocks, strict=True)
        ]

    def chunk(self) -> None:
        """The body: one program's rows."""
        parts = self.plan.parts
        self.emitter.ops(parts.scalars)
        program = self.program = self.builder.add(tile.ProgramIdOp.make())
        self.builder.values[program] = program
        with self.collecting_in([each.partials for each in self.collectors], program):
            self.emitter.ops(parts.clear)
        rows = RowEmitter(self.plan.laid, self.emitter, program)
        own = rows.span()
        bounded = replace(own, high=minimum(own.high, self.plan.laid.row_count))  # there may be a program and no row
        outer, piece = bounded.cut(ROW_BLOCK)

        def block(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            with self.collecting_in([each.blocks for each in self.collectors], program):
                self.emitter.ops(parts.clear)
                rows.emit_rows(piece)
            for each in self.collectors:
                self.along(each, self.add_block)
            return ()

        self.emitter.loops([outer], (), block)

    def finish(self) -> None:
        """The finish region: combines the programs' copies into the first one, and goes on from there."""
        parts = self.plan.parts
        self.emitter.ops(parts.scalars)
        for each in self.collectors:
            self.along(each, self.add_programs)
        with self.collecting_in([each.partials for each in self.collectors], None):
            self.emitter.ops(parts.after)

    @contextmanager
    def collecting_in(self, copies: Sequence[SSAValue], program: SSAValue | None) -> Iterator[None]:
        """Has the locals lie in the copies of a program; None is the first."""
        buffers = self.builder.buffers
        for each, copy in zip(self.collectors, copies, strict=True):
            size, *strides = contiguous_strides(self.plan.copies(each.local))
            own = (ZERO, ()) if program is None else (dim(0) * size, (program,))
            buffers[each.local.buffer] = Buffer(copy, tuple(strides), *own)
        yield
        for each in self.collectors:
            del buffers[each.local.buffer]

    # -- combining -------------------------------------------------------------------------------

    def along(self, each: Collector, body: Callable[[Collector, Sequence[SSAValue]], None]) -> None:
        """Runs a body for every element of a local, given its indices."""
        *outer, last = [(new_index(), size) for size in each.local.sizes]
        spans = [*(Span.whole(*one) for one in outer), Span.whole(*last, each.width)]

        def element(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(each, [span.index for span in spans])
            return ()

        self.emitter.loops(spans, (), element)

    def address(self, each: Collector, program: SSAValue, indices: Sequence[SSAValue]) -> Address:
        strides = contiguous_strides(self.plan.copies(each.local))
        offset = linearize([dim(k) for k in range(len(strides))], strides)
        return self.builder.address([program, *indices], offset)

    def add_block(self, each: Collector, indices: Sequence[SSAValue]) -> None:
        """What the last rows have added, into the program's partial result."""
        address = self.address(each, self.program, indices)
        self.builder.store(self.builder.load(each.blocks, address), each.partials, address, each.combiner.name)

    def add_programs(self, each: Collector, indices: Sequence[SSAValue]) -> None:
        """What all programs have collected, into the copy of the first."""
        chunk = new_index()
        count = self.builder.add(tile.GridSizeOp.make())
        element = loop.scalar_type(each.local.buffer.type.element_type)

        def load() -> Sequence[SSAValue]:
            return [self.builder.load(each.partials, self.address(each, chunk, indices))]

        start = self.builder.identities([each.combiner], [element], self.builder.width)
        copies = Span(chunk, ZERO, dim(0), (count,))
        (total,) = self.emitter.combine_copies([each.combiner], start, copies, load)
        offset = linearize([dim(k) for k in range(len(indices))], contiguous_strides(self.plan.copies(each.local))[1:])
        self.builder.store(total, each.partials, self.builder.address(indices, offset))

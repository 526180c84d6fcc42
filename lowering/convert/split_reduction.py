"""Emits the two regions of a split reduction: partial results of one chunk, and their combination."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from ...ir import tile
from ...ir.expr import ZERO, Expr, contiguous_strides, dim, linearize, minimum
from ..schedule.plan import ROW_BLOCK, SplitPlan
from .block_builder import Address, new_index
from .nests import NestEmitter, Span, combiners_of, ops_after, ops_before


class SplitEmitter:
    """Emits the two regions of a split reduction."""

    def __init__(self, plan: SplitPlan, emitter: NestEmitter, partials: Iterable[SSAValue]):
        self.plan = plan
        self.emitter = emitter
        self.builder = emitter.builder
        self.partials = list(partials)[: len(plan.reduction.results)]
        self.indices = [] if plan.nest is None else list(plan.nest.indices)
        self.strides = contiguous_strides((plan.grid, *plan.outer_sizes))

    @property
    def before(self) -> list[Operation]:
        """Scalars of the kernel that stand before the parallel nest around the reduction."""
        return [] if self.plan.nest is None else ops_before(self.plan.nest)

    def chunk(self) -> None:
        """The body: one program's partial results."""
        self.emitter.ops(self.before)
        self.program = self.builder.add(tile.ProgramIdOp.make())
        low = dim(0) * self.plan.length
        bounds = low, minimum(low + self.plan.length, self.plan.reduction.sizes[self.plan.position])
        if self.plan.lane is None:
            self.emitter.loops(self.outer_spans(), (), lambda _: self._registers(*bounds))
        else:
            self.emitter.loops(self.outer_spans(), (), lambda _: self._rows(*bounds))

    def finish(self) -> None:
        """The finish region: combines the partial results and goes on from there."""
        self.emitter.ops(self.before)
        spans = self.outer_spans()
        if self.plan.lane is not None:
            spans.append(self.lane_span())
        self.emitter.loops(spans, (), lambda _: self._combine())

    def outer_spans(self) -> list[Span]:
        sizes = self.plan.outer_sizes
        return [Span.whole(self.indices[k], size) for k, size in enumerate(sizes) if k != self.plan.lane]

    def lane_span(self) -> Span:
        assert self.plan.lane is not None
        return Span.whole(self.indices[self.plan.lane], self.plan.outer_sizes[self.plan.lane], self.plan.width)

    def reduction_spans(self, low: Expr, high: Expr, indices: tuple[SSAValue, ...]) -> list[Span]:
        """The loops of the reduction, its split dim between the given bounds."""
        spans = self.emitter.spans(self.plan.reduction)
        whole = spans[self.plan.position]
        spans[self.plan.position] = Span(whole.index, low, high, indices, whole.width)
        return spans

    def address(self, chunk: SSAValue) -> Address:
        """Where the partial result of a chunk lies for the current outer indices."""
        offset = linearize([dim(k) for k in range(len(self.strides))], self.strides)
        self.builder.values[chunk] = chunk
        return self.builder.address([chunk, *self.indices], offset)

    def load(self, chunk: SSAValue) -> list[SSAValue]:
        address = self.address(chunk)
        return [self.builder.load(partial, address) for partial in self.partials]

    def store(self, chunk: SSAValue, values: Sequence[SSAValue]) -> None:
        address = self.address(chunk)
        for partial, value in zip(self.partials, values, strict=True):
            self.builder.store(value, partial, address)

    def _registers(self, low: Expr, high: Expr) -> Sequence[SSAValue]:
        """Accumulates in registers, for results that do not run along lanes."""
        reduction = self.plan.reduction
        self.emitter.ops(ops_before(reduction))
        spans = self.reduction_spans(low, high, (self.program,))
        results = self.emitter.accumulate(reduction, spans)
        self.emitter.bind_reduced(reduction, results, any(span.width > 1 for span in spans))
        self.store(self.program, self.emitter.values(reduction.results))
        return ()

    def _rows(self, low: Expr, high: Expr) -> Sequence[SSAValue]:
        """Accumulates in the partial results themselves, a few rows at a time, so that memory is read in order."""
        reduction = self.plan.reduction
        start = new_index()
        blocks = Span(start, low, high, (self.program,), stride=ROW_BLOCK)
        self.emitter.loops([self.lane_span()], (), lambda _: self._clear())

        def lanes(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.emitter.ops(ops_before(reduction))
            end = minimum(dim(0) + ROW_BLOCK, high.substitute_dims([dim(1)]))
            spans = self.reduction_spans(dim(0), end, (start, self.program))
            block = self.emitter.fold(reduction, spans, self.emitter.accumulators(reduction, spans))
            partial = self.load(self.program)
            self.store(self.program, self.builder.combine(combiners_of(reduction), partial, block))
            return ()

        self.emitter.loops([blocks, self.lane_span()], (), lanes)
        return ()

    def _clear(self) -> Sequence[SSAValue]:
        self.store(self.program, self.emitter.accumulators(self.plan.reduction, ()))
        return ()

    def _combine(self) -> Sequence[SSAValue]:
        reduction = self.plan.reduction
        self.emitter.ops(ops_before(reduction))
        chunk = new_index()
        count = self.builder.add(tile.GridSizeOp.make())

        copies = Span(chunk, ZERO, dim(0), (count,))
        identities = self.emitter.accumulators(reduction, ())
        results = self.emitter.combine_copies(
            combiners_of(reduction), identities, copies, lambda: self.load(self.builder.values[chunk])
        )
        self.builder.values.update(zip(reduction.results, results, strict=True))
        self.emitter.ops(ops_after(reduction))
        return ()

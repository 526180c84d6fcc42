"""Turns nests of the loop level into `tile.for` loops, along lanes where the schedule says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...ir import loop, tile
from ...ir.combiners import COMBINERS, Combiner
from ...ir.expr import ONE, ZERO, Expr, contiguous_strides, dim, linearize, minimum, product
from ...ir.tile.ops import INDEX, element_of
from ..analysis.accesses import is_leaf
from ..analysis.sizes import element_bytes
from ..loop.hoist_invariants import is_pure
from ..schedule.choose import own_lane
from ..schedule.model import KernelModel, local_strides
from ..schedule.prefetch import Stream
from .block_builder import BlockBuilder, Buffer, Lane, new_index

SCRATCH_BYTES = 128 * 1024
"""The most that a program keeps in scratch per local."""

RUN_LENGTH = 8
"""The fewest additions into one float accumulator before it is added to another one, so that errors stay small."""

COPIES_AT_ONCE = 8
"""Copies that programs leave of a sum which are added up before they are added to others, for the same reason."""

Body = Callable[[Sequence[SSAValue]], Sequence[SSAValue]]


@dataclass(frozen=True)
class Span:
    """One loop to make: the loop index it runs and its bounds over `indices`, which are loop indices or tile values.

    It advances by `width` lanes at a time or, where no lanes run, by `stride`.
    """

    index: SSAValue
    low: Expr
    high: Expr
    indices: tuple[SSAValue, ...] = ()
    width: int = 1
    stride: int = 1

    @staticmethod
    def whole(index: SSAValue, size: Expr, width: int = 1) -> Span:
        return Span(index, ZERO, size, (), width)

    def cut(self, length: int) -> tuple[Span, Span]:
        """A loop over pieces of that length, and the loop over one piece."""
        start = new_index()  # a name for where a piece starts
        high = self.high.substitute_dims([dim(1 + k) for k in range(len(self.indices))])
        piece = Span(self.index, dim(0), minimum(dim(0) + length, high), (start, *self.indices), self.width)
        return Span(start, self.low, self.high, self.indices, stride=length), piece


class NestEmitter:
    """Emits bodies of a loop kernel through a block builder."""

    def __init__(
        self,
        builder: BlockBuilder,
        model: KernelModel,
        width: Callable[[loop.NestOp, int], int],
        streams: Mapping[Block, Sequence[Stream]],
    ):
        self.builder = builder
        self.model = model
        self.width = width
        self.streams = streams

    # -- bodies ----------------------------------------------------------------------------------

    def ops(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            handler = _NEST_HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            elif not isinstance(op, loop.YieldOp):
                self.builder.emit(op)

    def body(self, block: Block, done: Collection[Operation] = ()) -> None:
        self.ops([op for op in block.ops if op not in done])
        for stream in self.streams.get(block, ()):
            self.builder.prefetch(stream)

    def values(self, operands: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.builder.operand(operand) for operand in operands]

    # -- loops -----------------------------------------------------------------------------------

    def loops(self, spans: Sequence[Span], inits: Sequence[SSAValue], body: Body) -> Sequence[SSAValue]:
        """Nested loops over the spans, carrying values through all of them."""
        if not spans:
            return body(inits)
        first, *rest = spans
        if first.width == 1 and first.high - first.low == ONE:
            position = tile.IndexOp.make(self.resolved(first.indices), first.low, INDEX)
            self.builder.values[first.index] = self.builder.add(position)
            return self.loops(rest, inits, body)
        masked = first.width > 1
        step = first.width if masked else first.stride
        made = tile.ForOp.make(self.resolved(first.indices), first.low, first.high, step, inits, masked=masked)
        self.builder.append(made)
        with self.builder.inside(made.block):
            if masked:
                with self.builder.along(Lane(first.index, made.index, first.width, made.mask)):
                    results = self.loops(rest, made.carried, body)
            else:
                self.builder.values[first.index] = made.index
                results = self.loops(rest, made.carried, body)
            self.builder.append(tile.YieldOp.make(results))
        return made.results

    def resolved(self, indices: Sequence[SSAValue]) -> list[SSAValue]:
        """Tile values of loop indices; tile values stand for themselves."""
        return [self.builder.values.get(index, index) for index in indices]

    def spans(self, nest: loop.NestOp) -> list[Span]:
        """The loops of a nest, one of which may run along lanes unless an outer index already does."""
        lane = self.lane_position(nest)
        return [
            Span.whole(index, size, self.width(nest, position) if position == lane else 1)
            for position, (index, size) in enumerate(zip(nest.indices, nest.sizes, strict=True))
        ]

    def lane_position(self, nest: loop.NestOp) -> int | None:
        position = None if self.builder.lane is not None else own_lane(nest, self.model)
        return None if position is None or nest.sizes[position] == ONE else position

    # -- nests -----------------------------------------------------------------------------------

    def parallel(self, op: loop.ParallelOp) -> None:
        spans = self.spans(op)
        early = self.early_ops(op, spans)

        def body(_: Sequence[SSAValue], depth: int = 0) -> Sequence[SSAValue]:
            self.ops([inner for inner, known in early.items() if known == depth])
            if depth < len(spans):
                return self.loops(spans[depth : depth + 1], (), partial(body, depth=depth + 1))
            self.body(op.block, early)
            return ()

        body(())

    def early_ops(self, op: loop.ParallelOp, spans: Sequence[Span]) -> dict[Operation, int]:
        """What a nest computes outside of its inner loops, by how many of them are outside of it: where lanes run along
        an outer one, so that it is whole blocks."""
        lane = next((k for k, span in enumerate(spans) if span.width > 1), len(spans))
        if lane >= len(spans) - 1 or not is_leaf(op) or not all(map(self.model.sizes.is_positive, op.sizes)):
            return {}
        written = {inner.target for inner in op.block.ops if isinstance(inner, loop.WriteOp)}
        found: dict[Operation, int] = {}
        for inner in op.block.ops:
            depth = max((self._depth(operand, op, found) for operand in inner.operands), default=0)
            kind: type[Operation] = type(inner)
            computes = inner.source not in written if isinstance(inner, loop.ReadOp) else is_pure(kind)
            if depth < len(spans) and computes and not isinstance(inner, loop.YieldOp):
                found[inner] = depth
        return found

    @staticmethod
    def _depth(value: SSAValue, op: loop.ParallelOp, found: Mapping[Operation, int]) -> int:
        """How many loops of a nest are outside of what a value is known in."""
        if value.owner is op.block:
            return list(op.indices).index(value) + 1
        inside = isinstance(value.owner, Operation) and value.owner.parent is op.block
        return found.get(value.owner, op.rank) if inside else 0  # type: ignore[arg-type]

    def sequential(self, op: loop.ForOp) -> None:
        def body(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.builder.values.update(zip(op.carried, carried, strict=True))
            self.body(op.block)
            return self._to_width(self.values(op.block.last_op.operands))  # type: ignore[union-attr]

        inits = self._to_width(self.values(op.inits))
        results = self.loops(self.spans(op), inits, body)
        self.builder.values.update(zip(op.results, results, strict=True))

    def _to_width(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Carried values are blocks wherever lanes run outside of the loop."""
        return [self.builder.broadcast(value, self.builder.width) for value in values]

    def reduce(self, op: loop.ReduceOp) -> None:
        spans = self.spans(op)
        results = self.accumulate(op, spans)
        self.bind_reduced(op, results, any(span.width > 1 for span in spans))

    def bind_reduced(self, op: loop.ReduceOp, results: Sequence[SSAValue], across_lanes: bool) -> None:
        """Makes accumulators the results of the reduction, combining their lanes if they are its own."""
        if across_lanes:
            results = self.reduce_lanes(combiners_of(op), results)
        self.builder.values.update(zip(op.results, results, strict=True))

    def reduce_lanes(self, combiners: Sequence[Combiner], values: Sequence[SSAValue]) -> list[SSAValue]:
        results: list[SSAValue] = []
        for combiner in combiners:
            group = values[len(results) : len(results) + combiner.arity]
            reduced = tile.ReduceOp.make(combiner.name, group)
            self.builder.append(reduced)
            results.extend(reduced.results)
        return results

    def accumulators(self, op: loop.ReduceOp, spans: Sequence[Span]) -> list[SSAValue]:
        width = next((span.width for span in spans if span.width > 1), self.builder.width)
        return self.builder.identities(combiners_of(op), op.result_types, width, in_order=yields_in_order(op))

    def accumulate(self, op: loop.ReduceOp, spans: Sequence[Span]) -> Sequence[SSAValue]:
        """Runs the reduction over the spans; long float sums go through a second accumulator."""
        identities = self.accumulators(op, spans)
        sizes = [max(1, self.model.sizes.likely(span.high - span.low) // span.width) for span in spans]
        runs = runs_of(spans, sizes) if sums_floats(combiners_of(op), op.result_types) else None
        if runs is None:
            return self.fold(op, spans, identities)
        outer, inner = runs

        def run(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self.builder.combine(combiners_of(op), carried, self.fold(op, inner, identities))

        return self.loops(outer, identities, run)

    def combine_copies(
        self,
        combiners: Sequence[Combiner],
        identities: Sequence[SSAValue],
        copies: Span,
        load: Callable[[], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Combines what programs have left, each of which `load` reads; float sums go through a second accumulator."""

        def step(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self.builder.combine(combiners, carried, load())

        if not sums_floats(combiners, [element_of(value.type) for value in identities]):
            return self.loops([copies], identities, step)
        outer, inner = copies.cut(COPIES_AT_ONCE)

        def run(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self.builder.combine(combiners, carried, self.loops([inner], identities, step))

        return self.loops([outer], identities, run)

    def fold(self, op: loop.ReduceOp, spans: Sequence[Span], identities: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Combines what the body yields, one after the other."""
        in_order = yields_in_order(op)

        def step(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.body(op.block)
            values = self._masked(op, self._to_width(self.values(op.yielded.operands)), identities)
            return self.builder.combine(combiners_of(op), carried, values, in_order=in_order)

        return self.loops(spans, identities, step)

    def _masked(
        self, op: loop.ReduceOp, values: Sequence[SSAValue], identities: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Where the reduction itself runs along lanes, in whichever of its loops, those beyond the end contribute the
        identity."""
        lane = self.builder.lane
        if lane is None or lane.index not in op.indices:
            return values
        assert lane.mask is not None
        pairs = zip(values, identities, strict=True)
        return [self.builder.select(lane.mask, value, identity) for value, identity in pairs]

    # -- locals ----------------------------------------------------------------------------------

    def local(self, op: loop.LocalOp) -> None:
        """A local lives in scratch; where lanes run outside of it, it holds one row per lane."""
        if op.buffer in self.builder.buffers:  # too large for scratch: the schedule gave it a temporary
            return
        width = self.builder.width or 1
        strides = tuple(stride * width for stride in local_strides(op))
        element = loop.scalar_type(op.buffer.type.element_type)
        scratch = tile.ScratchOp.make(element, product(op.sizes).constant * width)
        lane_stride = ZERO if width == 1 else ONE
        self.builder.buffers[op.buffer] = Buffer(self.builder.add(scratch), strides, lane_stride=lane_stride)


def fits_scratch(op: loop.LocalOp, width: int) -> bool:
    """Whether a program can keep the local, once per lane, in its scratch."""
    size = product(op.sizes)
    needed = width * element_bytes(op.buffer.type.element_type)
    return size.is_constant and size.constant * needed <= SCRATCH_BYTES


def ops_before(nest: loop.NestOp) -> list[Operation]:
    """The ops that stand before a nest in its block."""
    assert nest.parent is not None
    found: list[Operation] = []
    for op in nest.parent.ops:
        if op is nest:
            return found
        found.append(op)
    return found


def ops_after(nest: loop.NestOp) -> list[Operation]:
    """The ops that stand after a nest in its block."""
    assert nest.parent is not None
    ops = list(nest.parent.ops)
    return ops[ops.index(nest) + 1 :]


def combiners_of(op: loop.ReduceOp) -> list[Combiner]:
    return [COMBINERS[name] for name in op.combiner_names]


def yields_in_order(op: loop.ReduceOp) -> bool:
    """Whether every index that comes with a key is the number of the iteration, so that later ones are greater."""
    number = linearize([dim(k) for k in range(op.rank)], contiguous_strides(op.sizes))
    position = 0
    for combiner in combiners_of(op):
        if combiner.arity == 2:
            index = op.yielded.operands[position + 1].owner
            if isinstance(index, arith.TruncIOp):  # no place is beyond its type
                index = index.input.owner
            if not isinstance(index, loop.IndexOp) or list(index.indices) != list(op.indices):
                return False
            if index.map.result != number:
                return False
        position += combiner.arity
    return True


def sums_floats(combiners: Sequence[Combiner], types: Sequence[Attribute]) -> bool:
    """Whether one of the accumulators is a sum that rounds."""
    arities = [combiner.arity for combiner in combiners]
    starts = [sum(arities[:k]) for k in range(len(arities))]
    return any(
        combiner.name == "add" and isinstance(types[start], AnyFloat)
        for combiner, start in zip(combiners, starts, strict=True)
    )


def runs_of(spans: Sequence[Span], sizes: Sequence[int]) -> tuple[list[Span], list[Span]] | None:
    """Loops outside and inside of a run of additions, given how often each span goes round; None if one run will do.

    With about as many runs as additions in each, the longest chain is short. Errors of many lanes average, so that
    their runs may be the longer.
    """
    total = prod(sizes)
    length = max(RUN_LENGTH, *(2 * span.width for span in spans), 1 << total.bit_length() // 2)
    if total <= 2 * length:
        return None
    position = next(k for k in reversed(range(len(spans))) if prod(sizes[k:]) > length)
    span, rest = spans[position], list(spans[position + 1 :])
    inside = prod(sizes[position + 1 :])
    if 2 * inside >= length:
        return list(spans[: position + 1]), rest
    outer, piece = span.cut(length // inside * span.width)
    return [*spans[:position], outer], [piece, *rest]


_NEST_HANDLERS: dict[type[Operation], Callable[..., None]] = {
    loop.ParallelOp: NestEmitter.parallel,
    loop.ReduceOp: NestEmitter.reduce,
    loop.ForOp: NestEmitter.sequential,
    loop.LocalOp: NestEmitter.local,
}

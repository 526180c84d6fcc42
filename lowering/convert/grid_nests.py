"""Turns the nests of a loop kernel into blocks and loops of one program of a GPU.

Locals have no memory here: what is read of one is computed again at the place of the read. Where both places lie in
blocks of the same indices, that gives the value which is in registers already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from ...ir import loop, tile
from ...ir.combiners import COMBINERS, identity_value
from ...ir.errors import LoweringError
from ...ir.expr import ONE, ZERO, Expr
from ...ir.tile.ops import INDEX
from ..analysis.accesses import all_ops, is_leaf
from ..analysis.remaking import can_remake, nest_beside, places, slice_of, writers_of
from ..analysis.scans import Scan, scan_of
from ..schedule.grid_plan import SHORT_EXTENT, GridPlan, axis_position, blocks_of, power_of_two
from ..schedule.model import KernelModel
from .grid_builder import Axes, Axis, GridBuilder, Run
from .nests import combiners_of, yields_in_order

MOST_WRITTEN_OUT = 400
"""Scalar ops of a short loop's steps: more take longer to compile than they save."""

Body = Callable[[Sequence[SSAValue]], Sequence[SSAValue]]


@dataclass(frozen=True)
class Walk:
    """How one dim of a nest is gone through: by `width` lanes at a time, or if `whole` the `width` lanes from `start`
    on at once. What is `written_out` is no loop but its steps one after the other."""

    index: SSAValue
    size: Expr
    width: int = 1
    whole: bool = False
    start: int = 0
    written_out: bool = False


class GridNests:
    """Emits bodies of a loop kernel through a grid builder."""

    def __init__(self, builder: GridBuilder, model: KernelModel, plan: GridPlan):
        self.builder = builder
        self.model = model
        self.plan = plan
        self.writers = writers_of(model.kernel)

    # -- bodies ----------------------------------------------------------------------------------

    def body(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        handler = _HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
        elif not isinstance(op, loop.YieldOp | loop.LocalOp):
            self.builder.emit(op)

    def values(self, operands: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.builder.values[operand] for operand in operands]

    def grid(self, nest: loop.ParallelOp, program: SSAValue) -> None:
        """The body of the nest that programs share, each at its place."""
        walks = zip(nest.indices, nest.sizes, self.plan.widths, self.plan.positions, strict=True)
        self.place(list(walks), program, nest)

    def place(self, walks: list[tuple[SSAValue, Expr, int, Expr]], program: SSAValue, nest: loop.ParallelOp) -> None:
        if not walks:
            self.body(nest.block)
            return
        (index, size, width, position), *rest = walks
        start = position * width
        zero = start == ZERO
        base = self.builder.constant(0, INDEX) if zero else self.builder.add(tile.IndexOp.make([program], start, INDEX))
        if width == 1:
            self.builder.values[index] = base
            self.place(rest, program, nest)
            return
        full = size.is_constant and size.constant % width == 0
        with self.builder.running(index, self.run(base, size, width, full=full)):
            self.place(rest, program, nest)

    def run(self, base: SSAValue, size: Expr, width: int, *, full: bool) -> Run:
        """A run along a further axis, masked unless it is known to end before the dim does."""
        axis = Axis(len(self.builder.active), width)
        if full:
            return Run(axis, base, None)
        return Run(axis, base, self.builder.lanes_below(Run(axis, base, None), size))

    # -- loops -----------------------------------------------------------------------------------

    def walks(self, nest: loop.NestOp) -> list[Walk]:
        """How a nest is gone through: along an axis where that is long enough, else by loops."""
        found = [Walk(index, size) for index, size in zip(nest.indices, nest.sizes, strict=True)]
        position = axis_position(nest, self.model)
        if is_leaf(nest) and only_checks(nest):
            used = indices_of_checks(nest)
            found = [
                walk if walk.index in used or not is_positive(walk.size) else Walk(walk.index, ONE) for walk in found
            ]
            position = max(range(nest.rank), key=lambda k: self.model.sizes.likely(found[k].size))
        if position is None:
            return self.without_short_loops(nest, found)
        size = found[position].size
        extent = self.model.sizes.likely(size)
        if extent < self.plan.shortest and self.builder.active:
            return self.without_short_loops(nest, found)
        held = prod(run.axis.width for run in self.builder.active)
        width = min(power_of_two(extent), max(self.plan.piece // held, SHORT_EXTENT))
        if width > 1:
            whole = size.is_constant and size.constant <= width
            found[position] = Walk(nest.indices[position], size, width, whole)
        return found

    def without_short_loops(self, nest: loop.NestOp, walks: list[Walk]) -> list[Walk]:
        """Writes out short loops around little: then what indices give is known, in windows a place and its guard.
        Nests inside of others stay loops, or each would repeat those in it."""
        if not is_leaf(nest):
            return walks
        steps = prod(walk.size.constant if walk.size.is_constant else MOST_WRITTEN_OUT for walk in walks)
        if steps * len(all_ops(nest.block)) > MOST_WRITTEN_OUT:
            return walks
        return [replace(walk, written_out=True) for walk in walks]

    def stretches(self, nest: loop.NestOp) -> list[list[Walk]]:
        """The walks of a nest, several where blocks of different lengths hold a row that is gone over at once."""
        walks = self.walks(nest)
        found: list[list[Walk]] = [walks]
        for position, walk in enumerate(walks):
            if walk.whole and self.plan.keeps_rows:
                widths = blocks_of(walk.size.constant)
                starts = [0, *accumulate(widths)]
                blocks = [replace(walk, width=width, start=start) for width, start in zip(widths, starts, strict=False)]
                found = [[*walks[:position], block, *walks[position + 1 :]] for block in blocks]
        return found

    def loops(self, walks: Sequence[Walk], inits: Sequence[SSAValue], body: Body) -> Sequence[SSAValue]:
        """Nested loops over dims, carrying values through all of them."""
        if not walks:
            return body(inits)
        first, *rest = walks
        builder = self.builder
        if first.whole:
            full = first.start + first.width <= first.size.constant
            run = self.run(builder.constant(first.start, INDEX), first.size, first.width, full=full)
            with builder.running(first.index, run):
                return self.loops(rest, inits, body)
        if first.size == ONE or first.written_out:
            carried = inits
            for number in range(first.size.constant):
                builder.values[first.index] = builder.constant(number, INDEX)
                carried = self.loops(rest, carried, body)
            return carried
        made = tile.ForOp.make((), ZERO, first.size, first.width, inits, masked=first.width > 1)
        builder.append(made)
        for argument, init in zip(made.carried, inits, strict=True):
            builder.over(argument, builder.axes.get(init, ()))
        with builder.inside(made.block):
            results = self.iteration(first, made, rest, body)
            builder.append(tile.YieldOp.make(results))
        for result, init in zip(made.results, inits, strict=True):
            builder.over(result, builder.axes.get(init, ()))
        return made.results

    def iteration(self, walk: Walk, made: tile.ForOp, rest: Sequence[Walk], body: Body) -> Sequence[SSAValue]:
        builder = self.builder
        if made.mask is None:
            builder.values[walk.index] = made.index
            return self.loops(rest, made.carried, body)
        axis = Axis(len(builder.active), walk.width)
        builder.over(made.mask, (axis,))
        full = walk.size.is_constant and walk.size.constant % walk.width == 0
        with builder.running(walk.index, Run(axis, made.index, None if full else made.mask)):
            return self.loops(rest, made.carried, body)

    # -- nests -----------------------------------------------------------------------------------

    def parallel(self, op: loop.ParallelOp) -> None:
        if has_effects(op):
            for walks in self.stretches(op):
                self.loops(walks, (), lambda _: self._run_body(op))

    def _run_body(self, op: loop.NestOp) -> Sequence[SSAValue]:
        self.body(op.block)
        return ()

    def sequential(self, op: loop.ForOp) -> None:
        walks = self.walks(op)
        found = scan_of(op) if any(walk.width > 1 for walk in walks) else None
        if found is not None:
            self.scan(op, found, walks)
            return
        axes = tuple(run.axis for run in self.builder.active)

        def body(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.builder.values.update(zip(op.carried, carried, strict=True))
            self.body(op.block)
            last = op.block.last_op
            assert last is not None
            return [self.builder.lift(value, axes) for value in self.values(last.operands)]

        inits = [self.builder.lift(value, axes) for value in self.values(op.inits)]
        results = self.loops(walks, inits, body)
        self.builder.values.update(zip(op.results, results, strict=True))

    def scan(self, op: loop.ForOp, scan: Scan, walks: Sequence[Walk]) -> None:
        """Combines the elements of a block at once, and those with what is carried from the blocks before."""
        builder, (walk,) = self.builder, walks
        outer = tuple(run.axis for run in builder.active)
        own = Axis(len(outer), walk.width)
        combiner = COMBINERS[scan.combiner]
        element = op.carried[0].type
        identity = builder.constant(identity_value(combiner, element), element)

        def step(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            total = carried[0]
            for inner in op.block.ops:
                if inner is not scan.step:
                    self.op(inner)
                    continue
                (block,) = self.masked([builder.values[scan.element]], [identity], (own,))
                block = builder.lift(block, (*outer, own))
                scanned = builder.add(tile.ScanOp.make(scan.combiner, block, len(outer)))
                builder.values[inner.results[0]] = builder.combine_one(scan.combiner, carried[0], scanned)
                (reduced,) = builder.reduce_axis([combiner], [block], own)
                total = builder.combine_one(scan.combiner, carried[0], reduced)
            return [builder.lift(total, outer)]

        inits = [builder.lift(value, outer) for value in self.values(op.inits)]
        results = self.loops(walks, inits, step)
        builder.values.update(zip(op.results, results, strict=True))

    def reduce(self, op: loop.ReduceOp) -> None:
        """Collects in blocks first: all their loads are under way before threads exchange anything."""
        builder, combiners = self.builder, combiners_of(op)
        results: list[SSAValue] = []
        for values, own in [self.collect(op, walks) for walks in self.stretches(op)]:
            for axis in own:
                values = builder.reduce_axis(combiners, values, axis)
            results = builder.combine(combiners, results, values) if results else values
        builder.values.update(zip(op.results, results, strict=True))

    def collect(self, op: loop.ReduceOp, walks: Sequence[Walk]) -> tuple[list[SSAValue], Axes]:
        """What is left to be reduced along axes of the reduction's own, and these."""
        builder, combiners = self.builder, combiners_of(op)
        outer = tuple(run.axis for run in builder.active)
        own = tuple(Axis(len(outer), walk.width) for walk in walks if walk.width > 1)
        at_once = all(walk.whole or walk.size == ONE for walk in walks)
        in_order = yields_in_order(op) and not own
        identities = builder.neutral(combiners, op.result_types, (*outer, *own), in_order)

        def step(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.body(op.block)
            values = self.masked(self.values(op.yielded.operands), identities, own)
            if at_once:
                return values
            lifted = [builder.lift(value, (*outer, *own)) for value in values]
            return builder.combine(combiners, carried, lifted, in_order=in_order)

        return list(self.loops(walks, () if at_once else identities, step)), own

    def masked(self, values: Sequence[SSAValue], identities: Sequence[SSAValue], own: Axes) -> list[SSAValue]:
        """Lanes beyond the end of a reduction's own axis contribute the identity; each value runs along that axis."""
        builder = self.builder
        found: list[SSAValue] = []
        for value, identity in zip(values, identities, strict=True):
            axes = builder.axes_of([value])
            value = builder.lift(value, tuple(sorted({*axes, *own}, key=lambda axis: axis.position)))
            mask = builder.mask_of(own)
            if mask is not None:
                scalar = identity.owner.operands[0] if isinstance(identity.owner, tile.BroadcastOp) else identity
                value = builder.select(mask, value, scalar)
            found.append(value)
        return found

    # -- locals ----------------------------------------------------------------------------------

    def read(self, op: loop.ReadOp) -> None:
        """A read of a tensor, or of what this kernel writes: that is made again at the place of the read."""
        writes = self.writers.get(op.source)
        if writes is None:
            self.builder.emit(op)
        elif can_remake(op, writes):
            self.builder.values[op.result] = self.guarded(op, writes[0])
        else:
            raise LoweringError(
                "convert-loop-to-tile",
                expected="reads of what the kernel writes that scalar code can compute again",
                got=op.name,
                hint="`loop-distribute-nests` makes kernels of their own of such nests",
            )

    def write(self, op: loop.WriteOp) -> None:
        if op.target in self.builder.places:
            self.builder.emit(op)

    def guarded(self, read: loop.ReadOp, writer: loop.WriteOp) -> SSAValue:
        """What was written, where the guard of the read holds: elsewhere nothing was, and nothing is loaded for it."""
        builder = self.builder
        if read.guard is None:
            return self.remade(read, writer)
        guard = builder.values[read.guard]
        with builder.guarding(guard):
            value = self.remade(read, writer)
        zero = builder.constant(0, read.result.type)
        return builder.select(guard, value, zero if read.other is None else builder.values[read.other])

    def remade(self, read: loop.ReadOp, writer: loop.WriteOp) -> SSAValue:
        """What the writer writes for the indices that are read."""
        nest = nest_beside(writer, read)
        with self.rebound():
            self.bind(read, writer, nest)
            for op in slice_of(writer.value, nest):
                self.op(op)
            return self.builder.values[writer.value]

    def bind(self, read: loop.ReadOp, writer: loop.WriteOp, nest: Operation) -> None:
        """Gives the indices of a writer the values at which a read looks."""
        builder = self.builder
        found: list[tuple[SSAValue, SSAValue, Run | None]] = []
        for index, place in (places(read, writer, nest) or {}).items():
            source = None if place.as_dim is None else read.indices[place.as_dim]
            if source in builder.runs:
                found.append((index, builder.values[source], builder.runs[source]))
            else:
                found.append((index, builder.position(list(read.indices), place), None))
        for index, value, run in found:
            builder.runs.pop(index, None)
            builder.values[index] = value
            if run is not None:
                builder.bind_run(index, run)

    @contextmanager
    def rebound(self) -> Iterator[None]:
        """Forgets what is bound inside."""
        builder = self.builder
        values, runs = dict(builder.values), dict(builder.runs)
        yield
        builder.values, builder.runs = values, runs


def only_checks(nest: loop.NestOp) -> bool:
    """Whether all that a nest does, besides filling locals, is to check values."""
    writes = [op for op in nest.block.ops if isinstance(op, loop.WriteOp)]
    return isinstance(nest, loop.ParallelOp) and all(isinstance(op.target.owner, loop.LocalOp) for op in writes)


def indices_of_checks(nest: loop.NestOp) -> set[SSAValue]:
    """The indices of a nest on which its checks depend."""
    checks = [op for op in nest.block.ops if isinstance(op, loop.AssertOp)]
    ops = [op for check in checks for value in check.operands for op in slice_of(value, nest)]
    return {operand for op in ops for operand in op.operands if operand in nest.indices}


def is_positive(size: Expr) -> bool:
    return size.is_constant and size.constant > 0


def has_effects(nest: loop.NestOp) -> bool:
    """Whether a nest does more than fill locals."""
    for op in nest.walk():
        if isinstance(op, loop.AssertOp):
            return True
        if isinstance(op, loop.WriteOp) and not isinstance(op.target.owner, loop.LocalOp):
            return True
    return False


_HANDLERS: dict[type[Operation], Callable[[GridNests, Any], None]] = {
    loop.ParallelOp: GridNests.parallel,
    loop.ReduceOp: GridNests.reduce,
    loop.ForOp: GridNests.sequential,
    loop.ReadOp: GridNests.read,
    loop.WriteOp: GridNests.write,
}

__all__ = ["GridNests"]

"""Chooses what a kernel fetches ahead of time, so that memory works while the processor computes.

The hardware fetches ahead within a page and while loads are in flight; a kernel that computes much per element, or
goes over a row several times, leaves memory idle. Only kernels that outgrow the cache ask for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from xdsl.ir import Block, BlockArgument, SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Expr
from ...ir.loop.ops import AccessOp
from ...ir.target import Target
from ..analysis.accesses import is_leaf, nests_of
from .choose import own_lane
from .model import MATH_WORK, Access, KernelModel

AHEAD_BYTES = 4096
"""How far ahead of its use a line is fetched: some hundreds of nanoseconds at the rate of memory."""

STRETCH_SHARE = 2
"""A stretch that is gone through again stays in the second cache if it is at most one in so many of its bytes."""

ROW_SHARE = 8
"""A row is fetched ahead if it is at most one in so many bytes of the second cache."""

STEPS_LEFT = 2
"""A loop fetches ahead that takes at least so many times as many steps as it looks ahead."""

NEAR_SHARE = 4
"""It is fetched to the first cache if it is at most one in so many of its bytes."""

SELF_FETCHING = "znver"
"""Processors, by how LLVM names them, that fetch a single run of memory ahead by themselves, as long as little is
computed from it, and that hints hold up: on Zen 3 64 MiB are copied in 0.77 of the time without, and added in 0.66."""

LEAST_FETCHED = 4
"""Bytes of the elements of such runs, at least: bf16, which is widened and rounded, takes 1.15 of the time without."""


@dataclass(frozen=True)
class Loop:
    """A loop of the schedule: the index it runs, by how much at a time, and how often, once at least."""

    index: SSAValue
    trips: int
    step: int = 1


@dataclass(frozen=True)
class Stream:
    """An access of which the elements `ahead` of the current ones are fetched, to that level of the cache."""

    access: AccessOp
    indices: tuple[SSAValue, ...]
    ahead: Expr
    level: int = 1

    @property
    def writes(self) -> bool:
        return isinstance(self.access, loop.WriteOp)


@dataclass
class Leaf:
    """An innermost nest: its own loops and those around it, each list from the innermost on."""

    nest: loop.NestOp
    lane: SSAValue
    width: int
    own: Sequence[Loop]
    outer: Sequence[Loop]
    work: int
    streams: list[Stream] = field(default_factory=list)

    @cached_property
    def loops(self) -> list[Loop]:
        return [*self.own, *self.outer]

    @cached_property
    def volume(self) -> int:
        """Elements that its loops go over."""
        return prod((self.width, *(inner.trips for inner in self.own)))

    @cached_property
    def form(self) -> tuple[object, ...]:
        """What nests have in common that go over the same space in the same way, one after the other."""
        indices = list(self.nest.indices)
        return self.nest.parent, self.nest.sizes, indices.index(self.lane) if self.lane in indices else None


class Prefetcher:
    """Deals the memory that a kernel streams out to its innermost nests."""

    def __init__(self, model: KernelModel, leaves: Sequence[Leaf], target: Target):
        self.model = model
        self.leaves = leaves
        self.target = target
        self.of_block = {leaf.nest.block: leaf for leaf in leaves}

    def plan(self) -> dict[Block, list[Stream]]:
        """What the body of each innermost nest fetches."""
        for access, leaf in self.first_accesses():
            siblings = [other for other in self.leaves if other.form == leaf.form]
            if len(siblings) > 1 and self.fetch_next_rows(access, leaf, siblings):
                continue
            ahead = steps_ahead(access, leaf.width, leaf.loops)
            if ahead is not None and not self.is_fetched(access, leaf):
                leaf.streams.append(Stream(access.op, tuple(access.indices), ahead))
        return {leaf.nest.block: leaf.streams for leaf in self.leaves if leaf.streams}

    def is_fetched(self, access: Access, leaf: Leaf) -> bool:
        """Whether the processor does it by itself."""
        is_light_run = leaf.nest.rank == 1 and leaf.work < MATH_WORK and access.bytes >= LEAST_FETCHED
        return is_light_run and self.target.name.startswith(SELF_FETCHING)

    def first_accesses(self) -> Iterator[tuple[Access, Leaf]]:
        """The first access to each stretch of memory that is gone through once, lanes side by side."""
        seen: set[object] = set()
        for access in self.model.accesses:
            leaf = None if access.op.parent is None else self.of_block.get(access.op.parent)
            if leaf is None or not is_contiguous(access, leaf) or self.stays_in_cache(access, leaf):
                continue
            own = list(leaf.nest.indices)
            place = tuple(own.index(index) if index in own else index for index in access.indices)
            if (key := (access.tensor, place, access.offset)) not in seen:
                seen.add(key)
                yield access, leaf

    def stays_in_cache(self, access: Access, leaf: Leaf) -> bool:
        """Whether a loop goes over the same small stretch again and again."""
        size = leaf.width * access.bytes
        for current in leaf.loops:
            if access.stride(current.index) == ZERO and current.trips > 1:
                return size <= self.target.l2_bytes // STRETCH_SHARE
            size *= current.trips
        return False

    def fetch_next_rows(self, access: Access, leaf: Leaf, siblings: Sequence[Leaf]) -> bool:
        """Fetches rows to come in the nest that has the most to do, if it has much and the cache can hold them."""
        chosen = max(siblings, key=lambda other: other.work / (1 + len(other.streams)))
        row_bytes = leaf.volume * access.bytes
        if chosen.work < MATH_WORK or row_bytes > self.target.l2_bytes // ROW_SHARE:
            return False
        ahead = steps_ahead(access, leaf.volume, leaf.outer)
        if ahead is None:
            return False
        moved = dict(zip(leaf.nest.indices, chosen.nest.indices, strict=True))
        indices = tuple(moved.get(index, index) for index in access.indices)
        level = 1 if row_bytes <= self.target.l1_bytes // NEAR_SHARE else 2
        chosen.streams.append(Stream(access.op, indices, ahead, level))
        return True


def is_contiguous(access: Access, leaf: Leaf) -> bool:
    """Whether lanes are neighbours in the memory of a tensor, at indices of loops only."""
    return (
        not isinstance(access.tensor.owner, loop.LocalOp)
        and access.stride(leaf.lane) == ONE
        and all(isinstance(index, BlockArgument) for index in access.indices)
    )


def steps_ahead(access: Access, volume: int, loops: Iterable[Loop]) -> Expr | None:
    """How many elements ahead of an access to look, where `volume` contiguous ones are used before the first loop
    takes a step. None where the elements to come lie in no one direction."""
    wanted = AHEAD_BYTES // access.bytes
    for current in loops:
        stride = access.stride(current.index)
        if stride is None or stride.dims or stride == ZERO:
            return None
        steps = -(-wanted // volume)
        if current.trips >= STEPS_LEFT * steps:
            return stride * (steps * current.step)
        volume *= current.trips
    return None


class LeafFinder:
    """Finds the innermost nests in blocks, with their loops as the schedule lays them out."""

    def __init__(self, model: KernelModel, width: Callable[[loop.NestOp, int], int]):
        self.model = model
        self.width = width

    def leaves(self, block: Block, outer: Sequence[Loop], lane: Loop | None) -> Iterator[Leaf]:
        """Those in a block with these loops around it; `lane` is the one among them that runs along lanes."""
        for nest in nests_of(block):
            position = own_lane(nest, self.model) if lane is None else None
            own = self.loops(nest, position)
            along = lane if position is None else own[nest.rank - 1 - position]
            if not is_leaf(nest):
                yield from self.leaves(nest.block, [*own, *outer], along)
            elif along is not None:
                yield self.leaf(nest, along, own=own, outer=outer)

    def leaf(self, nest: loop.NestOp, lane: Loop, *, own: Sequence[Loop], outer: Sequence[Loop]) -> Leaf:
        return Leaf(nest, lane.index, lane.step, own, outer, self.model.body_work(nest))

    def loops(self, nest: loop.NestOp, lane: int | None) -> list[Loop]:
        """The loops of a nest, innermost first."""
        found = [self.loop(index, size) for index, size in zip(nest.indices, nest.sizes, strict=True)]
        if lane is not None:
            found[lane] = self.loop(nest.indices[lane], nest.sizes[lane], self.width(nest, lane))
        return found[::-1]

    def loop(self, index: SSAValue, size: Expr, step: int = 1) -> Loop:
        return Loop(index, -(-self.model.sizes.volume([size]) // step), step)

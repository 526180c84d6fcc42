"""Lays a kernel on a grid of programs: chooses among four plans by sizes, dependences and the machine.

- *parallel*: the points of the one parallel nest are spread; lanes run along one of its dims or the innermost nests;
- *split*: a large reduction with few results, or down columns, is cut into chunks, and partial results are combined;
- *accumulating*: rows that also add to columns are cut into chunks, and what each collects is combined;
- *serial*: one program runs everything, which is right for any kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Domain, Expr, ceildiv, const, maximum, product
from ...ir.shapes import symbol_intervals
from ...ir.target import Target
from ..analysis.accesses import is_leaf, nests_of, only
from ..analysis.accumulation import Accumulation, accumulation_of
from ..analysis.sizes import BYTE
from .choose import SHORT_REGISTERS, block_width, choose_lane, leaf_lane, machine_lanes, registers_of
from .model import Access, KernelModel
from .prefetch import Leaf, LeafFinder, Loop

PROGRAM_WORK = 1 << 14
"""Scalar operations that one program should at least do; a parallel region costs about 2 µs."""

ENOUGH_PROGRAMS = 32
"""Programs beyond which more of them balance no better."""

PROGRAMS_PER_CORE = 2
"""Programs for each core at least, or chunks of rows: so many balance well."""

SPARE_PROGRAMS = 2
"""How many times as many programs there may be as balance well; each more begins its loops anew."""

CACHE_SHARE = 2
"""Columns go row by row that take more than one in so many bytes of the second cache."""

SIDE = 16
"""Side of the squares that are transposed in registers."""

PACKED_TILE = (SIDE, 128)
"""Rows and columns that are packed at a time: few enough pages for the TLB, and lines stay in L1 until used."""

GATHERED_TILE = (64, 64)
"""Rows and columns that are walked at a time where lanes gather: 64 lines of L1."""

SPLIT_WORK = 1 << 17
"""A reduction with few results is split from this much work on."""

LONG_COLUMN = 512
"""Rows from which on a column reduction goes row by row, so that it reads memory in order."""

SPLIT_CHUNKS = 32
"""Most chunks of a split reduction; a function of sizes only, so results repeat for any number of threads."""

ALIGNMENT = 16
"""Elements that fill a line of the cache, if they are of four bytes."""

LONG_CHUNK = 4
"""Elements of a chunk from which on a dim is long enough to be cut."""

ROW_BLOCK = 16
"""Rows that a split column reduction adds up in registers between two visits of its partial results."""


# -- plans -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParallelPlan:
    """Programs take `rows` consecutive points of the box of `prefix` dims and, if given, a `chunk` of the lane dim.

    `crossed` is a dim along which some tensor is contiguous that the lanes walk in strides: the two are walked in
    square tiles, so that what one line of cache holds is used while it is there. Reads that are `packed` come to
    scratch first, a tile at a time, transposed in registers.
    """

    nest: loop.ParallelOp
    lane: int | None
    width: int
    prefix: tuple[int, ...]
    inner: tuple[int, ...]
    rows: Expr
    chunk: int | None
    crossed: int | None = None
    packed: tuple[Access, ...] = ()

    @property
    def lanes(self) -> int:
        """Lanes that run around all locals."""
        return self.width

    @property
    def tile(self) -> tuple[int, int]:
        """Rows, along the crossed dim, and columns, along the lanes, that are walked at a time."""
        return PACKED_TILE if self.packed else GATHERED_TILE

    @property
    def row_count(self) -> Expr:
        return product(self.nest.sizes[k] for k in self.prefix)

    @property
    def lane_chunks(self) -> Expr:
        if self.chunk is None:
            return ONE
        assert self.lane is not None
        return ceildiv(self.nest.sizes[self.lane], self.chunk)

    @property
    def grid(self) -> Expr:
        return ceildiv(self.row_count, self.rows) * self.lane_chunks

    def leaves(self, find: LeafFinder) -> Iterator[Leaf]:
        """Its innermost nests. Tiles are gone through row by row, and followed by those in the next rows."""
        nest = self.nest
        rows = [find.loop(nest.indices[k], nest.sizes[k]) for k in (*self.inner[::-1], *self.prefix[::-1])]
        if self.lane is None:
            yield from find.leaves(nest.block, rows, None)
            return
        lane = find.loop(nest.indices[self.lane], nest.sizes[self.lane], self.width)
        if self.crossed is not None:
            index, size = nest.indices[self.crossed], nest.sizes[self.crossed]
            high, wide = self.tile
            rows = [Loop(index, high), find.loop(index, size, high), *rows]
            lane = replace(lane, trips=min(lane.trips, wide // self.width))
        outer = [lane, *rows]
        if is_leaf(nest):
            yield find.leaf(nest, lane, own=outer, outer=())
        else:
            yield from find.leaves(nest.block, outer, lane)


@dataclass(frozen=True)
class SplitPlan:
    """Programs take `length` indices of dim `position` of the one reduction; `nest` is the parallel nest around it."""

    nest: loop.ParallelOp | None
    reduction: loop.ReduceOp
    lane: int | None
    width: int
    position: int
    length: Expr

    @property
    def lanes(self) -> int:
        return self.width

    @property
    def grid(self) -> Expr:
        return ceildiv(self.reduction.sizes[self.position], self.length)

    def leaves(self, find: LeafFinder) -> Iterator[Leaf]:
        """The reduction, by blocks of rows where lanes run outside of it."""
        if self.lane is None:
            yield from find.leaves(self.block, [] if self.nest is None else find.loops(self.nest, None), None)
            return
        assert self.nest is not None
        lane = find.loop(self.nest.indices[self.lane], self.nest.sizes[self.lane], self.width)
        rows = Loop(self.reduction.indices[self.position], ROW_BLOCK)
        yield find.leaf(self.reduction, lane, own=[rows], outer=[lane])

    @property
    def outer_sizes(self) -> tuple[Expr, ...]:
        return () if self.nest is None else self.nest.sizes

    @property
    def block(self) -> Block:
        """The block in which the reduction stands."""
        block = self.reduction.parent
        assert block is not None
        return block


@dataclass(frozen=True)
class SerialPlan:
    """One program runs the whole kernel, which stands in `block`."""

    block: Block
    lanes: int = 1

    @property
    def grid(self) -> Expr:
        return ONE

    def leaves(self, find: LeafFinder) -> Iterator[Leaf]:
        return find.leaves(self.block, [], None)


@dataclass(frozen=True)
class AccumulatingPlan:
    """Programs take rows, as in `laid`, and each collects in locals of its own what they add; then all are combined."""

    laid: ParallelPlan
    parts: Accumulation
    widths: tuple[int, ...]
    """Lanes that the last dim of each collecting local is gone over by."""

    @property
    def lanes(self) -> int:
        return self.laid.lanes

    @property
    def grid(self) -> Expr:
        """One program even without rows: what has been collected is read all the same."""
        return maximum(self.laid.grid, 1)

    def copies(self, local: loop.LocalOp) -> tuple[Expr, ...]:
        """Sizes of the copies of a local, one for each program, each of whole lines: a block across two costs twice."""
        *outer, last = local.sizes
        return self.grid, *outer, ceildiv(last, ALIGNMENT) * ALIGNMENT

    def leaves(self, find: LeafFinder) -> Iterator[Leaf]:
        return self.laid.leaves(find)


Plan = ParallelPlan | SplitPlan | AccumulatingPlan | SerialPlan


class Planner:
    """Chooses the plan of one kernel."""

    def __init__(self, model: KernelModel, target: Target):
        self.model = model
        self.target = target
        self.sizes = model.sizes
        self.lanes = machine_lanes(model, target.vector_bits)

    def plan(self) -> Plan:
        return self.distributed() or SerialPlan(self.model.kernel.block)

    def distributed(self) -> Plan | None:
        """A plan for several programs: the kernel accumulates, or has one nest and ends in it if that is parallel."""
        if (parts := accumulation_of(self.model.kernel)) is not None:
            return self.accumulating(parts)
        nest = only(nests_of(self.model.kernel.block))
        if isinstance(nest, loop.ReduceOp):
            return self.split(None, nest, None)
        if not isinstance(nest, loop.ParallelOp) or nest is not self.last_op:
            return None
        choice = choose_lane(nest, self.model, self.lanes)
        lane = None if choice.index is None else list(nest.indices).index(choice.index)
        plan = self.parallel(nest, lane)
        inner = only(nests_of(nest.block))
        if isinstance(inner, loop.ReduceOp) and self.prefers_split(plan, inner):
            return self.split(nest, inner, lane) or plan
        return plan

    def prefers_split(self, plan: ParallelPlan, reduction: loop.ReduceOp) -> bool:
        """Where there are too few programs, or each would go down long narrow columns of what the cache cannot hold."""
        if self.sizes.likely(plan.grid) < ENOUGH_PROGRAMS:
            return True
        rows = self.sizes.volume(reduction.sizes)
        if plan.lane is None or rows < LONG_COLUMN:
            return False
        columns = self.sizes.likely(plan.nest.sizes[plan.lane])
        width = self.target.vector_bits // BYTE // self.lanes
        return rows * columns * width > self.target.l2_bytes // CACHE_SHARE

    @property
    def last_op(self) -> Operation | None:
        return self.model.kernel.block.last_op

    def width(self, nest: loop.NestOp, position: int) -> int:
        """Lanes of a block along that dim of a nest."""
        registers = registers_of(self.model.body_work(nest), self.target.vector_bits)
        return block_width(nest.sizes[position], self.sizes, lanes=self.lanes, registers=registers)

    def outer_width(self, nest: loop.NestOp | None, lane: int | None) -> int:
        """Lanes along a dim of the outer nest, or the one number that there is where none is chosen."""
        return 1 if nest is None or lane is None else self.width(nest, lane)

    # -- parallel --------------------------------------------------------------------------------

    def parallel(self, nest: loop.ParallelOp, lane: int | None) -> ParallelPlan:
        free = self.independent_dims(nest)
        outer = [k for k in range(nest.rank) if k != lane]
        crossed, packed = (None, ()) if lane is None else self.crossed(nest, lane)
        prefix = self.prefix([k for k in outer if k in free and k != crossed], nest)
        points = self.sizes.volume([nest.sizes[k] for k in prefix])
        least = -(-PROGRAM_WORK * points // self.model.work)
        width = self.outer_width(nest, lane)
        chunk = self.chunk(nest, lane, width, points) if lane in free and points < ENOUGH_PROGRAMS * least else None
        if chunk is not None and crossed is not None:
            _, unit = PACKED_TILE if packed else GATHERED_TILE
            chunk = -(-chunk // unit) * unit
        inner = tuple(k for k in outer if k not in prefix and k != crossed)
        rows = self.rows(product(nest.sizes[k] for k in prefix), least)
        return ParallelPlan(nest, lane, width, tuple(prefix), inner, rows, chunk, crossed, packed)

    def rows(self, points: Expr, least: int) -> Expr:
        """Rows of a program: enough to be worth it, and so many that there are not many more programs than needed."""
        if points.is_constant:
            return const(max(1, min(max(least, -(-points.constant // self.most_programs)), points.constant)))
        return maximum(ceildiv(points, self.most_programs), least)

    @property
    def most_programs(self) -> int:
        return SPARE_PROGRAMS * max(ENOUGH_PROGRAMS, PROGRAMS_PER_CORE * self.target.cores)

    def packed(self, nest: loop.ParallelOp, lane: int, crossed: int) -> tuple[Access, ...]:
        """The reads that can be transposed on their way: along both dims by a tile's side at least, and unguarded."""
        ranges = symbol_intervals(self.model.kernel)
        domain = Domain({}, ranges)
        if not is_leaf(nest) or not all(domain.is_nonnegative(nest.sizes[k] - SIDE) for k in (lane, crossed)):
            return ()
        return tuple(
            access
            for access in self.model.accesses
            if isinstance(access.op, loop.ReadOp)
            and access.op.guard is None
            and access.stride(nest.indices[crossed]) == ONE
            and is_known(access.stride(nest.indices[lane]))
            and all(isinstance(index, BlockArgument) for index in access.indices)
        )

    def crossed(self, nest: loop.ParallelOp, lane: int) -> tuple[int | None, tuple[Access, ...]]:
        """A dim along which some tensor is contiguous that the lanes walk in strides, and the reads to be packed."""
        for access in self.model.accesses:
            if access.stride(nest.indices[lane]) in (ZERO, ONE):
                continue
            for k, index in enumerate(nest.indices):
                if access.stride(index) == ONE and self.sizes.likely(nest.sizes[k]) >= self.lanes:
                    return k, self.packed(nest, lane, k)
        return None, ()

    def prefix(self, dims: Sequence[int], nest: loop.ParallelOp) -> list[int]:
        """The leading dims that together have enough points."""
        chosen: list[int] = []
        for k in dims:
            if self.sizes.volume([nest.sizes[dim] for dim in chosen]) >= ENOUGH_PROGRAMS * SPARE_PROGRAMS:
                break
            chosen.append(k)
        return chosen

    def chunk(self, nest: loop.ParallelOp, lane: int | None, width: int, points: int) -> int | None:
        """How many lane indices make a program's work; None where one program takes them all."""
        assert lane is not None
        extent = self.sizes.volume([nest.sizes[lane]])
        per_index = self.model.work // extent
        least = max(-(-PROGRAM_WORK // per_index), -(-extent * points // self.most_programs))
        chunk = -(-least // width) * width
        known_small = nest.sizes[lane].is_constant and chunk >= extent
        return None if known_small else chunk

    def independent_dims(self, nest: loop.ParallelOp) -> set[int]:
        """Dims of which no two indices combine into the same element."""
        dims = set(range(nest.rank))
        for op in (access.op for access in self.model.accesses):
            if isinstance(op, loop.WriteOp) and op.combiner is not None:
                alone = [result.as_dim for result in op.map.results]
                indices = [op.indices[k] for k in alone if k is not None]
                dims &= {k for k, index in enumerate(nest.indices) if index in indices}
        return dims

    # -- accumulating ----------------------------------------------------------------------------

    def accumulating(self, parts: Accumulation) -> AccumulatingPlan | None:
        """Chunks of rows; lanes run along columns. None where no dim of the nest is one of rows."""
        nest = parts.rows
        columns = self.collected_indices(parts)
        lane = nest.rank - 1 if is_leaf(nest) else None
        rows = [k for k, index in enumerate(nest.indices) if index not in columns and k != lane]
        prefix = self.prefix(rows, nest)
        if not prefix:
            return None
        points = product(nest.sizes[k] for k in prefix)
        least = max(1, PROGRAM_WORK * self.sizes.likely(points) // self.model.work)
        chunks = max(SPLIT_CHUNKS, PROGRAMS_PER_CORE * self.target.cores)
        inner = tuple(k for k in range(nest.rank) if k not in prefix and k != lane)
        width = self.outer_width(nest, lane)
        laid = ParallelPlan(nest, lane, width, tuple(prefix), inner, maximum(ceildiv(points, chunks), least), None)
        widths = tuple(
            block_width(local.sizes[-1], self.sizes, lanes=self.lanes, registers=SHORT_REGISTERS)
            for local in parts.collected
        )
        return AccumulatingPlan(laid, parts, widths)

    def collected_indices(self, parts: Accumulation) -> set[SSAValue]:
        """The indices that say where rows combine into what they collect."""
        uses = [use.operation for local in parts.collected for use in local.buffer.uses]
        combining = [op for op in uses if isinstance(op, loop.WriteOp) and op.combiner is not None]
        return {index for op in combining for index in op.indices}

    # -- split -----------------------------------------------------------------------------------

    def split(self, nest: loop.ParallelOp | None, reduction: loop.ReduceOp, lane: int | None) -> SplitPlan | None:
        """Splits a large reduction whose block holds nothing but scalars besides it."""
        if self.model.work < SPLIT_WORK or reduction.rank == 0 or self.has_locals_outside(reduction):
            return None
        sizes = [self.sizes.likely(size) for size in reduction.sizes]
        position = next(
            (k for k, size in enumerate(sizes) if size >= LONG_CHUNK * SPLIT_CHUNKS), sizes.index(max(sizes))
        )
        width = self.outer_width(nest, lane)
        unit = self.chunk_unit(reduction, position, lane)
        length = ceildiv(reduction.sizes[position], SPLIT_CHUNKS * unit) * unit
        return SplitPlan(nest, reduction, lane, width, position, length)

    def chunk_unit(self, reduction: loop.ReduceOp, position: int, lane: int | None) -> int:
        """What the length of a chunk is a multiple of: blocks of rows, blocks of lanes, or single iterations."""
        if lane is not None:
            return ROW_BLOCK
        along_lanes = is_leaf(reduction) and leaf_lane(reduction, self.model) == position
        return self.lanes * SHORT_REGISTERS if along_lanes else 1

    def has_locals_outside(self, nest: loop.NestOp) -> bool:
        return any(not nest.is_ancestor(local) for local in self.model.locals)


def is_known(stride: Expr | None) -> bool:
    """Whether lanes lie that far apart throughout."""
    return stride is not None and not stride.dims and stride not in (ZERO, ONE)

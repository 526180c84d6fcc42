"""Lays a kernel on the programs of a GPU: which dims run along axes of a program's blocks, and how many warps it has.

Blocks live in the registers of all threads of a program, so a plan is a choice of powers of two: enough elements to
keep memory busy, few enough to fit. Rows that fit are held whole; what outgrows the registers is walked in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Expr, ceildiv, delinearize, dim, product
from ...ir.target import Target
from ..analysis.accesses import all_ops, extent_of, is_leaf, nests_of
from ..analysis.scans import scan_of
from .model import Access, KernelModel

POINTS = 1024
"""Elements of a pointwise program: 4 warps with 16-byte accesses reach the rate of a copy on an H200."""

POINT_BITS = 32
"""What each of them reads at least; of narrower ones twice as many keep memory as busy."""

APART = 4
"""Reads of a point that are not beside those of its neighbours, from which on a program has half as many points, from
twice as many on a quarter: their places and values take registers, and with few of those more programs run at once."""

CROSSED_SIDE = 64
"""Side of the tiles of pointwise kernels whose accesses are contiguous along different dims."""

LOOPING_POINTS = 256
"""Points of a program that has short loops for each: two a thread, since neighbours' windows overlap in its cache."""

LEAST_ROW = 4
"""Elements of the shortest rows that run along an axis."""

ROW_ELEMENTS = 1024
"""Elements that a program of short rows has at least."""

RESIDENT_ELEMENTS = 1 << 15
"""Elements of a row up to which it stays in registers: 32 of each thread of 32 warps."""

APART_COST = 8
"""What an access of lanes that are apart in memory costs, which takes a sector for each, of that of neighbours."""

IDLE_SHARE = 8
"""One in so many lanes of a long row may lie beyond its end: all of them take registers of other programs."""

LEAST_BLOCK = 256
"""Lanes of the least block of a long row: of a smaller one several threads would hold copies."""

PIECE_ELEMENTS = 4096
"""Elements of the pieces in which longer rows, and columns, are walked."""

COLUMNS, LEAST_COLUMNS = 64, 16
"""Columns of a program that reduces down columns: 256 contiguous bytes of f32, or where there is little to do for
programs as many as multiprocessors, two sectors of the cache."""

COLUMN_WARPS = 4
"""Warps of such a program: each thread adds up 32 elements of a piece before warps exchange anything."""

LITTLE_WORK = 1 << 20
"""Scalar operations of a kernel that take less time than its launch, if enough programs share them."""

COLUMN_ELEMENTS = 128
"""Elements of each thread where an axis is reduced that is not contiguous: threads then add up what they loaded, and
an exchange between warps takes longer than that."""

SHORT_EXTENT = 16
"""Trips below which an inner nest runs as a loop, not along an axis, unless its rows are dense."""

WARP_BYTES = 2048
"""What one warp holds of a block: 64 bytes per thread, four accesses of 16 bytes."""

MOST_WARPS = 16

PROGRAM_BYTES = 1 << 14
"""What a program takes of whole rows of one tensor that are half as long at least, with 16 warps: 1 to 2 % faster on an
H200 than each row by itself, or 8 warps. Where rows of two tensors are held it was 15 % slower."""

LONG_ROW = 1 << 14
"""Elements beyond which a row takes much of the registers of a multiprocessor."""

FEW_WARPS, REGISTERS = 8, 128
"""Shape of the programs of long rows: of two in a multiprocessor (65536 registers) one loads while the other stores."""

HELD = 100
"""Elements of a thread of such a program, of 32 bits: the rest of its registers holds addresses and results."""

PIPELINE_STAGES = 3
"""Iterations of a loop over pieces whose loads are in flight at once."""


def power_of_two(size: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << max(size - 1, 0).bit_length()


def blocks_of(extent: int) -> tuple[int, ...]:
    """Lengths of the blocks that hold a row, from its beginning on; the last one may go beyond its end.

    Blocks are powers of two long. What idle lanes take is nothing while many rows are in flight at once. Of a long row
    they would keep out another program: 25088 elements are held by 16384 + 8192 + 512 lanes, not by 32768.
    """
    if extent <= PIECE_ELEMENTS:
        return (power_of_two(extent),)
    found: list[int] = []
    rest = extent
    while rest > 0:
        width = max(power_of_two(rest), LEAST_BLOCK)
        if width > LEAST_BLOCK and IDLE_SHARE * (width - rest) > extent:
            width //= 2
        found.append(width)
        rest -= width
    return tuple(found)


@dataclass(frozen=True)
class GridPlan:
    """Programs take `widths[k]` neighbours of each dim of `nest`, along an axis of the blocks where that is not 1.

    Without a nest one program runs the whole kernel. `piece` is the number of elements, over all axes, up to which an
    inner nest runs along an axis at a time, and `shortest` that from which on it does. `registers` is the most that a
    thread has, if it is a number; rows that one nest reads after the other are kept in blocks without idle lanes if
    `keeps_rows`.
    """

    nest: loop.ParallelOp | None
    widths: tuple[int, ...]
    piece: int
    warps: int
    stages: int = PIPELINE_STAGES
    registers: int | None = None
    keeps_rows: bool = False
    shortest: int = SHORT_EXTENT

    @property
    def counts(self) -> tuple[Expr, ...]:
        """Programs along each dim."""
        sizes = () if self.nest is None else self.nest.sizes
        return tuple(ceildiv(size, width) for size, width in zip(sizes, self.widths, strict=True))

    @property
    def grid(self) -> Expr:
        return product(self.counts)

    @property
    def positions(self) -> tuple[Expr, ...]:
        """The number of a program along each dim, from its number."""
        return delinearize(dim(0), self.counts)


class GridPlanner:
    """Chooses the plan of one kernel."""

    def __init__(self, model: KernelModel, target: Target):
        self.model = model
        self.target = target
        self.sizes = model.sizes

    def plan(self) -> GridPlan:
        nests = nests_of(self.model.kernel.block)
        if not nests:
            return GridPlan(None, (), PIECE_ELEMENTS, warps=1)
        nest = nests[0] if len(nests) == 1 else None
        if not isinstance(nest, loop.ParallelOp) or nest is not self.model.kernel.block.last_op or not nest.rank:
            return GridPlan(None, (), PIECE_ELEMENTS, self.warps(PIECE_ELEMENTS))
        if is_leaf(nest):
            return self.pointwise(nest)
        return self.rows(nest)

    def warps(self, elements: int) -> int:
        """Warps for blocks of that many of the elements of which most bytes are read or written."""
        wanted = self.bytes_of(elements) // WARP_BYTES
        most = 2 * MOST_WARPS if elements > LONG_ROW else MOST_WARPS
        return max(1, min(power_of_two(wanted + 1) // 2, most))

    def bytes_of(self, elements: int) -> int:
        """Of so many of the elements of which most bytes are read or written."""
        _, bits = max(((access.trips * access.bits, access.bits) for access in self.model.accesses), default=(0, 32))
        return elements * min(bits, 64) // 8

    # -- points ----------------------------------------------------------------------------------

    def pointwise(self, nest: loop.ParallelOp) -> GridPlan:
        crossed = contiguous_dims(nest, self.model)
        if len(crossed) > 1 and all(self.sizes.likely(nest.sizes[k]) >= SHORT_EXTENT for k in crossed[:2]):
            widths = [1] * nest.rank
            for k in crossed[:2]:
                widths[k] = min(CROSSED_SIDE, power_of_two(self.sizes.likely(nest.sizes[k])))
            return GridPlan(nest, tuple(widths), PIECE_ELEMENTS, self.warps(widths[crossed[0]] * widths[crossed[1]]))
        first = crossed[0] if crossed else nest.rank - 1
        return self.points(nest, first, self.points_at_once(nest, first))

    def points_at_once(self, nest: loop.ParallelOp, first: int) -> int:
        reads = [access for access in self.model.accesses if isinstance(access.op, loop.ReadOp)]
        bits = sum(access.elements * access.bits for access in reads)
        if 0 < bits < POINT_BITS * self.sizes.volume(nest.sizes):
            return 2 * POINTS
        apart = sum(is_apart(access, nest.indices[first]) for access in reads)
        return POINTS // max(1, min(apart // APART, 2) * 2)

    def points(self, nest: loop.ParallelOp, first: int, budget: int) -> GridPlan:
        """Programs of about `budget` points on up to four warps, each thread of which has one at least."""
        widths = self.spread(nest, first, budget)
        return GridPlan(nest, widths, PIECE_ELEMENTS, max(1, min(4, prod(widths) // 32)))

    def spread(self, nest: loop.ParallelOp, first: int, budget: int) -> tuple[int, ...]:
        """Widths of about `budget` elements: along one dim as far as it goes, the rest along those outside of it."""
        widths = [1] * nest.rank
        for k in (first, *(k for k in range(nest.rank)[::-1] if k != first)):
            widths[k] = self.fitting_width(nest.sizes[k], budget)
            budget //= widths[k]
        return tuple(widths)

    def fitting_width(self, size: Expr, most: int) -> int:
        """The widest power of two, of which few enough lanes lie beyond the end of the dim."""
        extent = max(self.sizes.likely(size), 1)
        width = min(power_of_two(extent), most)
        while width > 32 and -(-extent // width) * width > extent * 9 // 8:
            width //= 2
        return width

    # -- rows ------------------------------------------------------------------------------------

    def rows(self, nest: loop.ParallelOp) -> GridPlan:
        """Programs of whole rows, of points with short inner loops, or of columns."""
        contiguous = contiguous_dims(nest, self.model)
        length = self.axis_volume(nest)
        dense = length >= LEAST_ROW and self.is_dense(nest, length) and not self.is_along(nest, contiguous)
        if length < SHORT_EXTENT and not dense:
            first = contiguous[0] if contiguous else nest.rank - 1
            return self.points(nest, first, LOOPING_POINTS)
        widths = [1] * nest.rank
        inner = power_of_two(length)
        if self.is_along(nest, contiguous):
            column = contiguous[0]
            widths[column] = self.columns_at_once(nest, column)
            return GridPlan(nest, tuple(widths), PIECE_ELEMENTS, COLUMN_WARPS)
        row = nest.rank - 1
        widths[row] = self.rows_at_once(nest, inner)
        kept = keeps_rows(nest)
        elements = widths[row] * (sum(blocks_of(length)) if kept else inner)
        if elements > RESIDENT_ELEMENTS or not is_held(nest):
            warps = self.row_warps(nest, min(elements, PIECE_ELEMENTS))
            return GridPlan(nest, tuple(widths), PIECE_ELEMENTS, warps)
        if kept and self.is_long(nest, elements):
            most = REGISTERS if elements > LONG_ROW else None
            return GridPlan(nest, tuple(widths), RESIDENT_ELEMENTS, FEW_WARPS, registers=most, keeps_rows=True)
        if self.fills_programs(nest, inner):
            widths[row] = min(PROGRAM_BYTES // self.bytes_of(inner), power_of_two(self.sizes.likely(nest.sizes[row])))
            return GridPlan(nest, tuple(widths), RESIDENT_ELEMENTS, MOST_WARPS, keeps_rows=kept)
        warps, shortest = self.row_warps(nest, elements), min(length, SHORT_EXTENT)
        return GridPlan(nest, tuple(widths), RESIDENT_ELEMENTS, warps, keeps_rows=kept, shortest=shortest)

    def is_along(self, nest: loop.ParallelOp, contiguous: list[int]) -> bool:
        """Whether memory is contiguous along a dim of the nest, given those dims, rather than inside of it."""
        return bool(contiguous) and mostly_contiguous(nest, contiguous[0], self.model)

    def is_dense(self, nest: loop.ParallelOp, length: int) -> bool:
        """Whether short rows lie side by side, and do not overlap as windows do: threads that take elements, and not
        rows, then read neighbours."""
        rows = [
            access
            for access in self.model.accesses
            if any(access.stride(index) == ONE for index in access.indices if index not in nest.indices)
        ]
        steps = [access.stride(index) for access in rows for index in nest.indices]
        overlaps = [step is None or (step.is_constant and 0 < step.constant < length) for step in steps]
        return bool(rows) and not any(overlaps)

    def fills_programs(self, nest: loop.ParallelOp, inner: int) -> bool:
        """Whether one or two rows of up to 4096 elements, of one tensor and written, are what a program takes best,
        and programs are many even so."""
        alone = self.axes(nest) == 1 and self.held(nest, inner) == inner and self.is_written()
        together = PROGRAM_BYTES // self.bytes_of(inner)
        fits = inner <= PIECE_ELEMENTS and together in (1, 2)
        return alone and fits and self.sizes.volume(nest.sizes) >= 2 * together * self.target.cores

    def is_long(self, nest: loop.ParallelOp, elements: int) -> bool:
        """Whether a kept row leaves no room for another program of as many threads as usual. Of narrow elements rows
        come twice as fast, so that half as many have threads wait for each other."""
        held = self.held(nest, elements)
        if elements > LONG_ROW:
            return held <= HELD * 32 * FEW_WARPS
        narrow = all(access.bits < POINT_BITS for access in self.model.accesses if access.elements >= elements)
        return narrow and 2 * elements > LONG_ROW and held <= LONG_ROW

    def held(self, nest: loop.ParallelOp, elements: int) -> int:
        """Registers that hold a row of so many elements of each tensor that its reductions read."""
        inside = [access for access in self.model.accesses if isinstance(access.op.parent_op(), loop.ReduceOp)]
        longest = max((access.elements for access in inside), default=0)
        kept = {access.tensor: max(access.bits // 32, 1) for access in inside if access.elements == longest}
        return elements * sum(kept.values())

    def row_warps(self, nest: loop.ParallelOp, elements: int) -> int:
        """Few warps where threads reduce what they hold; half as many as usual where nothing but results is stored."""
        if self.axes(nest) > 1:
            return max(2, min(power_of_two(elements // (32 * COLUMN_ELEMENTS) + 1) // 2, MOST_WARPS))
        warps = self.warps(elements)
        return warps if self.is_written() else max(1, warps // 2)

    def is_written(self) -> bool:
        """Whether rows are written, and not some numbers of each."""
        moved = {
            kind: max((access.elements for access in self.model.accesses if isinstance(access.op, kind)), default=0)
            for kind in (loop.ReadOp, loop.WriteOp)
        }
        return 8 * moved[loop.WriteOp] >= moved[loop.ReadOp]

    def columns_at_once(self, nest: loop.ParallelOp, column: int) -> int:
        """As many as are contiguous, or fewer where all multiprocessors can then take part in little work."""
        wanted = min(COLUMNS, power_of_two(self.sizes.likely(nest.sizes[column])))
        points = self.sizes.volume(nest.sizes)
        while wanted > LEAST_COLUMNS and points // wanted < self.target.cores and self.model.work < LITTLE_WORK:
            wanted //= 2
        return wanted

    def rows_at_once(self, nest: loop.ParallelOp, inner: int) -> int:
        """Short rows go together, as long as all multiprocessors stay busy."""
        points = self.sizes.volume(nest.sizes)
        wanted = max(1, ROW_ELEMENTS // inner)
        while wanted > 1 and points // wanted < 2 * self.target.cores:
            wanted //= 2
        return min(wanted, power_of_two(self.sizes.likely(nest.sizes[-1])))

    def axes(self, nest: loop.NestOp) -> int:
        """How many nests run along axes one inside of the other."""
        inner = nests_of(nest.block)
        return max(
            (self.axes(one) + (axis_position(one, self.model) is not None) for one in inner),
            default=0,
        )

    def axis_volume(self, nest: loop.NestOp) -> int:
        """Elements of the largest block that nests inside of one could run over."""
        volumes = [1]
        for inner in nests_of(nest.block):
            position = axis_position(inner, self.model)
            extent = 1 if position is None else self.sizes.likely(inner.sizes[position])
            volumes.append(extent * self.axis_volume(inner))
        return max(volumes)


def is_apart(access: Access, index: SSAValue) -> bool:
    """Whether neighbours along an index access places that are neither one nor beside each other."""
    step = access.stride(index)
    computed = any(extent_of(other) is None for other in access.indices)
    return step not in (ZERO, ONE) or (step == ZERO and computed)


def is_held(nest: loop.ParallelOp) -> bool:
    """Whether a nest inside of one makes something of its whole row: a sum or a running one."""
    return any(isinstance(op, loop.ReduceOp | loop.ForOp) for op in all_ops(nest.block))


def keeps_rows(nest: loop.ParallelOp) -> bool:
    """Whether several nests inside of one, of known sizes, read the same tensor."""
    inside = [op for op in all_ops(nest.block) if isinstance(op, loop.NestOp)]
    read = [{op.source for op in inner.block.ops if isinstance(op, loop.ReadOp)} for inner in inside]
    known = all(size.is_constant for inner in inside for size in inner.sizes)
    return known and sum(map(len, read)) > len(set().union(*read))


# -- axes --------------------------------------------------------------------------------------------


def axis_position(nest: loop.NestOp, model: KernelModel) -> int | None:
    """The dim of an inner nest that runs along an axis: that which is contiguous, if nests inside are not."""
    if isinstance(nest, loop.ForOp):
        return 0 if is_leaf(nest) and scan_of(nest) is not None else None
    if not nest.rank:
        return None
    if is_leaf(nest):
        return leaf_axis(nest, model)
    found = contiguous_dims(nest, model)
    return found[0] if found and mostly_contiguous(nest, found[0], model) else None


def leaf_axis(nest: loop.NestOp, model: KernelModel) -> int:
    """The dim of an innermost nest of which many lanes run at once, if need be past each other in memory; the last at a
    tie."""
    inside = [access for access in model.accesses if access.op.parent is nest.block]

    def cost(position: int) -> tuple[float, int]:
        index = nest.indices[position]
        lanes = min(model.sizes.likely(nest.sizes[position]), LEAST_BLOCK)
        apart = sum(access.stride(index) not in (ZERO, ONE) for access in inside)
        return (len(inside) + (APART_COST - 1) * apart) / max(lanes, 1), -position

    return min(range(nest.rank), key=cost)


def contiguous_dims(nest: loop.NestOp, model: KernelModel) -> list[int]:
    """Dims along which accesses are contiguous, those of the most bytes first."""
    weights: dict[int, int] = {}
    for access in model.accesses:
        for k, index in enumerate(nest.indices):
            if access.stride(index) == ONE:
                weights[k] = weights.get(k, 0) + access.elements * access.bits
                break
    most = max(weights.values(), default=0)
    found = [k for k, weight in weights.items() if 8 * weight >= most]
    return sorted(found, key=lambda k: (-weights[k], -k))


def mostly_contiguous(nest: loop.NestOp, position: int, model: KernelModel) -> bool:
    """Whether more of the memory inside of a nest is contiguous along its dim than along inner ones."""
    index = nest.indices[position]
    outside = inside = 0
    for access in model.accesses:
        weight = access.elements * access.bits
        if access.stride(index) == ONE:
            outside += weight
        elif nest.is_ancestor(access.op) and any(
            other not in nest.indices and access.stride(other) == ONE for other in access.indices
        ):
            inside += weight
    return outside > inside


__all__ = ["GridPlan", "GridPlanner", "axis_position", "blocks_of", "power_of_two"]

"""Chooses the lane dimension and the block width of a kernel by a cost model.

The cost of a schedule counts executed instructions: an op that runs along lanes counts once per block, others
once per iteration; a block access costs by its stride.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Expr
from ..analysis.accesses import enclosing_nests, is_leaf
from ..analysis.sizes import BYTE, Sizes
from .model import Access, KernelModel

CONTIGUOUS, REPEATED, STRIDED = 1.0, 0.5, 16.0
"""Cost of a block access whose lanes are neighbours, are one place, or lie apart."""

SHORT_BODY = 6
"""Operations up to which a body is short."""

SHORT_REGISTERS = 4
"""Registers per block of a short body: several accumulators, and little loop."""

LONG_BITS = 1024
"""Bits per block of a long body: two registers of 512, or four of 256. Each operation waits for the one before, which
so many registers hide; more of them make more code than they save time."""


@dataclass(frozen=True)
class LaneChoice:
    """`index` runs along lanes in the whole kernel; None: each innermost nest along one of its own."""

    index: SSAValue | None
    cost: float


def access_cost(access: Access, index: SSAValue) -> float:
    stride = access.stride(index)
    if stride == ONE:
        return CONTIGUOUS
    return REPEATED if stride == ZERO else STRIDED


ELEMENT_BYTES = (4, 8)
"""What the elements have, at least and at most, that a kernel's lanes are counted by."""

FULL_BLOCKS = 4
"""Blocks that a loop goes over from which on they may be of several registers, and the last one incomplete."""

COUNTED_LANES = 16
"""Lanes beyond which more of them do not speak for a dim."""

ROW_END = 8
"""Operations that it takes to combine lanes at the end of a row."""


def machine_lanes(model: KernelModel, vector_bits: int) -> int:
    """Lanes of one register for the widest element that innermost nests read or write along their last index."""
    widest, most = ELEMENT_BYTES
    for access in model.accesses:
        nest = access.op.parent_op()
        if isinstance(nest, loop.NestOp) and is_leaf(nest) and access.stride(nest.indices[-1]) != ZERO:
            widest = max(widest, min(access.bytes, most))
    return vector_bits // (BYTE * widest)


ITERATION_COST = 1
"""What an iteration costs beside its accesses, of which one to neighbours costs as much."""

LEAST_WIDTH = 2
"""Elements of the shortest block."""


def registers_of(work: int, vector_bits: int) -> int:
    """Registers per block of a nest whose body does that much work."""
    return SHORT_REGISTERS if work <= SHORT_BODY else min(LONG_BITS // vector_bits, SHORT_REGISTERS)


def block_width(size: Expr, sizes: Sizes, *, lanes: int, registers: int) -> int:
    """The widest block of whole registers that the size fills; below one register the next power of two."""
    extent = sizes.likely(size)
    if extent < lanes:
        return max(LEAST_WIDTH, 1 << (extent - 1).bit_length()) if size.is_constant else lanes
    width = lanes * registers
    while width > lanes and extent < FULL_BLOCKS * width and (not size.is_constant or extent % width):
        width //= 2
    return width


def leaf_lane(nest: loop.NestOp, model: KernelModel) -> int:
    """The dimension of an innermost nest whose lanes make its accesses cheapest; the last at a tie."""
    inside = [(access, _share(access, nest, model)) for access in model.accesses if access.op.parent is nest.block]

    def cost(position: int) -> tuple[float, int]:
        index = nest.indices[position]
        lanes_used = min(model.sizes.volume([nest.sizes[position]]), COUNTED_LANES)
        total = sum(access_cost(access, index) * share for access, share in inside) + ITERATION_COST
        return total / lanes_used, -position

    return min(range(nest.rank), key=cost)


def _share(access: Access, nest: loop.NestOp, model: KernelModel) -> float:
    """Of a nest's iterations, in how many an access is at another place than in the one before."""
    used = [position for position, index in enumerate(nest.indices) if index in access.indices]
    return 1 / model.sizes.volume(nest.sizes[max(used, default=-1) + 1 :])


def own_lane(nest: loop.NestOp, model: KernelModel) -> int | None:
    """The dim of a nest that runs along lanes where none around it does; None: nests inside have their own.

    Around others it is a dim along which memory is contiguous, if that makes all accesses inside cheaper: as where
    channels are neighbours, and sums of each are over what lies apart.
    """
    if is_leaf(nest):
        return None if isinstance(nest, loop.ForOp) else leaf_lane(nest, model)
    if isinstance(nest, loop.ForOp) or any(isinstance(op, loop.LocalOp) for op in nest.walk()):
        return None
    inside = [access for access in model.accesses if nest.is_ancestor(access.op)]
    least = sum(access.trips * _cost_inside(access, nest, model) for access in inside)
    found = None
    for position, index in enumerate(nest.indices):
        lanes = min(model.sizes.volume([nest.sizes[position]]), COUNTED_LANES)
        cost = sum(access.trips * access_cost(access, index) for access in inside) / lanes
        if cost < least:
            least, found = cost, position
    return found


def _cost_inside(access: Access, nest: loop.NestOp, model: KernelModel) -> float:
    """What each trip of an access costs where lanes run along dims of nests inside of one."""
    around = access.op.parent_op()
    while isinstance(around, loop.NestOp) and around is not nest:
        position = own_lane(around, model)
        if position is not None:
            lanes = min(model.sizes.volume([around.sizes[position]]), COUNTED_LANES)
            return access_cost(access, around.indices[position]) / lanes
        around = around.parent_op()
    return 1.0


def choose_lane(parallel: loop.ParallelOp, model: KernelModel, lanes: int) -> LaneChoice:
    """The cheapest lane: one of the parallel indices, the last at a tie, or the innermost nests' own."""
    choices = [_parallel_choice(parallel, position, model, lanes) for position in reversed(range(parallel.rank))]
    if not is_leaf(parallel):
        choices.append(LaneChoice(None, _row_cost(model, lanes)))
    best = min(choices, key=lambda choice: choice.cost)
    return best


def _efficiency(extent: int, lanes: int) -> float:
    """Share of lanes that do useful work."""
    return extent / (-(-extent // lanes) * lanes)


def _parallel_choice(parallel: loop.ParallelOp, position: int, model: KernelModel, lanes: int) -> LaneChoice:
    index = parallel.indices[position]
    useful = lanes * _efficiency(model.sizes.volume([parallel.sizes[position]]), lanes)
    cost = sum(trips for _, trips in model.scalar_ops) / useful
    cost += sum(access.trips * access_cost(access, index) for access in model.accesses) / useful
    return LaneChoice(index, cost)


def _row_cost(model: KernelModel, lanes: int) -> float:
    cost = 0.0
    lane_of: dict[object, tuple[SSAValue, float]] = {}
    for nest in model.nests:
        around = enclosing_nests(nest)
        position = leaf_lane(nest, model) if is_leaf(nest) else own_lane(nest, model) if around else None
        if position is None or any(outer.block in lane_of for outer in around):
            continue
        extent = model.sizes.volume([nest.sizes[position]])
        for inner in (nest, *(op for op in nest.walk() if isinstance(op, loop.NestOp))):
            lane_of[inner.block] = (nest.indices[position], lanes * _efficiency(extent, lanes))
        cost += _runs(nest, model) * ROW_END
    for op, trips in model.scalar_ops:
        cost += trips / lane_of[op.parent][1] if op.parent in lane_of else trips
    for access in model.accesses:
        if access.op.parent in lane_of:
            index, useful = lane_of[access.op.parent]
            cost += access.trips * access_cost(access, index) / useful
        else:
            cost += access.trips
    return cost


def _runs(nest: loop.NestOp, model: KernelModel) -> int:
    """How often the nest is entered."""
    runs, parent = 1, nest.parent_op()
    while isinstance(parent, loop.NestOp):
        runs *= model.sizes.volume(parent.sizes)
        parent = parent.parent_op()
    return runs

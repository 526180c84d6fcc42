"""How long a product of matrices takes on a GPU under each schedule, and whether a library would take less.

Numbers were fitted to products that an H200 computed, of whose rate each multiprocessor has its share.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.product_schedule import ProductSchedule
from ...ir.target import Target

CORE_RATE = 7.5e12
"""Operations a second of the matrix unit of one multiprocessor, on bf16 or f16."""

LANE_RATE = 0.41e12
"""Operations a second of the lanes of one multiprocessor: of what follows a sum, and on factors of f32, which matrix
units would round."""

HIDDEN = 0.25
"""The share of what follows a sum that costs no time where another program of the multiprocessor sums up meanwhile."""

MOST_AT_ONCE = 2
"""Programs of one multiprocessor, of which one sums up while the other finishes a tile."""

RESERVED_BYTES = 1 << 10
"""Shared memory that each program takes besides."""

BANDWIDTH = 3.6e12
"""Bytes a second from memory."""

START_SECONDS = {False: 3.9e-6, True: 7e-6}
"""What a launch takes besides its steps: without descriptors, and with them, which every program makes first."""

LIBRARY_SECONDS = 6e-6
"""What a call of the library takes more than a launch beside others: arguments, the choice of a kernel, a call from
Python."""

LIBRARY_SHARE = 0.8
"""Of the matrix units' rate, what a library reaches whatever the shape: it can share out sums, too."""

SLACK = 1.15
"""By how much a kernel of ours may seem slower, for it spares what follows it a way through memory."""

FEW_ROWS = 4
"""Rows of a product that is no more than a walk over the other factor: a reduction, and not worth a matrix unit."""

LEAST_SIZE = 16
"""Rows, columns and summands from which matrix units are used."""

MARGIN = 1 << 10
"""Bytes of shared memory that barriers and small conversions take."""

EFFICIENCY: dict[ProductSchedule, float] = {
    ProductSchedule(128, 256, 64, warps=8, stages=4, descriptors=True): 0.84,
    ProductSchedule(128, 256, 64, warps=8, stages=3, descriptors=True): 0.84,
    ProductSchedule(128, 128, 64, warps=4, stages=3, descriptors=True): 0.80,
    ProductSchedule(128, 128, 64, warps=8, stages=4): 0.80,
    ProductSchedule(64, 256, 64, warps=4, stages=4): 0.75,
    ProductSchedule(64, 128, 64, warps=4, stages=4): 0.70,
    ProductSchedule(128, 64, 64, warps=4, stages=4): 0.60,
    ProductSchedule(64, 64, 64, warps=4, stages=5): 0.45,
}
"""Schedule → its share of the matrix units' rate once it runs. The order is that of preference at a tie."""

WIDE_EFFICIENCY: dict[ProductSchedule, float] = {
    ProductSchedule(32, 32, 32, warps=4, stages=3): 0.25,
    ProductSchedule(16, 16, 32, warps=2, stages=4): 0.18,
    ProductSchedule(32, 32, 16, warps=4, stages=4): 0.24,
    ProductSchedule(16, 16, 16, warps=2, stages=4): 0.17,
}
"""The same for f32, of the rate of the lanes: small tiles alone, since what is large is the library's."""

CHAINS = 8
"""Chains of additions that a sum of f32 consists of, if steps can be so short: each step is one. So it rounds no more
than the library does on an H200; in two chains of 32 it rounds 1.3 times as much."""

WIDE_BYTES = 4
"""Of an element of f32."""


@dataclass(frozen=True)
class ProductSize:
    """`batch` products of `rows` × `depth` and `depth` × `columns`, of elements of so many bytes."""

    batch: int
    rows: int
    columns: int
    depth: int
    element_bytes: int = field(kw_only=True)

    @property
    def is_wide(self) -> bool:
        return self.element_bytes >= WIDE_BYTES

    @property
    def operations(self) -> float:
        return 2.0 * self.batch * self.rows * self.columns * self.depth

    @property
    def bytes(self) -> float:
        """Of factors and result."""
        factors = self.rows * self.depth + self.depth * self.columns
        return float(self.element_bytes) * self.batch * (factors + self.rows * self.columns)


LEAST_EFFICIENCY = min(EFFICIENCY.values())


def peak(size: ProductSize) -> float:
    """Operations a second of one multiprocessor, on elements of that size."""
    return LANE_RATE if size.is_wide else CORE_RATE


@dataclass(frozen=True)
class Epilogue:
    """What follows the sum, for each element of the result: bytes that it moves, operations that it takes."""

    bytes: int = 2
    work: int = 0


ROUNDING = Epilogue()
"""What follows a product alone."""


def programs_at_once(schedule: ProductSchedule, epilogue: Epilogue, target: Target) -> int:
    """Programs that run on one multiprocessor at the same time."""
    return max(1, min(MOST_AT_ONCE, target.l1_bytes // (schedule.needed_bytes(epilogue.bytes) + RESERVED_BYTES)))


def seconds(size: ProductSize, schedule: ProductSchedule, target: Target, epilogue: Epilogue = ROUNDING) -> float:
    """What a kernel under the schedule takes, all multiprocessors going through their tiles one after the other."""
    tiles = size.batch * -(-size.rows // schedule.rows) * -(-size.columns // schedule.columns)
    rounds, points = -(-tiles // target.cores), schedule.rows * schedule.columns
    rate = peak(size) * (EFFICIENCY | WIDE_EFFICIENCY).get(schedule, LEAST_EFFICIENCY)
    sums = rounds * -(-size.depth // schedule.depth) * 2.0 * points * schedule.depth / rate
    shown = 1.0 if programs_at_once(schedule, epilogue, target) == 1 else 1.0 - HIDDEN
    finish = rounds * points * epilogue.work / LANE_RATE * shown
    return max(sums + finish, size.bytes / BANDWIDTH) + START_SECONDS[schedule.descriptors]


def candidates(epilogue: Epilogue, target: Target) -> list[ProductSchedule]:
    """The schedules for narrow floats that fit the shared memory."""
    needed = {schedule: schedule.needed_bytes(epilogue.bytes) for schedule in EFFICIENCY}
    fitting = [schedule for schedule in EFFICIENCY if needed[schedule] <= target.l1_bytes - MARGIN]
    return fitting or [min(EFFICIENCY, key=lambda schedule: needed[schedule])]


def wide_candidates(depth: int) -> list[ProductSchedule]:
    """The schedules for f32, in steps that make enough chains of a sum of so many products."""
    steps = sorted({schedule.depth for schedule in WIDE_EFFICIENCY})
    step = max((one for one in steps if one * CHAINS <= depth), default=steps[0])
    return [schedule for schedule in WIDE_EFFICIENCY if schedule.depth == step]


def best_schedule(size: ProductSize, target: Target, epilogue: Epilogue = ROUNDING) -> ProductSchedule:
    """The schedule under which the product takes the least time."""
    offered = wide_candidates(size.depth) if size.is_wide else candidates(epilogue, target)
    return min(offered, key=lambda schedule: seconds(size, schedule, target, epilogue))


def library_seconds(size: ProductSize, target: Target) -> float:
    """What a library takes, with all that a call of it costs."""
    rate = LIBRARY_SHARE * peak(size) * target.cores
    return max(size.operations / rate, size.bytes / BANDWIDTH) + START_SECONDS[False] + LIBRARY_SECONDS


def is_ours(size: ProductSize, target: Target) -> bool:
    """Whether a kernel of ours should compute the product."""
    if size.rows <= FEW_ROWS:
        return size.batch == 1 and not size.is_wide
    if min(size.columns, size.depth) < LEAST_SIZE:
        return False
    return seconds(size, best_schedule(size, target), target) <= SLACK * library_seconds(size, target)


__all__ = [
    "EFFICIENCY",
    "FEW_ROWS",
    "WIDE_EFFICIENCY",
    "Epilogue",
    "ProductSize",
    "best_schedule",
    "candidates",
    "is_ours",
    "library_seconds",
    "programs_at_once",
    "seconds",
    "wide_candidates",
]

"""The cost model of fusion: bytes between kernels first, then limits that keep kernels compilable and rows hot.

Sizes count at their hints. A kernel moves each tensor that it reads once, however many of its nests read it,
because nests of one iteration find it in cache; fusion holds to that by the limit on what stays hot.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...ir import loop
from .accesses import buffer_sizes, enclosing_nests, extent_of, index_operands
from .sizes import Sizes, element_bytes

MAX_OPS = 400
"""Scalar ops of one kernel: beyond that registers spill and compile time grows."""

MAX_TENSORS = 24
"""Tensors that one kernel reads and writes: each needs a pointer in a register."""

HOT_SHARE = 2
"""What one iteration may touch in several nests, or keep in locals, as a multiple of a core's own cache: what does
not fit comes from the next level, which is still nearer than memory."""

LAUNCH_BYTES = 32 << 10
"""What could be moved in the time that it takes to start a kernel, about 2 µs."""

MIN_SHARE = 1 / 16
"""Siblings fuse from this share of the smaller kernel's bytes on."""

SMALL_BYTES = 128 << 10
"""Shared bytes up to which one core is enough anyway, so that fusing may take away parallelism."""

TASKS_PER_CORE = 2
"""Iterations that keep one core busy to the end, where they take different times."""

CHEAP_COPY_OPS = 16
"""Ops that may be computed again for each reader, where a reader repeats none of its indices."""

CHEAP_REPEATED_OPS = 6
"""Ops that may be computed again along the indices which a read does not use."""

EXPENSIVE: tuple[type[Operation], ...] = (
    arith.DivfOp,
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    loop.PhiloxOp,
)
CHEAP_MATH: tuple[type[Operation], ...] = (
    math.AbsFOp,
    math.AbsIOp,
    math.CopySignOp,
    math.FmaOp,
    math.FloorOp,
    math.CeilOp,
    math.TruncOp,
)


def is_expensive(op: Operation) -> bool:
    """Whether computing the op twice costs more than a load: transcendentals, divisions, gathers, nests."""
    if isinstance(op, loop.ReadOp):
        return any(extent_of(index) is None for index in index_operands(op))
    if isinstance(op, EXPENSIVE) or op.regions:
        return True
    return op.dialect_name() == "math" and not isinstance(op, CHEAP_MATH)


def width_of(value: SSAValue) -> int:
    """Bytes of an element of a tensor or buffer."""
    return element_bytes(value.type.element_type)  # type: ignore[attr-defined]


def tensor_bytes(value: SSAValue, sizes: Sizes) -> int:
    return sizes.volume(buffer_sizes(value)) * width_of(value)


def read_bytes(reads: Iterable[loop.ReadOp], sizes: Sizes) -> int:
    """What reads of one tensor bring in: at most all of it, at most one element per point of their indices."""
    total, whole = 0, 0
    for read in reads:
        whole = whole or tensor_bytes(read.operands[0], sizes)
        extents = [extent_of(index) for index in index_operands(read)]
        if None in extents:  # computed indices: as often as the read runs
            extents = [size for nest in enclosing_nests(read) for size in nest.sizes]
        points = sizes.volume([extent for extent in extents if extent is not None])
        total = max(total, points * width_of(read.operands[0]))
    return min(total, whole)


def executions(read: loop.ReadOp, sizes: Sizes) -> int:
    """How often the read runs once it stands in the outermost nest that has its indices."""
    used = set(index_operands(read))
    nests = enclosing_nests(read)
    while nests and not used.intersection(nests[0].indices) and not _computed(used):
        nests.pop(0)
    return sizes.volume([size for nest in nests for size in nest.sizes])


def _computed(indices: set[SSAValue]) -> bool:
    return any(extent_of(index) is None for index in indices)


def bytes_moved(kernel: loop.KernelOp) -> int:
    """Bytes that a kernel reads and writes, with each symbol at its hint."""
    sizes = Sizes.at(kernel)
    reads: dict[SSAValue, list[loop.ReadOp]] = {}
    for op in kernel.walk():
        if isinstance(op, loop.ReadOp) and isinstance(op.operands[0].type, TensorType):
            reads.setdefault(op.operands[0], []).append(op)
    copied = sum(tensor_bytes(value, sizes) for value in kernel.operands)
    written = sum(tensor_bytes(result, sizes) for result in kernel.results)
    return copied + written + sum(read_bytes(found, sizes) for found in reads.values())


__all__ = [
    "CHEAP_COPY_OPS", "CHEAP_REPEATED_OPS", "HOT_SHARE", "LAUNCH_BYTES", "MAX_OPS", "MAX_TENSORS", "MIN_SHARE",
    "SMALL_BYTES", "TASKS_PER_CORE", "bytes_moved", "executions", "is_expensive", "read_bytes", "tensor_bytes",
]  # fmt: skip

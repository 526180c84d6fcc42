"""The cost model of fusion: bytes between kernels first, then limits that keep kernels compilable and rows hot.

Sizes count at their hints. A kernel moves each element that it reads once, however many of its nests read it,
because nests of one iteration find it in cache; fusion holds to that by the limit on what stays hot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import dropwhile

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from ...ir import loop
from ...ir.shapes import MapAttr
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

LINE_BYTES = 64
"""A line of a processor's cache, or two sectors of a GPU's: what is moved whatever of it is used."""

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
WORK_PER_BYTE = 6
"""Operations that the lanes of an H200 do while its memory moves a byte."""

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
    """Whether computing the scalar twice costs more than a load: transcendentals, divisions, gathers."""
    if isinstance(op, loop.ReadOp):
        return any(extent_of(index) is None for index in index_operands(op))
    if isinstance(op, EXPENSIVE):
        return True
    return op.dialect_name() == "math" and not isinstance(op, CHEAP_MATH)


def width_of(value: SSAValue) -> int:
    """Bytes of an element of a tensor or buffer."""
    return element_bytes(value.type.element_type)  # type: ignore[attr-defined]


def tensor_bytes(value: SSAValue, sizes: Sizes) -> int:
    return sizes.volume(buffer_sizes(value)) * width_of(value)


def read_bytes(reads: Collection[loop.ReadOp], sizes: Sizes) -> int:
    """What reads of one tensor bring in: one element per point of the indices, once for all reads by one map, and at
    most the whole tensor. A read at computed places counts as often as it runs."""
    source, *_ = {read.source for read in reads}
    mapped: dict[MapAttr, int] = {}
    computed: list[int] = []
    for read in reads:
        extents = [extent for index in index_operands(read) if (extent := extent_of(index)) is not None]
        if len(extents) < len(index_operands(read)):
            computed.append(sizes.volume([size for nest in enclosing_nests(read) for size in nest.sizes]))
        else:
            points = sizes.volume(extents)
            mapped[read.access] = max(mapped.get(read.access, points), points)
    return min(sum((*computed, *mapped.values())) * width_of(source), tensor_bytes(source, sizes))


def executions(read: loop.ReadOp, sizes: Sizes) -> int:
    """How often the read runs once it stands in the outermost nest that has its indices."""
    used = set(index_operands(read))
    nests: Iterable[loop.NestOp] = enclosing_nests(read)
    if not _computed(used):
        nests = dropwhile(lambda nest: used.isdisjoint(nest.indices), nests)
    return sizes.volume([size for nest in nests for size in nest.sizes])


def _computed(indices: set[SSAValue]) -> bool:
    return any(extent_of(index) is None for index in indices)


def bytes_moved(kernel: loop.KernelOp) -> int:
    """Bytes that a kernel reads and writes, with each symbol at its hint.

    Two laws, which random programs check. The kernel's tiles load and store no more distinct elements, and just as many
    where each tensor is read by one map of plain indices, without guard. And fusion never raises the sum over kernels
    of bytes and `LAUNCH_BYTES`; the bytes alone rise where `loop-fuse-leftovers` copies a small kernel to its readers,
    which reads its inputs again and saves a launch.
    """
    sizes = Sizes.at(kernel)
    reads: dict[SSAValue, list[loop.ReadOp]] = {}
    for op in kernel.walk():
        if isinstance(op, loop.ReadOp) and isinstance(op.source.type, TensorType):
            reads.setdefault(op.source, []).append(op)
    copied = sum(tensor_bytes(value, sizes) for value in kernel.operands)
    written = sum(tensor_bytes(result, sizes) for result in kernel.results)
    return copied + written + sum(read_bytes(found, sizes) for found in reads.values())


__all__ = [
    "CHEAP_COPY_OPS", "CHEAP_REPEATED_OPS", "HOT_SHARE", "LAUNCH_BYTES", "MAX_OPS", "MAX_TENSORS", "MIN_SHARE",
    "SMALL_BYTES", "TASKS_PER_CORE", "bytes_moved", "executions", "is_expensive", "read_bytes", "tensor_bytes",
]  # fmt: skip

"""Stretches of kernels as native calls: which arguments a call takes, and which of them each kernel gets.

A call's arguments fill the first slots, constants the next, sums of two slots (workspace + offset) the last; each
kernel names the slots it gets.
"""

from __future__ import annotations

import builtins
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

from torch import Tensor
from torch.autograd.profiler import record_function
from xdsl.ir import SSAValue

from ..backends.interface import Code
from ..backends.native.launcher import ErrorRecord, Launch, Stretch
from ..ir import host
from ..ir.expr import Expr, product
from ..ir.host import BufferType
from .addresses import Places, addresses_of
from .python_text import expr_text

RELEASE_GIL_BYTES = 1 << 17
"""From that many bytes of operands on a stretch takes over 10 µs: other Python threads may run meanwhile."""

NEVER = 1 << 62
"""More programs than a kernel can have: all of them run on the calling thread."""


@dataclass(frozen=True)
class KernelCode:
    """What a launch needs of one compiled kernel: addresses (0: none) in the module that owns its code."""

    name: str
    owner: Code
    address: int
    grid: int
    static_grid: int
    finish: int
    errors: tuple[tuple[str, str], ...]


@dataclass
class Slots:
    """The slots of one stretch under construction."""

    known: Set[SSAValue] = frozenset()
    """The buffers of which addresses are passed, not tensors."""
    arguments: dict[SSAValue | Expr, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    sums: dict[tuple[SSAValue | Expr, SSAValue | Expr], int] = field(default_factory=dict)

    def add_operand(self, value: SSAValue) -> None:
        """A buffer: a tensor of the caller, or a place in the workspace."""
        if isinstance(value.owner, host.SlotOp):
            base, offset = value.owner.workspace, value.owner.byte_offset
            self.add_operand(base)
            self.add_symbol(offset)
            self.sums.setdefault((base, offset), len(self.sums))
        else:
            self.arguments.setdefault(value, len(self.arguments))

    @property
    def kinds(self) -> str:
        """What is passed: P for a tensor, i for a number."""
        return "".join("i" if isinstance(one, Expr) or one in self.known else "P" for one in self.arguments)

    def add_symbol(self, expr: Expr) -> None:
        if expr.is_constant:
            self.constants.setdefault(expr.constant, len(self.constants))
        else:
            self.arguments.setdefault(expr, len(self.arguments))

    def of(self, value: SSAValue | Expr) -> int:
        """The number of a slot, once all are known."""
        if isinstance(value, Expr):
            return len(self.arguments) + self.constants[value.constant] if value.is_constant else self.arguments[value]
        if isinstance(value.owner, host.SlotOp):
            key = (value.owner.workspace, value.owner.byte_offset)
            return len(self.arguments) + len(self.constants) + self.sums[key]
        return self.arguments[value]


@dataclass(frozen=True)
class StretchCall:
    """One native call, with the names and error tables of its kernels."""

    native: Stretch
    arguments: tuple[SSAValue | Expr, ...]
    codes: tuple[KernelCode, ...]

    @staticmethod
    def of(
        op: host.StretchOp,
        codes: Mapping[str, KernelCode],
        min_parallel_elements: int,
        known: Set[SSAValue] = frozenset(),
    ) -> StretchCall:
        """`known` are the buffers whose addresses the caller passes, not tensors."""
        slots = Slots(known)
        for run in op.runs:
            for operand in run.operands:
                slots.add_operand(operand)
            for symbol in run.symbol_values:
                slots.add_symbol(symbol)
        used = tuple(codes[run.kernel_name] for run in op.runs)
        launches = [_launch(run, code, slots, min_parallel_elements) for run, code in zip(op.runs, used, strict=True)]
        owners = tuple(code.owner for code in dict.fromkeys(used))
        return StretchCall(_native(slots, launches, op.runs, owners), tuple(slots.arguments), used)

    def argument_texts(self, values: Mapping[SSAValue, str]) -> list[str]:
        """What the plan passes, given the variables of its values."""
        return [expr_text(argument) if isinstance(argument, Expr) else values[argument] for argument in self.arguments]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Ranges of launches to call one by one: an error code tells the assertion, not the kernel, so no range
        has two kernels with assertions."""
        starts = [position for position, code in enumerate(self.codes) if code.errors][1:]
        ends = [*starts, len(self.codes)]
        return list(zip([0, *starts], ends, strict=True))

    def failing(self, first: int, last: int) -> KernelCode | None:
        """The kernel of that range that has assertions."""
        return next((code for code in self.codes[first:last] if code.errors), None)

    def run_profiled(self, first: int, last: int, *arguments: Any) -> ErrorRecord | None:
        """One kernel at a time, each in a range of its own for `torch.profiler`."""
        for position in range(first, last):
            with record_function(f"stepwell::{self.codes[position].name}"):
                error = self.native.call(position, position + 1, *arguments)
            if error is not None:
                return error
        return None


def raise_error(errors: Sequence[tuple[str, str]], record: ErrorRecord) -> None:
    """What eager raises for the assertion of that code in a kernel's table."""
    code, value = record
    exception, message = errors[code - 1]
    raise getattr(builtins, exception)(message.replace("{}", str(value)))


def _launch(run: host.RunOp, code: KernelCode, slots: Slots, min_parallel_elements: int) -> Launch:
    operands = tuple(slots.of(value) for value in (*run.operands, *run.symbol_values))
    serial_below = NEVER if _is_small(run, min_parallel_elements) else 2
    return Launch(code.address, operands, code.grid, code.static_grid, code.finish, serial_below)


def _buffer_types(run: host.RunOp) -> Iterator[BufferType]:
    return (operand.type for operand in run.operands if isinstance(operand.type, BufferType))


def _is_small(run: host.RunOp, min_parallel_elements: int) -> bool:
    """Whether no operand has enough elements to be worth a parallel region of 2 µs."""
    counts = [product(type_.sizes) for type_ in _buffer_types(run)]
    return all(count.is_constant and count.constant < min_parallel_elements for count in counts)


def _native(slots: Slots, launches: Sequence[Launch], runs: Sequence[host.RunOp], owners: Sequence[Code]) -> Stretch:
    return Stretch(
        slots.kinds,
        launches,
        constants=list(slots.constants),
        derived=[(slots.of(base), slots.of(offset)) for base, offset in slots.sums],
        release_gil=release_gil(runs),
        owners=owners,
    )


def release_gil(runs: Iterable[host.RunOp]) -> bool:
    """Whether the operands are so large, or of unknown size, that other Python threads should run meanwhile."""
    operands = {operand: operand.type for run in runs for operand in run.operands}
    spans = [type_.byte_span for type_ in operands.values() if isinstance(type_, BufferType)]
    return not all(span.is_constant for span in spans) or sum(span.constant for span in spans) >= RELEASE_GIL_BYTES


class Separator:
    """Copies what overlaps, for one place in a plan; what lies where it lay at the last call is not compared anew."""

    def __init__(self) -> None:
        self._apart: tuple[Sequence[int], Sequence[int], Places] | None = None
        """Of a call in which nothing overlapped."""

    def __call__(
        self, sources: Sequence[Tensor], sizes: Sequence[int], written: Sequence[Tensor], written_sizes: Sequence[int]
    ) -> tuple[Tensor | int, ...]:
        """The source tensors, those that overlap a written one in memory as copies, and the addresses of these and of
        the written ones; sizes are the bytes each spans."""
        tensors, apart = [*sources, *written], self._apart
        # Sizes that a plan knows are one object in all calls.
        known = apart[2] if apart is not None and apart[0] is sizes and apart[1] is written_sizes else None
        if known is not None and known.hold(tensors):
            return (*sources, *known.addresses)
        addresses = addresses_of(tensors)
        if known is not None and known.addresses == addresses:
            return (*sources, *addresses)
        places, written_places = tuple(addresses[: len(sources)]), tuple(addresses[len(sources) :])
        overlapping = _overlapping(places, tuple(sizes), written_places, tuple(written_sizes))
        if not overlapping:
            self._apart = sizes, written_sizes, Places(addresses)
            return (*sources, *addresses)
        found = list(sources)
        for position in overlapping:
            found[position] = found[position].clone()
            addresses[position] = found[position].data_ptr()
        return (*found, *addresses)


@lru_cache(maxsize=256)
def _overlapping(
    places: tuple[int, ...], sizes: tuple[int, ...], written: tuple[int, ...], written_sizes: tuple[int, ...]
) -> list[int]:
    """The positions of ranges that overlap a written one. Steps of a training loop ask for the same places."""
    ranges = sorted(zip(written, written_sizes, strict=True))
    starts = [start for start, _ in ranges]
    ends = list(accumulate((start + size for start, size in ranges), max))
    return [
        position
        for position, (start, size) in enumerate(zip(places, sizes, strict=True))
        if _overlaps(start, size, starts, ends)
    ]


def _overlaps(start: int, size: int, starts: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether some range begins before this one ends, and ends after this one begins; `ends` are running maxima."""
    before = bisect_left(starts, start + size)
    return before > 0 and ends[before - 1] > start

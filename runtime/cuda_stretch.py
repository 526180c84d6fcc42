"""Stretches of CUDA kernels as native calls: what each launch needs, and what to do where one cannot be queued.

The first argument of a call is the raw stream; addresses and sizes follow as on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch.autograd.profiler import record_function
from xdsl.ir import SSAValue

from ..backends.native.cuda_driver import ALIGNMENT, UNMADE
from ..backends.native.cuda_launcher import CudaLaunch, CudaStretch
from ..backends.native.launcher import ErrorRecord
from ..backends.triton.cuda import CudaKernel
from ..ir import host
from ..ir.expr import ZERO, Expr, const, maximum, symbol
from .cuda_errors import ErrorSlot
from .python_text import expr_text
from .stretch import Slots

STREAM, SCRATCH = symbol("stream"), symbol("scratch")
"""The variables of a plan that hold the raw stream, and the address of the scratch memory of a stretch."""


@dataclass(frozen=True)
class CudaCode:
    """What a launch needs of one kernel: its grid over `symbols`, which name its last arguments, and the positions of
    the arguments that were promised to be multiples of `ALIGNMENT`; where it records errors it takes their slot, too.
    """

    name: str
    kernel: CudaKernel
    grid: Expr
    symbols: tuple[str, ...]
    promised: tuple[int, ...]
    errors: ErrorSlot | None = None

    def programs(self, run: host.RunOp) -> Expr:
        """The grid of a run, in the symbols of its function."""
        values = dict(zip(self.symbols, run.symbol_values, strict=True))
        return self.grid.substitute(lambda leaf: values.get(leaf.args[0]))


@dataclass(frozen=True)
class CudaStretchCall:
    """One native call, with its kernels; `scratch_bytes` is the scratch memory that all its launches share."""

    native: CudaStretch
    arguments: tuple[SSAValue | Expr, ...]
    codes: tuple[CudaCode, ...]
    scratch_bytes: Expr

    @staticmethod
    def of(op: host.StretchOp, codes: Mapping[str, CudaCode], known: Set[SSAValue] = frozenset()) -> CudaStretchCall:
        """`known` are the buffers whose addresses the caller passes, not tensors."""
        used = tuple(codes[run.kernel_name] for run in op.runs)
        grids = [code.programs(run) for run, code in zip(op.runs, used, strict=True)]
        needed = [grid * code.kernel.cubin.scratch_bytes for grid, code in zip(grids, used, strict=True)]
        scratch_bytes = reduce(maximum, [size for size in needed if size != ZERO] or [ZERO])
        slots = _slots(op.runs, grids, _errors(used), scratch_bytes, known)
        launches = [_launch(*parts, slots) for parts in zip(op.runs, used, grids, strict=True)]
        return CudaStretchCall(_native(slots, launches, used), tuple(slots.arguments), used, scratch_bytes)

    @property
    def errors(self) -> list[ErrorSlot]:
        """The slots that its kernels may write."""
        return _errors(self.codes)

    @property
    def count(self) -> int:
        return len(self.codes)

    def argument_texts(self, values: Mapping[SSAValue, str]) -> list[str]:
        """What the plan passes, given the variables of its values."""
        return [expr_text(argument) if isinstance(argument, Expr) else values[argument] for argument in self.arguments]

    def run_profiled(self, first: int, last: int, *arguments: Any) -> None:
        """One kernel at a time, each in a range of its own for `torch.profiler`."""
        for position in range(first, last):
            with record_function(f"stepwell::{self.codes[position].name}"):
                record = self.native.call(position, position + 1, *arguments)
                if record is not None:
                    self.go_on(record, position + 1, *arguments)

    def go_on(self, record: ErrorRecord, last: int, *arguments: Any) -> None:
        """Makes the kernel that was missing and queues the rest; raises where CUDA refused."""
        failed: ErrorRecord | None = record
        while failed is not None:
            status, number = failed
            code = self.codes[number]
            if status != UNMADE:
                _raise(code, status)
            code.kernel.relax()
            failed = self.native.call(number, last, *arguments)


def _errors(codes: Iterable[CudaCode]) -> list[ErrorSlot]:
    return [code.errors for code in dict.fromkeys(codes) if code.errors is not None]


def _raise(code: CudaCode, status: int) -> None:
    """torch's own error where an earlier kernel failed, ours where this launch is at fault."""
    torch.cuda.synchronize(code.kernel.ordinal)
    raise code.kernel.driver.error(f"launch of {code.name}", status)


def _slots(
    runs: Sequence[host.RunOp],
    grids: Sequence[Expr],
    errors: Sequence[ErrorSlot],
    scratch_bytes: Expr,
    known: Set[SSAValue],
) -> Slots:
    slots = Slots(known)
    slots.add_symbol(STREAM)
    for run, grid in zip(runs, grids, strict=True):
        for operand in run.operands:
            slots.add_operand(operand)
        for value in (*run.symbol_values, grid):
            slots.add_symbol(value)
    for error in errors:
        slots.add_symbol(const(error.address))
    slots.add_symbol(ZERO)
    if scratch_bytes != ZERO:
        slots.add_symbol(SCRATCH)
    return slots


def _launch(run: host.RunOp, code: CudaCode, grid: Expr, slots: Slots) -> CudaLaunch:
    error = () if code.errors is None else (const(code.errors.address),)
    kernel, values = code.kernel, (*run.operands, *run.symbol_values, *error)
    scratch = SCRATCH if kernel.cubin.scratch_bytes else ZERO
    scratches = (scratch, ZERO)[: kernel.cubin.scratches]
    return CudaLaunch(
        kernel.cell,
        kernel.driver.context(kernel.ordinal),
        slots.of(STREAM),
        slots.of(grid),
        tuple(slots.of(value) for value in (*values, *scratches)),
        tuple(slots.of(values[position]) for position in code.promised if not _is_kept(values[position])),
    )


def _is_kept(value: SSAValue | Expr) -> bool:
    """Whether a promise needs no check: memory that the plan allocates itself is aligned."""
    if isinstance(value, Expr):
        return value.is_constant and value.constant % ALIGNMENT == 0
    return isinstance(value.owner, host.AllocOp | host.SlotOp)


def _native(slots: Slots, launches: Sequence[CudaLaunch], codes: Sequence[CudaCode]) -> CudaStretch:
    return CudaStretch(
        slots.kinds,
        launches,
        codes[0].kernel.driver.launch_addresses(),
        constants=list(slots.constants),
        derived=[(slots.of(base), slots.of(offset)) for base, offset in slots.sums],
        owners=tuple(dict.fromkeys(code.kernel for code in codes)),
    )

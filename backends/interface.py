"""What a backend is: something that makes machine code of tile kernels, in memory of this process."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..ir import tile
from ..ir.target import Target


class Code(Protocol):
    """Functions in memory, for as long as this object lives."""

    def address(self, symbol: str) -> int:
        """Of a function by its name; raises BackendError if there is none."""
        ...

    def assembly(self) -> str:
        """The code as text."""
        ...


@runtime_checkable
class Backend(Protocol):
    """Makes the code of single kernels, for the option `backend`; what it declines, the CPU backend compiles.

    The code has the functions that `backends.cpu.emit` describes: `k`, `k.grid` where the grid is not constant,
    `k.finish` where the kernel has a finish region. A symbol is one of these names.
    """

    def compile(self, kernel: tile.KernelOp, target: Target) -> Code | None:
        """The code of a kernel; None for one that it has no code for."""
        ...

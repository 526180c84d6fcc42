"""Targets of `xdsl-opt -t`: what the CPU backend makes of the tile kernels of a module, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ...ir import tile
from ...ir.errors import BackendError
from ...ir.target import target_of
from .emit import emit_kernel


def kernel_texts(module: ModuleOp, target: str) -> Iterator[str]:
    """The LLVM module of each kernel; raises BackendError where there is none to print."""
    kernels = [op for op in module.body.block.ops if isinstance(op, tile.KernelOp)]
    if not kernels:
        raise BackendError(
            f"target {target}",
            expected="a module with tile.kernel ops",
            got="none",
            hint="lower it first: the passes up to convert-loop-to-tile make them",
        )
    for kernel in kernels:
        yield emit_kernel(kernel, target_of(module))


@dataclass(frozen=True)
class LlvmTarget(Target):
    """LLVM IR of the module's tile kernels, a module each."""

    name = "llvm-ir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write("\n".join(kernel_texts(module, self.name)))


@dataclass(frozen=True)
class AssemblyTarget(Target):
    """Assembly of the module's tile kernels, for this machine or for a processor that is named.

    `asm{cpu="znver4"}` names one of this machine's family; another family needs its `triple`. The width of the
    vectors is the module's `#stepwell.target`, which the schedule has used already.
    """

    name = "asm"

    cpu: str | None = None
    features: str = ""
    triple: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from ..native.jit import emit_assembly  # LLVM takes longer to load than xdsl-opt to start

        for text in kernel_texts(module, self.name):
            output.write(emit_assembly(text, self.cpu, self.features, triple=self.triple))

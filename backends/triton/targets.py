"""Targets of `xdsl-opt -t`: the kernels of a module in the tt dialect, as Triton reads them and as it compiles them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ...ir import tt
from ...ir.errors import BackendError
from ...ir.tt.text import ttir


def functions(module: ModuleOp, target: str) -> Iterator[tt.FuncOp]:
    """The kernels; raises BackendError where there are none to print."""
    found = [op for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
    if not found:
        raise BackendError(
            f"target {target}",
            expected="a module with tt.func ops",
            got="none",
            hint="lower it first: convert-tile-to-tt makes them",
        )
    yield from found


@dataclass(frozen=True)
class TtirTarget(Target):
    """Triton's IR of the module's kernels, a module each."""

    name = "ttir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write("".join(map(ttir, functions(module, self.name))))


@dataclass(frozen=True)
class PtxTarget(Target):
    """PTX of the module's kernels for an architecture, as in `ptx{arch=90}`; Triton must be installed."""

    name = "ptx"

    arch: int = 90

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from .compiler import Job, ptx  # what compiles takes longer to load than xdsl-opt to start

        for function in functions(module, self.name):
            output.write(ptx(Job.of(function, self.arch)))

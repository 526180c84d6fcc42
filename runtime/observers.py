"""Those who look on while a graph compiles: what they are told, and the one that writes it all to files.

Nothing here changes what is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from ..ir import tile, tt
from ..ir.target import target_of
from ..lowering.pipelines import CPU, GPU, names_after
from .cuda_stretch import CudaCode
from .plan import Plan
from .stretch import KernelCode


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel as the op that its code was made from, as the text that LLVM or Triton got, and as machine code."""

    op: tile.KernelOp | tt.FuncOp
    text: str
    code: KernelCode | CudaCode

    @property
    def name(self) -> str:
        return self.code.name

    @property
    def level(self) -> str:
        """What its text is."""
        return "ttir" if isinstance(self.code, CudaCode) else "llvm"

    @property
    def stages(self) -> dict[str, str]:
        """Its code below the tile level."""
        below = {"tt": ir_text(self.op)} if isinstance(self.code, CudaCode) else {"asm": self.code.owner.assembly()}
        return {self.level: self.text} | below


@dataclass(frozen=True)
class CompiledGraph:
    """What one compile gave, with the seconds that each step took."""

    name: str
    module: ModuleOp
    plan: Plan
    kernels: tuple[CompiledKernel, ...]
    timings: dict[str, float]


class Recorder(Protocol):
    """Someone who looks on: gets the IR before each pass and after each stage, and the outcome."""

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None: ...

    def after(self, graph: str, stage: str, module: ModuleOp) -> None: ...

    def finished(self, graph: CompiledGraph) -> None: ...


def ir_text(*ops: Operation) -> str:
    """Ops as text, a name standing for one value in all of them."""
    stream = StringIO()
    printer = Printer(stream=stream)
    for number, op in enumerate(ops):
        printer.print_string("\n" if number else "")
        printer.print_op(op)
    return stream.getvalue()


SUFFIXES = {"llvm": "ll", "ttir": "ttir"}


class Dump:
    """Writes the IR before each pass and after each stage, the LLVM IR of each kernel and the plan to a folder.

    Each graph gets a folder of its own. The file of a pass begins with the command that runs it again, that of a stage
    with the one that leads from there to LLVM IR, or to Triton's.
    """

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        self.passes = count()

    @cached_property
    def folder(self) -> Path:
        """The first numbered folder that is free."""
        self.parent.mkdir(parents=True, exist_ok=True)
        for number in count():
            folder = self.parent / f"graph-{number}"
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
        raise AssertionError

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None:
        path = self.folder / f"{next(self.passes):02}-{pass_name}.mlir"
        path.write_text(f"// {graph} graph; xdsl-opt -p {pass_name} {path}\n{ir_text(module)}\n")

    def after(self, graph: str, stage: str, module: ModuleOp) -> None:
        gpu = target_of(module).is_gpu
        path, left = self.folder / f"{stage}.mlir", ",".join(names_after(stage, GPU if gpu else CPU))
        command = f"xdsl-opt{f' -p {left}' if left else ''} -t {'ttir' if gpu else 'llvm-ir'} {path}"
        path.write_text(f"// {graph} graph after stage {stage}; {command}\n{ir_text(module)}\n")

    def finished(self, graph: CompiledGraph) -> None:
        (self.folder / "plan.py").write_text(graph.plan.source)
        for kernel in graph.kernels:
            (self.folder / f"{kernel.name}.{SUFFIXES[kernel.level]}").write_text(kernel.text)

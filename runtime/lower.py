"""A program as text at one level, for `python -m stepwell lower`: what it prints, xdsl-opt reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import groupby

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..backends.native.jit import emit_assembly
from ..backends.triton.target import H100
from ..backends.triton.targets import PtxTarget, TtirTarget
from ..ir import tt
from ..ir.errors import OptionError
from ..ir.target import TARGET, TargetAttr, target_of
from ..lowering.pipelines import GPU, run
from .capture import capture
from .compiler import make_context
from .config import config
from .observers import CompiledGraph, CompiledKernel, ir_text
from .program import Program

STAGES = {"graph": "graph", "loop": "fused", "tile": "tile", "host": "host"}
"""Level → the stage after which its IR is final."""

GPU_LEVELS = ("ttir", "ptx")

LEVELS = (*STAGES, "llvm", "asm", *GPU_LEVELS)

SEPARATOR = "\n// -----\n"
"""What `xdsl-opt --split-input-file` parts modules at."""


@dataclass(frozen=True)
class Step:
    """The IR after one pass (or after import); `stage` is the one that ends with it, if one does."""

    after: str
    stage: str
    text: str


@dataclass
class GraphTexts:
    """One graph at every step, and what became of it; `imported` is the graph before any pass."""

    steps: list[Step] = field(default_factory=list)
    imported: ModuleOp | None = None
    compiled: CompiledGraph | None = None

    def until(self, stage: str | None) -> list[Step]:
        """The steps up to the end of a stage, or all."""
        ends = [position for position, step in enumerate(self.steps, 1) if step.stage == stage]
        return self.steps[: ends[0] if ends else None]


class Texts:
    """Keeps the text of each graph after every pass."""

    def __init__(self) -> None:
        self.graphs: list[GraphTexts] = []
        self.current = GraphTexts()
        self._running = "import"

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None:
        if not self.current.steps:
            self.current.imported = module.clone()
        if self._running:
            self.current.steps.append(Step(self._running, "", ir_text(module)))
        self._running = pass_name

    def after(self, graph: str, stage: str, module: ModuleOp) -> None:
        self.current.steps.append(Step(self._running, stage, ir_text(module)))
        self._running = ""

    def finished(self, graph: CompiledGraph) -> None:
        self.current.compiled = graph
        self.graphs.append(self.current)
        self.current, self._running = GraphTexts(), "import"


def lower(program: Program, level: str, *, cpu: str | None = None, pass_by_pass: bool = False) -> str:
    """The text of all graphs of a program at a level; with `pass_by_pass` also after each pass on the way.

    Assembly is for this machine, PTX for an H100, unless a processor is named. Raises what the compiler raises.
    """
    if level not in LEVELS:
        raise OptionError("level", expected=f"one of {', '.join(LEVELS)}", got=repr(level))
    texts = Texts()
    capture(program.function, program.arguments, {}, replace(config.snapshot(), strict=True), texts)
    separator = SEPARATOR if level in STAGES or pass_by_pass else "\n"
    parts = _gpu_parts if level in GPU_LEVELS else _parts
    return separator.join(part for graph in texts.graphs for part in parts(graph, level, cpu, pass_by_pass))


def _parts(graph: GraphTexts, level: str, cpu: str | None, pass_by_pass: bool) -> Iterator[str]:
    assert graph.compiled is not None
    steps = graph.until(STAGES.get(level))
    if pass_by_pass:
        yield from _passes(graph.compiled.name, steps)
    elif level in STAGES:
        yield f"// {graph.compiled.name} graph\n{steps[-1].text}"
    if level not in STAGES:
        yield from (_code(kernel, level, cpu) for kernel in graph.compiled.kernels)


def _passes(name: str, steps: list[Step]) -> Iterator[str]:
    for text, same in groupby(steps, lambda step: step.text):
        first, *idle = (step.after for step in same)
        yield f"// {name} graph after {first}\n{text}" + "".join(f"\n// {name} changes nothing" for name in idle)


def _gpu_parts(graph: GraphTexts, level: str, gpu: str | None, pass_by_pass: bool) -> Iterator[str]:
    """The graph once more, on its way to a GPU: that of the program, or else the one named, which need not be there."""
    assert graph.compiled is not None
    assert graph.imported is not None
    module, name, texts = graph.imported, graph.compiled.name, Texts()
    if not target_of(module).is_gpu:
        module.attributes[TARGET] = TargetAttr(replace(H100, name=gpu or H100.name))
    run(
        make_context(), module, GPU, before=lambda step: texts.before(name, step, module),
        after=lambda stage, module: texts.after(name, stage, module),
    )  # fmt: skip
    if pass_by_pass:
        yield from _passes(name, texts.current.steps)
    if any(isinstance(op, tt.FuncOp) for op in module.body.block.ops):
        output = StringIO()
        architecture = int(target_of(module).name.removeprefix("sm_"))
        (TtirTarget() if level == "ttir" else PtxTarget(arch=architecture)).emit(Context(), module, output)
        yield output.getvalue()


def _code(kernel: CompiledKernel, level: str, cpu: str | None) -> str:
    """The kernel below the tile level; raises OptionError where it was not made for a CPU."""
    if kernel.level != "llvm":
        levels = ", ".join((*STAGES, *GPU_LEVELS))
        raise OptionError("level", expected=f"one of {levels} for a GPU", got=repr(level))
    if level == "llvm":
        return kernel.text
    return kernel.stages["asm"] if cpu is None else emit_assembly(kernel.text, cpu)

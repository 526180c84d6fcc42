"""A program as text at one level, for `python -m stepwell lower`: what it prints, xdsl-opt reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp

from ..backends.native.jit import emit_assembly
from ..ir.errors import OptionError
from .capture import capture
from .config import config
from .observers import CompiledGraph, CompiledKernel, ir_text
from .program import Program

STAGES = {"graph": "graph", "loop": "fused", "tile": "tile", "host": "host"}
"""Level → the stage after which its IR is final."""

LEVELS = (*STAGES, "llvm", "asm")

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
    """One graph at every step, and what became of it."""

    steps: list[Step] = field(default_factory=list)
    compiled: CompiledGraph | None = None

    def until(self, stage: str | None) -> list[Step]:
        """The steps up to the end of a stage, or all."""
        ends = [position for position, step in enumerate(self.steps, 1) if step.stage == stage]
        return self.steps[: ends[0] if ends else None]


class Texts:
    """Keeps the text of each graph after every pass."""

    def __init__(self) -> None:
        self.graphs: list[GraphTexts] = []
        self._current = GraphTexts()
        self._running = "import"

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None:
        if self._running:
            self._current.steps.append(Step(self._running, "", ir_text(module)))
        self._running = pass_name

    def after(self, graph: str, stage: str, module: ModuleOp) -> None:
        self._current.steps.append(Step(self._running, stage, ir_text(module)))
        self._running = ""

    def finished(self, graph: CompiledGraph) -> None:
        self._current.compiled = graph
        self.graphs.append(self._current)
        self._current, self._running = GraphTexts(), "import"


def lower(program: Program, level: str, *, cpu: str | None = None, pass_by_pass: bool = False) -> str:
    """The text of all graphs of a program at a level; with `pass_by_pass` also after each pass on the way.

    Assembly is for this machine unless a processor is named. Raises what the compiler raises.
    """
    if level not in LEVELS:
        raise OptionError("level", expected=f"one of {', '.join(LEVELS)}", got=repr(level))
    texts = Texts()
    capture(program.function, program.arguments, {}, replace(config.snapshot(), strict=True), texts)
    separator = SEPARATOR if level in STAGES or pass_by_pass else "\n"
    return separator.join(part for graph in texts.graphs for part in _parts(graph, level, cpu, pass_by_pass))


def _parts(graph: GraphTexts, level: str, cpu: str | None, pass_by_pass: bool) -> Iterator[str]:
    assert graph.compiled is not None
    steps = graph.until(STAGES.get(level))
    if pass_by_pass:
        for text, same in groupby(steps, lambda step: step.text):
            first, *idle = (step.after for step in same)
            yield f"// {graph.compiled.name} graph after {first}\n{text}" + "".join(
                f"\n// {name} changes nothing" for name in idle
            )
    elif level in STAGES:
        yield f"// {graph.compiled.name} graph\n{steps[-1].text}"
    if level not in STAGES:
        yield from (_code(kernel, level, cpu) for kernel in graph.compiled.kernels)


def _code(kernel: CompiledKernel, level: str, cpu: str | None) -> str:
    """The kernel below the tile level; raises OptionError where it was not made for a CPU."""
    if kernel.level != "llvm":
        raise OptionError("level", expected=f"one of {', '.join(STAGES)} for a GPU", got=repr(level))
    if level == "llvm":
        return kernel.text
    return kernel.stages["asm"] if cpu is None else emit_assembly(kernel.text, cpu, opt_level=0)

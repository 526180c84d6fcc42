"""What Stepwell makes of a function: its graphs, the kernels of each with their code at every level, the externs.

Compiles anew and looks on; what runs later is not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, LocationAttr, ModuleOp
from xdsl.ir import Operation

from ..frontend.aten import TABLE
from ..frontend.aten.registry import overload
from ..ir import graph, host, loop
from ..ir.locations import file_line, fused, source_lines
from ..lowering.analysis.costs import bytes_moved, tensor_bytes
from ..lowering.analysis.kernels import functions_with_kernels
from ..lowering.analysis.sizes import Sizes
from ..lowering.host.bufferize import OUT_VARIANTS
from ..lowering.host.in_place import kernels_of
from ..lowering.host.memory import host_functions
from ..lowering.loop.fuse_nests import refusals
from .capture import capture
from .config import config
from .observers import CompiledGraph, CompiledKernel, ir_text


@dataclass(frozen=True)
class ExplainedKernel:
    """One kernel of a graph, launched `launches` times per call.

    `ops` are the graph ops that it computes, in the first place where it is launched; `bytes` is what it moves there
    by the cost model of fusion, with symbols at their hints.
    """

    name: str
    launches: int
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    bytes: int
    graph_text: str = field(repr=False)
    loop_text: str = field(repr=False)
    tile_text: str = field(repr=False)
    compiled: CompiledKernel = field(repr=False)

    @cached_property
    def stages(self) -> dict[str, str]:
        """Its code at each level: graph, loop, tile, then llvm and asm, or ttir and tt."""
        return {
            "graph": self.graph_text,
            "loop": self.loop_text,
            "tile": self.tile_text,
            **self.compiled.stages,
        }


@dataclass(frozen=True)
class ExplainedExtern:
    """One call of an eager operator, and why it is not a kernel."""

    target: str
    lines: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class ExplainedSplit:
    """Two kernels of which the second reads what the first makes, and why they are not one."""

    producer: str
    consumer: str
    why: str


@dataclass(frozen=True)
class ExplainedGraph:
    """One compiled graph: `name` is its role; `source` is the Python function that runs it."""

    name: str
    ops: tuple[str, ...]
    kernels: tuple[ExplainedKernel, ...]
    externs: tuple[ExplainedExtern, ...]
    splits: tuple[ExplainedSplit, ...]
    native_calls: int
    source: str = field(repr=False)
    timings: dict[str, float] = field(repr=False)
    stages: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Explanation:
    """The graphs of one function, in the order in which they were compiled."""

    graphs: tuple[ExplainedGraph, ...]

    @property
    def kernels(self) -> tuple[ExplainedKernel, ...]:
        return tuple(kernel for graph in self.graphs for kernel in graph.kernels)

    @property
    def externs(self) -> tuple[ExplainedExtern, ...]:
        return tuple(extern for graph in self.graphs for extern in graph.externs)

    @property
    def ops(self) -> int:
        return sum(len(graph.ops) for graph in self.graphs)

    def __rich__(self) -> Group:
        return Group(*(table for graph in self.graphs for table in _tables(graph)))

    def __str__(self) -> str:
        console = Console(width=120, color_system=None)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


# -- tables ------------------------------------------------------------------------------------------


def _tables(graph: ExplainedGraph) -> Iterator[Table]:
    seconds = sum(graph.timings.values())
    title = (
        f"{graph.name} graph: {len(graph.ops)} ops, {len(graph.kernels)} kernels in {graph.native_calls} native calls, "
        f"{len(graph.externs)} externs; compiled in {seconds:.3f} s"
    )
    kernels = Table("kernel", "runs", "ops", "bytes moved", "source", title=title, title_justify="left")
    for kernel in graph.kernels:
        size = _size(kernel.bytes)
        kernels.add_row(kernel.name, str(kernel.launches), _counted(kernel.ops), size, _places(kernel.lines))
    yield kernels
    if graph.splits:
        splits = Table("first kernel", "second, which reads from it", "why they are two")
        for split in graph.splits:
            splits.add_row(split.producer, split.consumer, split.why)
        yield splits
    if graph.externs:
        externs = Table("extern", "calls", "why", "source")
        for extern, calls in Counter(graph.externs).items():
            externs.add_row(extern.target, str(calls), extern.why, _places(extern.lines))
        yield externs


def _size(count: int) -> str:
    """Bytes in the largest unit of which there are ten."""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if count >= 10 << shift:
            return f"{count >> shift} {unit}"
    return f"{count} B"


def _places(lines: tuple[str, ...]) -> str:
    return "\n".join(Path(line).name for line in lines)


def _counted(names: tuple[str, ...]) -> str:
    counts = Counter(names)
    return ", ".join(name if number == 1 else f"{name} ×{number}" for name, number in counts.items())


# -- looking on --------------------------------------------------------------------------------------


class Onlooker:
    """Collects one `ExplainedGraph` per compiled graph."""

    def __init__(self) -> None:
        self.graphs: list[ExplainedGraph] = []
        self._modules: dict[str, dict[str, ModuleOp]] = {}

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None:
        """Stages say enough."""

    def after(self, graph: str, stage: str, module: ModuleOp) -> None:
        if stage == "graph":
            number_ops(_graph_ops(module))
        self._modules.setdefault(graph, {})[stage] = module.clone()

    def finished(self, graph: CompiledGraph) -> None:
        self.graphs.append(_explained(graph, self._modules.pop(graph.name)))


def number_ops(ops: Sequence[Operation]) -> None:
    """Gives each op its number as the column of its source lines: so it can be told later what went into a kernel."""
    for number, op in enumerate(ops, 1):
        op.location = fused(_with_column(part, number) for part in _parts(op.location))


def _parts(location: LocationAttr) -> list[FileLineColLoc]:
    if isinstance(location, FusedLoc):
        assert isinstance(location.locations, ArrayAttr)
        return [part for part in location.locations if isinstance(part, FileLineColLoc)]
    return [location] if isinstance(location, FileLineColLoc) else []


def _with_column(location: FileLineColLoc, column: int) -> FileLineColLoc:
    return file_line(location.filename.data, location.line.data, column)


def _numbers(location: LocationAttr) -> set[int]:
    return {part.column.data for part in _parts(location)}


def _explained(compiled: CompiledGraph, modules: dict[str, ModuleOp]) -> ExplainedGraph:
    names: dict[Operation, str] = dict(_launched(modules))
    stretches = [op for op in _host_ops(compiled.module) if isinstance(op, host.StretchOp)]
    return ExplainedGraph(
        compiled.name,
        tuple(_short_name(op) for op in _graph_ops(modules["graph"])),
        tuple(_kernels(compiled, modules)),
        tuple(_externs(compiled.module)),
        tuple(_splits(_scheduled(modules), names)),
        len(stretches),
        compiled.plan.source,
        compiled.timings,
        {stage: ir_text(module) for stage, module in modules.items()},
    )


def _host_ops(module: ModuleOp) -> Iterator[Operation]:
    return (op for func in host_functions(module) for op in func.body.block.ops)


def _graph_ops(module: ModuleOp) -> list[Operation]:
    return [op for op in _host_ops(module) if isinstance(op, graph.GraphOp)]


def _short_name(op: Operation) -> str:
    return op.target.data if isinstance(op, graph.ExternOp) else op.name.partition(".")[2]


def _scheduled(modules: dict[str, ModuleOp]) -> ModuleOp:
    """The module whose loop kernels get a schedule next: after the stage before tile, whatever the target calls it."""
    stages = list(modules)
    return modules[stages[stages.index("tile") - 1]]


def _launched(modules: dict[str, ModuleOp]) -> list[tuple[loop.KernelOp | host.LaunchOp, str]]:
    """What is launched, in order: loop kernels, or launches of kernels that a pass made by itself; and the names of
    the tile kernels that they are."""
    before = [op for op in _host_ops(_scheduled(modules)) if isinstance(op, loop.KernelOp | host.LaunchOp)]
    launches = [op.kernel.root_reference.data for op in _host_ops(modules["tile"]) if isinstance(op, host.LaunchOp)]
    return list(zip(before, launches, strict=True))


def _kernels(compiled: CompiledGraph, modules: dict[str, ModuleOp]) -> Iterator[ExplainedKernel]:
    tiles = kernels_of(modules["tile"])
    for kernel in compiled.kernels:
        bodies = [body for body, name in _launched(modules) if name == kernel.name]
        numbers = {number for op in bodies[0].walk() for number in _numbers(op.location)}
        members = [op for op in _graph_ops(modules["graph"]) if _numbers(op.location) & numbers]
        yield ExplainedKernel(
            kernel.name,
            len(bodies),
            tuple(map(_short_name, members)),
            _lines(op for body in bodies for op in body.walk()),
            _bytes(bodies[0]),
            ir_text(*members),
            ir_text(bodies[0]),
            ir_text(tiles[kernel.name]),
            kernel,
        )


def _bytes(op: loop.KernelOp | host.LaunchOp) -> int:
    """What a kernel moves; all of its tensors where only its tile IR is known."""
    if isinstance(op, loop.KernelOp):
        return bytes_moved(op)
    sizes = Sizes.at(op)
    return sum(tensor_bytes(value, sizes) for value in (*op.operands, *op.results))


def _splits(module: ModuleOp, names: dict[Operation, str]) -> Iterator[ExplainedSplit]:
    for function, _ in functions_with_kernels(module):
        for refusal in refusals(function):
            yield ExplainedSplit(names[refusal.producer], names[refusal.consumer], refusal.reason)


def _lines(ops: Iterable[Operation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for op in ops for line in source_lines(op.location)))


def _externs(module: ModuleOp) -> Iterator[ExplainedExtern]:
    for op in _host_ops(module):
        if isinstance(op, host.ExternOp):
            yield ExplainedExtern(op.target.data, _lines([op]), _why(op))


WHY = {
    **dict.fromkeys(OUT_VARIANTS.values(), "matrix product: the library's, with its surroundings fused"),
    "stepwell.seed.default": "draws the seed of this call from torch's generator",
}
"""Operators that are called on purpose."""


def _why(op: host.ExternOp) -> str:
    target = op.target.data
    known = overload(target) if target.count(".") == 2 else None
    declined = f"{target} has a native form, but not for these types or arguments; runs as in eager"
    return WHY.get(target) or (declined if known in TABLE else f"{target} has no native form; runs as in eager")


# -- entry -------------------------------------------------------------------------------------------


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Compiles a function or module for these arguments, and calls it once: what eager would change, it changes.

    Where a result requires gradients, the backward graph runs too, but no `.grad` changes.
    """
    onlooker = Onlooker()
    capture(function, args, kwargs, config.snapshot(), onlooker)
    return Explanation(tuple(onlooker.graphs))

"""`python -m stepwell.benchmarks.zoo`: where the time of the zoo's models goes, by step of their plans.

A step is a native call, an operator of a library (products, convolutions, attention), another operator of eager's, or
what the host does between them. Of what is neither a library's nor the host's, nine tenths should be native.
"""

from __future__ import annotations

import ast
import multiprocessing
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from statistics import median
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Annotated, Any

import torch
import typer

from ..ir import host
from ..runtime.capture import run_backward
from ..runtime.observers import CompiledGraph
from ..tests.models.accuracy import outputs_of
from ..tests.models.externs import ExternRecorder, is_library
from ..tests.models.zoo import ZOO, build
from .report import duration

NATIVE, LIBRARY, OTHER, HOST = KINDS = ("native", "library", "other", "host")

ENOUGH = 0.9
"""The share of native steps that the zoo should reach as a whole."""

MODES = ("inference", "training")


@dataclass(frozen=True)
class Step:
    """What one line of a plan does; an extern is named by its operator."""

    kind: str
    name: str = ""


def steps_of(source: str, externs: Iterable[str]) -> dict[int, Step]:
    """The steps of a plan by line, given the operators that it calls."""
    targets = {target.replace(".", "_"): target for target in externs}
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return {statement.lineno: _step(statement, targets) for statement in function.body}


def _step(statement: ast.stmt, targets: dict[str, str]) -> Step:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    if any(re.fullmatch(r"stretch_\d+", name) for name in names):
        return Step(NATIVE)
    for name in names & targets.keys():
        return Step(LIBRARY if is_library(targets[name]) else OTHER, targets[name])
    return Step(OTHER, "copy") if "copy_" in attributes else Step(HOST)


@dataclass
class StepTimer(ExternRecorder):
    """Looks on while graphs compile, and times each line of their plans while they run on this thread."""

    steps: dict[CodeType, dict[int, Step]] = field(default_factory=dict)
    spent: Counter[tuple[CodeType, int]] = field(default_factory=Counter)
    line: tuple[CodeType, int] | None = None
    since: int = 0

    def finished(self, graph: CompiledGraph) -> None:
        super().finished(graph)
        called = [op.target.data for op in graph.module.walk() if isinstance(op, host.ExternOp)]
        steps = steps_of(graph.plan.source, called)
        assert sum(step.name in called for step in steps.values()) == len(called), "a line for every extern"
        self.steps[graph.plan.function.__code__] = steps

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.spent.clear()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._pass if frame.f_code in self.steps else None

    def _pass(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The line that was under way has ended; the next begins, or the plan has returned."""
        now = perf_counter_ns()
        if self.line is not None:
            self.spent[self.line] += now - self.since
        self.line = (frame.f_code, frame.f_lineno) if event == "line" else None
        self.since = perf_counter_ns()
        return self._pass

    def medians(self, call: Callable[[], object], calls: int) -> dict[Step, float]:
        """Seconds of each step per call: the sum of the medians of its lines."""
        rounds: dict[tuple[CodeType, int], list[int]] = defaultdict(list)
        for _ in range(calls):
            with self.watching():
                call()
            for place, spent in self.spent.items():
                rounds[place].append(spent)
        seconds: dict[Step, float] = defaultdict(float)
        for (code, line), spent_in in rounds.items():
            seconds[self.steps[code].get(line, Step(HOST))] += median(spent_in) / 1e9
        return dict(seconds)


# -- models ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One model in one mode: seconds per call by step, and the externs that nobody reviewed."""

    model: str
    mode: str
    seconds: dict[Step, float]
    unexpected: tuple[str, ...]

    def of(self, kind: str) -> float:
        return sum(seconds for step, seconds in self.seconds.items() if step.kind == kind)

    @property
    def others(self) -> list[tuple[str, float]]:
        """The operators of eager's that are no library's, the slowest first."""
        found = [(step.name, seconds) for step, seconds in self.seconds.items() if step.kind == OTHER]
        return sorted(found, key=lambda item: -item[1])


def native_share(measured: Iterable[Measured]) -> float:
    """Of the time in native calls and eager's operators without libraries, that of the former; 1 if there is none."""
    measured = list(measured)
    native, other = (sum(row.of(kind) for row in measured) for kind in (NATIVE, OTHER))
    return native / (native + other) if native + other else 1.0


def measure(model: str, mode: str, batch: int, calls: int) -> Measured:
    """Compiles a model, warms it up and times its steps on one thread."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    module, inputs = build(model, batch)
    module.train(mode == "training")
    timer = StepTimer()
    compiled = torch.compile(module, backend=timer.backend)

    def call() -> None:
        with torch.set_grad_enabled(mode == "training"):
            run_backward(list(outputs_of(compiled(**inputs)).values()))

    with torch._dynamo.config.patch(allow_rnn=True):
        for _ in range(3):
            call()
        return Measured(model, mode, timer.medians(call, calls), tuple(sorted(timer.unexpected)))


# -- report ------------------------------------------------------------------------------------------


def line(row: Measured) -> str:
    times = ", ".join(f"{kind} {duration(row.of(kind))}" for kind in KINDS if row.of(kind))
    others = "".join(f"; {name} {duration(seconds)}" for name, seconds in row.others)
    return f"{row.model} {row.mode}: {native_share([row]):.0%} native ({times}){others}"


def main(
    models: Annotated[str, typer.Option(help="Which models: a pattern such as 'gpt*', or several with commas.")] = "*",
    batch: Annotated[int, typer.Option(help="Of how many samples.")] = 16,
    calls: Annotated[int, typer.Option(min=1, help="How often each is timed.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes.")] = 1,
) -> None:
    """Say how much of the zoo's time is native; fail if it is too little, or if an extern was not reviewed."""
    names = [name for name in ZOO if any(fnmatch(name, pattern) for pattern in models.split(","))]
    rows = list[Measured]()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        runs = [pool.submit(measure, name, mode, batch, calls) for name in names for mode in MODES]
        for done in as_completed(runs):
            rows.append(done.result())
            print(line(rows[-1]), flush=True)
    print(f"outside of libraries {native_share(rows):.1%} of the time of {len(names)} models is native")
    unexpected = sorted({target for row in rows for target in row.unexpected})
    if unexpected:
        print(f"externs that nobody reviewed: {', '.join(unexpected)}")
    raise typer.Exit(bool(unexpected) or native_share(rows) < ENOUGH)


if __name__ == "__main__":
    typer.run(main)

"""Runs the tests on mutants of passes, conversions and emitters, and reports how many die.

`python tests/mutation/run.py --sample 80 --seed 1 --log FILE` takes mutants at random; without `--sample` it takes all,
which is days. Each lives in a copy of the checkout. A fork of this process, in which torch and pytest are loaded
already, runs its tests up to the first failure: those nearest to the module come first, random programs last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from shutil import copytree, ignore_patterns

from stepwell.tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]

LOADED = (
    "torch._dynamo",
    "torch._inductor.utils",
    "hypothesis",
    "ml_dtypes",
    "llvmlite.binding",
    "pytest",
    "filecheck",
)
"""What the tests need and no mutant changes."""

RANDOM = ("tests/property/test_counterexamples.py", "tests/property/test_search.py", "tests/property/test_programs.py")

EMITTERS = ("arith", "blocks", "control", "math", "memory", "reduce")

TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lowering/graph", ("tests/filecheck/graph", "tests/frontend/test_import.py")),
    (
        "lowering/convert/graph",
        ("tests/filecheck/convert", "tests/interpreters/test_levels.py", "tests/lowering/test_graph_to_loop.py"),
    ),
    (
        "lowering/convert",
        (
            "tests/filecheck/convert", "tests/interpreters/test_schedules.py",
            "tests/lowering/test_schedule_kernels.py", "tests/interpreters/test_levels.py",
        ),
    ),
    (
        "lowering/schedule",
        ("tests/filecheck/convert", "tests/interpreters/test_schedules.py", "tests/lowering/test_schedule_kernels.py"),
    ),
    (
        "lowering/host",
        ("tests/filecheck/host", "tests/host", "tests/runtime/test_plan.py", "tests/runtime/test_results.py"),
    ),
    (
        "lowering",
        (
            "tests/filecheck/loop", "tests/filecheck/convert", "tests/lowering", "tests/models/test_kernel_counts.py",
            "tests/host",
        ),
    ),
    *((f"backends/cpu/emit_{kind}", (f"tests/cpu/test_{kind}.py", "tests/cpu")) for kind in EMITTERS),
    ("backends/cpu/convert", ("tests/cpu/test_convert.py", "tests/cpu")),
    ("backends/cpu/vector_math", ("tests/cpu/test_vector_math.py", "tests/cpu/test_math.py")),
    ("backends/cpu", ("tests/filecheck/cpu", "tests/cpu/test_emit.py", "tests/cpu")),
)  # fmt: skip
"""Beginning of a module's path → the tests that must notice before random programs do; the first row that fits
counts."""

LEFT_OUT = ("tt_", "tile_to_tt", "grid_", "coefficients", "minimax")
"""Parts of names of modules that are left out: what only a GPU runs, and what derives tables."""


@dataclass(frozen=True)
class Case:
    """A mutant of a module."""

    path: str
    mutant: Mutant

    @property
    def name(self) -> str:
        return f"{self.path}:{self.mutant.summary}"

    @property
    def tests(self) -> tuple[str, ...]:
        """The pass's own test first, if the module is a pass."""
        parts = Path(self.path).with_suffix("").parts
        level = parts[1]
        own = f"tests/filecheck/{level}/{level}-{parts[-1].replace('_', '-')}.mlir"
        near = next(tests for start, tests in TESTS if self.path.startswith(start))
        return (own, *near) if (ROOT / own).exists() else near


def modules(beginning: str) -> list[str]:
    """The modules that are mutated, of those whose path begins so."""
    paths = [path for folder in ("lowering", "backends/cpu") for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py"]
    return [n for n in names if n.startswith(beginning) and not any(part in Path(n).name for part in LEFT_OUT)]


def cases(beginning: str) -> list[Case]:
    return [Case(name, mutant) for name in modules(beginning) for mutant in mutants((ROOT / name).read_text())]


class Laboratory:
    """A copy of the checkout in which one module at a time is another."""

    def __init__(self, folder: Path, seconds: int) -> None:
        ignored = ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
        self.folder = folder
        self.copy = copytree(ROOT, folder / "stepwell", ignore=ignored)
        self.seconds = seconds
        for name in LOADED:
            import_module(name)

    def passes(self, tests: Sequence[str], case: Case | None = None) -> bool:
        """Whether tests pass, in time, with a mutant or without."""
        if case is None:
            return self.run(tests)
        path = self.copy / case.path
        original = path.read_text()
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        try:
            path.write_text(case.mutant.text)
            return self.run(tests, write_bytecode=False)
        finally:
            path.write_text(original)

    def run(self, tests: Sequence[str], *, write_bytecode: bool = True) -> bool:
        process = os.fork()
        if not process:
            sys.dont_write_bytecode = not write_bytecode
            self.become_pytest(tests)
        _, status = os.waitpid(process, 0)
        return os.waitstatus_to_exitcode(status) == 0

    def become_pytest(self, tests: Sequence[str]) -> None:
        """Runs tests of the copy and ends the process, which a mutant may make run in circles: for so long only."""
        import pytest

        limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, limit))
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(self.copy)
        sys.path.insert(0, str(self.folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "stepwell"]:
            del sys.modules[name]
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *tests])
        os._exit(code)


class Log:
    """Which tests passed, by themselves and with which mutant: a line of JSON each, in a file where one is given, so
    that a run that was stopped goes on."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.known: dict[str, bool] = {key: value for line in lines for key, value in json.loads(line).items()}

    def note(self, key: str, value: bool) -> None:
        self.known[key] = value
        if self.path is not None:
            with self.path.open("a") as stream:
                stream.write(json.dumps({key: value}) + "\n")


def examine(
    laboratory: Laboratory, chosen: Sequence[Case], log: Log, budget: int | None = None
) -> Iterator[tuple[Case, bool]]:
    """Each case and whether it dies, as soon as that is known, until that many seconds of a processor are spent."""
    for case in chosen:
        if budget is not None and resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > budget:
            return
        started = time.perf_counter()
        dies = not all(survives(laboratory, case, tests, log) for tests in (case.tests, RANDOM))
        print("killed  " if dies else "SURVIVED", case.name, f"({time.perf_counter() - started:.0f} s)", flush=True)
        yield case, dies


def survives(laboratory: Laboratory, case: Case, tests: tuple[str, ...], log: Log) -> bool:
    """Whether tests pass with a mutant; refuses tests that fail without one."""
    alone, key = " ".join(tests), f"{case.name} @ {' '.join(tests)}"
    if key not in log.known:
        passes = laboratory.passes(tests, case)
        if not passes and not log.known.get(alone, False):
            log.note(alone, laboratory.passes(tests))
            if not log.known[alone]:
                sys.exit(f"expected tests that pass before anything is changed, got a failure of pytest {alone}")
        log.note(key, passes)
    return log.known[key]


def report(results: Sequence[tuple[Case, bool]]) -> str:
    """The rate in all and by kind."""
    total, dead = (
        Counter(case.mutant.kind for case, _ in results),
        Counter(c.mutant.kind for c, dies in results if dies),
    )
    rows = [f"  {kind:18} {dead[kind]:4} of {count:4}" for kind, count in sorted(total.items())]
    killed = sum(dead.values())
    return "\n".join([f"{killed} of {len(results)} mutants killed ({killed / max(len(results), 1):.1%})", *rows])


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--modules", default="", help="beginning of the paths of the modules to mutate")
    parser.add_argument("--sample", type=int, help="number of mutants to take at random; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--timeout", type=int, default=400, help="processor seconds that tests may take (400)")
    parser.add_argument("--budget", type=int, help="processor seconds after which to stop; with a log, run it again")
    parser.add_argument("--log", type=Path, help="file that keeps results; a run that was stopped goes on")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    found = cases(options.modules)
    chosen = found if options.sample is None else random.Random(options.seed).sample(found, options.sample)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder), options.timeout)
        results = list(examine(laboratory, chosen, Log(options.log), options.budget))
    print(report(results))
    if len(results) < len(chosen):
        sys.exit(f"stopped before the last {len(chosen) - len(results)} mutants")


if __name__ == "__main__":
    main()

"""Runs the tests on mutants of passes, conversions and emitters, and reports how many die.

`python tests/mutation/run.py --sample 60 --seed 1` takes mutants at random; without `--sample` it takes all, which is
days. Every mutant runs in a copy of the checkout; tests stop at the first failure, those nearest to the module first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns

from stepwell.tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]

RANDOM = "tests/property/test_programs.py"

EMITTERS = ("arith", "blocks", "control", "math", "memory", "reduce")

TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lowering/graph", ("tests/filecheck/graph", "tests/frontend/test_import.py", RANDOM)),
    (
        "lowering/convert/graph",
        (
            "tests/filecheck/convert", "tests/lowering/test_graph_to_loop.py", "tests/interpreters/test_levels.py",
            RANDOM,
        ),
    ),
    (
        "lowering/convert",
        (
            "tests/filecheck/convert", "tests/interpreters/test_schedules.py",
            "tests/lowering/test_schedule_kernels.py", "tests/interpreters/test_levels.py", RANDOM,
        ),
    ),
    ("lowering/schedule", ("tests/lowering/test_schedule_kernels.py", "tests/interpreters/test_schedules.py", RANDOM)),
    (
        "lowering/host",
        ("tests/filecheck/host", "tests/host", "tests/runtime/test_plan.py", "tests/runtime/test_results.py"),
    ),
    (
        "lowering",
        ("tests/filecheck/loop", "tests/lowering", "tests/models/test_kernel_counts.py", "tests/host", RANDOM),
    ),
    *((f"backends/cpu/emit_{kind}", (f"tests/cpu/test_{kind}.py", "tests/cpu")) for kind in EMITTERS),
    ("backends/cpu/convert", ("tests/cpu/test_convert.py", "tests/cpu")),
    ("backends/cpu/vector_math", ("tests/cpu/test_vector_math.py", "tests/cpu/test_math.py")),
    ("backends/cpu", ("tests/filecheck/cpu", "tests/cpu/test_emit.py", "tests/cpu")),
)  # fmt: skip
"""Beginning of a module's path → the tests that must notice; the first row that fits counts."""

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
        return next(tests for start, tests in TESTS if self.path.startswith(start))


def modules(beginning: str) -> list[str]:
    """The modules that are mutated, of those whose path begins so."""
    paths = [path for folder in ("lowering", "backends/cpu") for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py"]
    return [n for n in names if n.startswith(beginning) and not any(part in Path(n).name for part in LEFT_OUT)]


def cases(beginning: str) -> list[Case]:
    return [Case(name, mutant) for name in modules(beginning) for mutant in mutants((ROOT / name).read_text())]


class Laboratory:
    """A copy of the checkout in which one module at a time is another."""

    def __init__(self, folder: Path, launcher: Sequence[str], timeout: int) -> None:
        ignored = ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
        self.copy = copytree(ROOT, folder / "stepwell", ignore=ignored)
        self.launcher = launcher
        self.timeout = timeout
        self.environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def passes(self, test: str, case: Case | None = None) -> bool:
        """Whether tests pass, in time, with a mutant or without."""
        path = None if case is None else self.copy / case.path
        original = "" if path is None else path.read_text()
        try:
            if case is not None and path is not None:
                path.write_text(case.mutant.text)
            return self.run(test)
        finally:
            if path is not None:
                path.write_text(original)

    def run(self, test: str) -> bool:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        command = [*self.launcher, sys.executable, "-m", "pytest", *options, test]
        try:
            done = subprocess.run(
                command, cwd=self.copy, env=self.environment, capture_output=True, timeout=self.timeout
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


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


def examine(laboratory: Laboratory, chosen: Sequence[Case], log: Log, only: str) -> Iterator[tuple[Case, bool]]:
    """Each case and whether it dies, as soon as that is known."""
    for case in chosen:
        tests = [test for test in case.tests if test.startswith(only)]
        dies = not all(survives(laboratory, case, test, log) for test in tests)
        print("killed  " if dies else "SURVIVED", case.name, flush=True)
        yield case, dies


def survives(laboratory: Laboratory, case: Case, test: str, log: Log) -> bool:
    """Whether tests pass with a mutant; refuses tests that fail without one."""
    key = f"{case.name} @ {test}"
    if key not in log.known:
        passes = laboratory.passes(test, case)
        if not passes and not log.known.get(test, False):
            log.note(test, laboratory.passes(test))
            if not log.known[test]:
                sys.exit(f"expected tests that pass before anything is changed, got a failure of pytest {test}")
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
    parser.add_argument("--tests", default="", help="beginning of the paths of the tests to run, all if not given")
    parser.add_argument("--sample", type=int, help="number of mutants to take at random; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--timeout", type=int, default=240, help="seconds after which tests count as failed (240)")
    parser.add_argument("--launcher", type=shlex.split, default=[], help="put before each run of tests: 'nice -n 19'")
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
        laboratory = Laboratory(Path(folder), options.launcher, options.timeout)
        print(report(list(examine(laboratory, chosen, Log(options.log), options.tests))))


if __name__ == "__main__":
    main()

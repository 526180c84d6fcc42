"""Runs the tests on mutants of passes, conversions and emitters, and reports how many die.

`python tests/mutation/run.py --sample 160 --seed 1 --jobs 2 --log FILE` takes mutants at random; without `--sample` it
takes all, which is days. Each lives in a copy of the checkout. A fork of this process, with torch and pytest loaded,
runs tests up to the first failure: those nearest to the module, the corpus of code, random programs. Tests that fail
without a mutant, for reasons of the machine, are found first and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from typing import cast

import pytest

from stepwell.tests.forks import Fork, Forks, Say
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

GOLDEN = "tests/golden/test_golden.py"
"""The corpus of code, which notices that code changed and not what it means: behind the tests that ask for that."""

LIMITS = "tests/docs/test_reference.py"
"""The page of limits, which says every number that passes go by: before the corpus, as it takes no time."""

RANDOM = ("tests/property/test_counterexamples.py", "tests/property/test_search.py", "tests/property/test_programs.py")

EMITTERS = ("arith", "blocks", "control", "math", "memory", "reduce")

TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "lowering/graph",
        (
            "tests/filecheck/graph", "tests/lowering/test_match_attention.py", "tests/property/test_proofs.py",
            "tests/frontend/test_import.py",
        ),
    ),
    (
        "lowering/convert/graph",
        ("tests/filecheck/convert", "tests/interpreters/test_levels.py", "tests/lowering/test_graph_to_loop.py"),
    ),
    (
        "lowering/convert",
        (
            "tests/filecheck/convert", "tests/lowering/test_block_builder.py", "tests/lowering/test_loop_to_tile.py",
            "tests/lowering/test_product_kernels.py", "tests/interpreters/test_schedules.py",
            "tests/lowering/test_schedule_kernels.py", "tests/interpreters/test_levels.py",
        ),
    ),
    (
        "lowering/schedule",
        (
            "tests/filecheck/convert", "tests/lowering/test_product_costs.py", "tests/lowering/test_product_kernels.py",
            "tests/interpreters/test_schedules.py", "tests/lowering/test_schedule_kernels.py",
        ),
    ),
    (
        "lowering/host",
        ("tests/filecheck/host", "tests/host", "tests/runtime/test_plan.py", "tests/runtime/test_results.py"),
    ),
    ("lowering/applications", ("tests/runtime/test_bisect.py",)),
    ("lowering/pipelines", ("tests/structure/test_passes.py", "tests/filecheck/loop", "tests/lowering")),
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

TEST_SECONDS = 120
"""Processor time after which a test counts as one that hangs: CI has none that takes more than ten seconds."""

LEFT_OUT = ("tt_", "tile_to_tt", "grid_", "coefficients", "minimax")
"""Parts of names of modules that are left out: what only a GPU runs, and what derives tables."""


@dataclass(frozen=True)
class Case:
    """A mutant of a module."""

    path: str
    mutant: Mutant
    only: tuple[str, ...] = ()
    """The tests to run, if not all that may notice."""

    quick: bool = False
    """Whether the corpus comes before the nearest tests: it takes less time, and does not say who else would notice."""

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

    @property
    def runs(self) -> list[Run]:
        """File by file, so that what was stopped loses little."""
        code, near = (LIMITS, GOLDEN), self.tests
        tests = self.only or (*((*code, *near) if self.quick else (*near, *code)), *RANDOM)
        return [Run(file, self) for file in dict.fromkeys(file for test in tests for file in files(test))]


def modules(beginning: str) -> list[str]:
    """The modules that are mutated, of those whose path begins so."""
    paths = [path for folder in ("lowering", "backends/cpu") for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py"]
    return [n for n in names if n.startswith(beginning) and not any(part in Path(n).name for part in LEFT_OUT)]


def cases(beginning: str, only: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    return [
        Case(name, mutant, tuple(only), quick)
        for name in modules(beginning)
        for mutant in mutants((ROOT / name).read_text())
    ]


@dataclass(frozen=True)
class Run:
    """Tests of one file or folder, with a mutant or without."""

    test: str
    case: Case | None = None

    @property
    def name(self) -> str:
        return self.test if self.case is None else f"{self.case.name} @ {self.test}"


@dataclass(frozen=True)
class Result:
    """Tests that failed, or at which the process died: the first one with a mutant, all without."""

    failed: tuple[str, ...]
    seconds: float


class Laboratory:
    """A copy of the checkout in which one module at a time is another."""

    def __init__(self, folder: Path) -> None:
        ignored = ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
        self.folder = folder
        self.copy = copytree(ROOT, folder / "stepwell", ignore=ignored)

    def mutate(self, case: Case) -> None:
        path = self.copy / case.path
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(case.mutant.text)

    def restore(self, case: Case) -> None:
        copy(ROOT / case.path, self.copy / case.path)

    def become_pytest(self, say: Say, run: Run, known: Iterable[str], seconds: int) -> None:
        """Runs tests of the copy in this process, which a mutant may make run in circles: for so long only."""
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(self.copy)
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)
        sys.dont_write_bytecode = run.case is not None
        for name in [name for name in sys.modules if name.partition(".")[0] in ("stepwell", "tests")]:
            del sys.modules[name]  # pytest calls test files so
        stop = ["--continue-on-collection-errors"] if run.case is None else ["-x"]
        files = [f"--ignore={test}" for test in known if "::" not in test]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist"]
        code = pytest.main(
            ["-q", *plugins, "-m", "not slow", *stop, *files, run.test], plugins=[Watch(say, set(known))]
        )
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            sys.exit(code)


class Watch:
    """Says which test begins and which fails, leaves out those that are known to, and ends the process at one that
    hangs."""

    def __init__(self, say: Say, known: set[str]) -> None:
        self.say = say
        self.known = known

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.known]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say((report.nodeid, "failed"))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say((nodeid, "began"))
        signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 5 * TEST_SECONDS)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.say((report.nodeid, "failed"))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.say((nodeid, "ended"))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def result_of(fork: Fork[Run]) -> Result:
    """What failed; where the process died or could not begin, that is what it was at."""
    said = [cast(tuple[str, str], word) for word in fork.said]
    failed = [test for test, event in said if event == "failed"]
    if fork.status and (fork.status < 0 or not failed):
        failed.append(said[-1][0] if said else fork.key.test)
    return Result(tuple(dict.fromkeys(failed)), round(fork.seconds, 1))


class Log:
    """The result of each run: a line of JSON each, in a file where one is given, so that what was stopped goes on."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.known: dict[str, Result] = {}
        self.failing: set[str] = set()
        """The tests that fail without a mutant, and which therefore say nothing."""
        for line in map(json.loads, lines):
            self._add(line["run"], Result(tuple(line["failed"]), line["seconds"]))

    def _add(self, name: str, result: Result) -> None:
        self.known[name] = result
        if "@" not in name:
            self.failing.update(result.failed)

    def note(self, run: Run, result: Result) -> None:
        self._add(run.name, result)
        if self.path is not None:
            with self.path.open("a") as stream:
                stream.write(json.dumps({"run": run.name, **asdict(result)}, ensure_ascii=False) + "\n")

    def killer(self, case: Case) -> str | None:
        """The test that a mutant dies of, if one is known."""
        results = [self.known[run.name] for run in case.runs if run.name in self.known]
        return next((test for result in results for test in result.failed), None)

    def next_run(self, case: Case) -> Run | None:
        """What is still to be run with a mutant: nothing once it is dead."""
        left = (run for run in case.runs if run.name not in self.known and run.test not in self.failing)
        return next(left, None) if self.killer(case) is None else None


class Examination:
    """Runs what a log lacks, in as many laboratories at once as there are jobs."""

    def __init__(self, folder: Path, jobs: int, seconds: int, log: Log) -> None:
        self.laboratories = [Laboratory(folder / str(slot)) for slot in range(jobs)]
        self.seconds = seconds
        self.log = log
        for name in LOADED:
            import_module(name)

    def examine(self, forks: Forks[Run], chosen: Sequence[Case]) -> None:
        """The tests without a mutant first, then the mutants, one that still lives before the next ones."""
        left = [case for case in chosen if self.log.next_run(case) is not None]
        self.try_unchanged(forks, dict.fromkeys(run.test for case in left for run in case.runs))
        pending = deque(run for case in left if (run := self.log.next_run(case)) is not None)
        for fork in forks.run(pending, self.work):
            case = fork.key.case
            assert case is not None
            self.laboratories[fork.slot].restore(case)
            self.log.note(fork.key, result_of(fork))
            if (run := self.log.next_run(case)) is not None:
                pending.appendleft(run)
            else:
                killer = self.log.killer(case)
                print(f"{case.name}: {'SURVIVED' if killer is None else f'killed by {killer}'}", flush=True)

    def try_unchanged(self, forks: Forks[Run], tests: Iterable[str]) -> None:
        """Notes the tests that fail anyway. Behind one that the process dies at it begins again without that one."""
        pending = deque(run for test in tests if (run := Run(test)).name not in self.log.known)
        found: dict[Run, Result] = {}
        for fork in forks.run(pending, lambda say, run, slot: self.work(say, run, slot, found.get(run))):
            run, result = fork.key, result_of(fork)
            before = found.get(run, Result((), 0.0))
            found[run] = Result((*before.failed, *result.failed), before.seconds + result.seconds)
            if fork.status is not None and fork.status < 0:
                pending.append(run)
            else:
                self.log.note(run, found[run])

    def work(self, say: Say, run: Run, slot: int, before: Result | None = None) -> None:
        laboratory = self.laboratories[slot]
        if run.case is not None:
            laboratory.mutate(run.case)
        laboratory.become_pytest(say, run, [*self.log.failing, *(before.failed if before else ())], self.seconds)


def files(test: str) -> list[str]:
    """The test modules of a folder; one of other tests, or a file, stays as it is."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / test).glob("test_*.py"))] or [test]


def report(chosen: Sequence[Case], log: Log) -> str:
    """The rate in all and by kind, who survived, and what could not be asked."""
    alive = [case for case in chosen if log.killer(case) is None]
    unknown = [case for case in alive if log.next_run(case) is not None]
    survivors = [case for case in alive if case not in unknown]
    examined = Counter(case.mutant.kind for case in chosen if case not in unknown)
    lived = Counter(case.mutant.kind for case in survivors)
    total = examined.total()
    code = sum((log.killer(case) or "").startswith(GOLDEN) for case in chosen if not case.quick)
    lines = [f"{total - len(survivors)} of {total} mutants killed ({1 - len(survivors) / max(total, 1):.1%})"]
    lines += [f"  {code} of them by the corpus of code, and by no test nearer to the module"] if code else []
    lines += [f"  {kind:18} {count - lived[kind]:4} of {count:4}" for kind, count in sorted(examined.items())]
    for title, names in (
        ("survived", [case.name for case in survivors]),
        ("not examined yet", [case.name for case in unknown]),
        ("tests left out, as they fail without a mutant", sorted(log.failing)),
    ):
        lines += [f"{len(names)} {title}{':' if names else ''}", *(f"  {name}" for name in names)]
    return "\n".join(lines)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--modules", default="", help="beginning of the paths of the modules to mutate")
    parser.add_argument("--tests", nargs="*", default=(), help="run these alone, not all that may notice a mutant")
    parser.add_argument("--quick", action="store_true", help="ask the corpus of code before the nearest tests")
    parser.add_argument("--sample", type=int, help="number of mutants to take at random; all if not given")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants to examine at a time (1)")
    parser.add_argument("--timeout", type=int, default=400, help="processor seconds that tests may take (400)")
    parser.add_argument("--budget", type=float, help="seconds after which to stop; with a log, run it again")
    parser.add_argument("--log", type=Path, help="file that keeps results; a run that was stopped goes on")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    deadline = None if options.budget is None else time.monotonic() + options.budget
    found = cases(options.modules, options.tests, quick=options.quick)
    chosen = found if options.sample is None else random.Random(options.seed).sample(found, options.sample)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return
    log = Log(options.log)
    with tempfile.TemporaryDirectory() as folder, Forks[Run](options.jobs, deadline) as forks:
        Examination(Path(folder), options.jobs, options.timeout, log).examine(forks, chosen)
    print(report(chosen, log))
    if any(log.next_run(case) for case in chosen):
        sys.exit("stopped before the end")


if __name__ == "__main__":
    main()

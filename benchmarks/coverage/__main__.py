"""`python -m stepwell.benchmarks.coverage`: sweeps the operators, in processes that may crash, and makes their page.

On the CPU all of it takes hours of processor time; on a GPU, where one sample each tries the code of its own, minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Annotated, Any

import torch
import typer

from .cases import COMMON, Extent, dtypes_of, name_of, operators
from .pool import Piece, run_pieces
from .report import append, page, read, summary, verdict
from .sweep import Result
from .ways import WAYS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "coverage.jsonl"

DEFAULTS = {"cpu": (Extent(), ""), "cuda": (Extent(1, 0, "cuda", 1, 0), "float32,bfloat16,int64")}
"""Extent and types that are tried on a device unless options say otherwise."""

MODELS = ("inference", "adam")
"""Tests of the zoo of models that run on any device."""


def main(
    ops: Annotated[str, typer.Option(help="Which operators: a pattern such as 'nn.*', or several with commas.")] = "*",
    dtypes: Annotated[str | None, typer.Option(help="Which types, with commas; else all, or three on a GPU.")] = None,
    samples: Annotated[int | None, typer.Option(help="How many samples; 0, as on the CPU, takes all.")] = None,
    varied: Annotated[int | None, typer.Option(help="How many of them in every layout and form.")] = None,
    other_samples: Annotated[int | None, typer.Option(help=f"How many in types but {', '.join(COMMON)}.")] = None,
    other_varied: Annotated[int | None, typer.Option(help="How many of these in every layout and form.")] = None,
    ways: Annotated[str, typer.Option(help=f"Other ways to call them, with commas: {', '.join(WAYS)}.")] = "",
    device: Annotated[str, typer.Option(help="Where the tensors lie: cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="How many processes; 0: one for each core.")] = 0,
    budget: Annotated[float, typer.Option(help="After how many seconds nothing is begun; 0: never.")] = 0,
    models: Annotated[bool, typer.Option("--models", help="Try the zoo of models first.")] = False,
    output: Annotated[Path, typer.Option(help="Results; operators and types in it are not run again.")] = RESULTS,
    table: Annotated[Path | None, typer.Option(help="Only write the page of the results to this file.")] = None,
) -> None:
    """Compare every operator of PyTorch's database with eager, and say which are native."""
    if table is not None:
        table.write_text(page(read(output)))
        return
    until = time() + budget if budget else float("inf")
    jobs = jobs or len(os.sched_getaffinity(0))
    usual, types = DEFAULTS[device]
    chosen: dict[str, Any] = {
        "samples": samples,
        "varied": varied,
        "other_samples": other_samples,
        "other_varied": other_varied,
    }
    if unknown := set(filter(None, ways.split(","))).difference(WAYS):
        raise typer.BadParameter(f"no such way: {', '.join(unknown)}", param_hint="--ways")
    chosen["ways"] = tuple(filter(None, ways.split(","))) or None
    extent = replace(usual, **{name: value for name, value in chosen.items() if value is not None})
    failed = models and _run_models(device, jobs, output.with_suffix(".models.txt"))
    wrong = _sweep(ops, types if dtypes is None else dtypes, extent, jobs, until, output)
    raise typer.Exit(int(failed or wrong))


def _sweep(ops: str, dtypes: str, extent: Extent, jobs: int, until: float, output: Path) -> bool:
    """Runs what has no results yet, and says what came of it all; whether anything is wrong."""
    known = {(result.op, result.dtype) for result in read(output).results if not result.left}
    pieces = [Piece(*pair) for pair in _pairs(ops, dtypes, extent.device) if pair not in known]
    words = [word for before, word in pairwise(sys.argv) if "--output" not in (before, word)]
    command = " ".join(["python -m stepwell.benchmarks.coverage", *words])
    append(output, {"command": command, "extent": extent.words(), "torch": torch.__version__})

    def ended(result: Result) -> None:
        append(output, result.as_json())
        if not result.left or result.passed:
            print(f"{result.op} {result.dtype}: {result.passed} cases, {verdict([result])}", flush=True)
        for case, text in result.wrong.items():
            print(f"  {case}: {text}", flush=True)

    log = output.with_suffix(".log")
    run_pieces(pieces, extent, jobs=jobs, until=until, log=log, environments=_environments(extent.device), ended=ended)
    results = read(output).results
    print(summary(results))
    return any(result.wrong for result in results)


def _pairs(ops: str, dtypes: str, device: str) -> list[tuple[str, str]]:
    """Operators and types, the common types first."""
    wanted = [name for name in dtypes.split(",") if name]
    pairs = [
        (op.full_name, name_of(dtype))
        for op in operators()
        if any(fnmatch(op.full_name, pattern.strip()) for pattern in ops.split(","))
        for dtype in dtypes_of(op, device)
        if not wanted or name_of(dtype) in wanted
    ]
    return sorted(pairs, key=lambda pair: COMMON.index(pair[1]) if pair[1] in COMMON else len(COMMON))


def _environments(device: str) -> list[dict[str, str]]:
    """What processes are started with, in turn: one thread for each, and one GPU."""
    threads = {"OMP_NUM_THREADS": "1"}
    if device == "cpu":
        return [threads]
    return [threads | {"CUDA_VISIBLE_DEVICES": str(number)} for number in range(torch.cuda.device_count())]


def _run_models(device: str, jobs: int, log: Path) -> bool:
    """The tests of the zoo on that device, on every GPU another of them; whether any failed."""
    environments = _environments(device)

    def run(number: int) -> subprocess.CompletedProcess[str]:
        tests = ["tests/models/test_zoo.py", "-k", " or ".join(MODELS[number :: len(environments)])]
        workers = ["-n", str(max(1, jobs // len(environments)))]
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-rf",
                "--tb=short",
                "-m",
                "",
                "-p",
                "no:cacheprovider",
                *workers,
                *tests,
            ],
            cwd=ROOT,
            env=os.environ | environments[number] | {"ZOO_DEVICE": device},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    with ThreadPoolExecutor() as pool:
        done = list(pool.map(run, range(min(len(environments), len(MODELS)))))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("\n".join(process.stdout for process in done))
    for process in done:
        print(process.stdout[-2000:])
    return any(process.returncode for process in done)


if __name__ == "__main__":
    typer.run(main)

"""`python -m stepwell.benchmarks.coverage`: sweeps the operators, in processes that may crash, and prints the table."""

from __future__ import annotations

import logging
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch._logging._internal import set_logs

from .cases import Extent, OpInfo, dtypes_of, operators
from .report import append, markdown, read, unfinished, verdict
from .sweep import Result, tried

RESULTS = Path(__file__).parents[1] / "results" / "coverage.jsonl"

PAIRS_PER_PROCESS = 150
"""Compiled code and traces pile up; a fresh process starts in seconds."""

ALL_DONE, MORE = 0, 3
"""How a worker ends."""


def main(
    ops: Annotated[str, typer.Option(help="Which operators: a pattern such as 'nn.*', or several with commas.")] = "*",
    dtypes: Annotated[str, typer.Option(help="Which types, with commas; all if empty.")] = "",
    samples: Annotated[int, typer.Option(help="How many samples of each; 0 takes all.")] = 4,
    varied: Annotated[int, typer.Option(help="How many of them in every layout and form.")] = 1,
    shard: Annotated[str, typer.Option(help="Which part of how many, as 0/2.")] = "0/1",
    output: Annotated[Path, typer.Option(help="Results; those in it are not run again.")] = RESULTS,
    table: Annotated[Path | None, typer.Option(help="Only write the table of the results to this file.")] = None,
    worker: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Compare every operator of PyTorch's database with eager, and say which are native."""
    if table is not None:
        table.write_text(markdown(read(output)))
    elif worker:
        raise typer.Exit(_work(_pairs(ops, dtypes, shard), Extent(samples, varied), output))
    else:
        _supervise(output)


def _pairs(ops: str, dtypes: str, shard: str) -> list[tuple[OpInfo, torch.dtype]]:
    part, parts = map(int, shard.split("/"))
    wanted = [getattr(torch, name) for name in dtypes.split(",") if name]
    pairs = [
        (op, dtype)
        for op in operators()
        if any(fnmatch(op.full_name, pattern.strip()) for pattern in ops.split(","))
        for dtype in dtypes_of(op)
        if not wanted or dtype in wanted
    ]
    return pairs[part::parts]


def _work(pairs: list[tuple[OpInfo, torch.dtype]], extent: Extent, output: Path) -> int:
    """Runs what has no result yet; how the process is to end."""
    set_logs(all=logging.CRITICAL)  # each refused case would be reported, too
    done = {(result.op, result.dtype) for result in read(output)}
    left = [(op, dtype) for op, dtype in pairs if (op.full_name, str(dtype).removeprefix("torch.")) not in done]
    for op, dtype in left[:PAIRS_PER_PROCESS]:
        append(output, {"op": op.full_name, "dtype": str(dtype).removeprefix("torch.")})
        result = tried(op, dtype, extent)
        append(output, result.as_json())
        print(f"{result.op} {result.dtype}: {result.passed} cases, {verdict([result])}", flush=True)
        for case, text in result.wrong.items():
            print(f"  {case}: {text}", flush=True)
    return MORE if left[PAIRS_PER_PROCESS:] else ALL_DONE


def _supervise(output: Path) -> None:
    """Starts workers until all is done; what one dies of is a result, too."""
    command = [sys.executable, "-X", "faulthandler", "-m", "stepwell.benchmarks.coverage", *sys.argv[1:], "--worker"]
    while (status := subprocess.run(command).returncode) != ALL_DONE:
        if status == MORE:
            continue
        lost = unfinished(output)
        if lost is None:
            raise typer.Exit(status)
        append(output, Result(*lost, wrong={"process": f"crash: ended with status {status}"}).as_json())


if __name__ == "__main__":
    typer.run(main)

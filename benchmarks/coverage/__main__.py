"""`python -m stepwell.benchmarks.coverage`: sweeps the operators, in processes that may crash, and prints the table.

On a GPU, `--device cuda --processes 16 --samples 1 --varied 0 --dtypes float32,bfloat16,int64 --models` takes minutes.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from time import time
from typing import Annotated

import torch
import typer
from torch._logging._internal import set_logs

from .cases import Extent, OpInfo, dtypes_of, operators
from .report import append, markdown, read, unfinished, verdict
from .sweep import Result, tried

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "coverage.jsonl"

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
    device: Annotated[str, typer.Option(help="Where the tensors lie: cpu or cuda.")] = "cpu",
    processes: Annotated[int, typer.Option(help="How many at once, each with a part.")] = 1,
    seconds: Annotated[int, typer.Option(help="After how many no further operator is begun; 0: never.")] = 0,
    models: Annotated[bool, typer.Option(help="Then inference and training of the zoo of models, too.")] = False,
    output: Annotated[Path, typer.Option(help="Results; those in it are not run again.")] = RESULTS,
    table: Annotated[Path | None, typer.Option(help="Only write the table of the results to this file.")] = None,
    worker: Annotated[float, typer.Option(hidden=True)] = 0,
) -> None:
    """Compare every operator of PyTorch's database with eager, and say which are native."""
    if table is not None:
        table.write_text(markdown(read(output)))
    elif worker:
        pairs = _pairs(ops, dtypes, shard, device)
        raise typer.Exit(_work(pairs, Extent(samples, varied, device), output, until=worker))
    else:
        until = time() + seconds if seconds else float("inf")
        _supervise_all(output, processes, until)
        raise typer.Exit(_run_models(device, processes) if models else 0)


def _pairs(ops: str, dtypes: str, shard: str, device: str) -> list[tuple[OpInfo, torch.dtype]]:
    part, parts = map(int, shard.split("/"))
    wanted = [getattr(torch, name) for name in dtypes.split(",") if name]
    pairs = [
        (op, dtype)
        for op in operators()
        if any(fnmatch(op.full_name, pattern.strip()) for pattern in ops.split(","))
        for dtype in dtypes_of(op, device)
        if not wanted or dtype in wanted
    ]
    return pairs[part::parts]


# -- a worker ----------------------------------------------------------------------------------------


def _work(pairs: list[tuple[OpInfo, torch.dtype]], extent: Extent, output: Path, until: float) -> int:
    """Runs what has no result yet; how the process is to end."""
    set_logs(all=logging.CRITICAL)  # each refused case would be reported, too
    done = {(result.op, result.dtype) for result in read(output)}
    left = [(op, dtype) for op, dtype in pairs if (op.full_name, str(dtype).removeprefix("torch.")) not in done]
    for op, dtype in left[:PAIRS_PER_PROCESS]:
        if time() > until:
            return ALL_DONE
        append(output, {"op": op.full_name, "dtype": str(dtype).removeprefix("torch.")})
        result = tried(op, dtype, extent)
        if extent.device != "cpu":
            torch.cuda.synchronize()  # a device that is lost ends the process, and that is the result
        append(output, result.as_json())
        print(f"{result.op} {result.dtype}: {result.passed} cases, {verdict([result])}", flush=True)
        for case, text in result.wrong.items():
            print(f"  {case}: {text}", flush=True)
    return MORE if left[PAIRS_PER_PROCESS:] else ALL_DONE


# -- the supervisor ----------------------------------------------------------------------------------


def _supervise_all(output: Path, processes: int, until: float) -> None:
    """All parts at once, each with results of its own, which are then put together."""
    if processes == 1:
        _supervise(output, until)
        return
    parts = [output.with_suffix(f".{number}.jsonl") for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda k: _supervise(parts[k], until, "--shard", f"{k}/{processes}"), range(processes)))
    for part in parts:
        for result in read(part):
            append(output, result.as_json())
        part.unlink(missing_ok=True)
    print(markdown(read(output)).partition("\n")[0])


def _supervise(output: Path, until: float, *options: str) -> None:
    """Starts workers until all is done; what one dies of is a result, too."""
    given = [*sys.argv[1:], *options, "--output", str(output), "--worker", str(until)]
    command = [sys.executable, "-X", "faulthandler", "-m", "stepwell.benchmarks.coverage", *given]
    while (status := subprocess.run(command).returncode) != ALL_DONE:
        if status == MORE:
            continue
        lost = unfinished(output)
        if lost is None:
            raise typer.Exit(status)
        append(output, Result(*lost, wrong={"process": f"crash: ended with status {status}"}).as_json())


def _run_models(device: str, processes: int) -> int:
    """The tests of the zoo on that device; how they ended."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-n", str(processes), "-p", "no:cacheprovider"]
    tests = ["tests/models/test_zoo.py", "-k", "inference or adam"]
    return subprocess.run([*command, *tests], cwd=ROOT, env={**os.environ, "STEPWELL_TEST_DEVICE": device}).returncode


if __name__ == "__main__":
    typer.run(main)

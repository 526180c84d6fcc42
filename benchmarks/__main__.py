"""`python -m stepwell.benchmarks`: chooses the rows, runs them, shows and writes the report."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .compare import BACKENDS, compare
from .report import table, write
from .workloads import WORKLOADS

RESULTS = Path(__file__).parent / "results" / "latest"


def main(
    rows: Annotated[
        str, typer.Option(help="Which workloads: a pattern such as 'softmax*', or several with commas.")
    ] = "*",
    shapes: Annotated[str, typer.Option(help="Which shapes of each, likewise.")] = "*",
    threads: Annotated[list[int], typer.Option(help="Numbers of threads; may be repeated.")] = [1, 2],
    backends: Annotated[str, typer.Option(help=f"With commas, of {', '.join(BACKENDS)}.")] = (
        "eager,inductor,stepwell"
    ),
    rounds: Annotated[int, typer.Option(min=2, help="How often each candidate is timed.")] = 15,
    first_calls: Annotated[bool, typer.Option("--first-calls", help="Time first calls, too.")] = False,
    output: Annotated[Path, typer.Option(help="Where to write .json and .md.")] = RESULTS,
) -> None:
    """Time Stepwell against eager, Inductor and a copy, interleaved in one process."""
    names = backends.split(",")
    if unknown := [name for name in names if name not in BACKENDS]:
        raise typer.BadParameter(f"expected {', '.join(BACKENDS)}, got {', '.join(unknown)}")
    cases = [
        (workload, shape)
        for workload in WORKLOADS
        for shape in workload.shapes
        if _matches(workload.name, rows) and _matches(shape, shapes)
    ]
    if not cases:
        raise typer.BadParameter(f"no workload matches; there are {', '.join(row.name for row in WORKLOADS)}")
    console, measured = Console(), []
    for workload, shape in cases:
        for count in threads:
            case = list(compare(workload, shape, names, threads=count, rounds=rounds, first_calls=first_calls))
            console.print(table(case))
            measured += case
    write(measured, output)
    console.print(f"{len(measured)} rows in {output}.json and .md")


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern.strip()) for pattern in patterns.split(","))


if __name__ == "__main__":
    typer.run(main)

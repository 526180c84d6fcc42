"""What the benchmark says: a table on the terminal, and the same rows as JSON and Markdown."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import torch
from rich.box import SIMPLE
from rich.table import Table

from .compare import Case, Row

HEADINGS = ("outputs", "backend", "time", "× eager", "× inductor", "of copy", "first", "repaid")
"""`first` is the time of the first call, `repaid` the number of calls after which it has paid against eager."""
CASE_HEADINGS = ("workload", "shape", "threads")


def duration(seconds: float) -> str:
    """With a unit and three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def case_cells(case: Case) -> tuple[str, str, str]:
    """Where a row was measured, in the order of `CASE_HEADINGS`."""
    return case.workload, f"{case.shape_name} {'×'.join(map(str, case.shape))}", str(case.threads)


def cells(row: Row) -> tuple[str, ...]:
    """What was measured, in the order of `HEADINGS`; what was not is a dash."""
    return (
        row.case.mode,
        row.backend,
        duration(row.seconds),
        _optional(row.speedup.get("eager"), "{:.2f}"),
        _optional(row.speedup.get("inductor"), "{:.2f}"),
        _optional(row.copy_share, "{:.0%}"),
        duration(row.first_call) if row.first_call else "–",
        _optional(row.break_even, "{:.0f}"),
    )


def _optional(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def table(rows: Sequence[Row]) -> Table:
    """The rows of one workload, shape and number of threads, for the terminal."""
    workload, shape, threads = case_cells(rows[0].case)
    title = f"{workload}, {shape}, threads: {threads}"
    result = Table(*HEADINGS, title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        result.add_row(*cells(row), end_section=following is None or following.case != row.case)
    return result


def markdown(rows: Sequence[Row]) -> str:
    """The same table, under what it was measured on."""
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    headings = (*CASE_HEADINGS, *HEADINGS)
    lines = [headings, ("---",) * len(headings), *((*case_cells(row.case), *cells(row)) for row in rows)]
    return f"{facts}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def environment() -> dict[str, str]:
    """What the times depend on besides the code."""
    return {
        "stepwell": version("stepwell"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "cores": str(os.cpu_count()),
    }


def write(rows: Sequence[Row], stem: Path) -> None:
    """`stem.json` for programs and `stem.md` for people."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    record = {"environment": environment(), "rows": [asdict(row) for row in rows]}
    stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(rows))

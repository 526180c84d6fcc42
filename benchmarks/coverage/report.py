"""Results on disk, one JSON object a line, and the page made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .sweep import Result

NO_COMPUTATION = ("stepwell.seed.default",)
"""Externs that are part of how native code works."""

PAGE = """# Operators: what becomes of each

Made by `{command}`,
then `--table docs/operators.md`, under torch {torch}. Each operator of torch's own test database runs forward and
backward on {extent};
and on inputs that eager refuses. Values must be about as near to float64 as eager's are
(`benchmarks/coverage/judge.py` says how near), integers equal, and so types, sizes, strides, aliasing, mutated inputs
and errors. Graphs are compiled in strict mode, where none may run eagerly instead. *native* means that kernels of
Stepwell compute every case; else the eager operators stand there that some case calls.

{summary}
{faults}
| operator | cases | types: what they become |
|---|---|---|
{rows}
"""


@dataclass(frozen=True)
class Sweep:
    """Facts about a sweep (`command`, `extent`, `torch`), and what came of it."""

    facts: Mapping[str, str]
    results: Sequence[Result]


def read(path: Path) -> Sweep:
    """The sweep in a file, one result for each operator and type."""
    facts: dict[str, str] = {}
    merged: dict[tuple[str, str], Result] = {}
    for row in _rows(path):
        if "command" in row:
            facts, merged = (
                row,
                {key: result for key, result in merged.items() if not result.left},
            )  # they are run again
            continue
        result = Result(**row)
        key = (result.op, result.dtype)
        merged[key] = _joined(merged[key], result) if key in merged else result
    return Sweep(facts, list(merged.values()))


def append(path: Path, row: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def _joined(one: Result, other: Result) -> Result:
    """Two parts of an operator's cases in one type."""
    return Result(
        one.op,
        one.dtype,
        passed=one.passed + other.passed,
        refused=one.refused + other.refused,
        excused=one.excused + other.excused,
        externs=dict(sorted((other.externs | one.externs).items())),
        wrong=one.wrong | other.wrong,
        seconds=round(one.seconds + other.seconds, 3),
        left=one.left or other.left,
    )


# -- words -------------------------------------------------------------------------------------------


def verdict(results: Iterable[Result]) -> str:
    """`native`, the eager operators that are called, WRONG, or that nothing was run."""
    results = list(results)
    if any(result.wrong for result in results):
        return "WRONG"
    if not any(result.passed + result.refused + result.excused for result in results):
        return "not run" if any(result.left for result in results) else "no cases"
    externs = {name for result in results for name in result.externs}.difference(NO_COMPUTATION)
    return ", ".join(f"`{name}`" for name in sorted(externs)) or "native"


def page(sweep: Sweep) -> str:
    """The whole page, with a line per operator, its types grouped by what becomes of them."""
    rows = []
    for name in sorted({result.op for result in sweep.results}):
        mine = [result for result in sweep.results if result.op == name]
        rows.append(f"| {name} | {sum(result.passed for result in mine)} | {_by_verdict(mine)} |")
    faults = [
        f"- {result.op} {result.dtype}, {case}: {text}"
        for result in sweep.results
        for case, text in result.wrong.items()
    ]
    return PAGE.format(
        **sweep.facts,
        summary=summary(sweep.results),
        faults="".join(f"{line}\n" for line in ["", *faults] if faults),
        rows="\n".join(rows),
    )


def _by_verdict(results: Sequence[Result]) -> str:
    groups: dict[str, list[str]] = {}
    for result in sorted(results, key=lambda result: result.dtype):
        groups.setdefault(verdict([result]), []).append(result.dtype)
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{', '.join(dtypes)}: {what}" for what, dtypes in groups.items())


def summary(results: Sequence[Result]) -> str:
    count = {name: sum(getattr(result, name) for result in results) for name in ("passed", "refused", "excused")}
    native = sum(verdict([result]) == "native" for result in results)
    wrong = sum(len(result.wrong) for result in results)
    left = sum(result.left for result in results)
    return (
        f"{len({result.op for result in results})} operators in {len(results)} pairs of operator and type, {native} "
        f"of them native: {count['passed']} cases equal eager, {count['refused']} are refused as by eager, "
        f"{count['excused']} do not pass with `aot_eager` either, {wrong} are wrong"
        + (f"; {left} pairs were not run, or not to their end." if left else ".")
    )

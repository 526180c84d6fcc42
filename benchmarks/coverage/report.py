"""Results on disk, one JSON object a line, and the table made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .sweep import Result

NO_COMPUTATION = ("stepwell.seed.default",)
"""Externs that are part of how native code works."""


def read(path: Path) -> list[Result]:
    return [Result(**row) for row in _rows(path) if "passed" in row]


def unfinished(path: Path) -> tuple[str, str] | None:
    """The operator and type that were begun last, if they gave no result: what a crash was about."""
    rows = list(_rows(path))
    return (rows[-1]["op"], rows[-1]["dtype"]) if rows and "passed" not in rows[-1] else None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


# -- words -------------------------------------------------------------------------------------------


def verdict(results: Iterable[Result]) -> str:
    """`native`, the eager operators that are called, or WRONG."""
    results = list(results)
    if any(result.wrong for result in results):
        return "WRONG"
    externs = {name for result in results for name in result.externs}.difference(NO_COMPUTATION)
    return ", ".join(f"`{name}`" for name in sorted(externs)) or "native"


def markdown(results: Sequence[Result]) -> str:
    """The table: a line per operator, its types grouped by what becomes of them."""
    lines = [_summary(results), "", "| operator | cases | types: what they become |", "|---|---|---|"]
    for name in sorted({result.op for result in results}):
        mine = [result for result in results if result.op == name]
        lines.append(f"| {name} | {sum(result.passed for result in mine)} | {_by_verdict(mine)} |")
    return "\n".join(lines) + "\n"


def _by_verdict(results: Sequence[Result]) -> str:
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(verdict([result]), []).append(result.dtype)
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{', '.join(dtypes)}: {what}" for what, dtypes in groups.items())


def _summary(results: Sequence[Result]) -> str:
    count = {name: sum(getattr(result, name) for result in results) for name in ("passed", "refused", "excused")}
    native = sum(verdict([result]) == "native" for result in results)
    wrong = sum(len(result.wrong) for result in results)
    return (
        f"{len({result.op for result in results})} operators in {len(results)} pairs of operator and type, {native} "
        f"of them native: {count['passed']} cases equal eager, {count['refused']} are refused as by eager, "
        f"{count['excused']} do not pass with `aot_eager` either, {wrong} are wrong."
    )

"""Processes of the sweep: what one does not survive is a result, and nothing else is lost."""

from __future__ import annotations

from pathlib import Path
from time import time

import pytest

pytest.importorskip("expecttest", reason="torch's operator database needs it")

from stepwell.benchmarks.coverage.cases import Extent
from stepwell.benchmarks.coverage.pool import Piece, run_pieces
from stepwell.benchmarks.coverage.report import Sweep, append, page, read
from stepwell.benchmarks.coverage.sweep import Result
from stepwell.tests.coverage.mortal import dies_at_a_case


def swept(pieces: list[Piece], folder: Path, until: float) -> Sweep:
    output = folder / "results.jsonl"
    append(output, {"command": "sweep", "extent": "all samples", "torch": "2"})
    run_pieces(
        pieces,
        Extent(),
        jobs=2,
        until=until,
        log=folder / "log",
        environments=[{}],
        ended=lambda result: append(output, result.as_json()),
        served=dies_at_a_case,
    )
    return read(output)


def test_a_process_that_dies_costs_the_case_that_it_was_at(tmp_path: Path) -> None:
    sweep = swept([Piece("add", "float32"), Piece("start", "bool")], tmp_path, time() + 600)
    results = {result.op: result for result in sweep.results}
    assert results["add"].passed == 3 + 4  # of the part with the fatal case, and of the other one
    assert list(results["add"].wrong) == ["case 2"]
    assert results["add"].wrong["case 2"].startswith("process: crash: ended with status -6")
    assert list(results["start"].wrong) == ["start"]
    assert "- add float32, case 2: process: crash" in page(sweep)


def test_what_the_budget_leaves_is_listed_as_not_run(tmp_path: Path) -> None:
    sweep = swept([Piece("add", "float32"), Piece("mul", "bool")], tmp_path, time() - 1)
    assert [result.left for result in sweep.results] == [True, True]
    assert not any(result.wrong for result in sweep.results)
    assert "2 pairs were not run" in page(sweep)
    assert "| mul | 0 | not run |" in page(sweep)


def test_parts_of_a_pair_are_put_together(tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    append(output, Result("add", "bool", 0, 2, passed=2, externs={"aten.add": "0"}).as_json())
    append(output, Result("add", "bool", 1, 2, passed=3, wrong={"5": "values"}, left=True).as_json())
    (result,) = read(output).results
    assert (result.passed, result.externs, result.wrong, result.left) == (5, {"aten.add": "0"}, {"5": "values"}, True)


def test_what_was_left_is_run_again(tmp_path: Path) -> None:
    output, header = tmp_path / "results.jsonl", {"command": "sweep", "extent": "all samples", "torch": "2"}
    append(output, header)
    append(output, Result("add", "bool", passed=2, left=True).as_json())
    append(output, Result("mul", "bool", passed=5).as_json())
    append(output, header)
    append(output, Result("add", "bool", passed=3).as_json())
    assert [(result.op, result.passed, result.left) for result in read(output).results] == [
        ("mul", 5, False),
        ("add", 3, False),
    ]

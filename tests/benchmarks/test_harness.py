"""The benchmark harness: what is timed, what is kept alive, and that a report says what was measured."""

from __future__ import annotations

import json
import time
import weakref
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

from stepwell.benchmarks.compare import BACKENDS, MODES, candidate, compare
from stepwell.benchmarks.harness import Candidate, call, measure
from stepwell.benchmarks.report import duration, markdown, table, write
from stepwell.benchmarks.workloads import WORKLOADS, Shape, Workload, matrices

SMALL: dict[str, Shape] = {"small": (8, 16)}


def small(workload: Workload) -> Workload:
    shapes = workload.shapes if "transformer" in workload.name else SMALL
    return Workload(workload.name, workload.function, workload.inputs, workload.traffic, shapes, workload.backward)


class Output:
    """Something that can be watched dying."""


def test_a_slower_candidate_takes_longer_and_preparation_is_not_timed() -> None:
    slow = call(lambda: time.sleep(0.002))
    prepared: Candidate[None] = Candidate(lambda _: None, lambda: time.sleep(0.002))
    timings = measure({"slow": slow, "prepared": prepared}, rounds=3, round_seconds=0.002)
    assert timings["slow"].median > 0.002
    assert timings["prepared"].median < 0.001
    assert all(timing.low <= timing.median <= timing.high for timing in timings.values())


@pytest.mark.parametrize("kept", MODES.values())
def test_as_many_outputs_stay_alive_as_asked(kept: int) -> None:
    outputs: list[weakref.ref[Output]] = []
    alive: list[int] = []

    def run() -> Output:
        output = Output()
        alive.append(sum(ref() is not None for ref in outputs))
        outputs.append(weakref.ref(output))
        return output

    measure({"only": call(run)}, kept=kept, rounds=2, round_seconds=0)
    assert max(alive) == kept


def test_candidates_are_interleaved_and_each_comes_first() -> None:
    order: list[str] = []
    candidates = {name: call(partial(order.append, name)) for name in "ab"}
    measure(candidates, rounds=4, round_seconds=0)
    assert "".join(order[-8:]) == "abbaabba"


@pytest.mark.parametrize("workload", [small(row) for row in WORKLOADS], ids=lambda row: row.name)
def test_every_workload_runs(workload: Workload) -> None:
    one = candidate(workload, workload.function, workload.inputs(workload.shapes["small"]))
    outputs = one.run(one.prepare())
    assert all(torch.isfinite(output).all() for output in pytree.tree_leaves(outputs))


def test_a_comparison_has_a_row_for_each_mode_and_backend() -> None:
    workload = Workload("square", torch.square, matrices(1), 2, SMALL)
    rows = list(compare(workload, "small", ["eager", "floor"], threads=1, rounds=2, first_calls=False))
    assert [(row.case.mode, row.backend) for row in rows] == list(product(MODES, ["eager", "floor"]))
    assert all(row.copy_share is not None and row.copy_share > 0 for row in rows)
    assert rows[0].speedup.keys() == {"floor"}


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "wrong", lambda function: lambda *inputs: function(*inputs) + 1)
    workload = Workload("square", torch.square, matrices(1), 2, SMALL)
    with pytest.raises(AssertionError, match="not close"):
        list(compare(workload, "small", ["eager", "wrong"], threads=1, rounds=2, first_calls=False))


def test_the_floor_computes_nothing() -> None:
    compiled = BACKENDS["floor"](torch.exp)
    assert torch.equal(compiled(torch.ones(4)), torch.ones(4).exp())
    assert torch.equal(compiled(torch.zeros(4)), torch.ones(4).exp())


def test_a_report_holds_every_row(tmp_path: Path) -> None:
    workload = Workload("square", torch.square, matrices(1), 2, SMALL)
    rows = list(compare(workload, "small", ["eager", "floor"], threads=1, rounds=2, first_calls=False))
    write(rows, tmp_path / "report")
    assert len(json.loads((tmp_path / "report.json").read_text())["rows"]) == len(rows)
    assert (tmp_path / "report.md").read_text() == markdown(rows)
    assert markdown(rows).count("| square | small 8×16 | 1 |") == len(rows)
    assert table(rows).row_count == len(rows)


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-6, "4 µs"), (5e-10, "0.5 ns")])
def test_durations_carry_their_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text

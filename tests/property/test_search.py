"""The search over seeds: its programs are as varied as they should be, and its log goes on and keeps what it found."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from stepwell.tests.property import search
from stepwell.tests.property.programs import rolled_program
from stepwell.tests.property.search import NATIVE_EVERY, STEPS_EVERY, Examination, Log, Tally
from stepwell.tests.property.test_programs import text_of


def test_programs_are_as_varied_as_a_search_needs() -> None:
    tally = Tally(0)
    for seed in range(400):
        tally.add(rolled_program(seed), native=False)
    assert tally.median >= 8
    assert min(tally.reduction, tally.view, tally.symbol, tally.other_type) >= 0.3 * tally.count
    assert len(tally.kinds) > 70


def test_a_seed_makes_the_same_program_again() -> None:
    first, second, other = (rolled_program(seed) for seed in (3, 3, 4))
    assert text_of(first.module) == text_of(second.module) != text_of(other.module)


@pytest.mark.parametrize("seed", [*range(NATIVE_EVERY), *range(1, 6 * STEPS_EVERY, STEPS_EVERY)])
def test_a_program_is_right_at_every_level_that_it_runs_at(seed: int) -> None:
    Examination(seed).run()


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_search_goes_on_with_what_its_log_lacks_and_keeps_its_findings(
    jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(examination: Examination) -> None:
        assert examination.seed != 4, "a planted fault"
        if examination.seed == 6:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Examination, "run", run)
    monkeypatch.setattr(search, "BATCH", 3)
    path = tmp_path / "log"
    for count in ("5", "8"):
        search.main(["--count", count, "--jobs", jobs, "--log", str(path)])
    log = Log(path)
    assert sorted((batch.first, batch.count) for batch in log.batches) == [(0, 3), (3, 2), (5, 3)]
    assert [(seed, finding.step) for seed, finding in sorted(log.findings.items())] == [
        (4, "graph"), (6, "the process died"),
    ]  # fmt: skip
    assert str(log).startswith("8 programs, ")
    assert "a planted fault" in str(log)


def test_a_search_fills_the_gaps_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BATCH", 3)
    log = Log(tmp_path / "log")
    log.add_batch(Tally(8, 2))
    log.add_batch(Tally(3, 3))
    assert list(log.missing(12)) == [range(3), range(6, 8), range(10, 12)]
    assert list(log.missing(7)) == [range(3), range(6, 7)]
    assert list(Log(log.path).missing(2)) == [range(2)]

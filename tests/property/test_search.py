"""The search over seeds: its programs are as varied as they should be, and its log goes on and keeps what it found."""

from __future__ import annotations

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


def test_a_search_goes_on_behind_the_last_batch_and_keeps_its_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(examination: Examination) -> None:
        assert examination.seed != 4, "a planted fault"

    monkeypatch.setattr(Examination, "run", run)
    monkeypatch.setattr(search, "BATCH", 3)
    path = tmp_path / "log"
    search.main(["--count", "5", "--log", str(path)])
    path.with_suffix(".running").write_text("6")  # a process that died
    search.main(["--count", "8", "--log", str(path)])
    log = Log(path)
    assert [batch.first for batch in log.batches] == [0, 3, 5]
    assert [(finding["seed"], finding["step"]) for finding in log.findings] == [(4, "graph"), (6, "the process died")]
    assert str(log).startswith("8 programs, ")
    assert "a planted fault" in str(log)

"""Runs of tests on mutants of a small checkout: which die, of what, and what a log knows of it; and the forks below."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from pathlib import Path

import pytest

from stepwell.tests.forks import Forks, Say
from stepwell.tests.mutation import run

SOURCE = """\
def limited(size: int) -> int:
    if size > 8:
        return 8
    return size


def unused(size: int) -> int:
    return size - 1
"""

TESTS = """\
import os
import time

import pytest
from stepwell.lowering.graph.limits import limited


def test_that_needs_another_machine() -> None:
    assert os.path.exists("/no/such/tool")


def test_small() -> None:
    for _ in range(limited(9) - 8):
        while True:
            pass
    assert limited(8) == 8


def test_large() -> None:
    assert limited(10) == 8


@pytest.mark.slow
def test_that_is_left_out() -> None:
    assert limited(4) == 5
"""

GOLDEN = """\
from stepwell.lowering.graph.limits import unused


def test_code() -> None:
    assert unused(1) == 0
"""

FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\nmarkers = ["slow: so"]',
    "lowering/graph/limits.py": SOURCE,
    "tests/near/test_limits.py": TESTS,
    "tests/near/test_import.py": "import no_such_module",
    "tests/golden/test_golden.py": GOLDEN,
    run.LIMITS: "def test_page() -> None: pass",
    "tests/far/test_anything.py": "def test_anything() -> None: pass",
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project instead of ours."""
    for name, text in FILES.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(run, "ROOT", tmp_path / "checkout")
    monkeypatch.setattr(run, "TESTS", (("lowering", ("tests/near",)),))
    monkeypatch.setattr(run, "RANDOM", ("tests/far/test_anything.py",))
    monkeypatch.setattr(run, "LOADED", ())
    monkeypatch.setattr(run, "TEST_SECONDS", 1)
    return tmp_path / "checkout"


def test_mutants_die_of_the_first_test_that_notices_and_of_none_that_fails_anyway(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = checkout.parent / "log"
    run.main(["--jobs", "2", "--log", str(log)])
    first = capsys.readouterr().out
    near = "tests/near/test_limits.py"
    for line in (
        f"lowering/graph/limits.py:2:8: guard dropped: size > 8 → False: killed by {near}::test_small",
        f"lowering/graph/limits.py:2:15: constant: 8 → 9: killed by {near}::test_small",  # which never ends
        f"lowering/graph/limits.py:3:16: constant: 8 → 9: killed by {near}::test_small",
        f"lowering/graph/limits.py:3:16: constant: 8 → 7: killed by {near}::test_large",
        "lowering/graph/limits.py:8:19: constant: 1 → 2: killed by tests/golden/test_golden.py::test_code",
        "lowering/graph/limits.py:8:12: swapped: size - 1 → 1 - size: SURVIVED",
    ):
        assert line in first.splitlines()
    assert "6 of 8 mutants killed (75.0%)\n  2 of them by the corpus of code" in first
    assert f"tests left out, as they fail without a mutant:\n  tests/near/test_import.py\n  {near}::test_that" in first
    assert (checkout / "lowering/graph/limits.py").read_text() == SOURCE
    size = log.stat().st_size
    run.main(["--jobs", "2", "--log", str(log)])
    assert capsys.readouterr().out == first[first.index("6 of 8") :]
    assert log.stat().st_size == size


def test_only_the_tests_that_are_given_run(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.main(["--tests", "tests/golden/test_golden.py"])
    assert "2 of 8 mutants killed (25.0%)" in capsys.readouterr().out


def test_the_corpus_may_come_first(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orders = [[each.test for each in run.cases("", quick=quick)[0].runs] for quick in (False, True)]
    near = "tests/near/test_limits.py"
    assert [order.index(run.GOLDEN) < order.index(near) for order in orders] == [False, True]
    run.main(["--quick"])
    assert "by the corpus of code" not in capsys.readouterr().out


def test_a_budget_ends_a_run_that_another_one_continues(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="stopped before the end"):
        run.main(["--budget", "0"])
    assert "0 of 0 mutants killed" in (text := capsys.readouterr().out)
    assert "8 not examined yet:" in text


def test_forks_say_what_they_see_and_may_die() -> None:
    def work(say: Say, key: str, slot: int) -> None:
        say(slot)
        if key == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if key == "fails":
            raise ValueError(key)
        say(key)

    pending = deque(["works", "dies", "fails"])
    with Forks[str](2) as forks:
        ends = {}
        for fork in forks.run(pending, work):
            ends[fork.key] = (fork.status, fork.said[1:])
            assert fork.said[0] == fork.slot < 2
            if fork.key == "works":
                pending.append("later")
    assert ends == {"works": (0, ["works"]), "dies": (-signal.SIGKILL, []), "fails": (1, []), "later": (0, ["later"])}


def test_forks_do_not_outlive_their_deadline() -> None:
    started = time.monotonic()
    with Forks[int](1, started + 0.2) as forks:
        assert list(forks.run(deque([0, 1]), lambda say, key, slot: time.sleep(100))) == []
        (fork,) = forks.running
    assert time.monotonic() - started < 50
    with pytest.raises(ProcessLookupError):
        os.kill(fork.pid, 0)

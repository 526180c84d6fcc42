"""Which conditions and guards of a small source decide."""

from __future__ import annotations

from typing import Any

from stepwell.tests.mutation.decisions import WATCH, Decisions, Watcher

SOURCE = """\
def is_large(x):
    if x is None:
        return False
    return x > 10 and x % 2 == 0 and x > 5

def is_odd_or_named(x):
    return isinstance(x, str) or x % 2 == 1
"""


def watched() -> tuple[dict[str, Any], Decisions]:
    decisions = Decisions()
    space: dict[str, Any] = {WATCH: decisions}
    exec(compile(Watcher("a.py", SOURCE, decisions).watched(), "a.py", "exec"), space)
    return space, decisions


def idle(decisions: Decisions) -> list[str]:
    return [name.removeprefix("a.py:") for name in decisions.idle]


def test_nothing_decides_before_it_runs() -> None:
    assert idle(watched()[1]) == [
        "2:8: guard: x is None",
        "4:12: condition: x > 10",
        "4:23: condition: x % 2 == 0",
        "4:38: condition: x > 5",
        "7:12: condition: isinstance(x, str)",
        "7:34: condition: x % 2 == 1",
    ]


def test_a_watched_source_computes_what_it_did() -> None:
    space, _ = watched()
    assert [space["is_large"](x) for x in (None, 3, 12, 13)] == [False, False, True, False]
    assert [space["is_odd_or_named"](x) for x in ("a", 3, 4)] == [True, True, False]


def test_a_condition_decides_where_it_alone_makes_the_difference() -> None:
    space, decisions = watched()
    space["is_large"](7)  # odd as well
    assert "4:12: condition: x > 10" in idle(decisions)
    space["is_large"](8)
    assert "4:12: condition: x > 10" not in idle(decisions)
    for x in range(100):
        space["is_large"](x)
    assert idle(decisions)[:2] == ["2:8: guard: x is None", "4:38: condition: x > 5"]  # implied by x > 10


def test_a_condition_decides_where_the_others_cannot_be_asked_without_it() -> None:
    space, decisions = watched()
    space["is_odd_or_named"]("a")
    assert "7:12: condition: isinstance(x, str)" not in idle(decisions)


def test_a_guard_decides_where_it_fires() -> None:
    space, decisions = watched()
    space["is_large"](None)
    assert "2:8: guard: x is None" not in idle(decisions)

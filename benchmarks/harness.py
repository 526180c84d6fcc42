"""Times several candidates against each other in one process, so that drift of the machine hits all alike.

Knows nothing of workloads or backends: a candidate is a pair of functions.
"""

from __future__ import annotations

import gc
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

State = TypeVar("State")

WARM_UP_CALLS = 3
"""Enough for a compile, for what a runtime learns from its first calls, and for the caches."""


@dataclass(frozen=True)
class Candidate(Generic[State]):
    """What is timed, and what must happen before each call without being timed."""

    run: Callable[[State], object]
    prepare: Callable[[], State]


def call(function: Callable[[], object]) -> Candidate[None]:
    """A candidate that needs no preparation."""
    return Candidate(lambda _: function(), lambda: None)


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median over all rounds, and the quartiles around it."""

    median: float
    low: float
    high: float


def measure(
    candidates: Mapping[str, Candidate[Any]], *, kept: int = 0, rounds: int = 15, round_seconds: float = 0.01
) -> dict[str, Timing]:
    """Time the candidates in turn, round after round.

    The outputs of the last `kept` calls stay alive; with 0, each dies inside the timed region, as does the
    oldest kept one, because freeing is part of what a call costs. A round of one candidate takes about
    `round_seconds`, at least one call.
    """
    calls = {name: _calls_per_round(candidate, kept, round_seconds) for name, candidate in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    with _no_collection():
        for names in _rotations(list(candidates), rounds):
            for name in names:
                samples[name].append(_seconds_per_call(candidates[name], calls[name], kept))
    return {name: _timing(seconds) for name, seconds in samples.items()}


def _calls_per_round(candidate: Candidate[Any], kept: int, round_seconds: float) -> int:
    """As many calls as fill a round, preparation included, and more than are kept; warms up on the way."""
    _seconds_per_call(candidate, WARM_UP_CALLS, kept)
    start = perf_counter()
    _seconds_per_call(candidate, 1, kept)
    return max(1, 2 * kept, round(round_seconds / (perf_counter() - start)))


def _seconds_per_call(candidate: Candidate[Any], calls: int, kept: int) -> float:
    outputs: deque[object] = deque(maxlen=kept)
    run, prepare, keep = candidate.run, candidate.prepare, outputs.append
    total = 0.0
    for _ in range(calls):
        state = prepare()
        start = perf_counter()
        keep(run(state))
        total += perf_counter() - start
    return total / calls


def _rotations(names: list[str], rounds: int) -> Iterator[list[str]]:
    """Each candidate comes first equally often, since whoever follows finds its predecessor's cache."""
    for turn in range(rounds):
        start = turn % len(names)
        yield names[start:] + names[:start]


def _timing(seconds: list[float]) -> Timing:
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median, low, high)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage now and not while timing."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

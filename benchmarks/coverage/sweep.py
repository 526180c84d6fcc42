"""The sweep: each case under Stepwell against eager; what differs is judged again through `torch.compile`.

A case counts where the `aot_eager` backend, which compiles nothing, passes it. One result per operator and type.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import process_time
from typing import Any

import torch

from .cases import Case, Extent, OpInfo, name_of, samples_of
from .judge import Difference, difference, kinds_beyond
from .reference import Reference
from .running import Compiler, Externs, Outcome, by_dynamo, directly, eagerly, run
from .ways import cases_of

SECONDS_PER_CASE = 60

UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators whose results hold no particular values."""


@dataclass
class Result:
    """How an operator fared in one type: counts of cases, the eager operators that it called, each with its first case,
    and what was wrong.

    `refused` cases are those that eager itself refuses, `excused` those that `aot_eager` does not pass either. It may
    be of one of several `parts` of the cases; `left` if some of these were not run.
    """

    op: str
    dtype: str
    part: int = 0
    parts: int = 1
    passed: int = 0
    refused: int = 0
    excused: int = 0
    externs: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    seconds: float = 0
    left: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def tried(op: OpInfo, dtype: torch.dtype, extent: Extent) -> Result:
    """All cases of an operator in one type."""
    result = Result(op.full_name, name_of(dtype))
    for _ in trying(result, op, cases_of(op, dtype, extent, samples_of(op, dtype, extent))):
        pass
    return result


def trying(result: Result, op: OpInfo, some: Iterable[Case]) -> Iterator[str]:
    """Tries case after case, and yields the name of each before it begins.

    The first of an operator is compiled through Dynamo, too; not on a GPU, where that way is the CPU's.
    """
    externs = Externs(targets=result.externs)
    for case in some:
        yield case.name
        externs.case = case.name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _try(result, op, case, externs)


def _try(result: Result, op: OpInfo, case: Case, externs: Externs) -> None:
    on_device = any(tensor.is_cuda for tensor in case.call.tensors)
    by_user = case.name == "0" and not on_device
    begun = process_time()
    try:
        with _time_limit(SECONDS_PER_CASE):
            verdict = _verdict(case, externs, values=op.name not in UNINITIALIZED, by_user=by_user)
    except TimeoutError:
        verdict = {"time": f"more than {SECONDS_PER_CASE} s"}
    if on_device:
        torch.cuda.synchronize()  # a device that is lost ends the process, and that is the result
    result.seconds = round(result.seconds + process_time() - begun, 3)
    if isinstance(verdict, str):
        setattr(result, verdict, getattr(result, verdict) + 1)
    else:
        result.wrong[case.name] = "; ".join(f"{kind}: {text}" for kind, text in verdict.items())


def _verdict(case: Case, externs: Externs, *, values: bool, by_user: bool) -> str | Difference:
    """The count that the case adds to, or how it is wrong. `by_user` asks for the way through Dynamo, too."""
    expected = run(eagerly, case.call, gradients=case.gradients)
    random = values and _is_random(case, expected)
    reference = None if random else Reference(case)

    def compared(compiler: Compiler) -> tuple[Outcome, Difference]:
        found = run(compiler, case.call, gradients=case.gradients)
        return found, difference(expected, found, reference, values=values)

    differs: Difference = {}
    if not case.sizes:
        found, differs = compared(directly(externs, fallback_random=random))
    if differs or by_user or case.sizes:
        found, differs = compared(by_dynamo("stepwell", case.sizes, strict=True, fallback_random=random))
    if not differs:
        return "refused" if expected.error is not None else "passed"
    uncompiled, also = compared(by_dynamo("aot_eager", case.sizes))
    if "error" in also:
        return "excused"
    if "error type" in also and type(found.error) is type(uncompiled.error):
        return "refused"
    return kinds_beyond(differs, [*also]) or "excused"


def _is_random(case: Case, expected: Outcome) -> bool:
    """Whether another seed gives other results."""
    return bool(difference(expected, run(eagerly, case.call, gradients=case.gradients, seed=1), None))


# -- time --------------------------------------------------------------------------------------------


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the main thread when the time is over."""

    def stop(number: int, frame: Any) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    except _OutOfTime:
        raise TimeoutError from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _OutOfTime(BaseException):
    """No Exception, so that no handler of a compiler takes it for an error of the program."""

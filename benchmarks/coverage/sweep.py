"""The sweep: each case under Stepwell against eager; what differs is judged again through `torch.compile`.

A case counts where the `aot_eager` backend, which compiles nothing, passes it. One result per operator and type.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from .cases import Call, Case, Extent, OpInfo, cases
from .judge import Difference, difference, kinds_beyond
from .running import Externs, Outcome, by_dynamo, directly, eagerly, run

SECONDS_PER_CASE = 60

UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators whose results hold no particular values."""


@dataclass
class Result:
    """How an operator fared in one type: counts of cases, the eager operators that it called, each with its first case,
    and what was wrong.

    `refused` cases are those that eager itself refuses, `excused` those that `aot_eager` does not pass either.
    """

    op: str
    dtype: str
    passed: int = 0
    refused: int = 0
    excused: int = 0
    externs: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def tried(op: OpInfo, dtype: torch.dtype, extent: Extent) -> Result:
    """All cases of an operator in one type; on a GPU the way through Dynamo, which is that of the CPU, is left out."""
    result, externs = Result(op.full_name, str(dtype).removeprefix("torch.")), Externs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, case in enumerate(cases(op, dtype, extent)):
            externs.case = case.name
            _try(result, op, case, externs, by_user=number == 0 and extent.device == "cpu")
    result.externs = dict(sorted(externs.targets.items()))
    return result


def _try(result: Result, op: OpInfo, case: Case, externs: Externs, by_user: bool) -> None:
    try:
        with _time_limit(SECONDS_PER_CASE):
            verdict = _verdict(case, externs, values=op.name not in UNINITIALIZED, by_user=by_user)
    except TimeoutError:
        result.wrong[case.name] = f"time: more than {SECONDS_PER_CASE} s"
        return
    if isinstance(verdict, str):
        setattr(result, verdict, getattr(result, verdict) + 1)
    else:
        result.wrong[case.name] = "; ".join(f"{kind}: {text}" for kind, text in verdict.items())


def _verdict(case: Case, externs: Externs, *, values: bool, by_user: bool) -> str | Difference:
    """The count that the case adds to, or how it is wrong. `by_user` asks for the way through Dynamo, too."""
    expected = run(eagerly, case.call, gradients=case.gradients)
    random = values and _is_random(case, expected)
    reference = None if expected.error is not None or random else _reference(case)
    found = run(directly(externs, fallback_random=random), case.call, gradients=case.gradients)
    differs = difference(expected, found, reference, values=values)
    if differs or by_user:
        options = {"strict": True, "fallback_random": random}
        differs = difference(
            expected,
            run(by_dynamo("stepwell", **options), case.call, gradients=case.gradients),
            reference,
            values=values,
        )
    if not differs:
        return "refused" if expected.error is not None else "passed"
    uncompiled = difference(
        expected, run(by_dynamo("aot_eager"), case.call, gradients=case.gradients), reference, values=values
    )
    if "error" in uncompiled:
        return "excused"
    return kinds_beyond(differs, [*uncompiled]) or "excused"


def _is_random(case: Case, expected: Outcome) -> bool:
    """Whether another seed gives other results."""
    return bool(difference(expected, run(eagerly, case.call, gradients=case.gradients, seed=1), None))


# -- reference ---------------------------------------------------------------------------------------

_PRECISE = {
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


def _reference(case: Case) -> Outcome | None:
    """The case in float64; None where that is what it computes in."""
    precise = _in_float64(case.call)
    same = all(one is other for one, other in zip(precise.leaves, case.call.leaves, strict=True))
    return None if same else run(eagerly, precise, gradients=case.gradients)


def _in_float64(call: Call) -> Call:
    """The call with its tensors, and the types that it names, made precise."""

    def precise(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return _PRECISE.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf
        if leaf.dtype not in _PRECISE or leaf.layout != torch.strided:
            return leaf  # the same object: nothing is more precise
        return leaf.detach().to(_PRECISE[leaf.dtype]).requires_grad_(leaf.requires_grad)

    return replace(call, leaves=tuple(map(precise, call.leaves)))


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

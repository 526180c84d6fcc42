"""Whether two outcomes of a call are the same: values, types, strides, aliasing, mutated inputs, gradients, errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ...ir.errors import StepwellError
from .reference import PRECISE, Reference, numbers
from .running import Outcome

Difference: TypeAlias = dict[str, str]
"""What differs, by kind: `values`, `dtype`, `sizes`, `strides`, `aliases`, `error`, …"""

OWN_ERROR = 3
"""How many times eager's own error is allowed: its largest, and its largest in units of an element's magnitude."""

ULPS = 4
"""And how many units in the last place of an element's magnitude, where eager's error happens to be smaller."""

SHARE = {"results": 1 / 8, "inputs": 1 / 8, "gradients": 2.0}
"""An element's magnitude is what was added up to it, if that is more than itself. It is at most this share of the
largest element, as gradients cancel what is larger than they, unless it must tell eager's error, too: in float64."""


def difference(expected: Outcome, found: Outcome, reference: Reference | None, *, values: bool = True) -> Difference:
    """How the outcomes differ; without `reference` or `values`, values are compared with eager's or not at all."""
    if expected.error is not None or found.error is not None:
        return _error_difference(expected.error, found.error)
    if len(expected.results) != len(found.results):
        return {"count": f"{len(found.results)} results, expected {len(expected.results)}"}
    differences: Difference = {}
    for name in ("results", "inputs", "gradients"):
        for number, (one, other) in enumerate(zip_longest(getattr(expected, name), getattr(found, name))):
            near = Nearness(reference, name, number) if values else None
            for kind, text in _value_differences(one, other, near):
                differences.setdefault(kind, f"{name}[{number}]: {text}")
    if (aliases := _aliases(expected)) != (mine := _aliases(found)):
        differences["aliases"] = f"storages {mine}, expected {aliases}"
    return differences


def _error_difference(expected: Exception | None, found: Exception | None) -> Difference:
    if expected is None:
        return {"error": f"raised {_described(found)}"}
    if found is None:
        return {"no error": f"expected {_described(expected)}"}
    cause = getattr(found, "inner_exception", found)  # what Dynamo wraps if a backend raises
    if isinstance(cause, type(expected)) and not isinstance(cause, StepwellError):
        return {}
    return {"error type": f"raised {_described(found)}, expected {_described(expected)}"}


def _described(error: Exception | None) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error} {notes}"[:600]


def _aliases(outcome: Outcome) -> list[tuple[int, int]]:
    """For each input and result the number of the first tensor among them whose memory it shares, and how many
    elements after that one it begins; what has no elements shares nothing."""
    tensors = [*outcome.inputs, *outcome.results]
    seen: dict[int, int] = {}
    found = []
    for number, value in enumerate(tensors):
        if not isinstance(value, Tensor) or value.layout != torch.strided or not value.numel():
            continue
        first = seen.setdefault(value.untyped_storage()._cdata, number)
        found.append((first, value.storage_offset() - tensors[first].storage_offset()))
    return found


# -- one value ---------------------------------------------------------------------------------------


def _value_differences(expected: Any, found: Any, near: Nearness | None) -> Iterator[tuple[str, str]]:
    if not isinstance(expected, Tensor) or not isinstance(found, Tensor):
        if type(expected) is not type(found) or (near is not None and repr(expected) != repr(found)):
            yield "values", f"{found!r}, expected {expected!r}"
        return
    facts = list(_fact_differences(expected, found))
    yield from facts
    if near is not None and not any(kind in ("dtype", "sizes", "layout") for kind, _ in facts):
        wrong = near.wrong(expected, found)
        if wrong.any():
            yield "values", _first(numbers(expected), numbers(found), wrong)


def _fact_differences(expected: Tensor, found: Tensor) -> Iterator[tuple[str, str]]:
    for kind, read in _FACTS.items():
        if (wanted := read(expected)) != (given := read(found)):
            yield kind, f"{given}, expected {wanted}"


_FACTS = {
    "layout": lambda x: x.layout,
    "dtype": lambda x: x.dtype,
    "sizes": lambda x: tuple(x.shape),
    "strides": lambda x: x.stride() if x.layout == torch.strided else None,
    "class": lambda x: type(x),
    "requires_grad": lambda x: x.requires_grad,
    "conjugation": lambda x: (x.is_conj(), x.is_neg()),
}


@dataclass(frozen=True)
class Nearness:
    """How near a tensor must be to the same one of the reference: about as near as eager's."""

    reference: Reference | None
    name: str
    number: int

    def wrong(self, expected: Tensor, found: Tensor) -> Tensor:
        """Per element: whether it is too far off. Integers must be equal, and what is not finite: to what eager gives
        for these numbers here or elsewhere in memory, as its vectors overflow where its scalars do not."""
        one, other = numbers(expected), numbers(found)
        differs = (one != other) & ~(one.isnan() & other.isnan())
        if not one.is_floating_point() or not differs.any():
            return differs
        finite = one.isfinite() & other.isfinite()
        precise = self._precise(one)
        error, own = ((value - precise).abs() for value in (other, one))
        differs &= ~(finite & (error <= self._allowed(precise, own, finite, expected.dtype)))
        unbounded = differs & ~one.isfinite()
        return differs & ~(unbounded & self._is_given_elsewhere(other)) if unbounded.any() else differs

    def _is_given_elsewhere(self, found: Tensor) -> Tensor:
        value = None if self.reference is None else self.reference.elsewhere(self.name, self.number)
        if value is None or value.shape != found.shape:
            return torch.zeros_like(found, dtype=torch.bool)
        return numbers(value) == found

    def _precise(self, eager: Tensor) -> Tensor:
        value = None if self.reference is None else self.reference.value(self.name, self.number)
        precise = eager if value is None else numbers(value)
        return torch.where(precise.isfinite(), precise, eager) if precise.shape == eager.shape else eager

    def _allowed(self, precise: Tensor, own: Tensor, finite: Tensor, dtype: torch.dtype) -> Tensor:
        """`OWN_ERROR` times eager's error and `ULPS` units, both of the element's magnitude.

        Eager's error in units of magnitudes carries over from element to element; it is at most its largest error.
        Where nothing is more precise than eager, both may be wrong, and eager's error is not known.
        """
        if not finite.any():
            return torch.zeros_like(precise)
        info, finer = torch.finfo(dtype), self._finer(dtype)
        magnitude = self._magnitude(precise, finite, info.tiny, finer)
        units = (own / magnitude)[finite & (own > 0)]
        carried = (magnitude * units.max()).nan_to_num(nan=torch.inf) if units.numel() else torch.zeros_like(own)
        slack = ULPS if finer else 8 * ULPS
        return OWN_ERROR * carried.clamp(max=own[finite].max()) + slack * info.eps * magnitude

    def _magnitude(self, precise: Tensor, finite: Tensor, tiny: float, finer: bool) -> Tensor:
        added = None if self.reference is None else self.reference.added(self.name, self.number)
        most = precise[finite].abs().max() * SHARE[self.name]
        if added is not None and added.shape == precise.shape:
            known = added.clamp(min=tiny)  # a smaller number has no more digits
            most = known.minimum(most) if finer else torch.where(added.isfinite(), known, most)
        return precise.abs().maximum(most)

    def _finer(self, dtype: torch.dtype) -> bool:
        if self.reference is None or self.reference.outcome.error is not None:
            return False
        return self.reference.finer or dtype in PRECISE


def _first(expected: Tensor, found: Tensor, wrong: Tensor) -> str:
    place = tuple(wrong.nonzero()[0].tolist())
    count = int(wrong.sum())
    return f"{found[place].item()!r}, expected {expected[place].item()!r} at {place}, {count} of {wrong.numel()}"


def kinds_beyond(found: Difference, excused: Sequence[str]) -> Difference:
    """What differs in other ways than those that are excused."""
    return {kind: text for kind, text in found.items() if kind not in excused}

"""Whether two outcomes of a call are the same: values, types, strides, aliasing, mutated inputs, gradients, errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .running import Outcome

Difference: TypeAlias = dict[str, str]
"""What differs, by kind: `values`, `dtype`, `sizes`, `strides`, `aliases`, `error`, …"""

OWN_ERROR = 3
"""How many times eager's own largest error is allowed."""

ULPS = 4
"""And how many units in the last place of a result, where eager's error happens to be smaller."""

SHARE = {"results": 1 / 8, "inputs": 1 / 8, "gradients": 2.0}
"""Smaller elements are judged as if they were this share of the largest; gradients cancel what is larger than they."""


def difference(expected: Outcome, found: Outcome, reference: Outcome | None, *, values: bool = True) -> Difference:
    """How the outcomes differ; `reference` is the call in float64. Without `values` only what surrounds them counts."""
    if expected.error is not None or found.error is not None:
        return _error_difference(expected.error, found.error)
    if len(expected.results) != len(found.results):
        return {"count": f"{len(found.results)} results, expected {len(expected.results)}"}
    differences: Difference = {}
    for name in ("results", "inputs", "gradients"):
        references = getattr(reference, name, ()) if reference is not None and reference.error is None else ()
        parts = zip_longest(getattr(expected, name), getattr(found, name), references)
        for number, (one, other, precise) in enumerate(parts):
            for kind, text in _value_differences(one, other, precise, values, SHARE[name]):
                differences.setdefault(kind, f"{name}[{number}]: {text}")
    if (aliases := _aliases(expected)) != (mine := _aliases(found)):
        differences["aliases"] = f"storages {mine}, expected {aliases}"
    return differences


def _error_difference(expected: Exception | None, found: Exception | None) -> Difference:
    if expected is None:
        return {"error": f"raised {_described(found)}"}
    if found is None:
        return {"no error": f"expected {_described(expected)}"}
    if isinstance(found, type(expected)) or type(expected).__name__ in f"{type(found).__name__} {found}":
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


def _value_differences(
    expected: Any, found: Any, reference: Any, values: bool, share: float
) -> Iterator[tuple[str, str]]:
    if not isinstance(expected, Tensor) or not isinstance(found, Tensor):
        if type(expected) is not type(found) or (values and repr(expected) != repr(found)):
            yield "values", f"{found!r}, expected {expected!r}"
        return
    facts = list(_fact_differences(expected, found))
    yield from facts
    if values and not any(kind in ("dtype", "sizes", "layout") for kind, _ in facts):
        yield from _element_differences(_dense(expected), _dense(found), reference, share)


def _fact_differences(expected: Tensor, found: Tensor) -> Iterator[tuple[str, str]]:
    for kind, read in _FACTS.items():
        if (wanted := read(expected)) != (given := read(found)):
            yield kind, f"{given}, expected {wanted}"


_FACTS = {
    "layout": lambda x: x.layout,
    "dtype": lambda x: x.dtype,
    "sizes": lambda x: tuple(x.shape),
    "strides": lambda x: x.stride() if x.layout == torch.strided and x.numel() else None,
    "class": lambda x: type(x),
    "requires_grad": lambda x: x.requires_grad,
    "conjugation": lambda x: (x.is_conj(), x.is_neg()),
}


def _dense(tensor: Tensor) -> Tensor:
    """The elements as plain numbers."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _element_differences(expected: Tensor, found: Tensor, reference: Any, share: float) -> Iterator[tuple[str, str]]:
    if not expected.is_floating_point():
        if not torch.equal(expected, found):
            yield "values", _first(expected, found, expected != found)
        return
    wide, given = expected.double(), found.double()
    if torch.equal(wide.nan_to_num(), given.nan_to_num()) and torch.equal(wide.isnan(), given.isnan()):
        return
    wrong = ~_close(wide, given, _reference_for(expected, reference), torch.finfo(expected.dtype).eps, share)
    if wrong.any():
        yield "values", _first(expected, found, wrong)


def _reference_for(expected: Tensor, reference: Any) -> Tensor | None:
    if not isinstance(reference, Tensor):
        return None
    precise = _dense(reference)
    return precise.double() if precise.shape == expected.shape else None


def _close(expected: Tensor, found: Tensor, reference: Tensor | None, eps: float, share: float) -> Tensor:
    """Per element: both not finite in the same way, or as near to the reference as eager is."""
    finite = expected.isfinite() & found.isfinite()
    same = (expected == found) | (expected.isnan() & found.isnan())
    precise = expected if reference is None else torch.where(reference.isfinite(), reference, expected)
    error, own = ((value - precise).abs() for value in (found, expected))
    scale = float(precise[finite].abs().max()) if finite.any() else 0.0
    largest = float(own[finite].max()) if finite.any() else 0.0
    slack = ULPS * (1 if reference is not None else 8)
    allowed = OWN_ERROR * largest + slack * eps * torch.maximum(precise.abs(), torch.tensor(scale * share))
    return same | (finite & (error <= allowed))


def _first(expected: Tensor, found: Tensor, wrong: Tensor) -> str:
    place = tuple(wrong.nonzero()[0].tolist())
    count = int(wrong.sum())
    return f"{found[place].item()!r}, expected {expected[place].item()!r} at {place}, {count} of {wrong.numel()}"


def kinds_beyond(found: Difference, excused: Sequence[str]) -> Difference:
    """What differs in other ways than those that are excused."""
    return {kind: text for kind, text in found.items() if kind not in excused}

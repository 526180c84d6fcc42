"""Compares a compiled model with eager: values may be as far from a float64 run as eager's own are."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import torch

Inputs = Mapping[str, Any]
Results = dict[str, torch.Tensor]

FACTOR = 4.0
"""How many times eager's own largest error the compiled error may be: sums run in another order."""


def outputs_of(value: Any) -> Results:
    """The tensors of a model's output by name."""
    return _tensors("", value)


def _tensors(name: str, value: Any) -> Results:
    if isinstance(value, torch.Tensor):
        return {name or "output": value}
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    found: Results = {}
    for key, item in items:
        found.update(_tensors(f"{name}.{key}" if name else str(key), item))
    return found


def to_double(value: Any) -> Any:
    """Inputs with their floats in float64."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return {key: to_double(item) for key, item in value.items()}
    return value


def assert_as_accurate_as_eager(compiled: Results, eager: Results, exact: Results) -> None:
    """Every float within `FACTOR` times eager's largest error, everything else equal.

    The few elements of a short tensor may come out right by chance: their error counts as no less, relative to the
    tensor, than that of half of eager's tensors.
    """
    assert list(compiled) == list(eager)
    typical = _typical_error(eager, exact)
    for name, value in compiled.items():
        reference = eager[name]
        assert value.dtype == reference.dtype, name
        assert value.shape == reference.shape, name
        assert value.stride() == reference.stride(), name
        if not value.is_floating_point():
            assert torch.equal(value, reference), name
            continue
        scale = _largest(exact[name])
        own = _largest(reference.double() - exact[name].double())
        allowed = FACTOR * max(own, typical * scale) + 4 * torch.finfo(value.dtype).eps * scale
        error = _largest(value.double() - exact[name].double())
        assert error <= allowed, f"{name}: error {error:.3e}, eager's allows {allowed:.3e}"


def _typical_error(eager: Results, exact: Results) -> float:
    """The median of eager's errors, each relative to the largest number of its tensor."""
    floats = [name for name, value in eager.items() if value.is_floating_point()]
    scales = {name: scale for name in floats if (scale := _largest(exact[name])) > 0}
    return median(
        [_largest(eager[name].double() - exact[name].double()) / scale for name, scale in scales.items()] or [0]
    )


def _largest(value: torch.Tensor) -> float:
    return float(value.double().abs().max()) if value.numel() else 0.0

"""Compares a compiled model with eager: values may be as far from a float64 run as eager's own are."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Every float within `FACTOR` times eager's largest error, everything else equal."""
    assert list(compiled) == list(eager)
    for name, value in compiled.items():
        reference = eager[name]
        assert value.dtype == reference.dtype, name
        assert value.shape == reference.shape, name
        assert value.stride() == reference.stride(), name
        if not value.is_floating_point():
            assert torch.equal(value, reference), name
            continue
        truth = exact[name].double()
        scale = truth.abs().max() if truth.numel() else torch.zeros(())
        allowed = FACTOR * (reference.double() - truth).abs().max() + 4 * torch.finfo(value.dtype).eps * scale
        error = (value.double() - truth).abs().max()
        assert error <= allowed, f"{name}: error {error:.3e}, eager's allows {allowed:.3e}"

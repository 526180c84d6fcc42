"""Compares a compiled model with eager: values may be as far from a float64 run as eager's own are.

One run of each says little: the errors of two programs of equal accuracy differ by more than a factor of 4 in every
seventh number. So several runs on different data are judged together, by the worst and by the middle one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

Inputs = Mapping[str, Any]
Results = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Allowance:
    """How many times eager's own error the compiled one may be, as sums run in another order; and how many units of the
    largest value may come on top."""

    factor: float
    units: float


ONE_RUN, SEVERAL_RUNS = Allowance(4.0, 4.0), Allowance(3.0, 1.0)

TYPICAL_FACTOR, ENOUGH_TENSORS = 1.3, 10
"""What the ratio of both errors may be for half of the tensors, in several runs that give so many of them."""


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


class _FloatsAreDoubles(TorchFunctionMode):
    """Whoever asks for float32 is given float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        args, kwargs = tree_map(lambda value: torch.float64 if value is torch.float32 else value, (args, kwargs or {}))
        return func(*args, **kwargs)


def in_double(module: nn.Module) -> Callable[..., Any]:
    """The module, which is in float64, by inputs of any type.

    It is so throughout: many models cast to float32 for a norm, a softmax or a scan. A truth that is rounded to float32
    halfway is no more exact than what is judged by it.
    """

    def run(**inputs: Any) -> Any:
        with _FloatsAreDoubles():
            return module(**to_double(inputs))

    return run


Statistic = Callable[[torch.Tensor], torch.Tensor]
"""What of one number for each run all runs are judged by."""

WORST_AND_MIDDLE: tuple[Statistic, ...] = (torch.amax, torch.median)

MIDDLE: tuple[Statistic, ...] = (torch.median,)
"""For models in which some runs are decided by rounding, as few numbers lie near a corner that much depends on."""


@dataclass(frozen=True)
class Judged:
    """Of one tensor the errors of all runs, the compiled one and eager's, by one statistic, and what that allows."""

    error: float
    eager: float
    allowed: float


def judge(
    compiled: Sequence[Results], eager: Sequence[Results], exact: Sequence[Results], of: Statistic = torch.amax
) -> dict[str, Judged]:
    """The errors of every float, by name; that of a run is the largest of its elements."""
    allowance = ONE_RUN if len(exact) == 1 else SEVERAL_RUNS
    judged = {}
    for name in (name for name, value in compiled[0].items() if value.is_floating_point()):
        truths = [result[name].double() for result in exact]
        error, reference_error = (of(_largest(_errors(name, runs, truths))).item() for runs in (compiled, eager))
        unit = torch.finfo(compiled[0][name].dtype).eps * of(_largest(truths)).item()
        judged[name] = Judged(error, reference_error, allowance.factor * reference_error + allowance.units * unit)
    return judged


def assert_as_accurate_as_eager(
    compiled: Sequence[Results],
    eager: Sequence[Results],
    exact: Sequence[Results],
    statistics: Sequence[Statistic] = WORST_AND_MIDDLE,
) -> None:
    """Every float within the allowance of eager's error by each statistic over the runs, everything else equal."""
    for found, reference in zip(compiled, eager, strict=True):
        _assert_alike(found, reference)
    for statistic in statistics:
        judged = judge(compiled, eager, exact, statistic)
        for name, one in judged.items():
            assert one.error <= one.allowed, f"{name}: error {one.error:.3e}, eager's allows {one.allowed:.3e}"
        ratios = [one.error / one.eager for one in judged.values() if one.eager]
        if len(exact) > 1 and len(ratios) >= ENOUGH_TENSORS:
            assert median(ratios) <= TYPICAL_FACTOR, f"errors are typically {median(ratios):.2f} times eager's"


def _assert_alike(found: Results, reference: Results) -> None:
    """Names, types, layouts, and all values that are not floats."""
    assert list(found) == list(reference)
    for name, value in found.items():
        expected = reference[name]
        assert value.dtype == expected.dtype, name
        assert value.shape == expected.shape, name
        assert value.stride() == expected.stride(), name
        assert value.is_floating_point() or torch.equal(value, expected), name


def _errors(name: str, results: Iterable[Results], truths: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [result[name].double() - truth for result, truth in zip(results, truths, strict=True)]


def _largest(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """The largest magnitude in each; NaN if there is one."""
    nothing = torch.zeros((), dtype=torch.float64)
    return torch.stack([tensor.abs().amax().cpu() if tensor.numel() else nothing for tensor in tensors])

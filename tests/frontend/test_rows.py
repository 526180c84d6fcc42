"""Every row of `frontend.aten`: the ops it becomes, and that they compute what eager computes."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from stepwell.frontend.aten import TABLE
from stepwell.frontend.aten.registry import overload
from stepwell.frontend.import_fx import import_graph
from stepwell.tests.frontend.evaluate import evaluate
from stepwell.tests.frontend.samples import SAMPLES
from stepwell.tests.frontend.tracing import call_of, op_names, same, trace

FLOATS = 1e-5
"""Relative and absolute tolerance in f32: a few roundings of a sum."""

ROUNDED_IN_BETWEEN = {
    "aten._log_softmax", "aten._native_batch_norm_legit.no_stats", "aten._native_batch_norm_legit_functional",
    "aten.avg_pool2d_backward", "aten.binary_cross_entropy_backward", "aten.logit_backward", "aten.logsumexp",
    "aten.mse_loss_backward",
    "aten.native_layer_norm_backward", "aten.nll_loss2d_backward", "aten.nll_loss2d_forward", "aten.prod",
    "aten.prod.dim_int", "aten.rsqrt",
    "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self", "aten.xlogy.Tensor",
}  # fmt: skip
"""Rows that eager rounds more than once in bf16; ours must then be at least as near to the f64 result."""


def target_of(name: str) -> Any:
    target = overload(name if name.count(".") == 2 else f"{name}.default")
    if target is None:
        pytest.skip(f"this torch has no {name}")
    return target


def test_every_row_has_a_sample() -> None:
    sampled = {overload(name if name.count(".") == 2 else f"{name}.default") for name in SAMPLES}
    assert not set(TABLE) - sampled


def defaults_of(target: Any, row: Any) -> Iterator[tuple[str, Any, Any]]:
    """Each argument that a call may leave out, with what the operator then takes and what the row takes."""
    _builder, *parameters = inspect.signature(row).parameters.values()
    by_name = {parameter.name: parameter for parameter in parameters}
    for argument, position in itertools.zip_longest(target._schema.arguments, parameters):
        if argument is not None and argument.has_default_value():
            found = by_name.get(argument.name) if argument.kwarg_only else position
            if found is not None and found.kind not in (found.VAR_KEYWORD, found.VAR_POSITIONAL):
                yield argument.name, argument.default_value, found.default


def plain(value: Any) -> Any:
    """None for nothing, a number for a list of it."""
    if isinstance(value, list | tuple) and len(set(value)) == 1:
        value = value[0]
    return value or None


@pytest.mark.parametrize("target", TABLE, ids=str)
def test_defaults_are_the_operators(target: Any) -> None:
    for name, wanted, given in defaults_of(target, TABLE[target]):
        assert plain(given) == plain(wanted), name


REFUSED = (torch.bool, torch.int64)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("aten.")])
def test_what_eager_refuses_is_left_to_eager(name: str) -> None:
    """Unless torch's meta functions refuse it, too; integer divisions by zero are found at run time."""
    for dtype in REFUSED:
        function, tensors = call_of(target_of(name), *with_floats(dtype, SAMPLES[name][0]()))
        try:
            function(*tensors)
        except RuntimeError as error:
            if "ZeroDivisionError" in str(error):
                continue
            try:
                graph = trace(function, *tensors, decompose=False)
            except (RuntimeError, ValueError):
                continue
            assert "extern" in op_names(import_graph(graph, tensors)), dtype


FORWARD = [name for name in SAMPLES if name.startswith("aten.") and "backward" not in name]


@pytest.mark.parametrize("name", FORWARD)
def test_mixed_types_that_eager_refuses_are_left_to_eager(name: str) -> None:
    """torch's fake tensors let most of them pass."""
    flat, structure = tree_flatten(SAMPLES[name][0]())
    places = [place for place, value in enumerate(flat) if isinstance(value, Tensor) and value.is_floating_point()]
    for place, dtype in itertools.product(places if len(places) > 1 else (), (torch.bfloat16, torch.float64)):
        mixed = [value.to(dtype) if position == place else value for position, value in enumerate(flat)]
        function, tensors = call_of(target_of(name), *tree_unflatten(mixed, structure))
        try:
            function(*tensors)
        except RuntimeError:
            try:
                graph = trace(function, *tensors, decompose=False)
            except (RuntimeError, TypeError, ValueError):
                continue
            assert "extern" in op_names(import_graph(graph, tensors)), (place, dtype)


@pytest.mark.parametrize("name", SAMPLES)
def test_row_becomes_these_ops(name: str) -> None:
    make, expected = SAMPLES[name]
    function, tensors = call_of(target_of(name), *make())
    imported = import_graph(trace(function, *tensors, decompose=False), tensors)
    imported.module.verify()
    assert " ".join(op_names(imported)) == expected


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", SAMPLES)
def test_row_computes_as_eager(name: str, dynamic: bool) -> None:
    function, tensors = call_of(target_of(name), *SAMPLES[name][0]())
    imported = import_graph(trace(function, *tensors, dynamic=dynamic, decompose=False), tensors)
    imported.module.verify()
    expected, found = function(*tensors), evaluate(imported, tensors)
    assert all(same(one, other, FLOATS) for one, other in zip(expected, found, strict=True))


def with_floats(dtype: torch.dtype, call: Any) -> Any:
    """The call with its tensors of floats, and the dtypes that it names, in another type."""

    def convert(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.to(dtype)
        return dtype if value in (torch.float32, torch.bfloat16) else value

    return tree_map(convert, call)


def worst(found: Tensor, reference: Tensor) -> float:
    """The largest relative error."""
    error = (found.double() - reference).abs() / (reference.abs() + 1e-6)
    return float(error.max()) if found.is_floating_point() else 0.0


@pytest.mark.parametrize("name", SAMPLES)
def test_row_rounds_as_eager_in_bf16(name: str) -> None:
    target, call = target_of(name), with_floats(torch.bfloat16, SAMPLES[name][0]())
    function, tensors = call_of(target, *call)
    if not any(tensor.dtype == torch.bfloat16 for tensor in tensors):
        pytest.skip("no tensor of floats")
    try:
        expected = function(*tensors)
    except RuntimeError:
        pytest.skip("eager has no bf16 form on the CPU")
    found = evaluate(import_graph(trace(function, *tensors, decompose=False), tensors), tensors)
    if name not in ROUNDED_IN_BETWEEN:
        assert all(same(one, other, 0.0) for one, other in zip(expected, found, strict=True))
        return
    precise, doubles = call_of(target, *with_floats(torch.float64, call))
    for one, other, reference in zip(expected, found, precise(*doubles), strict=True):
        assert worst(other, reference) <= worst(one, reference)

"""Externs by name: what they resolve to and how their results come."""

from __future__ import annotations

import math

import pytest
import torch

import stepwell.frontend.random_ops  # noqa: F401 - registers stepwell.seed
from stepwell.ir.errors import BackendError
from stepwell.ir.graph.attributes import Named
from stepwell.runtime.extern import DIRECT, draw_seed, named_object, resolve, result_shape, tensors_like, tensors_of


def test_operators_and_functions_are_found_by_name() -> None:
    assert resolve("aten.topk.default") is torch.ops.aten.topk.default
    assert resolve("math.sqrt") is math.sqrt
    assert resolve("aten.mm.out") is torch.mm


def test_a_missing_operator_is_named() -> None:
    with pytest.raises(BackendError, match=r"expected an operator of this torch, got torch\.no_such\.default"):
        resolve("torch.no_such.default")


@pytest.mark.parametrize("target", sorted(DIRECT))
def test_direct_functions_stand_for_overloads_that_exist(target: str) -> None:
    namespace, name, overload = target.split(".")
    assert hasattr(getattr(getattr(torch.ops, namespace), name), overload)


@pytest.mark.parametrize(
    ("target", "count", "shape"),
    [
        ("aten.sin.default", 1, "one"),
        ("aten.topk.default", 2, "tuple"),
        ("aten.split.Tensor", 2, "mixed"),
        ("aten._scaled_dot_product_flash_attention_for_cpu.default", 2, "tuple"),
        ("aten.convolution_backward.default", 2, "mixed"),
        ("math.sqrt", 1, "mixed"),
    ],
)
def test_results_come_in_a_known_shape(target: str, count: int, shape: str) -> None:
    assert result_shape(target, count) == shape


def test_tensors_are_picked_out_of_results() -> None:
    x = torch.ones(2)
    assert tensors_of(x) == [x]
    assert [id(value) for value in tensors_of((None, x, 3))] == [id(x)]


def test_named_objects() -> None:
    thing = object()
    assert named_object(Named("dtype", "bfloat16"), {}) is torch.bfloat16
    assert named_object(Named("device", "cuda:1"), {}) == torch.device("cuda", 1)
    assert named_object(Named("memory_format", "channels_last"), {}) is torch.channels_last
    assert named_object(Named("layout", "strided"), {}) is torch.strided
    assert named_object(Named("object", "thing"), {"thing": thing}) is thing


def test_seeds_come_from_torchs_generator() -> None:
    torch.manual_seed(3)
    first = draw_seed(torch.device("cpu"))
    second = draw_seed(torch.device("cpu"))
    torch.manual_seed(3)
    assert torch.equal(first, torch.ops.stepwell.seed(torch.device("cpu")))
    assert first != second


def test_a_promised_tensor_may_be_left_out() -> None:
    x, number = torch.ones(2, 3), torch.ones((), dtype=torch.int64)
    wanted = ((torch.float32, 2), (torch.float32, 1), (torch.int64, 0))
    assert [id(value) for value in tensors_like((x, None, 5, number), wanted)] == [id(x), id(None), id(number)]
    assert tensors_like((x, number), wanted[::2]) == [x, number]


def test_results_of_another_type_than_promised_are_converted() -> None:
    """torch's meta function promises f32 statistics where the operator gives those of bf16."""
    torch.manual_seed(0)
    x, weight, bias, mean, variance = (torch.rand(sizes).bfloat16() for sizes in ((4, 5, 6), 5, 5, 5, 5))

    def function(mean: torch.Tensor, variance: torch.Tensor) -> None:
        torch.ops.aten._batch_norm_with_update(x, weight, bias, mean, variance, 0.5, 0.1)

    expected, found = ((mean.clone(), variance.clone()) for _ in range(2))
    function(*expected)
    torch.compile(function, backend="stepwell", options={"strict": True})(*found)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_a_product_of_complex_matrices_is_eagers() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 4, dtype=torch.complex64), torch.randn(4, 5, dtype=torch.complex64)
    compiled = torch.compile(torch.mm, backend="stepwell", options={"strict": True})
    assert torch.equal(compiled(x, y), x @ y)

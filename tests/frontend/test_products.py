"""Products of batches of small matrices and vectors, which are sums; those of larger ones are products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import torch

from stepwell.frontend.aten.products import SMALL_MATRIX
from stepwell.frontend.autograd import GraphRole
from stepwell.tests.frontend.test_autograd import Recorder

SIDE = int(SMALL_MATRIX**0.5)

SUMS = {
    "a column": ((3, 5, 4), (3, 4, 1)),
    "two vectors": ((3, 1, 4), (3, 4, 1)),
    "of one number": ((3, 5, 1), (3, 1, 1)),
    "the largest": ((2, SIDE, SIDE), (2, SIDE, 1)),
}

PRODUCTS = {
    "two columns": ((3, 5, 4), (3, 4, 2)),
    "one number too many": ((2, SIDE, SIDE + 1), (2, SIDE + 1, 1)),
    "a row": ((3, 1, 4), (3, 4, 5)),
}


def found(name: str, dtype: torch.dtype, cases: Mapping[str, Sequence[Sequence[int]]]) -> set[str]:
    """Which ops a product becomes, once its values, type and strides are found right."""
    generator = torch.Generator().manual_seed(0)
    lhs, rhs = (torch.randn(shape, generator=generator).mul(4).to(dtype) for shape in cases[name])
    recorder = Recorder()
    result = torch.compile(torch.bmm, backend=recorder.backend)(lhs, rhs)
    expected = torch.bmm(lhs, rhs)
    exact = torch.bmm(lhs.double(), rhs.double())
    assert (result.dtype, result.stride()) == (expected.dtype, expected.stride())
    bound = (expected.double() - exact).abs().max() * 2 + 1e-5
    assert (result.double() - exact).abs().max() <= bound
    return {*recorder.names(GraphRole.INFERENCE)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
@pytest.mark.parametrize("name", SUMS)
def test_a_sum(name: str, dtype: torch.dtype) -> None:
    assert "batch_matmul" not in found(name, dtype, SUMS)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product(name: str) -> None:
    assert "batch_matmul" in found(name, torch.float32, PRODUCTS)


def test_narrow_numbers_are_multiplied_by_matrix_units() -> None:
    assert "batch_matmul" in found("a column", torch.bfloat16, SUMS)


def test_any_number_of_columns_is_a_product() -> None:
    recorder = Recorder()
    fast = torch.compile(torch.bmm, backend=recorder.backend, dynamic=True)
    lhs, rhs = torch.randn(3, 4, 5), torch.randn(3, 5, 6)
    torch.testing.assert_close(fast(lhs, rhs), torch.bmm(lhs, rhs))
    assert "batch_matmul" in recorder.names(GraphRole.INFERENCE)

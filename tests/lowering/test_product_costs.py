"""Which products of matrices become kernels: the bounds that are documented, on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepwell.backends.triton.target import H100
from stepwell.lowering.schedule.product_costs import (
    EFFICIENCY,
    FEW_ROWS,
    LEAST_SIZE,
    ROUNDING,
    ProductSize,
    candidates,
    is_ours,
)


@pytest.mark.parametrize(
    ("size", "ours"),
    [
        (ProductSize(1, 64, LEAST_SIZE, 64, element_bytes=2), True),
        (ProductSize(1, 64, LEAST_SIZE - 1, 64, element_bytes=2), False),
        (ProductSize(1, 64, 64, LEAST_SIZE, element_bytes=2), True),
        (ProductSize(1, 64, 64, LEAST_SIZE - 1, element_bytes=2), False),
        (ProductSize(1, FEW_ROWS, LEAST_SIZE - 1, 64, element_bytes=2), True),
        (ProductSize(1, FEW_ROWS + 1, LEAST_SIZE - 1, 64, element_bytes=2), False),
        (ProductSize(2, FEW_ROWS, 64, 64, element_bytes=2), False),
        (ProductSize(1, FEW_ROWS, 64, 64, element_bytes=4), False),
        (ProductSize(1, 64, 64, 64, element_bytes=4), True),
        (ProductSize(1, 8192, 8192, 8192, element_bytes=4), False),
    ],
)
def test_products_that_pay(size: ProductSize, ours: bool) -> None:
    assert is_ours(size, H100) == ours


def test_matrix_units_take_sixteen_rows_and_a_walk_four() -> None:
    assert (LEAST_SIZE, FEW_ROWS) == (16, 4)


def test_where_no_schedule_fits_there_is_the_smallest() -> None:
    small = replace(H100, l1_bytes=1024)
    (only,) = candidates(ROUNDING, small)
    assert all(only.needed_bytes(ROUNDING.bytes) <= other.needed_bytes(ROUNDING.bytes) for other in EFFICIENCY)

"""Which products of matrices become kernels: the bounds that are documented, on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from stepwell.backends.triton.target import H100
from stepwell.ir.expr import as_expr
from stepwell.ir.shapes import tensor_type
from stepwell.lowering.convert.graph.products import is_dense
from stepwell.lowering.schedule.product_costs import (
    EFFICIENCY,
    FEW_ROWS,
    LEAST_SIZE,
    ROUNDING,
    ProductSize,
    candidates,
    is_ours,
    wide_candidates,
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


@pytest.mark.parametrize(("depth", "step"), [(16, 16), (64, 16), (255, 16), (256, 32), (4096, 32)])
def test_a_sum_of_wide_products_consists_of_several_chains(depth: int, step: int) -> None:
    offered = wide_candidates(depth)
    assert {schedule.depth for schedule in offered} == {step}
    assert {schedule.rows for schedule in offered} == {16, 32}


@pytest.mark.parametrize(
    ("strides", "dense"),
    [
        ((64, 1), True),
        ((1, 64), True),
        ((4096, 64, 1), True),
        ((63, 1), False),
        ((128, 2), False),
        ((0, 1), False),
        ((1, 1), False),
        ((1, 64, 64), False),
        ((65, 64, 1), False),
    ],
)
def test_rows_or_columns_of_factors_are_contiguous_and_lie_steps_apart(strides: tuple[int, ...], dense: bool) -> None:
    sizes = [as_expr(64)] * len(strides)
    block = Block(arg_types=[tensor_type(f32, sizes, [as_expr(stride) for stride in strides])])
    assert is_dense(block.args[0]) is dense

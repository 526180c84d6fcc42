"""What is known of sizes: how large they probably are, and whether they certainly are not 0."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, bf16, f64, i1, i8, i64
from xdsl.ir import Attribute

from stepwell.ir.expr import Expr, as_expr, symbol
from stepwell.lowering.analysis.sizes import UNKNOWN_SIZE, Sizes, element_bytes

SIZES = Sizes((("s0", (0, None)), ("s1", (1, None)), ("s2", (2, 64))), (("s1", 12), ("s2", 0)))


@pytest.mark.parametrize(
    ("sizes", "points"),
    [
        ((), 1),
        ((3, 4, 5), 60),
        ((1, 7), 7),
        ((0, 7), 7),
        ((symbol("s0"), 2), 2 * UNKNOWN_SIZE),
        ((symbol("s1"), 2), 24),
        ((symbol("s2"), 5), 5),
    ],
)
def test_a_volume_is_what_sizes_probably_are_and_a_point_at_least(sizes: tuple[Expr | int, ...], points: int) -> None:
    assert SIZES.volume(map(as_expr, sizes)) == points


@pytest.mark.parametrize(
    ("size", "positive"),
    [
        (as_expr(0), False),
        (as_expr(1), True),
        (symbol("s0"), False),
        (symbol("s1"), True),
        (symbol("s2") - 2, False),
        (symbol("s2") - 1, True),
        (symbol("s3"), False),
        (3 - symbol("s1"), False),
    ],
)
def test_a_space_has_a_point_if_its_least_size_is_1(size: Expr, positive: bool) -> None:
    assert SIZES.is_positive(size) is positive


@pytest.mark.parametrize(
    ("element", "size"), [(i1, 1), (i8, 1), (i64, 8), (bf16, 2), (f64, 8), (IndexType(), 8)], ids=str
)
def test_elements_take_whole_bytes(element: Attribute, size: int) -> None:
    assert element_bytes(element) == size

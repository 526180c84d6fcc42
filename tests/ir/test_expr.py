"""Index expressions: one canonical form, and simplification that never changes a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepwell.ir.expr import (
    CONSTRUCTORS,
    Atom,
    Domain,
    Expr,
    ceildiv,
    const,
    contiguous_strides,
    delinearize,
    dim,
    floordiv,
    linearize,
    maximum,
    minimum,
    mod,
    symbol,
)

DOMAIN = Domain({0: const(5), 1: symbol("s0")}, {"s0": (2, 6)})
POINTS = [(i, j, s) for s in range(2, 7) for i in range(5) for j in range(s)]

_leaves = st.one_of(st.sampled_from([dim(0), dim(1), symbol("s0")]), st.integers(-4, 12).map(const))
_divisors = st.one_of(st.integers(1, 9).map(const), st.just(symbol("s0")))


def _compound(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(st.sampled_from(["floordiv", "ceildiv", "mod"]), inner, _divisors).map(
            lambda triple: CONSTRUCTORS[triple[0]](triple[1], triple[2])
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda triple: CONSTRUCTORS[triple[0]](triple[1], triple[2])
        ),
    )


EXPRESSIONS = st.recursive(_leaves, _compound, max_leaves=6)


def _at(expr: Expr, point: tuple[int, int, int]) -> int:
    def value(leaf: Atom) -> int:
        return point[2] if leaf.kind == "symbol" else point[leaf.args[0]]

    return int(expr.evaluate(value))


@given(EXPRESSIONS)
def test_simplification_keeps_the_value(expr: Expr) -> None:
    simplified = DOMAIN.simplify(expr)
    for point in POINTS:
        assert _at(expr, point) == _at(simplified, point), f"{expr} became {simplified}"


@given(EXPRESSIONS)
def test_the_interval_holds_every_value(expr: Expr) -> None:
    low, high = DOMAIN.interval(expr)
    for point in POINTS:
        value = _at(expr, point)
        assert low is None or low <= value
        assert high is None or value <= high


@given(EXPRESSIONS)
def test_a_proven_sign_is_right(expr: Expr) -> None:
    if DOMAIN.is_nonnegative(expr):
        assert all(_at(expr, point) >= 0 for point in POINTS)


@given(EXPRESSIONS, EXPRESSIONS)
def test_sums_and_products_are_canonical(first: Expr, second: Expr) -> None:
    assert first + second == second + first
    assert first * second == second * first
    assert (first - second) + second == first


def test_division_takes_out_what_divides() -> None:
    index = dim(0) * 64 + dim(1)
    inner = Domain({1: const(64)}, {})
    assert inner.simplify(floordiv(index, 64)) == dim(0)
    assert inner.simplify(mod(index, 64)) == dim(1)


def test_division_by_several_rows_divides_the_number_of_the_row() -> None:
    index = dim(0) * 3136 + dim(1) * 56 + dim(2)
    inner = Domain({1: const(56), 2: const(56)}, {})
    assert inner.simplify(floordiv(index, 25088)) == floordiv(dim(0), 8)
    assert inner.simplify(mod(index, 25088)) == mod(dim(0), 8) * 3136 + dim(1) * 56 + dim(2)
    longer = Domain({1: const(57), 2: const(56)}, {})
    assert longer.simplify(floordiv(index, 25088)) == floordiv(dim(0) * 56 + dim(1), 448)


def test_division_by_a_symbol_takes_out_what_divides() -> None:
    index = dim(0) * symbol("s0") + dim(1)
    inner = Domain({1: symbol("s0")}, {"s0": (1, None)})
    assert inner.simplify(floordiv(index, symbol("s0"))) == dim(0)


def test_a_division_that_may_carry_stays() -> None:
    inner = Domain({1: const(65)}, {})
    assert inner.simplify(floordiv(dim(0) * 64 + dim(1), 64)) == dim(0) + floordiv(dim(1), 64)


def test_splitting_and_joining_an_index_is_nothing() -> None:
    sizes = [const(4), symbol("s0"), const(8)]
    indices = delinearize(dim(0), sizes)
    assert Domain({}, {}).simplify(linearize(indices, contiguous_strides(sizes))) == dim(0)


def test_joining_an_index_assumes_nothing_of_symbols() -> None:
    """A size is not negative, but the bound of a slice may be."""
    start = minimum(maximum(symbol("bound") + symbol("size"), 0), symbol("size"))
    assert linearize([start], [const(1)]) == start
    assert Domain({}, {}).simplify(start) == symbol("size")
    assert Domain({}, {"bound": (None, -1)}).simplify(start) == start


def test_text_is_readable() -> None:
    assert str(ceildiv(symbol("s0"), 16) * dim(1) - 3) == "d1 * (s0 ceildiv 16) - 3"


def test_nothing_is_divided_by_an_extent_of_zero() -> None:
    for operation in (floordiv, ceildiv, mod):
        assert operation(const(3), 0) == operation(dim(0), 0) == const(0)

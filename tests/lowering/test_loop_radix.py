"""Digits: what `match_places` pairs is equal wherever two places are one, by trying every point of small spaces."""

from __future__ import annotations

import random
from itertools import product

import pytest

from stepwell.ir.expr import Expr, const, delinearize, dim, floordiv, linearize, mod, symbol
from stepwell.lowering.analysis.radix import Place, canonical, linear_offset, match_places
from stepwell.lowering.analysis.sizes import Sizes

STATIC = Sizes((), ())
DYNAMIC = Sizes((("s0", (2, None)),), (("s0", 64),))


def place(results: list[Expr], extents: list[int | Expr | None]) -> Place:
    return Place(tuple(results), tuple(const(size) if isinstance(size, int) else size for size in extents))


def test_plain_dims_pair_by_dimension() -> None:
    first = place([dim(0), dim(1)], [4, 8])
    second = place([dim(1), dim(0)], [8, 4])
    assert match_places(first, second, (const(4), const(8)), STATIC).pairs == ((0, 1), (1, 0))


def test_a_flattened_dim_says_how_to_split_it() -> None:
    first = place([dim(0), dim(1)], [4, 8])
    second = place([floordiv(dim(0), 8), mod(dim(0), 8)], [32])
    found = match_places(first, second, (const(4), const(8)), STATIC)
    assert found.pairs == ()
    assert found.second_splits == ((0, (const(4), const(8))),)


def test_symbolic_sizes_split_too() -> None:
    rows = symbol("s0")
    first = place([dim(0), dim(1), dim(2)], [rows, 16, 8])
    second = place([floordiv(dim(0), 16), mod(dim(0), 16), dim(1)], [rows * 16, 8])
    found = match_places(first, second, (rows, const(16), const(8)), DYNAMIC)
    assert found.second_splits == ((0, (rows, const(16))),)
    assert (2, 1) in found.pairs


@pytest.mark.parametrize("extents", [(6, 4), (5, 8)])
def test_no_splits_when_factors_do_not_divide(extents: tuple[int, int]) -> None:
    rows, columns = extents
    first = place([dim(0)], [rows * columns])
    second = place([dim(0) * 7 + dim(1)], [rows, 7])
    found = match_places(first, second, (const(100),), STATIC)
    assert found.first_splits == found.second_splits == ()


def test_windows_are_no_digits() -> None:
    first = place([dim(0)], [10])
    second = place([dim(0) * 2 + dim(1)], [4, 3])
    assert match_places(first, second, (const(10),), STATIC).pairs == ()


def test_computed_indices_are_no_digits() -> None:
    first = place([dim(0) * 8 + dim(1)], [4, 8])
    second = place([dim(0) * 8 + dim(1)], [4, None])
    assert match_places(first, second, (const(32),), STATIC).pairs == ()


def test_offsets_rejoin_what_divisions_took_apart() -> None:
    results = (floordiv(dim(0), 24), mod(floordiv(dim(0), 6), 4), mod(dim(0), 6))
    assert linear_offset(results, (const(24), const(6), const(1))) == dim(0)


def test_canonical_places_name_each_index_once() -> None:
    twice = place([floordiv(dim(0), 8) * 8 + mod(dim(2), 8), dim(1)], [32, 5, 32])
    order, results = canonical(twice, (0, 1, 0), STATIC)
    assert order == (0, 1)
    assert results == (dim(0), dim(1))


def _random_place(generator: random.Random, buffer: list[int]) -> Place:
    """A walk over some elements of a buffer: its dims split, joined, permuted, cut short."""
    total = 1
    for size in buffer:
        total *= size
    factors = generator.choice([buffer, [total], [2, total // 2], [total // 3, 3], [2, total // 6, 3]])
    order = list(range(len(factors)))
    generator.shuffle(order)
    extents = [factors[k] for k in order]
    indices = [dim(order.index(k)) for k in range(len(factors))]
    if generator.random() < 0.3:
        cut = generator.randrange(len(extents))
        extents[cut] = max(1, extents[cut] - 1)
    strides = [const(s) for s in _row_major(factors)]
    offset = linearize(indices, strides)
    return place(list(delinearize(offset, [const(size) for size in buffer])), list(extents))


def _row_major(sizes: list[int]) -> list[int]:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides


@pytest.mark.parametrize("seed", range(40))
def test_pairs_are_equal_wherever_places_are_one(seed: int) -> None:
    generator = random.Random(seed)
    buffer = generator.choice([[12], [4, 6], [2, 3, 4], [6, 4]])
    first, second = _random_place(generator, buffer), _random_place(generator, buffer)
    found = match_places(first, second, tuple(const(size) for size in buffer), STATIC)
    at = {_element(first, point): point for point in _points(first)}
    for point in _points(second):
        other = at.get(_element(second, point))
        assert other is None or all(other[a] == point[b] for a, b in found.pairs)


def _points(walked: Place) -> list[tuple[int, ...]]:
    return list(product(*(range(size.constant) for size in walked.extents if size is not None)))


def _element(walked: Place, point: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(result.evaluate(lambda leaf: point[leaf.args[0]])) for result in walked.results)

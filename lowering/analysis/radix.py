"""Which dims two places share where they are the same element: indices as digits of mixed-radix numbers.

The offset of an access is a sum of dims, each with a stride and an extent. If such a digit occurs in two systems,
equal offsets have equal digits there. This one fact gives the dependences between nests and the way to align
their spaces. Pure functions of expressions, remembered, since the layers of a model repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ...ir.expr import ONE, Atom, Domain, Expr, contiguous_strides, dim, exact_quotient, linearize
from .sizes import Sizes

REMEMBERED = 1 << 14
"""Results that each function keeps."""


@dataclass(frozen=True)
class Place:
    """Index expressions over dims, and the extents of the dims; a dim without one is a computed index."""

    results: tuple[Expr, ...]
    extents: tuple[Expr | None, ...]

    def domain(self, sizes: Sizes) -> Domain:
        """What is known of the dims and symbols in the expressions."""
        extents = {position: extent for position, extent in enumerate(self.extents) if extent is not None}
        return Domain(extents, dict(sizes.intervals))


# -- expressions -------------------------------------------------------------------------------------


def divides(results: Sequence[Expr]) -> bool:
    """Whether any operator but sums and products occurs."""
    return any(
        atom.kind not in ("dim", "symbol") for result in results for monomial, _ in result.terms for atom in monomial
    )


@lru_cache(maxsize=REMEMBERED)
def substituted(results: tuple[Expr, ...], replacements: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The expressions with another one in the place of each dim."""
    return tuple(result.substitute_dims(replacements) for result in results)


@lru_cache(maxsize=REMEMBERED)
def canonical(place: Place, same_as: tuple[int, ...], sizes: Sizes) -> tuple[tuple[int, ...], tuple[Expr, ...]]:
    """The expressions without what the ranges of their dims decide, over the dims that are left: those, by their
    old positions, and the expressions. Dim k is the same index as dim `same_as[k]`.

    Dims are in the order of `ir.shapes.canonical_access`.
    """
    results = substituted(place.results, tuple(dim(position) for position in same_as))
    if divides(results):
        domain = place.domain(sizes)
        results = tuple(domain.simplify(result) for result in results)
    order: dict[int, int] = {}

    def note(leaf: Atom) -> str:
        if leaf.kind == "dim":
            order.setdefault(leaf.name, len(order))
        return ""

    for result in results:
        result.render(note)
    renamed = tuple(
        result.substitute(lambda leaf: dim(order[leaf.name]) if leaf.kind == "dim" else None) for result in results
    )
    return tuple(order), renamed


@lru_cache(maxsize=REMEMBERED)
def linear_offset(results: tuple[Expr, ...], strides: tuple[Expr, ...]) -> Expr:
    """`Σ index * stride`, with what divisions took apart rejoined."""
    return linearize(results, strides)


# -- digits ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digit:
    """One dim of a linear offset."""

    position: int
    stride: Expr
    extent: Expr


Splits = tuple[tuple[int, tuple[Expr, ...]], ...]
"""Positions of dims with the factors to split them into, outermost first."""


@dataclass(frozen=True)
class PlaceMatch:
    """Pairs of dims that are equal where two places are one, and the splits that would give more such pairs."""

    pairs: tuple[tuple[int, int], ...]
    first_splits: Splits = ()
    second_splits: Splits = ()


@lru_cache(maxsize=REMEMBERED)
def match_places(first: Place, second: Place, buffer: tuple[Expr, ...], sizes: Sizes) -> PlaceMatch:
    """Matches the dims of two places in a buffer of these sizes.

    Dimension by dimension of the buffer where no division mixes them, else by the offset in all of it.
    """
    pairs: dict[int, int] = {}
    composite = False
    for one, other in zip(first.results, second.results, strict=True):
        position, partner = one.as_dim, other.as_dim
        if position is not None and partner is not None and first.extents[position] == second.extents[partner]:
            pairs[position] = partner
        else:
            composite = composite or not (one.is_constant or other.is_constant)
    if not composite:
        return PlaceMatch(tuple(pairs.items()))
    ones, others = first.results, second.results
    if divides(ones) or divides(others):
        strides = contiguous_strides(buffer)
        ones, others = (linear_offset(ones, strides),), (linear_offset(others, strides),)
    first_splits: dict[int, tuple[Expr, ...]] = {}
    second_splits: dict[int, tuple[Expr, ...]] = {}
    for one, other in zip(ones, others, strict=True):
        digits = radix_digits(one, first.extents, sizes)
        found = _match_digits(digits, radix_digits(other, second.extents, sizes), sizes)
        pairs.update(found.pairs)
        first_splits.update(found.first_splits)
        second_splits.update(found.second_splits)
    return PlaceMatch(tuple(pairs.items()), tuple(first_splits.items()), tuple(second_splits.items()))


def radix_digits(offset: Expr, extents: Sequence[Expr | None], sizes: Sizes) -> list[Digit]:
    """The digits of an offset, highest first; none unless it is a mixed-radix number over dims with extents."""
    digits: list[Digit] = []
    for monomial, coefficient in offset.terms:
        dims = [atom for atom in monomial if atom.kind != "symbol"]
        if len(dims) != 1 or coefficient < 0:
            return []
        (factor,) = dims
        if factor.kind != "dim":
            return []
        position = factor.name
        extent = extents[position]
        if extent is None:
            return []
        rest = tuple(atom for atom in monomial if atom.kind == "symbol")
        digits.append(Digit(position, Expr.from_terms({rest: coefficient}), extent))
    digits.sort(key=lambda digit: -sizes.likely(digit.stride))
    for higher, lower in pairwise(digits):
        if exact_quotient(higher.stride, lower.stride * lower.extent) is None:
            return []
    return digits


def _match_digits(first: list[Digit], second: list[Digit], sizes: Sizes) -> PlaceMatch:
    """Pairs equal digits; where a digit of one system is several of the other, says how to split it."""
    by_place = {(digit.stride, digit.extent): digit.position for digit in second}
    pairs: list[tuple[int, int]] = []
    for digit in first:
        partner = by_place.get((digit.stride, digit.extent))
        if partner is not None:
            pairs.append((digit.position, partner))
    factors = {digit: _factors(digit, second, sizes) for digit in first}
    partners = {digit: _factors(digit, first, sizes) for digit in second}
    shared = {place for digit in first for place in _places(digit, factors[digit])}
    shared &= {place for digit in second for place in _places(digit, partners[digit])}
    return PlaceMatch(tuple(pairs), _useful(factors, shared), _useful(partners, shared))


def _useful(factors: Mapping[Digit, tuple[Expr, ...]], shared: set[tuple[Expr, Expr]]) -> Splits:
    """The splits that make a digit which both systems have."""
    return tuple(
        (digit.position, parts)
        for digit, parts in factors.items()
        if len(parts) > 1 and not shared.isdisjoint(_places(digit, parts))
    )


def _places(digit: Digit, factors: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """Stride and extent of each part of a digit that is split."""
    places: list[tuple[Expr, Expr]] = []
    stride = digit.stride
    for factor in reversed(factors):
        places.append((stride, factor))
        stride = stride * factor
    return places


def _factors(digit: Digit, others: list[Digit], sizes: Sizes) -> tuple[Expr, ...]:
    """The factors of the digit's extent between the places where digits of the other system begin or end."""
    cuts: set[Expr] = set()
    for other in others:
        for place in (other.stride, other.stride * other.extent):
            inner = exact_quotient(place, digit.stride)
            if inner is not None and inner not in (ONE, digit.extent) and exact_quotient(digit.extent, inner):
                cuts.add(inner)
    factors: list[Expr] = []
    rest = digit.extent
    for cut in sorted(cuts, key=lambda cut: -sizes.likely(cut)):
        factor = exact_quotient(rest, cut)
        if factor is None:
            return (digit.extent,)
        factors.append(factor)
        rest = cut
    return (*factors, rest)

"""Which results of a function share memory in eager, which no rewrite may change.

Equal values become one value, `x * 1` becomes `x`, and views of constants become constants, but the caller may write to
what it gets: two results that were two tensors must stay two, and two that were views of one must stay that.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation

STORAGES = "stepwell.storages"
"""Attribute of a function: for each result a number, equal for results that share memory. Numbers below the count of
arguments stand for the memory of that argument."""

OFFSETS = "stepwell.offsets"
"""Attribute of a function: for each result the element of its memory at which it begins; below 0 where sizes decide."""

OWN = "stepwell.own"
"""Attribute of an op whose result an extern shows through a view: a number that no other op has, so that equal values
with such views are not made one. What only kernels and views of ours read, needs none: its copies are made later."""


def storages_attr(storages: Iterable[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, tuple(storages))


def storages_of(function: Operation) -> tuple[int, ...] | None:
    """The numbers of a function's results, where they are known."""
    return _numbers(function, STORAGES)


def offsets_of(function: Operation) -> tuple[int, ...] | None:
    """Where the function's results begin, where that is known."""
    return _numbers(function, OFFSETS)


def _numbers(function: Operation, name: str) -> tuple[int, ...] | None:
    attr = function.attributes.get(name)
    return tuple(int(number) for number in attr.get_values()) if isinstance(attr, DenseArrayBase) else None

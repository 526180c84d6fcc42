"""Which results of a function share memory in eager, which no rewrite may change.

Equal values become one value, and `x * 1` becomes `x`, but the caller may write to what it gets: two results that
were two tensors must stay two tensors.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation

STORAGES = "stepwell.storages"
"""Attribute of a function: for each result a number, equal for results that share memory. Numbers below the count of
arguments stand for the memory of that argument."""


def storages_attr(storages: Iterable[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, tuple(storages))


def storages_of(function: Operation) -> tuple[int, ...] | None:
    """The numbers of a function's results, where they are known."""
    attr = function.attributes.get(STORAGES)
    return tuple(int(number) for number in attr.get_values()) if isinstance(attr, DenseArrayBase) else None

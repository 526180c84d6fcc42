"""What the elements of a tensor value are: elements of a tensor in memory, one number, or a formula of the index.

Views rewrite these descriptions and so cost nothing; a kernel that reads a value makes scalars of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ....ir import loop
from ....ir.dtypes import INT64
from ....ir.expr import Domain, Expr, Interval, dim
from ....ir.graph.base import rank_of
from ....ir.shapes import symbol_intervals
from .conversion import convert
from .scalars import Number, Scalars

Symbols = tuple[tuple[str, Interval], ...]
"""Names of size symbols and their guarded ranges."""


@dataclass(frozen=True)
class Box:
    """The indices below some sizes, and what is known of the symbols in these."""

    sizes: tuple[Expr, ...]
    symbols: Symbols

    @cached_property
    def domain(self) -> Domain:
        return Domain(dict(enumerate(self.sizes)), dict(self.symbols))


@lru_cache(maxsize=1 << 14)
def composed(place: tuple[Expr, ...], view: tuple[Expr, ...], box: Box) -> tuple[Expr, ...]:
    """A place over the dims of a value as one over those of its view; remembered, because layers repeat."""
    return tuple(box.domain.simplify(expr.substitute_dims(view)) for expr in place)


class Source(ABC):
    """The elements of a value, by expressions over its dims."""

    @abstractmethod
    def through(self, view: Sequence[Expr], box: Box) -> Source:
        """The elements of a view of the value, whose index in a box lies at `view`."""

    @abstractmethod
    def read(self, scalars: Scalars, indices: tuple[SSAValue, ...], place: Sequence[Expr] | None) -> SSAValue:
        """The element at a place, given over `indices`; None is the place that the indices themselves name."""

    def read_where(
        self,
        scalars: Scalars,
        indices: tuple[SSAValue, ...],
        place: Sequence[Expr],
        guard: SSAValue,
        other: SSAValue,
    ) -> SSAValue:
        """The same where the guard holds; elsewhere nothing is read and the other value is given."""
        return scalars.select(guard, self.read(scalars, indices, place), other)


@cache
def identity(rank: int) -> tuple[Expr, ...]:
    return tuple(dim(position) for position in range(rank))


@dataclass(frozen=True)
class Element(Source):
    """The element of a tensor at a place."""

    tensor: SSAValue
    place: tuple[Expr, ...]

    def through(self, view: Sequence[Expr], box: Box) -> Source:
        return Element(self.tensor, composed(self.place, tuple(view), box))

    def _at(self, place: Sequence[Expr] | None) -> Sequence[Expr]:
        if place is None:
            return self.place
        if self.place == identity(len(place)):
            return place
        return [expr.substitute_dims(list(place)) for expr in self.place]

    def read(self, scalars: Scalars, indices: tuple[SSAValue, ...], place: Sequence[Expr] | None) -> SSAValue:
        return scalars.add(loop.ReadOp.make(self.tensor, indices, self._at(place)))

    def read_where(
        self,
        scalars: Scalars,
        indices: tuple[SSAValue, ...],
        place: Sequence[Expr],
        guard: SSAValue,
        other: SSAValue,
    ) -> SSAValue:
        return scalars.add(loop.ReadOp.make(self.tensor, indices, self._at(place), guard, other))


@dataclass(frozen=True)
class Constant(Source):
    """The same number everywhere."""

    number: Number
    element: Attribute

    def through(self, view: Sequence[Expr], box: Box) -> Source:
        return self

    def read(self, scalars: Scalars, indices: tuple[SSAValue, ...], place: Sequence[Expr] | None) -> SSAValue:
        return scalars.constant(self.number, loop.scalar_type(self.element))


@dataclass(frozen=True)
class Formula(Source):
    """An integer expression over the index, in the value's element type."""

    expr: Expr
    element: Attribute

    def through(self, view: Sequence[Expr], box: Box) -> Source:
        (expr,) = composed((self.expr,), tuple(view), box)
        return Formula(expr, self.element)

    def read(self, scalars: Scalars, indices: tuple[SSAValue, ...], place: Sequence[Expr] | None) -> SSAValue:
        expr = self.expr if place is None else self.expr.substitute_dims(list(place))
        return convert(scalars, scalars.index(indices, expr), INT64, self.element)


class Values:
    """The sources of a function's tensor values; a value that nobody described is a tensor in memory."""

    def __init__(self, function: FuncOp) -> None:
        self.symbols: Symbols = tuple(symbol_intervals(function).items())
        self.sources: dict[SSAValue, Source] = {}

    def source(self, value: SSAValue) -> Source:
        known = self.sources.get(value)
        return Element(value, identity(rank_of(value))) if known is None else known

    def box(self, sizes: Sequence[Expr]) -> Box:
        return Box(tuple(sizes), self.symbols)

    def is_nonempty(self, size: Expr) -> bool:
        """Whether a size is certainly at least 1."""
        return self.box(()).domain.is_nonnegative(size - 1)

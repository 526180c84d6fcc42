"""Emits index expressions as i64 arithmetic and addresses, each part in the outermost scope that knows its leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...ir.expr import Atom, Domain, Expr, Interval, symbol
from .blocks import Element
from .builder import Builder

_UNBOUNDED = symbol("unbounded")
"""The extent of a dim that is known only not to be negative."""


@dataclass
class Expressions:
    """The symbols of a kernel by their LLVM names, with their ranges, and the names known not to be negative."""

    builder: Builder
    symbols: Mapping[str, str]
    ranges: Mapping[str, Interval]
    nonnegative: set[str] = field(default_factory=set)

    def domain(self, indices: Sequence[str]) -> Domain:
        extents = {position: _UNBOUNDED for position, name in enumerate(indices) if name in self.nonnegative}
        return Domain(extents, self.ranges)

    def is_nonnegative(self, expr: Expr, indices: Sequence[str]) -> bool:
        return self.domain(indices).is_nonnegative(expr)

    def emit(self, expr: Expr, indices: Sequence[str] = ()) -> str:
        """The value of the expression whose dims are those indices."""
        if expr.is_constant:
            return str(expr.constant)
        total, *others = self._by_depth(expr, indices)
        for other in others:
            total = self._binary("add nsw", total, other)
        constant = expr.constant_term
        return self._binary("add nsw", total, str(constant)) if constant else total

    def address(self, element: Element, buffer: str, expr: Expr, indices: Sequence[str]) -> str:
        """The address of that element of a buffer."""
        pointer = buffer
        for part in self._by_depth(expr, indices):
            pointer = self.builder.offset(element.memory, pointer, part)
        return self.builder.offset(element.memory, pointer, str(expr.constant_term))

    def _by_depth(self, expr: Expr, indices: Sequence[str]) -> list[str]:
        """The terms other than the constant, summed per scope that they belong to, outermost first."""
        depths, sums = self.builder.depths, dict[int, str]()
        for monomial, factor in expr.terms:
            if monomial:
                term = self._term(monomial, factor, indices)
                depth = depths.get(term, 0)
                sums[depth] = self._binary("add nsw", sums[depth], term) if depth in sums else term
        return [sums[depth] for depth in sorted(sums)]

    def _term(self, monomial: tuple[Atom, ...], factor: int, indices: Sequence[str]) -> str:
        names = [self._atom(atom, indices) for atom in monomial]
        if len(names) > 1:
            names.sort(key=self.builder.depth)
        product, *others = names
        for other in others:
            product = self._binary("mul nsw", product, other)
        return product if factor == 1 else self._binary("mul nsw", product, str(factor))

    def _atom(self, atom: Atom, indices: Sequence[str]) -> str:
        if atom.kind == "dim":
            return indices[int(atom.name)]
        if atom.kind == "symbol":
            return self.symbols[str(atom.name)]
        first, second = atom.args
        return _OPERATORS[atom.kind](self, first, second, indices)

    def _binary(self, opcode: str, first: str, second: str) -> str:
        return self.builder.pure(f"{opcode} i64 {first}, {second}", first, second)

    # -- operators -------------------------------------------------------------------------------

    def floordiv(self, first: Expr, second: Expr, indices: Sequence[str]) -> str:
        shift = _log2(second)
        value = self.emit(first, indices)
        if shift is not None:  # an arithmetic shift rounds down
            return self._binary("ashr", value, str(shift))
        divisor = self._divisor(second, indices)
        if self.is_nonnegative(first, indices):
            return self._binary("udiv", value, divisor)
        quotient, remainder = self._binary("sdiv", value, divisor), self._binary("srem", value, divisor)
        below = self._binary("ashr", remainder, "63")  # -1 where the remainder is negative
        return self._binary("add nsw", quotient, below)

    def ceildiv(self, first: Expr, second: Expr, indices: Sequence[str]) -> str:
        return self.floordiv(first + second - 1, second, indices)

    def mod(self, first: Expr, second: Expr, indices: Sequence[str]) -> str:
        value = self.emit(first, indices)
        if _log2(second) is not None:
            return self._binary("and", value, str(second.constant - 1))
        divisor = self._divisor(second, indices)
        if self.is_nonnegative(first, indices):
            return self._binary("urem", value, divisor)
        remainder = self._binary("srem", value, divisor)
        correction = self._binary("and", self._binary("ashr", remainder, "63"), divisor)
        return self._binary("add nsw", remainder, correction)

    def _divisor(self, expr: Expr, indices: Sequence[str]) -> str:
        """A divisor; at least 1, because a division moved out of loops runs even where they do not."""
        value = self.emit(expr, indices)
        if self.is_nonnegative(expr - 1, indices):
            return value
        return self._intrinsic("smax", value, "1")

    def minimum(self, first: Expr, second: Expr, indices: Sequence[str]) -> str:
        return self._intrinsic("smin", self.emit(first, indices), self.emit(second, indices))

    def maximum(self, first: Expr, second: Expr, indices: Sequence[str]) -> str:
        return self._intrinsic("smax", self.emit(first, indices), self.emit(second, indices))

    def _intrinsic(self, name: str, *operands: str) -> str:
        return self.builder.pure_call("i64", f"llvm.{name}.i64", *(("i64", operand) for operand in operands))


def _log2(expr: Expr) -> int | None:
    value = expr.constant if expr.is_constant else 0
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


_OPERATORS: dict[str, Callable[[Expressions, Expr, Expr, Sequence[str]], str]] = {
    "floordiv": Expressions.floordiv,
    "ceildiv": Expressions.ceildiv,
    "mod": Expressions.mod,
    "min": Expressions.minimum,
    "max": Expressions.maximum,
}

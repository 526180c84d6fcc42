"""What is known of the sizes of one function: guarded ranges of its symbols, likely values, widths of elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Operation

from ...ir.expr import Domain, Expr, Interval
from ...ir.shapes import symbol_ranges

BYTE = 8
"""Bits."""

INDEX_BYTES = 8
"""Of an index, and of what no kernel computes with."""

UNKNOWN_SIZE = 256
"""What a size without hint is taken for."""

FIRST = 0
"""What an index is taken for: a bound then gives the length of the first piece."""


@dataclass(frozen=True)
class Sizes:
    """Ranges and hints by the name of the symbol. Hashable, so that analyses can be remembered by it."""

    intervals: tuple[tuple[str, Interval], ...]
    hints: tuple[tuple[str, int], ...]

    @staticmethod
    def at(op: Operation) -> Sizes:
        """Those of the symbols in scope at an op."""
        known = symbol_ranges(op)
        intervals = tuple((name, (symbol.low, symbol.high)) for name, symbol in known.items())
        hints = tuple((name, symbol.hint) for name, symbol in known.items() if symbol.hint is not None)
        return Sizes(intervals, hints)

    def likely(self, size: Expr) -> int:
        """The likely value of an expression over symbols and indices."""
        if size.is_constant:
            return size.constant
        values = dict(self.hints)
        return int(size.evaluate(lambda leaf: FIRST if leaf.kind == "dim" else values.get(leaf.name, UNKNOWN_SIZE)))

    def volume(self, sizes: Iterable[Expr]) -> int:
        """The likely number of points of a box; an empty one counts as a point."""
        return prod(max(self.likely(size), 1) for size in sizes)

    def is_positive(self, size: Expr) -> bool:
        """Whether a space of that size certainly has a point."""
        if size.is_constant:
            return size.constant > 0
        low, _ = Domain({}, dict(self.intervals)).interval(size)
        return low is not None and low > 0


def element_bytes(element: Attribute) -> int:
    """Bytes of an element in memory; a bool takes one."""
    if isinstance(element, IntegerType):
        return max(int(element.width.data), BYTE) // BYTE
    return element.bitwidth // BYTE if isinstance(element, AnyFloat) else INDEX_BYTES

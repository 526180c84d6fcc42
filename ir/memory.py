"""Memory as the interpreters see it: a flat array that knows which of its elements hold a value.

Values of tensors are arrays in the order of their indices; only what reads memory under another layout, and the tile
level, needs to know where an element lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute

from .arithmetic import Array, DType
from .errors import InterpreterError
from .expr import Expr
from .shapes import layout_of, sizes_of

Symbols = Mapping[str, int]
"""The values of the size symbols of a function or kernel."""


def size_of(expr: Expr, symbols: Symbols) -> int:
    """The value of an expression over symbols."""
    return int(expr.evaluate(lambda leaf: symbols[leaf.args[0]]))


def shape_of(sizes: Sequence[Expr], symbols: Symbols) -> tuple[int, ...]:
    return tuple(size_of(size, symbols) for size in sizes)


def tensor_shape(type_: Attribute, symbols: Symbols) -> tuple[int, ...]:
    return shape_of(sizes_of(type_), symbols)


def places_of(type_: Attribute, symbols: Symbols) -> Array:
    """Where in memory each element of a tensor lies, counted in elements from its first one."""
    layout = layout_of(type_)
    shape = shape_of(layout.sizes, symbols)
    places = np.zeros(shape, np.int64)
    for position, stride in enumerate(layout.strides):
        index = np.arange(shape[position]).reshape([-1 if k == position else 1 for k in range(len(shape))])
        places = places + index * size_of(stride, symbols)
    return places


@dataclass
class Memory:
    """A flat buffer; reading an element that was never written is an error."""

    values: Array
    written: Array

    @staticmethod
    def unset(size: int, dtype: DType) -> Memory:
        return Memory(np.zeros(size, dtype), np.zeros(size, bool))

    @staticmethod
    def spanning(places: Array, dtype: DType) -> Memory:
        """Just enough for elements at these places."""
        return Memory.unset(int(places.max(initial=-1)) + 1, dtype)

    @staticmethod
    def holding(values: Array, places: Array) -> Memory:
        """The memory of a tensor; what lies between its elements is not known."""
        memory = Memory.spanning(places, values.dtype)
        memory.write(places, values, "tensor")
        return memory

    def read(self, places: Array, reader: str) -> Array:
        """The elements at these places."""
        self.check(places, reader)
        if not self.written[places].all():
            bad = places[~self.written[places]].flat[0]
            raise InterpreterError(reader, expected="an element that was written before", got=f"element {bad}")
        return self.values[places]

    def write(self, places: Array, values: Array, writer: str) -> None:
        """Writes elements; of several for one place the last stays."""
        self.check(places, writer)
        self.values[places] = values
        self.written[places] = True

    def check(self, places: Array, who: str) -> None:
        outside = (places < 0) | (places >= len(self.values))
        if outside.any():
            raise InterpreterError(
                who, expected=f"elements below {len(self.values)}", got=f"element {np.asarray(places)[outside].flat[0]}"
            )


__all__ = ["Memory", "Symbols", "places_of", "shape_of", "size_of", "tensor_shape"]

"""Builds functions of graph ops from shapes written as text, so that a table of programs stays short.

It knows nothing of passes, and computes nothing: sizes may be as large as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from stepwell.ir import graph, host, loop, shapes, tile
from stepwell.ir.dtypes import FLOAT32, INT64, element_of
from stepwell.ir.expr import Expr, as_expr, symbol
from stepwell.ir.shapes import SYMBOLS, SymbolAttr, SymbolRange, sizes_of, tensor_type

Sizes = Sequence[Expr]


@cache
def context() -> Context:
    made = Context()
    for dialect in (
        arith.Arith, builtin.Builtin, func.Func, math.Math, shapes.Stepwell, graph.Graph, loop.Loop, tile.Tile,
        host.Host,
    ):  # fmt: skip
        made.load_dialect(dialect)
    return made


class Builder:
    """One function. A shape is text: `4x?300x8` has a symbol for its second size, of hint 300; `?` alone has none."""

    def __init__(self, shape: str, element: Attribute) -> None:
        self.block = Block()
        self.element = element
        self.ranges: list[SymbolRange] = []
        self.attributes: dict[str, Attribute] = {}
        self.sizes = tuple(self._size(word) for word in shape.split("x")) if shape else ()

    def _size(self, word: str) -> Expr:
        """A number, or a new symbol, for which the function takes an index."""
        if not word.startswith("?"):
            return as_expr(int(word))
        name = f"s{len(self.ranges)}"
        self.ranges.append(SymbolRange(name, 0 if word == "?" else 2, None, int(word[1:]) if word[1:] else None))
        self.block.insert_arg(IndexType(), len(self.block.args)).name_hint = name
        return symbol(name)

    def input(
        self, sizes: Sequence[Expr | int] | None = None, element: Attribute | None = None,
        strides: Sequence[Expr | int] | None = None,
    ) -> SSAValue:  # fmt: skip
        """A new argument, of the function's sizes and element where none are given."""
        type_ = tensor_type(element or self.element, self.sizes if sizes is None else sizes, strides)
        return self.block.insert_arg(type_, len(self.block.args))

    def add(self, op: graph.GraphOp) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """A number in the sizes and element of a value."""
        return self.add(graph.FullOp.make(value, element_of(like.type), sizes_of(like.type)))

    def spread(self, value: SSAValue, dim: int, sizes: Sizes) -> SSAValue:
        """A value that lacks a dim, repeated along it."""
        kept = [as_expr(1) if k == dim else size for k, size in enumerate(sizes)]
        return self.add(graph.BroadcastOp.make(self.add(graph.ReshapeOp.make(value, kept)), sizes))

    def wide(self, value: SSAValue) -> SSAValue:
        """In f32, in which composite functions are computed."""
        return value if self.element == FLOAT32 else self.add(graph.ConvertOp.make(value, FLOAT32))

    def narrow(self, value: SSAValue) -> SSAValue:
        return value if self.element == FLOAT32 else self.add(graph.ConvertOp.make(value, self.element))

    def places(self, sizes: Sequence[Expr | int]) -> SSAValue:
        """An argument of indices."""
        return self.input(sizes, INT64)

    def module(self, results: Sequence[SSAValue]) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        types = [argument.type for argument in self.block.args], [result.type for result in results]
        function = FuncOp("main", types, Region(self.block))
        if self.ranges:
            function.attributes[SYMBOLS] = ArrayAttr([SymbolAttr(known) for known in self.ranges])
        return ModuleOp([function], self.attributes)

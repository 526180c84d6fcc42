"""The operations of the tile level that products of matrices are made of: boxes of arrays, and their product.

A box says which array it is cut from, so that a machine with an engine for such copies can use it, and what lies
beyond the ends of the array needs no mask.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ..expr import ZERO, Expr, ExprLike, as_expr
from ..shapes import (
    MapAttr,
    canonical_access,
    expr_list_text,
    named_leaf,
    parse_access,
    parse_expr,
    parse_expr_list,
    print_access,
)
from .ops import INDEX, block_type, buffer_type, element_of, shape_of


class BoxOp(IRDLOperation, ABC):
    """A box of a strided array: as many elements along its last dims as the block has, one along those before.

    The array begins `start` elements into the buffer. A place is not negative and lies within the array; the box may
    reach beyond its ends, where there is no memory.
    """

    @property
    def places(self) -> tuple[Expr, ...]:
        """Where the box begins along each dim of the array, over the index operands."""
        return self._exprs("access")

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return self._exprs("sizes")

    @property
    def array_strides(self) -> tuple[Expr, ...]:
        return self._exprs("strides")

    @property
    def array_start(self) -> Expr:
        return self._exprs("start")[0]

    def _exprs(self, name: str) -> tuple[Expr, ...]:
        attr = self.properties[name]
        assert isinstance(attr, MapAttr)
        return attr.results

    def verify_box(self, block: Attribute, buffer: Attribute) -> None:
        ranks = {len(self.places), len(self.sizes), len(self.array_strides)}
        if len(ranks) != 1 or len(shape_of(block)) > len(self.places):
            raise VerifyException(
                f"{self.name}: expected a place, a size and a stride for each dim of an array that holds {block}"
            )
        if element_of(block) != element_of(buffer):
            raise VerifyException(f"{self.name}: expected a block of {element_of(buffer)}, got {block}")

    def print_array(self, printer: Printer, indices: Sequence[SSAValue]) -> None:
        access = self.properties["access"]
        assert isinstance(access, MapAttr)
        print_access(printer, indices, access.data)
        printer.print_string(f" of {expr_list_text(self.sizes)} strides {expr_list_text(self.array_strides)}")
        if self.array_start != ZERO:
            printer.print_string(f" from ({self.array_start})")


def _properties(
    access: MapAttr, sizes: Iterable[ExprLike], strides: Iterable[ExprLike], start: ExprLike
) -> dict[str, Attribute]:
    return {
        "access": access,
        "sizes": MapAttr.of(0, tuple(sizes)),
        "strides": MapAttr.of(0, tuple(strides)),
        "start": MapAttr.of(0, [as_expr(start)]),
    }


Array = tuple[list[SSAValue], tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...], Expr]
"""Indices, places over them, sizes, strides and start."""


def _parse_array(parser: Parser) -> Array:
    indices, places = parse_access(parser)
    parser.parse_keyword("of")
    sizes = parse_expr_list(parser)
    parser.parse_keyword("strides")
    strides = parse_expr_list(parser)
    start = ZERO
    if parser.parse_optional_keyword("from"):
        with parser.in_parens():
            start = parse_expr(parser, named_leaf(parser))
    return indices, places.results, tuple(sizes), tuple(strides), start


@irdl_op_definition
class LoadBoxOp(BoxOp):
    """
    Loads a box of a strided array; lanes beyond the ends of the array hold 0.

    ```mlir
    %a = tile.load_box %x[%i * 128, %k * 64] of (s0, 1024) strides (1024, 1) : memref<?xbf16> -> vector<128x64xbf16>
    %b = tile.load_box %y[%n, %i * 128] of (8, 100) strides (128, 1) from (64) : memref<?xbf16> -> vector<128xbf16>
    ```
    """

    name = "tile.load_box"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    access = prop_def(MapAttr)
    sizes_ = prop_def(MapAttr, prop_name="sizes")
    strides_ = prop_def(MapAttr, prop_name="strides")
    start_ = prop_def(MapAttr, prop_name="start")
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        places: Sequence[Expr],
        sizes: Iterable[ExprLike],
        strides: Iterable[ExprLike],
        shape: Sequence[int],
        start: ExprLike = ZERO,
    ) -> LoadBoxOp:
        used, map_ = canonical_access(indices, places)
        return LoadBoxOp.create(
            operands=[buffer, *used],
            properties=_properties(MapAttr(map_), sizes, strides, start),
            result_types=[block_type(element_of(buffer.type), shape)],
        )

    def verify_(self) -> None:
        self.verify_box(self.result.type, self.buffer.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.buffer)
        self.print_array(printer, self.indices)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadBoxOp:
        buffer = parser.parse_unresolved_operand()
        indices, places, sizes, strides, start = _parse_array(parser)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(buffer, parser.parse_type())
        parser.parse_punctuation("->")
        shape = shape_of(parser.parse_type())
        return LoadBoxOp.make(value, indices, places, sizes, strides, shape, start)


@irdl_op_definition
class StoreBoxOp(BoxOp):
    """
    Stores a block as a box of a strided array; lanes beyond the ends of the array are not stored.

    ```mlir
    tile.store_box %v, %o[%i * 128, %j * 64] of (s0, 100) strides (100, 1) : vector<128x64xbf16>
    ```
    """

    name = "tile.store_box"

    value = operand_def(VectorType)
    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    access = prop_def(MapAttr)
    sizes_ = prop_def(MapAttr, prop_name="sizes")
    strides_ = prop_def(MapAttr, prop_name="strides")
    start_ = prop_def(MapAttr, prop_name="start")

    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        places: Sequence[Expr],
        sizes: Iterable[ExprLike],
        strides: Iterable[ExprLike],
        start: ExprLike = ZERO,
    ) -> StoreBoxOp:
        used, map_ = canonical_access(indices, places)
        return StoreBoxOp.create(
            operands=[value, buffer, *used],
            properties=_properties(MapAttr(map_), sizes, strides, start),
        )

    def verify_(self) -> None:
        self.verify_box(self.value.type, self.buffer.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        printer.print_operand(self.buffer)
        self.print_array(printer, self.indices)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreBoxOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        indices, places, sizes, strides, start = _parse_array(parser)
        parser.parse_punctuation(":")
        block = parser.parse_type()
        target = parser.resolve_operand(buffer, buffer_type(element_of(block)))
        return StoreBoxOp.make(parser.resolve_operand(value, block), target, indices, places, sizes, strides, start)


@irdl_op_definition
class DotOp(IRDLOperation):
    """
    The product of two blocks, added to a third: factors of bf16 or f16 are multiplied exactly and summed in f32.

    ```mlir
    %d = tile.dot %a, %b, %c : vector<128x64xbf16>, vector<64x256xbf16>, vector<128x256xf32>
    ```
    """

    name = "tile.dot"

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    addend = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(lhs: SSAValue, rhs: SSAValue, addend: SSAValue) -> DotOp:
        return DotOp.create(operands=[lhs, rhs, addend], result_types=[addend.type])

    def verify_(self) -> None:
        (rows, inner), (depth, columns) = shape_of(self.lhs.type), shape_of(self.rhs.type)
        if inner != depth or shape_of(self.addend.type) != (rows, columns) or self.addend.type != self.result.type:
            raise VerifyException(
                f"tile.dot: expected ({rows}, {inner}) · ({inner}, {columns}) + ({rows}, {columns}), got "
                f"{self.lhs.type}, {self.rhs.type}, {self.addend.type}"
            )
        if element_of(self.lhs.type) != element_of(self.rhs.type):
            raise VerifyException(f"tile.dot: expected factors of one type, got {self.lhs.type}, {self.rhs.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(" : ")
        printer.print_list([operand.type for operand in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> DotOp:
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return DotOp.make(*parser.resolve_operands(operands, types, parser.pos))


@irdl_op_definition
class HalvesOp(IRDLOperation):
    """
    The two halves of a block along its last dimension.

    ```mlir
    %l, %r = tile.halves %v : vector<128x256xf32> -> vector<128x128xf32>
    ```
    """

    name = "tile.halves"

    operand = operand_def(VectorType)
    low = result_def(VectorType)
    high = result_def(VectorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(operand: SSAValue) -> HalvesOp:
        *rest, last = shape_of(operand.type)
        half = block_type(element_of(operand.type), [*rest, last // 2])
        return HalvesOp.create(operands=[operand], result_types=[half, half])

    def verify_(self) -> None:
        *rest, last = shape_of(self.operand.type)
        half = block_type(element_of(self.operand.type), [*rest, last // 2])
        if last % 2 or (self.low.type, self.high.type) != (half, half):
            raise VerifyException(f"tile.halves: expected two blocks of half of {self.operand.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.low.type)

    @classmethod
    def parse(cls, parser: Parser) -> HalvesOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        parser.parse_type()
        return HalvesOp.make(value)


__all__ = ["BoxOp", "DotOp", "HalvesOp", "LoadBoxOp", "StoreBoxOp"]

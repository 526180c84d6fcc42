"""What all graph ops share: one assembly format driven by a table of parameters, and cheap creation.

An op prints as `graph.name %operands keyword parameter … : type`, where the type stands for all operands and
results if they have the same one and is a function type otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..dtypes import element_of
from ..expr import ONE, Expr, ExprLike
from ..shapes import MapAttr, expr_list_text, parse_expr_list, sizes_of
from .attributes import DataAttr, parse_elements

TENSOR = TensorType.constr()

# -- parameters --------------------------------------------------------------------------------------


class Syntax(ABC):
    """How one kind of property is written."""

    @abstractmethod
    def print(self, printer: Printer, attr: Attribute) -> None: ...

    @abstractmethod
    def parse(self, parser: Parser) -> Attribute: ...


class Integers(Syntax):
    """`[0, 1]`: positions of dims and the like, a dense array of i64."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        printer.print_string(str(list(integers_of(attr))))

    def parse(self, parser: Parser) -> Attribute:
        return integers(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


class Exprs(Syntax):
    """`(0, s0)`: expressions over symbols, a `#stepwell.map` of rank 0."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        assert isinstance(attr, MapAttr)
        printer.print_string(expr_list_text(attr.results))

    def parse(self, parser: Parser) -> Attribute:
        return exprs(parse_expr_list(parser))


class Integer(Syntax):
    """One integer."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        printer.print_string(str(integer_of(attr)))

    def parse(self, parser: Parser) -> Attribute:
        return integer(parser.parse_integer())


class Word(Syntax):
    """One bare identifier, a string."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        assert isinstance(attr, StringAttr)
        printer.print_string(attr.data)

    def parse(self, parser: Parser) -> Attribute:
        return StringAttr(parser.parse_identifier())


class Text(Syntax):
    """One quoted string."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        assert isinstance(attr, StringAttr)
        printer.print_string_literal(attr.data)

    def parse(self, parser: Parser) -> Attribute:
        return StringAttr(parser.parse_str_literal())


class Elements(Syntax):
    """`f32<0.5, nan>`: typed data."""

    def print(self, printer: Printer, attr: Attribute) -> None:
        assert isinstance(attr, DataAttr)
        printer.print_attribute(attr.element)
        printer.print_string(f"<{', '.join(attr.texts())}>")

    def parse(self, parser: Parser) -> Attribute:
        element = parser.parse_type()
        parser.parse_punctuation("<")
        if parser.parse_optional_punctuation(">"):
            return DataAttr.of(element, [])
        data = parse_elements(parser, element)
        parser.parse_punctuation(">")
        return DataAttr(data)


@dataclass(frozen=True)
class Parameter:
    """A property and the keyword (none: "") that introduces it; an optional one needs a keyword."""

    keyword: str
    name: str
    syntax: Syntax
    optional: bool = False


def integers(values: Iterable[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, tuple(values))


def integers_of(attr: Attribute) -> tuple[int, ...]:
    assert isinstance(attr, DenseArrayBase)
    return tuple(int(value) for value in attr.get_values())


def integer(value: int) -> IntegerAttr:
    return IntegerAttr(value, 64)


def integer_of(attr: Attribute) -> int:
    assert isinstance(attr, IntegerAttr)
    return int(attr.value.data)


def exprs(values: Iterable[ExprLike]) -> MapAttr:
    return MapAttr.of(0, values)


# -- the base ----------------------------------------------------------------------------------------


class GraphOp(IRDLOperation, ABC):
    """An op on tensor values with one result, unless it says otherwise."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()

    @property
    def type(self) -> TensorType[Attribute]:
        """The type of the (first) result."""
        type_ = self.results[0].type
        assert isinstance(type_, TensorType)
        return type_

    @property
    def element(self) -> Attribute:
        return self.type.element_type

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return sizes_of(self.results[0].type)

    @classmethod
    def build_from(
        cls,
        operands: Sequence[SSAValue],
        type_: Attribute,
        location: LocationAttr = UNKNOWN_LOC,
        **properties: Attribute,
    ) -> Self:
        """The cheap constructor behind each op's `make`: nothing is checked."""
        return cls.create(operands=operands, result_types=(type_,), properties=properties, location=location)

    def fail(self, expected: str, got: str) -> VerifyException:
        return VerifyException(f"{self.name}: expected {expected}, got {got}")

    def print(self, printer: Printer) -> None:
        separator = " "
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_operand)
        for parameter in self.PARAMETERS:
            attr = self.properties.get(parameter.name)
            if attr is not None:
                printer.print_string(f"{separator}{parameter.keyword}{' ' if parameter.keyword else ''}")
                parameter.syntax.print(printer, attr)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_signature(printer, [*self.operand_types], [*self.result_types])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        properties: dict[str, Attribute] = {}
        for parameter in cls.PARAMETERS:
            if not parameter.keyword or parser.parse_optional_keyword(parameter.keyword):
                properties[parameter.name] = parameter.syntax.parse(parser)
            elif not parameter.optional:
                parser.raise_error(f"{cls.name}: expected `{parameter.keyword}`")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        operand_types, result_types = parse_signature(parser, len(operands or ()))
        return cls.create(
            operands=parser.resolve_operands(operands or (), operand_types, position),
            result_types=result_types,
            properties=properties,
            attributes=attributes,
        )


def print_signature(printer: Printer, operands: list[Attribute], results: list[Attribute]) -> None:
    """One type if all are the same, else `(operands) -> results`."""
    if len(results) == 1 and all(type_ == results[0] for type_ in operands):
        printer.print_attribute(results[0])
    else:
        printer.print_attribute(FunctionType.from_lists(operands, results))


def parse_signature(parser: Parser, operand_count: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    type_ = parser.parse_type()
    if isinstance(type_, FunctionType):
        return type_.inputs.data, type_.outputs.data
    return [type_] * operand_count, [type_]


# -- checks that several families share --------------------------------------------------------------


def differ(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
    """Whether sizes are known to differ; expressions that look unlike may still be equal by a guard."""
    return len(first) != len(second) or any(
        one != other and (one - other).is_constant for one, other in zip(first, second, strict=True)
    )


def broadcasts(sizes: Sequence[Expr], target: Sequence[Expr]) -> bool:
    """Whether the sizes broadcast to the target, which may have more leading dims."""
    trailing = target[len(target) - len(sizes) :] if len(sizes) <= len(target) else ()
    return len(trailing) == len(sizes) and all(
        size == ONE or not differ((size,), (wanted,)) for size, wanted in zip(sizes, trailing, strict=True)
    )


def verify_same_sizes(op: GraphOp, values: Iterable[SSAValue]) -> None:
    expected = op.sizes
    for value in values:
        if value.type != op.results[0].type and differ(sizes_of(value.type), expected):
            raise op.fail(f"operands of sizes {expr_list_text(expected)}", expr_list_text(sizes_of(value.type)))


def verify_sizes(op: GraphOp, expected: Sequence[Expr]) -> None:
    if differ(expected, op.sizes):
        raise op.fail(f"a result of sizes {expr_list_text(expected)}", expr_list_text(op.sizes))


def verify_same_element(op: GraphOp, values: Iterable[SSAValue]) -> None:
    for value in values:
        if element_of(value.type) != op.element:
            raise op.fail(f"operands of element type {op.element}", f"{element_of(value.type)}")


def verify_dims(op: GraphOp, dims: Sequence[int], rank: int) -> None:
    if len(set(dims)) != len(dims) or any(not 0 <= dim < rank for dim in dims):
        raise op.fail(f"distinct dims below {rank}", str(list(dims)))


def rank_of(value: SSAValue) -> int:
    assert isinstance(value.type, TensorType)
    return len(value.type.shape.data)

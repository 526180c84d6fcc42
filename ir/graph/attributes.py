"""Attributes of the graph level: typed data that is compared by its bytes, and the arguments of an extern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, BaseParser
from xdsl.printer import Printer

from ..dtypes import BOOL, is_float, numpy_dtype
from ..expr import Expr
from ..shapes import WithSymbols, named_leaf, parse_expr

# -- numbers as text ---------------------------------------------------------------------------------

_SPECIAL = {"inf": float("inf"), "nan": float("nan")}


def float_text(value: Any) -> str:
    """A Python or numpy float that parses back exactly; infinities and NaN by name."""
    text = str(value)
    if not isfinite(value):
        return text
    mantissa, exponent, power = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{exponent}{power}"


def parse_number(parser: BaseParser) -> int | float:
    """An integer, a float, a bool (as 0 or 1) or a special float, with optional sign."""
    negative = parser.parse_optional_punctuation("-") is not None
    name = parser.parse_optional_keyword_in(tuple(_SPECIAL))
    value = parser.parse_number(allow_boolean=True) if name is None else _SPECIAL[name]
    return -value if negative else value


# -- #graph.data -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypedBytes:
    """Elements of one type as they lie in memory; two are equal if their bits are, NaN included."""

    element: Attribute
    data: bytes


@irdl_attr_definition
class DataAttr(Data[TypedBytes]):
    """Elements of one native type in row-major order: `#graph.data<f32, 1.0, -inf, nan>`."""

    name = "graph.data"

    @staticmethod
    def of(element: Attribute, values: Any) -> DataAttr:
        """Packs numbers, or a numpy array; floats are rounded to the element type."""
        array = np.asarray(values)
        if array.dtype != numpy_dtype(element):
            with np.errstate(all="ignore"):
                array = array.astype(numpy_dtype(element))
        return DataAttr(TypedBytes(element, array.tobytes()))

    @staticmethod
    def packed(element: Attribute, data: bytes) -> DataAttr:
        """Elements given by their bytes."""
        return DataAttr(TypedBytes(element, data))

    @property
    def element(self) -> Attribute:
        return self.data.element

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements as a read-only one-dimensional array."""
        return np.frombuffer(self.data.data, numpy_dtype(self.data.element))

    @property
    def scalar(self) -> Any:
        """The only element as a Python bool, int or float."""
        return self.array[0].item() if self.data.element != BOOL else bool(self.array[0])

    def __len__(self) -> int:
        return len(self.data.data) // numpy_dtype(self.data.element).itemsize

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypedBytes:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            if parser.parse_optional_punctuation(","):
                return parse_elements(parser, element)
            return TypedBytes(element, b"")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            for text in self.texts():
                printer.print_string(f", {text}")

    def texts(self) -> Iterator[str]:
        element = self.data.element
        if element == BOOL:
            return ("true" if value else "false" for value in self.array)
        if is_float(element):
            return (_float_element(value) for value in self.array)
        return (str(value) for value in self.array)


def _float_element(value: Any) -> str:
    """The number; a NaN other than the usual one with its bits, `nan(0x7FC00001)`."""
    if value == value or value.tobytes() == np.asarray(np.nan, value.dtype).tobytes():
        return float_text(value)
    bits = int.from_bytes(value.tobytes(), "little")
    return f"nan(0x{bits:0{2 * value.dtype.itemsize}X})"


def parse_elements(parser: BaseParser, element: Attribute) -> TypedBytes:
    """A comma separated list of elements, as `DataAttr.texts` gives them."""
    dtype = numpy_dtype(element)

    def one() -> bytes:
        value = parse_number(parser)
        if value != value and parser.parse_optional_punctuation("("):
            bits = parser.parse_integer()
            parser.parse_punctuation(")")
            return bits.to_bytes(dtype.itemsize, "little")
        return np.asarray(value).astype(dtype).tobytes()

    return TypedBytes(element, b"".join(parser.parse_comma_separated_list(parser.Delimiter.NONE, one)))


# -- #graph.arguments --------------------------------------------------------------------------------


@dataclass(frozen=True)
class OperandRef:
    """The operand at a position stands here, or the Python number that it holds if `item`."""

    position: int
    item: bool = False


@dataclass(frozen=True)
class Named:
    """A torch object by kind and name: `dtype<"float32">`, `device<"cuda:0">`, `layout<"strided">`; an `object`
    is one without a text that the importer holds under that name, an `input` that of the call at a position."""

    kind: str
    name: str


@dataclass(frozen=True)
class Fields:
    """Arguments by name that are one argument together, such as those of a kernel that the user wrote."""

    items: tuple[tuple[str, Argument], ...]


NAMED_KINDS = ("dtype", "device", "layout", "memory_format", "object", "input")

Argument: TypeAlias = OperandRef | Named | Fields | Expr | int | float | str | tuple["Argument", ...] | None
"""One argument of an ATen op: bool is among the ints, an Expr is a symbolic size, a tuple is a list."""


@dataclass(frozen=True)
class Arguments:
    """What an extern is called with; operands are numbered in the order in which they stand here."""

    positional: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...] = ()

    def flat(self) -> Iterator[Argument]:
        """All arguments, lists and fields opened."""
        yield from _flatten(self.positional)
        yield from _flatten(tuple(value for _, value in self.keywords))

    @property
    def operand_count(self) -> int:
        return sum(isinstance(argument, OperandRef) for argument in self.flat())


OperandPrinter: TypeAlias = Callable[[int], None]
OperandParser: TypeAlias = Callable[[], OperandRef | None]


def _flatten(arguments: Iterable[Argument]) -> Iterator[Argument]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flatten(argument)
        elif isinstance(argument, Fields):
            yield from _flatten(value for _, value in argument.items)
        else:
            yield argument


@irdl_attr_definition
class ArgumentsAttr(Data[Arguments], WithSymbols):
    """The arguments of an extern: `#graph.arguments<(operand<0>, [(s0 * 2)], none), {dim = 1}>`."""

    name = "graph.arguments"

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*(value.symbols for value in self.data.flat() if isinstance(value, Expr)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Arguments:
        def operand() -> OperandRef | None:
            if parser.parse_optional_keyword("operand") is None:
                return None
            with parser.in_angle_brackets():
                return OperandRef(parser.parse_integer())

        with parser.in_angle_brackets():
            return parse_arguments(parser, operand)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_arguments(printer, self.data, lambda position: printer.print_string(f"operand<{position}>"))


def print_arguments(printer: Printer, arguments: Arguments, operand: OperandPrinter) -> None:
    """`(positional), {keywords}`; `operand(position)` prints an operand."""
    printer.print_string("(")
    printer.print_list(arguments.positional, lambda argument: _print_argument(printer, argument, operand))
    printer.print_string(")")
    if arguments.keywords:
        printer.print_string(", ")
        _print_fields(printer, arguments.keywords, operand)


def _print_fields(printer: Printer, fields: Iterable[tuple[str, Argument]], operand: OperandPrinter) -> None:
    printer.print_string("{")
    for position, (name, argument) in enumerate(fields):
        printer.print_string(f"{', ' if position else ''}{name} = ")
        _print_argument(printer, argument, operand)
    printer.print_string("}")


def _print_argument(printer: Printer, argument: Argument, operand: OperandPrinter) -> None:
    match argument:
        case OperandRef(position, item):
            printer.print_string("item " if item else "")
            operand(position)
        case Named(kind, name):
            printer.print_string(f"{kind}<")
            printer.print_string_literal(name)
            printer.print_string(">")
        case tuple():
            printer.print_string("[")
            printer.print_list(argument, lambda inner: _print_argument(printer, inner, operand))
            printer.print_string("]")
        case Fields(items):
            _print_fields(printer, items, operand)
        case str():
            printer.print_string_literal(argument)
        case _:
            printer.print_string(_scalar_text(argument))


def _scalar_text(argument: Expr | int | float | None) -> str:
    if argument is None:
        return "none"
    if isinstance(argument, Expr):
        return f"({argument})"
    if isinstance(argument, bool):
        return "true" if argument else "false"
    return float_text(argument) if isinstance(argument, float) else str(argument)


def parse_arguments(parser: AttrParser, operand: OperandParser) -> Arguments:
    """Reads what `print_arguments` wrote; `operand()` gives an `OperandRef` or None."""

    def argument() -> Argument:
        return _parse_argument(parser, operand)

    positional = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    keywords: list[tuple[str, Argument]] = []
    if parser.parse_optional_punctuation(","):
        keywords = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_field(parser, operand))
    return Arguments(tuple(positional), tuple(keywords))


def _parse_field(parser: AttrParser, operand: OperandParser) -> tuple[str, Argument]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return name, _parse_argument(parser, operand)


def _parse_argument(parser: AttrParser, operand: OperandParser) -> Argument:
    item = parser.parse_optional_keyword("item") is not None
    if (found := operand()) is not None:
        return OperandRef(found.position, item)
    items = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: _parse_argument(parser, operand)
    )
    if items is not None:
        return tuple(items)
    fields = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_field(parser, operand))
    if fields is not None:
        return Fields(tuple(fields))
    if parser.parse_optional_punctuation("("):
        expr = parse_expr(parser, named_leaf(parser))
        parser.parse_punctuation(")")
        return expr
    if (text := parser.parse_optional_str_literal()) is not None:
        return text
    if (flag := parser.parse_optional_boolean()) is not None:
        return flag
    if parser.parse_optional_keyword("none"):
        return None
    if (kind := parser.parse_optional_keyword_in(NAMED_KINDS)) is not None:
        with parser.in_angle_brackets():
            return Named(kind, parser.parse_str_literal())
    return parse_number(parser)

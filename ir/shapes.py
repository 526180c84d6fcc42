"""The `stepwell` dialect: the attributes that all levels share, and the one syntax for index expressions.

`#stepwell.map` is an index map over expressions of `ir.expr`; `#stepwell.layout` carries sizes and strides of
a tensor as eager would show them; `#stepwell.symbol` names a dynamic size with its guarded range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.ir import Attribute, Data, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, BaseParser, Parser, UnresolvedOperand
from xdsl.printer import Printer

from .expr import CONSTRUCTORS, ONE, Atom, Domain, Expr, ExprLike, as_expr, const, contiguous_strides, dim, symbol
from .product_schedule import ProductAttr
from .target import TargetAttr


class WithSymbols(ABC):
    """An attribute that names symbols."""

    @property
    @abstractmethod
    def symbols(self) -> frozenset[str]: ...


LeafParser: TypeAlias = Callable[[], Expr | None]

# -- expression syntax -------------------------------------------------------------------------------


def parse_expr(parser: BaseParser, leaf: LeafParser) -> Expr:
    """`term ((+|-) term)*`, with `*`, `floordiv`, `ceildiv`, `mod` binding tighter."""
    negative = parser.parse_optional_punctuation("-") is not None
    total = _parse_term(parser, leaf)
    total = -total if negative else total
    while True:
        if parser.parse_optional_punctuation("+"):
            total = total + _parse_term(parser, leaf)
        elif parser.parse_optional_punctuation("-"):
            total = total - _parse_term(parser, leaf)
        else:
            return total


def _parse_term(parser: BaseParser, leaf: LeafParser) -> Expr:
    total = _parse_factor(parser, leaf)
    while True:
        if parser.parse_optional_punctuation("*"):
            total = total * _parse_factor(parser, leaf)
        elif operator := parser.parse_optional_keyword_in(("floordiv", "ceildiv", "mod")):
            total = CONSTRUCTORS[operator](total, _parse_factor(parser, leaf))
        else:
            return total


def _parse_factor(parser: BaseParser, leaf: LeafParser) -> Expr:
    if parser.parse_optional_punctuation("("):
        inner = parse_expr(parser, leaf)
        parser.parse_punctuation(")")
        return inner
    if (value := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
        return const(value)
    if operator := parser.parse_optional_keyword_in(("min", "max")):
        parser.parse_punctuation("(")
        first = parse_expr(parser, leaf)
        parser.parse_punctuation(",")
        second = parse_expr(parser, leaf)
        parser.parse_punctuation(")")
        return CONSTRUCTORS[operator](first, second)
    found = leaf()
    if found is None:
        parser.raise_error("expected an integer, a dim, a symbol or an expression in parentheses")
    return found


def named_leaf(parser: BaseParser) -> LeafParser:
    """Leaves by name: `d3` is a dim, any other identifier a symbol."""

    def leaf() -> Expr | None:
        name = parser.parse_optional_identifier()
        if name is None:
            return None
        return dim(int(name[1:])) if name[0] == "d" and name[1:].isdigit() else symbol(name)

    return leaf


def parse_expr_list(parser: BaseParser) -> tuple[Expr, ...]:
    """`(expr, …)` with leaves by name."""
    leaf = named_leaf(parser)
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_expr(parser, leaf)))


def expr_list_text(exprs: Iterable[Expr]) -> str:
    return f"({', '.join(map(str, exprs))})"


# -- #stepwell.map -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexMap:
    """`(d0, …, d{rank-1})[symbols] -> results`."""

    rank: int
    results: tuple[Expr, ...]

    @staticmethod
    def identity(rank: int) -> IndexMap:
        return IndexMap(rank, tuple(dim(position) for position in range(rank)))

    @property
    def result(self) -> Expr:
        """That of a map that has one."""
        (result,) = self.results
        return result

    @property
    def symbols(self) -> tuple[str, ...]:
        names = {name for result in self.results for name in result.symbols}
        return tuple(sorted(names, key=lambda name: (len(name), name)))

    def compose(self, inner: Sequence[Expr], rank: int) -> IndexMap:
        """The map that applies `inner` (over `rank` dims) first."""
        return IndexMap(rank, tuple(result.substitute_dims(list(inner)) for result in self.results))

    def simplify(self, domain: Domain) -> IndexMap:
        return IndexMap(self.rank, tuple(domain.simplify(result) for result in self.results))


@irdl_attr_definition
class MapAttr(Data[IndexMap], WithSymbols):
    """An index map, e.g. `#stepwell.map<(d0, d1)[s0] -> (d0 * s0 + d1)>`."""

    name = "stepwell.map"

    @staticmethod
    def of(rank: int, results: Iterable[ExprLike]) -> MapAttr:
        return MapAttr(IndexMap(rank, tuple(as_expr(result) for result in results)))

    @property
    def results(self) -> tuple[Expr, ...]:
        return self.data.results

    @property
    def result(self) -> Expr:
        return self.data.result

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(self.data.symbols)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexMap:
        with parser.in_angle_brackets():
            dims = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
            parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
            parser.parse_punctuation("->")
            return IndexMap(len(dims), parse_expr_list(parser))

    def print_parameter(self, printer: Printer) -> None:
        dims = ", ".join(f"d{position}" for position in range(self.data.rank))
        symbols = f"[{', '.join(self.data.symbols)}]" if self.data.symbols else ""
        printer.print_string(f"<({dims}){symbols} -> {expr_list_text(self.data.results)}>")


# -- #stepwell.layout --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Sizes and strides (in elements) as expressions over symbols."""

    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]


@irdl_attr_definition
class LayoutAttr(Data[Layout], WithSymbols):
    """The encoding of a tensor type: sizes and strides as eager shows them, e.g.
    `#stepwell.layout<(s0, 64), (64, 1)>`."""

    name = "stepwell.layout"

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*(expr.symbols for expr in (*self.data.sizes, *self.data.strides)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            sizes = parse_expr_list(parser)
            parser.parse_punctuation(",")
            strides = parse_expr_list(parser)
            if len(sizes) != len(strides):
                parser.raise_error(f"layout: expected {len(sizes)} strides, got {len(strides)}")
            return Layout(sizes, strides)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{expr_list_text(self.data.sizes)}, {expr_list_text(self.data.strides)}>")


def tensor_type(
    element: Attribute, sizes: Iterable[ExprLike], strides: Iterable[ExprLike] | None = None
) -> TensorType[Attribute]:
    """The tensor type with that element, sizes and strides (row-major when not given).

    One that is static and row-major has no encoding, so that each type has one form.
    """
    size_exprs = tuple(as_expr(size) for size in sizes)
    return _tensor_type(element, size_exprs, None if strides is None else tuple(as_expr(s) for s in strides))


@lru_cache(maxsize=1 << 14)
def _tensor_type(
    element: Attribute, sizes: tuple[Expr, ...], strides: tuple[Expr, ...] | None
) -> TensorType[Attribute]:
    row_major = contiguous_strides(sizes)
    shape = [size.constant if size.is_constant else DYNAMIC_INDEX for size in sizes]
    if strides in (None, row_major) and DYNAMIC_INDEX not in shape:
        return TensorType(element, shape)
    return TensorType(element, shape, LayoutAttr(Layout(sizes, row_major if strides is None else strides)))


def layout_of(type_: Attribute) -> Layout:
    """Sizes and strides of a tensor type; one without encoding is static and row-major."""
    assert isinstance(type_, TensorType)
    if isinstance(type_.encoding, LayoutAttr):
        return type_.encoding.data
    return _row_major(type_.get_shape())


@lru_cache(maxsize=1 << 14)
def _row_major(shape: tuple[int, ...]) -> Layout:
    sizes = tuple(const(size) for size in shape)
    return Layout(sizes, contiguous_strides(sizes))


def sizes_of(type_: Attribute) -> tuple[Expr, ...]:
    return layout_of(type_).sizes


def strides_of(type_: Attribute) -> tuple[Expr, ...]:
    return layout_of(type_).strides


def dense_order(layout: Layout) -> list[int] | None:
    """The dims, outermost in memory first, of a layout without gaps and overlaps; dims of size 1 are left out."""
    left = [position for position, size in enumerate(layout.sizes) if size != ONE]
    order: list[int] = []
    stride = ONE
    while left:
        inner = next((position for position in left if layout.strides[position] == stride), None)
        if inner is None:
            return None
        left.remove(inner)
        order.insert(0, inner)
        stride = stride * layout.sizes[inner]
    return order


def own_type(type_: Attribute, element: Attribute | None = None) -> TensorType[Attribute]:
    """The type of a new tensor like one of that type: in the same order of dims, but without gaps and overlaps."""
    assert isinstance(type_, TensorType)
    if element is None or element == type_.element_type:
        return _own_type(type_, type_.element_type) if isinstance(type_.encoding, LayoutAttr) else type_
    return _own_type(type_, element)


@lru_cache(maxsize=1 << 12)
def _own_type(type_: Attribute, element: Attribute) -> TensorType[Attribute]:
    layout = layout_of(type_)
    return tensor_type(element, layout.sizes, layout.strides if dense_order(layout) is not None else _packed(layout))


def _packed(layout: Layout) -> tuple[Expr, ...]:
    """Strides in the order of the layout's where that is known, else row-major ones."""
    if not all(stride.is_constant and stride.constant for stride in layout.strides):
        return contiguous_strides(layout.sizes)
    order = sorted(range(len(layout.strides)), key=lambda position: -layout.strides[position].constant)
    packed = contiguous_strides([layout.sizes[position] for position in order])
    return tuple(packed[order.index(position)] for position in range(len(order)))


# -- #stepwell.symbol --------------------------------------------------------------------------------


@dataclass(frozen=True)
class SymbolRange:
    """A dynamic size: its name, its guarded bounds (None: unbounded) and a value seen, for cost models."""

    name: str
    low: int
    high: int | None = None
    hint: int | None = None


@irdl_attr_definition
class SymbolAttr(Data[SymbolRange]):
    """A size symbol, e.g. `#stepwell.symbol<s0, 2, 4096, hint 256>`; the upper bound may be `?`."""

    name = "stepwell.symbol"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SymbolRange:
        with parser.in_angle_brackets():
            name = parser.parse_identifier()
            parser.parse_punctuation(",")
            low = parser.parse_integer()
            parser.parse_punctuation(",")
            high = None if parser.parse_optional_punctuation("?") else parser.parse_integer()
            hint = None
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("hint")
                hint = parser.parse_integer()
            return SymbolRange(name, low, high, hint)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        hint = "" if data.hint is None else f", hint {data.hint}"
        printer.print_string(f"<{data.name}, {data.low}, {'?' if data.high is None else data.high}{hint}>")


# -- #stepwell.definitions ---------------------------------------------------------------------------

DEFINES = "defines"
"""The property of an op with the symbols that it defines."""


MEASURES = ("value", "size", "offset")
"""What a symbol may be of a result: the number that it is, its size along a dim, where in its memory it begins."""


@dataclass(frozen=True)
class SymbolDefinition:
    """A symbol is a measure of a result, along `dim` if it is a size, floor-divided by `divisor`."""

    name: str
    measure: str
    result: int
    dim: int = 0
    divisor: int = 1

    def value(self, results: Sequence[Any]) -> int:
        """The symbol's value, given the results as numbers and as tensors with memory of their own."""
        found = results[self.result]
        if self.measure == "offset":
            return 0
        return int(found.shape[self.dim] if self.measure == "size" else found) // self.divisor

    def __str__(self) -> str:
        where = f"{self.result}, {self.dim}" if self.measure == "size" else str(self.result)
        division = f" floordiv {self.divisor}" if self.divisor != 1 else ""
        return f"{self.name} = {self.measure}({where}){division}"


@irdl_attr_definition
class DefinitionsAttr(Data[tuple[SymbolDefinition, ...]]):
    """The symbols that an op defines: `#stepwell.definitions<s1 = size(0, 1) floordiv 4, s2 = value(1)>`."""

    name = "stepwell.definitions"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[SymbolDefinition, ...]:
        with parser.in_angle_brackets():
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_definition(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(map(str, self.data))}>")


def _parse_definition(parser: BaseParser) -> SymbolDefinition:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    measure = parser.parse_identifier()
    result, *dims = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer)
    divisor = parser.parse_integer() if parser.parse_optional_keyword("floordiv") else 1
    return SymbolDefinition(name, measure, result, dims[0] if dims else 0, divisor)


def print_definitions(printer: Printer, definitions: Attribute | None) -> None:
    """` defines (s1 = size(0, 0))`; nothing where there are none."""
    if isinstance(definitions, DefinitionsAttr):
        printer.print_string(f" defines ({', '.join(map(str, definitions.data))})")


def parse_definitions(parser: BaseParser) -> DefinitionsAttr | None:
    """Reads what `print_definitions` wrote."""
    if parser.parse_optional_keyword("defines") is None:
        return None
    return DefinitionsAttr(
        tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_definition(parser)))
    )


# -- accesses: maps whose dims are SSA values --------------------------------------------------------


def canonical_access(indices: Sequence[SSAValue], results: Sequence[Expr]) -> tuple[list[SSAValue], IndexMap]:
    """The same access with each index used, once, in order of first appearance in the text."""
    rank = len(indices)
    if [result.as_dim for result in results] == [*range(rank)] and len({*indices}) == rank:
        return list(indices), IndexMap(rank, tuple(results))
    order: list[int] = []
    by_value: dict[SSAValue, int] = {}

    def note(leaf: Atom) -> str:
        if leaf.kind == "dim":
            position = by_value.setdefault(indices[leaf.args[0]], leaf.args[0])
            if position not in order:
                order.append(position)
        return ""

    for result in results:
        result.render(note)
    new_position = {indices[old]: new for new, old in enumerate(order)}
    if order == list(range(len(indices))):
        return list(indices), IndexMap(len(order), tuple(results))
    renamed = tuple(
        result.substitute(lambda leaf: dim(new_position[indices[leaf.args[0]]]) if leaf.kind == "dim" else None)
        for result in results
    )
    return [indices[old] for old in order], IndexMap(len(order), renamed)


def print_access(printer: Printer, indices: Sequence[SSAValue], access: IndexMap) -> None:
    """`[%i * 64 + %j, 0]`: each result of the map, dims written as the SSA values they stand for."""

    def leaf(atom: Atom) -> str:  # a dim between NULs, where the printer puts the value's name
        return str(atom.args[0]) if atom.kind == "symbol" else f"\0{atom.args[0]}\0"

    text = f"[{', '.join(result.render(leaf) for result in access.results)}]"
    for position, piece in enumerate(text.split("\0")):
        if position % 2:
            printer.print_operand(indices[int(piece)])
        else:
            printer.print_string(piece)


def parse_access(parser: Parser) -> tuple[list[SSAValue], IndexMap]:
    """Reads what `print_access` wrote; the indices are resolved as `index` values."""
    operands: list[UnresolvedOperand] = []
    names: list[str] = []
    named = named_leaf(parser)

    def leaf() -> Expr | None:
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            return named()
        if operand.operand_name not in names:
            names.append(operand.operand_name)
            operands.append(operand)
        return dim(names.index(operand.operand_name))

    results = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser, leaf))
    indices: list[SSAValue] = [parser.resolve_operand(operand, IndexType()) for operand in operands]
    return indices, IndexMap(len(indices), tuple(results))


# -- symbols of a function ---------------------------------------------------------------------------

SYMBOLS = "stepwell.symbols"
"""Attribute of a function: an array of `#stepwell.symbol`, one per leading `index` argument, then those that ops of
its body define."""


def symbol_ranges(op: Operation) -> dict[str, SymbolRange]:
    """The symbols in scope at `op`: those of the nearest ancestor that declares any."""
    current: Operation | None = op
    while current is not None:
        declared = current.attributes.get(SYMBOLS)
        if declared is not None:
            return {attr.data.name: attr.data for attr in declared}  # type: ignore[attr-defined]
        current = current.parent_op()
    return {}


def symbol_intervals(op: Operation) -> dict[str, tuple[int | None, int | None]]:
    return {name: (known.low, known.high) for name, known in symbol_ranges(op).items()}


Stepwell = Dialect("stepwell", [], [MapAttr, LayoutAttr, SymbolAttr, DefinitionsAttr, TargetAttr, ProductAttr])

__all__ = [
    "DEFINES", "SYMBOLS", "DefinitionsAttr", "IndexMap", "Layout", "LayoutAttr", "MapAttr", "Stepwell",
    "SymbolAttr", "SymbolDefinition", "SymbolRange", "WithSymbols", "canonical_access", "expr_list_text",
    "layout_of", "named_leaf", "parse_access", "parse_definitions", "parse_expr", "parse_expr_list",
    "print_access", "print_definitions", "sizes_of", "strides_of", "symbol_intervals", "symbol_ranges",
    "tensor_type",
]  # fmt: skip

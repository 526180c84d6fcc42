"""Sizes that exist only once an op has run: which symbols an op defines, and the rule that their uses stand behind it.

A symbol of a function is one of its `index` arguments, or is defined by an op of its body: the rows that `nonzero`
finds, the number in a tensor. Types and maps name symbols without an SSA use, so passes that reorder ops ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, IndexType, ShapedType
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.utils.exceptions import VerifyException

from .shapes import DEFINES, MEASURES, DefinitionsAttr, SymbolDefinition, WithSymbols, symbol_ranges

# -- who defines and who uses ------------------------------------------------------------------------


def definitions_of(op: Operation) -> tuple[SymbolDefinition, ...]:
    attr = op.properties.get(DEFINES)
    return attr.data if isinstance(attr, DefinitionsAttr) else ()


def symbols_of(op: Operation) -> frozenset[str]:
    """The symbols that an op, or one in its regions, names in types and properties."""
    found: set[str] = set()
    for inner in op.walk():
        for attr in (*inner.result_types, *inner.properties.values()):
            found |= _symbols_in(attr)
    return frozenset(found)


@lru_cache(maxsize=1 << 14)
def _symbols_in(attr: Attribute) -> frozenset[str]:
    if isinstance(attr, WithSymbols):
        return attr.symbols
    parts: Sequence[Attribute] = ()
    if isinstance(attr, ArrayAttr):
        parts = attr.data
    elif isinstance(attr, ParametrizedAttribute):
        parts = attr.parameters
    return frozenset().union(*map(_symbols_in, parts))


# -- the rule ----------------------------------------------------------------------------------------


def verify_definitions(op: Operation) -> None:
    """Raises unless each symbol that the op defines is one of the function's, is read from a result that has it, and
    is named neither by an argument nor by an op before."""
    for definition in definitions_of(op):
        _verify_place(op, definition)
        if op.parent is not None and definition.name not in symbol_ranges(op):
            raise _failure(op, f"the function to declare {definition.name}", "no such symbol")
    names = {definition.name for definition in definitions_of(op)}
    for where, used in _earlier(op):
        if early := sorted(names & used):
            raise _failure(op, f"no use of {early[0]} before it is defined", f"one in {where}")


def _verify_place(op: Operation, definition: SymbolDefinition) -> None:
    if definition.measure not in MEASURES or definition.divisor < 1:
        raise _failure(op, f"a measure of {', '.join(MEASURES)}", str(definition))
    if definition.result >= len(op.results):
        raise _failure(op, f"a symbol of one of {len(op.results)} results", str(definition))
    type_ = op.results[definition.result].type
    if definition.measure == "value":
        fits = isinstance(type_, IndexType)
    else:
        fits = isinstance(type_, ShapedType) and (
            definition.measure == "offset" or definition.dim < len(type_.get_shape())
        )
    if not fits:
        raise _failure(op, "the value of an index or a measure of a tensor", f"{definition} of {type_}")


def _earlier(op: Operation) -> Iterator[tuple[str, frozenset[str]]]:
    """The ops before this one and the arguments of its block, with the symbols they name or define."""
    block = op.parent
    for argument in block.args if block is not None else ():
        yield f"argument {argument.index}", _symbols_in(argument.type)
    before = op.prev_op
    while before is not None:
        yield before.name, symbols_of(before) | {definition.name for definition in definitions_of(before)}
        before = before.prev_op


def _failure(op: Operation, expected: str, got: str) -> VerifyException:
    return VerifyException(f"{op.name}: expected {expected}, got {got}")


__all__ = ["definitions_of", "symbols_of", "verify_definitions"]

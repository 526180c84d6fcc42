"""Expressions and arguments of the IR as Python source, and the names that such source may use."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Callable, Iterable, Sequence
from math import isfinite

from ..ir.expr import Atom, Expr, Monomial
from ..ir.graph.attributes import Argument, Fields, Named, OperandRef

_OPERATORS: dict[str, Callable[[str, str], str]] = {
    "floordiv": lambda first, second: f"({first} // {second})",
    "ceildiv": lambda first, second: f"(-(-{first} // {second}))",
    "mod": lambda first, second: f"({first} % {second})",
    "min": lambda first, second: f"min({first}, {second})",
    "max": lambda first, second: f"max({first}, {second})",
}


DIVISIONS = ("floordiv", "ceildiv", "mod")


def expr_text(expr: Expr) -> str:
    """The expression in Python; symbols stand as variables of their names."""
    return " + ".join(_term(monomial, coefficient) for monomial, coefficient in expr.terms) or "0"


def _term(monomial: Monomial, coefficient: int) -> str:
    factors = [_atom(atom) for atom in monomial]
    return " * ".join(factors if coefficient == 1 and factors else [*factors, str(coefficient)])


def _atom(atom: Atom) -> str:
    if atom.kind == "symbol":
        return str(atom.args[0])
    first, second = (_operand(arg) for arg in atom.args)
    if atom.kind in DIVISIONS and not atom.args[1].is_constant:
        second = f"max({second}, 1)"  # of an empty tensor, where what is divided does not matter
    return _OPERATORS[atom.kind](first, second)


def _operand(expr: Expr) -> str:
    text = expr_text(expr)
    return text if expr.is_leaf or (expr.is_constant and expr.constant >= 0) else f"({text})"


def tuple_text(items: Iterable[str]) -> str:
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def list_text(items: Iterable[str]) -> str:
    """The left side of an unpacking assignment."""
    return tuple_text(items)[1:-1]


def sizes_text(exprs: Iterable[Expr]) -> str:
    return tuple_text(map(expr_text, exprs))


def argument_text(
    argument: Argument, operands: Sequence[str], named: Callable[[Named], str], frozen: bool = False
) -> str:
    """One argument of an ATen op; `named` gives the variable of a torch object. Lists are tuples if `frozen`."""
    match argument:
        case OperandRef(position, item):
            return f"{operands[position]}.item()" if item else operands[position]
        case Named():
            return named(argument)
        case Expr():
            return expr_text(argument)
        case tuple():
            items = [argument_text(item, operands, named, frozen) for item in argument]
            return tuple_text(items) if frozen else f"[{', '.join(items)}]"
        case Fields(fields):
            texts = (f"{name!r}: {argument_text(value, operands, named, frozen)}" for name, value in fields)
            return f"{{{', '.join(texts)}}}"
        case float():
            return repr(argument) if isfinite(argument) else f'float("{argument}")'
        case _:
            return repr(argument)


class Names:
    """Identifiers of one source text: each given out once, and never one that Python needs."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*keyword.kwlist, *dir(builtins), *reserved}

    def take(self, wish: str | None, otherwise: str) -> str:
        """The wish itself if it is a free identifier, else a numbered one of the same stem."""
        stem = wish if wish is not None and wish.isidentifier() else otherwise
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

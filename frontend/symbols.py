"""Sizes: sympy expressions of torch's ShapeEnv on one side, expressions of `ir.expr` on the other.

torch's symbol names depend on the source program; here they become s0, s1, … in order of first appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import SymInt
from torch.fx.experimental.symbolic_shapes import ShapeEnv, statically_known_true
from torch.utils._sympy import functions

from ..ir.errors import FrontendError
from ..ir.expr import (
    ONE,
    ZERO,
    Atom,
    Domain,
    Expr,
    ExprLike,
    as_expr,
    ceildiv,
    const,
    floordiv,
    maximum,
    minimum,
    mod,
    product,
    symbol,
)
from ..ir.shapes import SymbolRange
from . import conditions

LEAST, GREATEST = torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max - 1
"""Bounds of a symbol of which nothing is known; torch also has 2^63 - 2 for "unbounded"."""

# -- where a symbol's value comes from ---------------------------------------------------------------


@dataclass(frozen=True)
class SizeSource:
    """A symbol is `(size - offset) // factor`, the size (or stride) being that of a tensor input along a dim, or, where
    dim is None, the value of an integer input."""

    input: int
    dim: int | None
    offset: int = 0
    factor: int = 1
    measure: str = "size"

    def value(self, inputs: Sequence[Any]) -> int:
        size = inputs[self.input] if self.dim is None else getattr(inputs[self.input], self.measure)(self.dim)
        return (int(size) - self.offset) // self.factor


# -- sympy → Expr ------------------------------------------------------------------------------------

Rule = Callable[..., Expr]


def _power(base: Expr, exponent: Expr) -> Expr:
    if not exponent.is_constant or exponent.constant < 0:
        raise _unknown(f"{base} ** {exponent}")
    return product([base] * exponent.constant)


def _folded(rule: Callable[[ExprLike, ExprLike], Expr]) -> Rule:
    def fold(first: Expr, *rest: Expr) -> Expr:
        for other in rest:
            first = rule(first, other)
        return first

    return fold


def _modular_indexing(base: Expr, divisor: Expr, modulus: Expr) -> Expr:
    return mod(floordiv(base, divisor), modulus)


_RULES: dict[str, Rule] = {
    "Add": lambda *terms: sum(terms, const(0)),
    "Mul": lambda *factors: product(factors),
    "Pow": _power,
    "PowByNatural": _power,
    "ToFloat": lambda value: value,
    "TruncToInt": lambda value: value,
    "FloorToInt": lambda value: value,
    "CeilToInt": lambda value: value,
    "ModularIndexing": _modular_indexing,
    "Max": _folded(maximum),
    "Min": _folded(minimum),
    "Identity": lambda value: value,
    "Equality": conditions.equal,
    "Unequality": conditions.differ,
    "StrictLessThan": conditions.below,
    "LessThan": conditions.at_most,
    "StrictGreaterThan": conditions.above,
    "GreaterThan": conditions.at_least,
    "Not": conditions.negated,
    "And": _folded(minimum),
    "Or": _folded(maximum),
}
"""sympy class → expression of its translated arguments. Floats are translated where they are whole numbers, so that
rounding them changes nothing."""

_DIVISIONS: dict[str, tuple[Rule, int]] = {
    "FloorDiv": (floordiv, 1),
    "CleanDiv": (floordiv, 1),
    "CeilDiv": (ceildiv, 1),
    "Mod": (mod, -1),
    "PythonMod": (mod, -1),
}
"""sympy class → its expression for divisors that are not negative, and the result's factor if both operands change
sign."""

_ROUNDED_QUOTIENTS: dict[str, Rule] = {"TruncToInt": floordiv, "FloorToInt": floordiv, "CeilToInt": ceildiv}
"""sympy class → the integer that it makes of a quotient of two integers that are not negative."""


def _unknown(what: object) -> FrontendError:
    return FrontendError(
        "symbolic size",
        expected="sums, products, divisions, minima and maxima of input sizes",
        got=str(what),
        hint="mark the dimension as static with torch._dynamo.mark_static",
    )


# -- Expr → sympy ------------------------------------------------------------------------------------

_SYMPY: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": functions.FloorDiv,
    "ceildiv": functions.CeilDiv,
    "mod": functions.Mod,
    "min": functions.Min,
    "max": functions.Max,
}


def to_sympy(expr: Expr, leaf: Callable[[str], Any] = sympy.Symbol) -> Any:
    """The expression in sympy, each symbol as `leaf(name)`."""

    def atom(factor: Atom) -> Any:
        if factor.kind == "symbol":
            return leaf(factor.args[0])
        first, second = (to_sympy(arg, leaf) for arg in factor.args)
        return _SYMPY[factor.kind](first, second)

    return sum(
        (coefficient * sympy.prod([atom(factor) for factor in monomial]) for monomial, coefficient in expr.terms),
        sympy.Integer(0),
    )


# -- the symbols of one graph ------------------------------------------------------------------------


class SymbolTable:
    """The symbols of one graph: named by first appearance in its inputs, each with a source, range and hint; then
    those that its ops define."""

    def __init__(self) -> None:
        self._names: dict[sympy.Symbol, str] = {}
        self._exprs: dict[Any, Expr] = {}
        self._environment: ShapeEnv | None = None
        self.formula: Callable[[Any], str] | None = None
        """Names a new symbol for an integer or condition that no expression says."""
        self.sources: list[SizeSource] = []
        self.ranges: list[SymbolRange] = []

    @property
    def domain(self) -> Domain:
        return Domain({}, {known.name: (known.low, known.high) for known in self.ranges})

    # -- declaring -------------------------------------------------------------------------------

    def declare(self, inputs: Sequence[Any]) -> None:
        """Finds every symbol of the inputs (tensors and SymInts), those that stand alone first."""
        sizes = list(_symbolic_sizes(inputs))
        for value, source in sizes:
            if isinstance(value.node.expr, sympy.Symbol):
                self._declare(value.node.expr, source, value)
        for value, source in sizes:
            self._solve(value, source)
        for value, source in (*sizes, *_symbolic_strides(inputs)):
            self._take(value, source)

    def _declare(self, name: sympy.Symbol, source: SizeSource, value: SymInt) -> None:
        self._environment = value.node.shape_env
        if name not in self._names:
            self._names[name] = f"s{len(self.ranges)}"
            self.sources.append(source)
            self.ranges.append(_range(self._names[name], name, value))

    def _solve(self, value: SymInt, source: SizeSource) -> None:
        """Declares the one unknown symbol of `factor * symbol + offset`."""
        expr = value.node.expr
        unknown = [name for name in _ordered(expr.free_symbols) if name not in self._names]
        if len(unknown) != 1 or not expr.is_polynomial(unknown[0]):
            return
        name = unknown[0]
        offset, factor = expr.subs(name, 0), expr.coeff(name)
        if offset.is_Integer and factor.is_Integer and factor > 0 and expr == factor * name + offset:
            self._declare(name, SizeSource(source.input, source.dim, int(offset), int(factor)), value)

    def _take(self, value: SymInt, source: SizeSource) -> None:
        """Declares a symbol for the value itself if the others do not say it."""
        try:
            self.expr(value)
        except FrontendError:
            name = f"s{len(self.ranges)}"
            self.sources.append(source)
            self.define_value(value.node.expr, None)
            self._exprs[value.node.expr] = symbol(name)

    def define_value(self, expr: Any, hint: int | None) -> str:
        """Names a new symbol that stands for the value of an integer or a condition."""
        name = f"s{len(self.ranges)}"
        low, high = (0, 1) if expr.is_Boolean else _bounds(self._environment, expr)
        self.ranges.append(SymbolRange(name, low, high, hint))
        return name

    def hint_of(self, exprs: Iterable[Expr], function: Callable[..., Any]) -> int | None:
        """What a function of sizes gives for the hints of the symbols in them; None if one has none."""
        hints = {known.name: known.hint for known in self.ranges}
        if any(hints[name] is None for expr in exprs for name in expr.symbols):
            return None
        return int(function(*(expr.evaluate(lambda leaf: hints[leaf.args[0]]) for expr in exprs)))

    def define(self, found: sympy.Symbol, environment: ShapeEnv) -> str:
        """Names a symbol that an op defines, and that by which torch replaces it if it has no name yet."""
        self._environment = environment
        name = self._names[found] = f"s{len(self.ranges)}"
        replaced = environment.replace(found)
        if replaced.is_Symbol:
            self._names.setdefault(replaced, name)
        low, high = guarded_range(environment, found)
        self.ranges.append(SymbolRange(name, LEAST if low is None else low, high))
        return name

    # -- translating -----------------------------------------------------------------------------

    def expr(self, value: int | SymInt) -> Expr:
        """The expression of a size."""
        if not isinstance(value, SymInt):
            return const(value)
        constant = value.node.maybe_as_int()
        if constant is not None:
            return const(constant)
        expr = value.node.expr
        if expr not in self._exprs and statically_known_true(value == 1):
            self._exprs[expr] = ONE  # known by a guard or a check only, but what broadcasts must be seen to be 1
        return self.translate(expr)

    def exprs(self, values: Iterable[int | SymInt]) -> tuple[Expr, ...]:
        return tuple(map(self.expr, values))

    def names_in(self, expr: Any) -> set[str | None]:
        """The names of its integers, None for those that have none in this graph."""
        return {self._names.get(leaf) for leaf in expr.free_symbols if leaf.is_integer}

    def translate(self, expr: Any) -> Expr:
        known = self._exprs.get(expr)
        if known is None:
            known = self._exprs[expr] = self._translate(expr)
        return known

    def _translate(self, expr: Any) -> Expr:
        """The expression; where it has parts that none says, a symbol that a formula defines."""
        try:
            return self._structural(expr)
        except FrontendError:
            if self.formula is None or expr.is_Symbol or not _is_whole(expr):
                raise
            return symbol(self.formula(expr))

    def _structural(self, expr: Any) -> Expr:
        if expr.is_Integer or (expr.is_Float and expr == int(expr)):
            return const(int(expr))
        if expr.is_Symbol:
            if expr not in self._names:
                raise _unknown(f"{expr}, which no input gives")
            return symbol(self._names[expr])
        if expr.is_Boolean and not expr.args:
            return const(int(bool(expr)))
        if expr.is_Piecewise:
            return self._piecewise(expr)
        if expr.is_Mul and any(factor.is_Rational and not factor.is_Integer for factor in expr.args):
            numerator, denominator = sympy.fraction(expr)
            return floordiv(self.translate(numerator), self.translate(denominator))
        name, inner = type(expr).__name__, expr.args[0] if expr.args else None
        if name in _ROUNDED_QUOTIENTS and type(inner).__name__ == "IntTrueDiv":
            return self._rounded_quotient(_ROUNDED_QUOTIENTS[name], inner)
        if name in _DIVISIONS:
            return self._division(*_DIVISIONS[name], *map(self.translate, expr.args))
        rule = _RULES.get(name)
        if rule is None:
            raise _unknown(expr)
        return rule(*map(self.translate, expr.args))

    def _division(self, rule: Rule, factor: int, dividend: Expr, divisor: Expr) -> Expr:
        """By what is not negative, or by what is: expressions know the former only."""
        if self.domain.is_nonnegative(divisor):
            return rule(dividend, divisor)
        if self.domain.is_less(divisor, ZERO):
            return factor * rule(-dividend, -divisor)
        raise _unknown(f"a division by {divisor}, whose sign is open")

    def _rounded_quotient(self, rule: Rule, quotient: Any) -> Expr:
        """`int(a / b)` for sizes, whose float quotient is exact enough to be rounded as the true one is."""
        dividend, divisor = map(self.translate, quotient.args)
        if not self.domain.is_nonnegative(dividend) or not self.domain.is_less(ZERO, divisor):
            raise _unknown(quotient)
        return rule(dividend, divisor)

    def _piecewise(self, expr: Any) -> Expr:
        """The first case whose condition holds; the last one needs none."""
        *cases, (total, _) = ((self.translate(value), condition) for value, condition in expr.args)
        for value, condition in reversed(cases):
            total = conditions.chosen(self.translate(condition), value, total)
        return total

    def simplify(self, expr: ExprLike) -> Expr:
        """The expression with what the ranges of the symbols decide."""
        return self.domain.simplify(as_expr(expr))


_OF_BITS = {"BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_xor"}
"""sympy classes of which torch does not say that they give integers."""


def _is_whole(expr: Any) -> bool:
    """Whether it is an integer or a condition."""
    return bool(expr.is_integer or expr.is_Boolean or type(expr).__name__ in _OF_BITS)


def _symbolic_sizes(inputs: Sequence[Any]) -> Iterator[tuple[SymInt, SizeSource]]:
    """Each symbolic input or size of an input; integer inputs first, since they are cheapest to read."""
    for position, value in enumerate(inputs):
        if _is_symbolic(value):
            yield value, SizeSource(position, None)
    for position, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            sizes: Sequence[Any] = value.shape
            for dim, size in enumerate(sizes):
                if _is_symbolic(size):
                    yield size, SizeSource(position, dim)


def _symbolic_strides(inputs: Sequence[Any]) -> Iterator[tuple[SymInt, SizeSource]]:
    for position, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            strides: Sequence[Any] = value.stride()
            for dim, stride in enumerate(strides):
                if _is_symbolic(stride):
                    yield stride, SizeSource(position, dim, measure="stride")


def _is_symbolic(size: Any) -> bool:
    return isinstance(size, SymInt) and size.node.maybe_as_int() is None


def _ordered(symbols: Iterable[sympy.Symbol]) -> list[sympy.Symbol]:
    return sorted(symbols, key=lambda name: (len(name.name), name.name))


def guarded_range(environment: ShapeEnv, variable: sympy.Symbol) -> tuple[int | None, int | None]:
    """The bounds that the ShapeEnv holds for a symbol; None for one that int64 implies, and where it holds none, as for
    the ragged size of a nested tensor."""
    bounds = environment.var_to_range.get(variable)
    if bounds is None:
        return None, None
    low, high = (int(bound) if bound.is_Integer else None for bound in (bounds.lower, bounds.upper))
    return None if low is not None and low <= LEAST else low, None if high is not None and high >= GREATEST else high


def _bounds(environment: ShapeEnv | None, expr: Any) -> tuple[int, int | None]:
    """Those of an expression."""
    if environment is None:
        return LEAST, None
    bounds = environment.bound_sympy(expr)
    low, high = (int(bound) if bound.is_Integer else None for bound in (bounds.lower, bounds.upper))
    return LEAST if low is None else max(low, LEAST), None if high is None or high >= GREATEST else high


def _range(name: str, variable: sympy.Symbol, value: SymInt) -> SymbolRange:
    """The guarded range and the hint that the ShapeEnv holds for a symbol."""
    environment = value.node.shape_env
    low, high = guarded_range(environment, variable)
    renamed = hasattr(environment, "backed_var_to_val")  # since torch 2.12
    hint = (environment.backed_var_to_val if renamed else environment.var_to_val).get(variable)
    return SymbolRange(
        name, LEAST if low is None else low, high, int(hint) if isinstance(hint, int | sympy.Integer) else None
    )

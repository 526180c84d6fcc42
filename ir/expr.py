"""Integer expressions over loop dimensions and size symbols.

Sizes, strides, reads and writes of all levels are such expressions, because builtin affine maps refuse
semi-affine terms (`s0 * s1`, `d0 * s0`). An expression is kept in one canonical form, a sum of products of
atoms, so equal polynomials are equal objects. This module knows nothing of xDSL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Union

OPERATORS = ("floordiv", "ceildiv", "mod", "min", "max")
_KIND_ORDER = {kind: order for order, kind in enumerate(("dim", "symbol", *OPERATORS))}

ExprLike = Union["Expr", int]


@dataclass(frozen=True)
class Atom:
    """A factor that is no sum or product: a dim `d0`, a symbol `s0`, or an operator over two expressions."""

    kind: str
    args: tuple[Any, ...]

    @property
    def name(self) -> Any:
        """The number of a dim, or what a symbol is called."""
        (name,) = self.args
        return name

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Total order that is the same in every process."""
        args: tuple[Any, ...] = tuple(arg.key if isinstance(arg, Expr) else (arg,) for arg in self.args)
        if self.kind == "symbol":
            args = (len(self.args[0]), *args)
        return (_KIND_ORDER[self.kind], *args)

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.args))

    def __hash__(self) -> int:
        return self._hash

    def render(self, leaf: Callable[[Atom], str]) -> str:
        if self.kind in ("dim", "symbol"):
            return leaf(self)
        first, second = self.args
        if self.kind in ("min", "max"):
            return f"{self.kind}({first.render(leaf)}, {second.render(leaf)})"
        return f"{_parenthesized(first, leaf)} {self.kind} {_parenthesized(second, leaf)}"


Monomial = tuple[Atom, ...]


def _parenthesized(expr: Expr, leaf: Callable[[Atom], str]) -> str:
    text = expr.render(leaf)
    return text if expr.is_leaf or (expr.is_constant and expr.constant >= 0) else f"({text})"


def _monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    """Dims first, then symbols, then the constant term."""
    return (not monomial, tuple(atom.key for atom in monomial))


@dataclass(frozen=True)
class Expr:
    """A canonical sum of `coefficient * atom * atom * …`; build it with `const`, `dim`, `symbol` and operators."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def from_terms(terms: Mapping[Monomial, int]) -> Expr:
        kept = [(monomial, coefficient) for monomial, coefficient in terms.items() if coefficient]
        if len(kept) > 1:
            kept.sort(key=lambda term: _monomial_key(term[0]))
        return Expr(tuple(kept))

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return tuple((_monomial_key(monomial), coefficient) for monomial, coefficient in self.terms)

    # -- inspection ------------------------------------------------------------------------------

    @property
    def is_constant(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and not self.terms[0][0])

    @property
    def constant(self) -> int:
        """The value of a constant expression."""
        return self.terms[0][1] if self.terms else 0

    @property
    def constant_term(self) -> int:
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def is_leaf(self) -> bool:
        """One dim or one symbol, alone."""
        return self.as_atom is not None and self.as_atom.kind in ("dim", "symbol")

    @cached_property
    def as_atom(self) -> Atom | None:
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return self.terms[0][0][0]
        return None

    @property
    def as_dim(self) -> int | None:
        """The position of the dim that this expression is, if it is just one dim."""
        atom = self.as_atom
        return int(atom.args[0]) if atom is not None and atom.kind == "dim" else None

    @cached_property
    def leaves(self) -> frozenset[Atom]:
        """All dims and symbols, also those inside operators."""
        found: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if atom.kind in ("dim", "symbol"):
                    found.add(atom)
                else:
                    for arg in atom.args:
                        found |= arg.leaves
        return frozenset(found)

    @property
    def dims(self) -> frozenset[int]:
        return frozenset(int(leaf.args[0]) for leaf in self.leaves if leaf.kind == "dim")

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(str(leaf.args[0]) for leaf in self.leaves if leaf.kind == "symbol")

    def coefficient(self, position: int) -> Expr | None:
        """What dim `position` is multiplied with, or None where the expression is not linear in it."""
        atom = Atom("dim", (position,))
        result: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            if atom in monomial:
                rest = list(monomial)
                rest.remove(atom)
                if any(position in Expr((((factor,), 1),)).dims for factor in rest):
                    return None
                result[tuple(rest)] = coefficient
            elif any(position in Expr((((factor,), 1),)).dims for factor in monomial):
                return None
        return Expr.from_terms(result)

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: ExprLike) -> Expr:
        other = as_expr(other)
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Expr.from_terms(terms)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return Expr(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: ExprLike) -> Expr:
        return self + (-as_expr(other))

    def __rsub__(self, other: ExprLike) -> Expr:
        return as_expr(other) + (-self)

    def __mul__(self, other: ExprLike) -> Expr:
        other = as_expr(other)
        if other.is_constant and other.constant == 1:
            return self
        terms: dict[Monomial, int] = {}
        for left, left_coefficient in self.terms:
            for right, right_coefficient in other.terms:
                monomial = tuple(sorted((*left, *right), key=lambda atom: atom.key))
                terms[monomial] = terms.get(monomial, 0) + left_coefficient * right_coefficient
        return Expr.from_terms(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: ExprLike) -> Expr:
        return floordiv(self, as_expr(other))

    def __mod__(self, other: ExprLike) -> Expr:
        return mod(self, as_expr(other))

    # -- use -------------------------------------------------------------------------------------

    def substitute(self, replacement: Callable[[Atom], ExprLike | None]) -> Expr:
        """Replaces leaves for which `replacement` gives an expression; operators are folded anew."""
        if not self.leaves:
            return self
        total = ZERO
        for monomial, coefficient in self.terms:
            product = const(coefficient)
            for atom in monomial:
                product = product * _substitute_atom(atom, replacement)
            total = total + product
        return total

    def substitute_dims(self, results: Mapping[int, ExprLike] | tuple[Expr, ...] | list[Expr]) -> Expr:
        """Replaces dim k by `results[k]`; dims without a result stay."""
        known = results if isinstance(results, Mapping) else dict(enumerate(results))
        return self.substitute(lambda leaf: known.get(leaf.args[0]) if leaf.kind == "dim" else None)

    def evaluate(self, value: Callable[[Atom], Any]) -> Any:
        """The value (an int, or whatever arithmetic type `value` returns) with floor division semantics."""
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for atom in monomial:
                product = product * _evaluate_atom(atom, value)
            total = total + product
        return total

    def render(self, leaf: Callable[[Atom], str]) -> str:
        """The text of the expression in the syntax that the parsers of all levels read."""
        if not self.terms:
            return "0"
        pieces: list[str] = []
        for monomial, coefficient in self.terms:
            sign = ("-" if coefficient < 0 else "") if not pieces else (" - " if coefficient < 0 else " + ")
            pieces.append(sign + _render_term(monomial, abs(coefficient), leaf))
        return "".join(pieces)

    def __str__(self) -> str:
        return self.render(leaf_name)


def _render_term(monomial: Monomial, magnitude: int, leaf: Callable[[Atom], str]) -> str:
    single = len(monomial) == 1 and magnitude == 1
    factors = [
        atom.render(leaf) if single or atom.kind in ("dim", "symbol", "min", "max") else f"({atom.render(leaf)})"
        for atom in monomial
    ]
    if magnitude != 1 or not monomial:
        factors.append(str(magnitude))
    return " * ".join(factors)


def leaf_name(leaf: Atom) -> str:
    return f"d{leaf.args[0]}" if leaf.kind == "dim" else str(leaf.args[0])


# -- constructors ------------------------------------------------------------------------------------


def const(value: int) -> Expr:
    return Expr((((), value),)) if value else ZERO


def dim(position: int) -> Expr:
    assert position >= 0
    return Expr((((Atom("dim", (position,)),), 1),))


def symbol(name: str) -> Expr:
    return Expr((((Atom("symbol", (name,)),), 1),))


def as_expr(value: ExprLike) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def product(factors: Iterable[ExprLike]) -> Expr:
    return reduce(lambda total, factor: total * factor, factors, ONE)


ZERO = Expr(())
ONE = Expr((((), 1),))


def _operator(kind: str, first: Expr, second: Expr) -> Expr:
    return Expr((((Atom(kind, (first, second)),), 1),))


def _divide_exactly(monomial: Monomial, coefficient: int, divisor: Expr) -> Expr | None:
    """The quotient of one term by a one-term divisor, where it is exact."""
    if len(divisor.terms) != 1:
        return None
    atoms, scale = divisor.terms[0]
    rest = list(monomial)
    for atom in atoms:
        if atom not in rest:
            return None
        rest.remove(atom)
    if coefficient % scale:
        return None
    return Expr.from_terms({tuple(rest): coefficient // scale})


def split_by(expr: Expr, divisor: Expr) -> tuple[Expr, Expr]:
    """`(quotient, rest)` with `expr == quotient * divisor + rest`, taking every term that divides exactly."""
    quotient, rest = ZERO, ZERO
    for monomial, coefficient in expr.terms:
        part = _divide_exactly(monomial, coefficient, divisor)
        if part is not None:
            quotient = quotient + part
        elif not monomial and divisor.is_constant and divisor.constant > 0:
            whole, remainder = divmod(coefficient, divisor.constant)
            quotient, rest = quotient + whole, rest + remainder
        else:
            rest = rest + Expr(((monomial, coefficient),))
    return quotient, rest


def exact_quotient(expr: Expr, divisor: Expr) -> Expr | None:
    """`expr / divisor` where it is known to be exact, else None."""
    if expr == divisor:
        return ONE
    quotient, rest = split_by(expr, divisor)
    return quotient if not rest.terms else None


def floordiv(first: ExprLike, second: ExprLike) -> Expr:
    """First floor-divided by second; second is positive, or 0 in an empty space, where any value will do."""
    first, second = as_expr(first), as_expr(second)
    if second == ZERO:
        return ZERO
    if second == ONE:
        return first
    quotient, rest = split_by(first, second)
    if not rest.terms:
        return quotient
    if rest.is_constant and second.is_constant:
        return quotient + rest.constant // second.constant
    if second.is_constant:
        common = math.gcd(second.constant, *(coefficient for monomial, coefficient in rest.terms if monomial))
        if common > 1:  # (4 a + 3) floordiv 8 = a floordiv 2, since the constant cannot carry
            rest = split_by(rest, const(common))[0]
            second = const(second.constant // common)
            if second == ONE:
                return quotient + rest
    atom = rest.as_atom
    if atom is not None and atom.kind == "floordiv":
        return quotient + floordiv(atom.args[0], atom.args[1] * second)
    if atom is not None and atom.kind == "mod":  # (x mod a b) floordiv a = (x floordiv a) mod b
        factor = exact_quotient(atom.args[1], second)
        if factor is not None:
            return quotient + mod(floordiv(atom.args[0], second), factor)
    return quotient + _operator("floordiv", rest, second)


def ceildiv(first: ExprLike, second: ExprLike) -> Expr:
    """First divided by second, rounded up; second is positive, or 0 in an empty space: see `floordiv`."""
    first, second = as_expr(first), as_expr(second)
    if second == ZERO:
        return ZERO
    quotient, rest = split_by(first, second)
    if not rest.terms:
        return quotient
    if rest.is_constant and second.is_constant:
        return quotient - (-rest.constant // second.constant)
    return quotient + _operator("ceildiv", rest, second)


def mod(first: ExprLike, second: ExprLike) -> Expr:
    """First modulo second with the sign of second, which is positive, or 0 in an empty space: see `floordiv`."""
    first, second = as_expr(first), as_expr(second)
    if second == ZERO:
        return ZERO
    rest = split_by(first, second)[1]
    if rest.is_constant and second.is_constant:
        return const(rest.constant % second.constant)
    if second == ONE or not rest.terms:
        return ZERO
    if second.is_constant:
        common = math.gcd(second.constant, *(coefficient for monomial, coefficient in rest.terms if monomial))
        if common > 1 and common == math.gcd(common, rest.constant_term):  # (4 a) mod 8 = 4 (a mod 2)
            return mod(split_by(rest, const(common))[0], const(second.constant // common)) * common
    atom = rest.as_atom
    if atom is not None and atom.kind == "mod" and exact_quotient(atom.args[1], second) is not None:
        return mod(atom.args[0], second)
    return _operator("mod", rest, second)


def _extremum(kind: str, first: ExprLike, second: ExprLike) -> Expr:
    first, second = as_expr(first), as_expr(second)
    difference = first - second
    if difference.is_constant:
        return first if (difference.constant >= 0) == (kind == "max") else second
    if second.key < first.key:
        first, second = second, first
    return _operator(kind, first, second)


def minimum(first: ExprLike, second: ExprLike) -> Expr:
    return _extremum("min", first, second)


def maximum(first: ExprLike, second: ExprLike) -> Expr:
    return _extremum("max", first, second)


CONSTRUCTORS: dict[str, Callable[[ExprLike, ExprLike], Expr]] = {
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
}

_EVALUATORS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda first, second: first // second,
    "ceildiv": lambda first, second: -(-first // second),
    "mod": lambda first, second: first % second,
    "min": lambda first, second: (first + second - abs(first - second)) // 2,
    "max": lambda first, second: (first + second + abs(first - second)) // 2,
}


def _substitute_atom(atom: Atom, replacement: Callable[[Atom], ExprLike | None]) -> Expr:
    if atom.kind in ("dim", "symbol"):
        replaced = replacement(atom)
        return Expr((((atom,), 1),)) if replaced is None else as_expr(replaced)
    first, second = (arg.substitute(replacement) for arg in atom.args)
    return CONSTRUCTORS[atom.kind](first, second)


def _evaluate_atom(atom: Atom, value: Callable[[Atom], Any]) -> Any:
    if atom.kind in ("dim", "symbol"):
        return value(atom)
    first, second = (arg.evaluate(value) for arg in atom.args)
    return _EVALUATORS[atom.kind](first, second)


# -- ranges ------------------------------------------------------------------------------------------

Interval = tuple[int | None, int | None]
"""Inclusive bounds; None is unbounded."""


@dataclass(frozen=True)
class Domain:
    """What is known of the leaves: dim k runs over `[0, extents[k])`, symbols lie in their guarded range.

    A symbol without a range is a size, so it is at least 0, unless `others` says something else.
    """

    extents: Mapping[int, Expr]
    symbols: Mapping[str, Interval]
    others: Interval = (0, None)

    def interval(self, expr: Expr) -> Interval:
        """Bounds of the expression by interval arithmetic, exact for the linear part."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in expr.terms:
            bounds: Interval = (coefficient, coefficient)
            for atom in monomial:
                bounds = _multiply(bounds, self._atom_interval(atom))
            low = None if low is None or bounds[0] is None else low + bounds[0]
            high = None if high is None or bounds[1] is None else high + bounds[1]
        return low, high

    def _atom_interval(self, atom: Atom) -> Interval:
        if atom.kind == "symbol":
            return self.symbols.get(atom.args[0], self.others)
        if atom.kind == "dim":
            extent = self.extents.get(atom.args[0])
            if extent is None:
                return None, None
            high = self.interval(extent)[1]
            return 0, None if high is None else max(high - 1, 0)
        first, second = (self.interval(arg) for arg in atom.args)
        return _OPERATOR_INTERVALS[atom.kind](first, second)

    def is_nonnegative(self, expr: Expr) -> bool:
        """Whether `expr >= 0` is certain, first by intervals, then with dims at their symbolic bounds."""
        low = self.interval(expr)[0]
        if low is not None and low >= 0:
            return True
        extreme = self._least(expr)
        low = None if extreme is None else self.interval(extreme)[0]
        return low is not None and low >= 0

    def _least(self, expr: Expr) -> Expr | None:
        """The expression with every dim that occurs linearly at the end of its range that makes it least."""
        for position in sorted(expr.dims):
            factor, extent = expr.coefficient(position), self.extents.get(position)
            if factor is None or extent is None:
                return None
            low, high = self.interval(factor)
            if low is not None and low >= 0:
                end: Expr = ZERO
            elif high is not None and high <= 0:
                end = extent - 1
            else:
                return None
            expr = expr.substitute_dims({position: end})
        return expr

    def is_less(self, first: Expr, second: Expr) -> bool:
        return self.is_nonnegative(second - first - 1)

    def simplify(self, expr: Expr) -> Expr:
        """Removes divisions and remainders that the ranges decide, and rejoins `x floordiv n * n + x mod n`."""
        if all(atom.kind in ("dim", "symbol") for monomial, _ in expr.terms for atom in monomial):
            return expr
        total = ZERO
        for monomial, coefficient in expr.terms:
            term = const(coefficient)
            for atom in monomial:
                term = term * self._simplify_atom(atom)
            total = total + term
        return _rejoin(total)

    def _coarser(self, value: Expr, divisor: Expr) -> tuple[int, Expr, Expr, Expr] | None:
        """`(u, x, n, r)` where the value is `u * x + r` and the divisor `u * n`, with r in `[0, u)`: then the quotient
        is `x floordiv n`, the remainder `(x mod n) * u + r`."""
        if not divisor.is_constant or divisor.constant <= 1:
            return None
        units = {math.gcd(divisor.constant, coefficient) for coefficient in _coefficients(value)}
        for unit in sorted(units - {1, divisor.constant}, reverse=True):
            whole, rest = split_by(value, const(unit))
            if self.is_nonnegative(rest) and self.is_less(rest, const(unit)):
                return unit, whole, const(divisor.constant // unit), rest
        return None

    def _simplify_atom(self, atom: Atom) -> Expr:
        if atom.kind in ("dim", "symbol"):
            return Expr((((atom,), 1),))
        first, second = (self.simplify(arg) for arg in atom.args)
        if atom.kind in ("min", "max"):
            if self.is_nonnegative(first - second):
                return first if atom.kind == "max" else second
            if self.is_nonnegative(second - first):
                return second if atom.kind == "max" else first
        elif atom.kind in ("floordiv", "mod"):
            quotient, rest = split_by(first, second)
            if self.is_nonnegative(rest) and self.is_less(rest, second):
                return quotient if atom.kind == "floordiv" else rest
            coarser = self._coarser(first, second)
            if coarser is not None:
                unit, first, second, rest = coarser
                return floordiv(first, second) if atom.kind == "floordiv" else mod(first, second) * unit + rest
        return CONSTRUCTORS[atom.kind](first, second)


def _coefficients(expr: Expr) -> set[int]:
    return {abs(coefficient) for _, coefficient in expr.terms}


def _rejoin(expr: Expr) -> Expr:
    """`(x floordiv n) * n * k + (x mod n) * k  →  x * k`, until nothing changes."""
    for monomial, coefficient in expr.terms:
        for atom in monomial:
            if atom.kind != "mod":
                continue
            value, divisor = atom.args
            rest = list(monomial)
            rest.remove(atom)
            scale = Expr.from_terms({tuple(rest): coefficient})
            whole = floordiv(value, divisor) * divisor * scale
            remaining = dict((expr - whole).terms)
            if all(term not in remaining for term, _ in whole.terms):
                without = expr - whole - Expr(((monomial, coefficient),))
                return _rejoin(without + value * scale)
    return expr


def _multiply(first: Interval, second: Interval) -> Interval:
    products = [_bound_product(a, b, i, j) for i, a in enumerate(first) for j, b in enumerate(second)]
    low, high = min(products), max(products)
    return None if low == -math.inf else int(low), None if high == math.inf else int(high)


def _bound_product(first: int | None, second: int | None, first_end: int, second_end: int) -> float | int:
    """Product of two interval ends, where None at end 0 is -inf and at end 1 is +inf."""
    if first is not None and second is not None:
        return first * second
    if first == 0 or second == 0:
        return 0
    signs = 1
    for value, end in ((first, first_end), (second, second_end)):
        signs *= (1 if end else -1) if value is None else (1 if value > 0 else -1)
    return math.inf if signs > 0 else -math.inf


def _floordiv_interval(first: Interval, second: Interval) -> Interval:
    """Second is positive; the least quotient of a negative number has the least divisor."""
    least = 1 if second[0] is None else max(second[0], 1)
    return (
        None if first[0] is None else _quotient(first[0], second[1] if first[0] >= 0 else least),
        None if first[1] is None else _quotient(first[1], least if first[1] >= 0 else second[1]),
    )


def _quotient(value: int, divisor: int | None) -> int:
    """`value // divisor`, where a divisor of None is arbitrarily large."""
    if divisor:
        return value // divisor
    return 0 if value >= 0 else -1


def _ceildiv_interval(first: Interval, second: Interval) -> Interval:
    low, high = _floordiv_interval(first, second)
    return low, None if high is None else high + 1


def _mod_interval(first: Interval, second: Interval) -> Interval:
    limit = None if second[1] is None else second[1] - 1
    if first[0] is not None and first[0] >= 0 and first[1] is not None:
        limit = first[1] if limit is None else min(limit, first[1])
    return 0, limit


def _minimum_interval(first: Interval, second: Interval) -> Interval:
    low = None if first[0] is None or second[0] is None else min(first[0], second[0])
    highs = [bound for bound in (first[1], second[1]) if bound is not None]
    return low, min(highs) if highs else None


def _maximum_interval(first: Interval, second: Interval) -> Interval:
    lows = [bound for bound in (first[0], second[0]) if bound is not None]
    high = None if first[1] is None or second[1] is None else max(first[1], second[1])
    return max(lows) if lows else None, high


_OPERATOR_INTERVALS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "floordiv": _floordiv_interval,
    "ceildiv": _ceildiv_interval,
    "mod": _mod_interval,
    "min": _minimum_interval,
    "max": _maximum_interval,
}


_ANYWHERE = Domain({}, {}, (None, None))
"""Holds for symbols that are no sizes, too: the bound of a slice may be negative."""


def contiguous_strides(sizes: Iterable[ExprLike]) -> tuple[Expr, ...]:
    """Row-major strides; like torch, a size of 0 counts as 1."""
    strides: list[Expr] = []
    running = ONE
    for size in reversed([as_expr(size) for size in sizes]):
        strides.append(running)
        running = running * (ONE if size == ZERO else size)
    return tuple(reversed(strides))


def linearize(indices: Iterable[Expr], strides: Iterable[Expr]) -> Expr:
    """`Σ index * stride`, with the parts of a split index rejoined."""
    return _ANYWHERE.simplify(sum((index * stride for index, stride in zip(indices, strides, strict=True)), ZERO))


def delinearize(offset: Expr, sizes: Iterable[Expr]) -> tuple[Expr, ...]:
    """The row-major multi-index of `offset` in a box of `sizes`; the outermost index is not wrapped."""
    indices: list[Expr] = []
    sizes = list(sizes)
    for position in range(len(sizes) - 1, -1, -1):
        indices.append(mod(offset, sizes[position]) if position else offset)
        offset = floordiv(offset, sizes[position])
    return tuple(reversed(indices))


__all__ = [
    "ONE", "ZERO", "Atom", "Domain", "Expr", "ExprLike", "Interval", "as_expr", "ceildiv", "const",
    "contiguous_strides", "delinearize", "dim", "exact_quotient", "floordiv", "leaf_name", "linearize",
    "maximum", "minimum", "mod", "product", "split_by", "symbol",
]  # fmt: skip

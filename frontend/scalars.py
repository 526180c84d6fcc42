"""Python numbers that depend on sizes (SymFloat, SymBool) as graph ops of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ..ir import graph
from ..ir.dtypes import BOOL, FLOAT64, INT64
from .builder import GraphBuilder, Value, WeakValue, maximum, minimum, sqrt
from .formulas import Formulas

Rule = Callable[..., Value]


def _chain(combine: Callable[[Value, Value], Value]) -> Rule:
    return lambda *values: reduce(combine, values)


def _power(base: Value, exponent: Value) -> Value:
    return base.builder.binary(graph.PowOp, base, exponent)


_RULES: dict[str, Rule] = {
    "Add": _chain(lambda x, y: x + y),
    "Mul": _chain(lambda x, y: x * y),
    "Pow": _power,
    "FloatPow": _power,
    "FloatTrueDiv": lambda x, y: x / y,
    "IntTrueDiv": lambda x, y: x / y,
    "ToFloat": lambda x: x,
    "Max": _chain(maximum),
    "Min": _chain(minimum),
    "OpaqueUnaryFn_sqrt": sqrt,
    "Equality": lambda x, y: x.equals(y),
    "Unequality": lambda x, y: x.differs(y),
    "StrictLessThan": lambda x, y: x < y,
    "LessThan": lambda x, y: x <= y,
    "StrictGreaterThan": lambda x, y: x > y,
    "GreaterThan": lambda x, y: x >= y,
    "Not": lambda x: ~x,
    "And": _chain(lambda x, y: x & y),
    "Or": _chain(lambda x, y: x | y),
}
"""sympy class → what it computes on f64 (or i1) of rank 0, in which Python floats compute."""


def number_value(builder: GraphBuilder, formulas: Formulas, expr: Any) -> WeakValue:
    """The value of a sympy expression over sizes, as f64, or as i1 for a condition."""
    return WeakValue(builder, _value(builder, formulas, expr).ssa)


def _value(builder: GraphBuilder, formulas: Formulas, expr: Any) -> Value:
    if expr.is_Boolean and not expr.args:
        return builder.full(bool(expr), BOOL)
    if expr in builder.numbers:
        return builder.numbers[expr]
    if expr.is_number:
        return builder.full(float(expr), FLOAT64)
    if expr.is_integer and not expr.is_Boolean:
        return builder.full(builder.symbols.translate(expr), INT64).to(FLOAT64)
    rule = _RULES.get(type(expr).__name__)
    if rule is None:
        builder.numbers[expr] = formulas.number(expr)
        return builder.numbers[expr]
    return rule(*(_value(builder, formulas, argument) for argument in expr.args))

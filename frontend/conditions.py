"""Conditions over sizes as expressions that are 1 where they hold and 0 where not: a check evaluates them at run time.

`expr_of` reads what an FX graph computes op by op, because torch simplifies sizes as if every check had passed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ..ir.expr import ONE, ZERO, Expr, const, floordiv, maximum, minimum, mod


def at_least(first: Expr, second: Expr) -> Expr:
    """`first >= second`."""
    return maximum(minimum(first - second + 1, ONE), ZERO)


def at_most(first: Expr, second: Expr) -> Expr:
    return at_least(second, first)


def above(first: Expr, second: Expr) -> Expr:
    return at_least(first, second + 1)


def below(first: Expr, second: Expr) -> Expr:
    return at_least(second, first + 1)


def equal(first: Expr, second: Expr) -> Expr:
    return minimum(at_least(first, second), at_least(second, first))


def differ(first: Expr, second: Expr) -> Expr:
    return negated(equal(first, second))


def negated(condition: Expr) -> Expr:
    return 1 - condition


def chosen(condition: Expr, first: Expr, second: Expr) -> Expr:
    """`first` where the condition holds, else `second`."""
    return condition * first + negated(condition) * second


_RULES: dict[Any, Callable[..., Expr]] = {
    operator.add: lambda first, second: first + second,
    operator.sub: lambda first, second: first - second,
    operator.mul: lambda first, second: first * second,
    operator.floordiv: floordiv,
    operator.mod: mod,
    operator.ge: at_least,
    operator.le: at_most,
    operator.gt: above,
    operator.lt: below,
    operator.eq: equal,
    operator.ne: differ,
    operator.and_: minimum,
    operator.or_: maximum,
    torch.sym_not: negated,
    torch.sym_ite: chosen,
    torch.sym_max: maximum,
    torch.sym_min: minimum,
}
"""Function of an FX node on integers and conditions → its expression."""


def expr_of(argument: Any, leaf: Callable[[fx.Node], Expr | None]) -> Expr | None:
    """An integer or condition of an FX graph, nodes that are no arithmetic by `leaf`; None where that knows none."""
    if isinstance(argument, int):
        return const(int(argument))
    if not isinstance(argument, fx.Node):
        return None
    rule = _RULES.get(argument.target)
    if rule is None:
        return leaf(argument)
    operands = [expr_of(operand, leaf) for operand in argument.args]
    return None if None in operands else rule(*operands)

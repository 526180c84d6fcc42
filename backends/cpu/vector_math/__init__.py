"""Elementary functions over LLVM vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ....ir.errors import BackendError
from . import error_function, exponential, inverse_trigonometric, logarithm, power, trigonometric
from .algebra import Body, Float, MathFunction, function_name
from .formats import FORMATS

__all__ = ["FUNCTIONS", "MathFunction", "definition"]


@dataclass(frozen=True)
class Elementary:
    arity: int
    expand: Callable[..., Float]


FUNCTIONS = {
    "exp": Elementary(1, exponential.exp),
    "exp2": Elementary(1, exponential.exp2),
    "expm1": Elementary(1, exponential.expm1),
    "sinh": Elementary(1, exponential.sinh),
    "cosh": Elementary(1, exponential.cosh),
    "tanh": Elementary(1, exponential.tanh),
    "log": Elementary(1, logarithm.log),
    "log2": Elementary(1, logarithm.log2),
    "log10": Elementary(1, logarithm.log10),
    "log1p": Elementary(1, logarithm.log1p),
    "asinh": Elementary(1, logarithm.asinh),
    "acosh": Elementary(1, logarithm.acosh),
    "atanh": Elementary(1, logarithm.atanh),
    "sin": Elementary(1, trigonometric.sin),
    "cos": Elementary(1, trigonometric.cos),
    "tan": Elementary(1, trigonometric.tan),
    "asin": Elementary(1, inverse_trigonometric.asin),
    "acos": Elementary(1, inverse_trigonometric.acos),
    "atan": Elementary(1, inverse_trigonometric.atan),
    "atan2": Elementary(2, inverse_trigonometric.atan2),
    "erf": Elementary(1, error_function.erf),
    "erfc": Elementary(1, error_function.erfc),
    "pow": Elementary(2, power.pow),
}


@cache
def definition(function: str, element: str, lanes: int) -> MathFunction:
    format = FORMATS[element]
    row = FUNCTIONS[function]
    body = Body(lanes)
    operands = [Float.named(body, f"%{name}", format) for name in ("x", "y")[: row.arity]]
    result = row.expand(*operands)
    name = function_name(function, format, lanes)
    return body.function(name, operands, result.type, result.name, "alwaysinline nounwind")

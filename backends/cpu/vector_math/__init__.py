"""Elementary functions over vectors, written out as LLVM IR so that they inline into kernels and stay in registers.

No libm, no tables in memory, no fast-math flags; `docs/vector_math.md` has methods and errors. f16 and bf16 are the
caller's to widen to f32.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

from ....ir.errors import BackendError
from . import error_function, exponential, inverse_trigonometric, logarithm, power, trigonometric
from .algebra import Body, Float, MathFunction, function_name
from .formats import FORMATS

__all__ = ["FUNCTIONS", "MathFunction", "definition"]

MAX_LANES = 128
"""Lanes of the widest function that is made."""


@dataclass(frozen=True)
class Elementary:
    """A function of `arity` operands, by the expression that expands it."""

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
    """`sw.<function>.<element>.v<lanes>` from as many operands as the function has to one result, all of one type.

    `element` is f32 or f64, `lanes` a power of two up to 128; one lane is a scalar, not a vector of one. What the
    function requires must be defined, and what both declare be declared, in the same module. Raises BackendError for
    anything else.
    """
    _check("function", function, FUNCTIONS)
    _check("element", element, FORMATS)
    _check("lanes", lanes, [1 << k for k in range(MAX_LANES.bit_length())])
    format, row, body = FORMATS[element], FUNCTIONS[function], Body(lanes)
    operands = [Float.named(body, name, format) for name in ("%x", "%y")[: row.arity]]
    result = row.expand(*operands)
    name = function_name(function, format, lanes)
    return body.function(name, operands, result.type, result.name, "alwaysinline nounwind")


def _check(what: str, value: object, known: Collection[object]) -> None:
    if value not in known:
        raise BackendError("vector math", expected=f"{what} one of {', '.join(map(str, known))}", got=repr(value))

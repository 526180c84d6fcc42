"""Arithmetic on sizes and numbers that neither index expressions nor kernels say, such as `int(n ** 0.5)`.

Python does it at every call, as an extern that defines a symbol or gives a tensor of rank 0. Decides nothing about
what needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.utils._sympy.printers import PythonPrinter
from xdsl.dialects.builtin import IndexType

from ..ir.dtypes import BOOL, FLOAT64
from ..ir.errors import FrontendError
from ..ir.graph import ExternOp
from ..ir.shapes import DefinitionsAttr, SymbolDefinition, tensor_type
from .builder import GraphBuilder, Value
from .externs import CallArguments, target_name

# -- at run time -------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def compiled(formula: str) -> Callable[..., Any]:
    """The function that a formula, the text of a lambda, stands for."""
    function: Callable[..., Any] = eval(formula, {"math": math, "torch": torch})
    return function


def integer(formula: str, *values: Any) -> int:
    """The formula's value for sizes and for the numbers in tensors."""
    return int(compiled(formula)(*map(_number, values)))


def number(formula: str, *values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The same as a tensor of rank 0."""
    return torch.scalar_tensor(compiled(formula)(*map(_number, values)), dtype=dtype, device=device)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


# -- at import ---------------------------------------------------------------------------------------


class FormulaPrinter(PythonPrinter):
    """Python source of torch's sympy expressions, the symbols under the names given."""

    def __init__(self, names: Mapping[sympy.Symbol, str]) -> None:
        super().__init__()
        self.names = names

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return self.names[expr]

    def _print_Piecewise(self, expr: Any) -> str:
        *cases, (otherwise, _) = expr.args
        parts = [f"{self._print(value)} if {self._print(condition)} else " for value, condition in cases]
        return f"({''.join(parts)}{self._print(otherwise)})"


class Formulas:
    """Emits the formulas of one graph."""

    def __init__(self, builder: GraphBuilder, device: torch.device) -> None:
        self.builder = builder
        self.device = device

    def integer(self, expr: Any) -> str:
        """The name of a new symbol for an integer, or for a condition as 0 or 1."""
        symbols = self.builder.symbols
        text, values = self._call(expr)
        call = CallArguments({})
        arguments = call.convert([text, *values], {})
        hint = None if call.inputs else symbols.hint_of(values, compiled(text))
        name = symbols.define_value(expr, hint)
        defines = DefinitionsAttr((SymbolDefinition(name, "value", 0),))
        self.builder.append(
            ExternOp.make(target_name(integer), call.inputs, arguments, (IndexType(),), defines=defines)
        )
        return name

    def number(self, expr: Any) -> Value:
        """A float as f64, a condition as i1."""
        text, values = self._call(expr)
        element, dtype = (BOOL, torch.bool) if expr.is_Boolean else (FLOAT64, torch.float64)
        call = CallArguments({})
        arguments = call.convert([text, *values], {"dtype": dtype, "device": self.device})
        op = ExternOp.make(target_name(number), call.inputs, arguments, (tensor_type(element, ()),))
        self.builder.append(op)
        return Value(self.builder, op.results[0])

    def _call(self, expr: Any) -> tuple[str, list[Any]]:
        """The text, and the values of its parameters: sizes as expressions, numbers as the tensors that hold them."""
        leaves = sorted(expr.free_symbols, key=lambda leaf: (len(leaf.name), leaf.name))
        names = {leaf: f"x{position}" for position, leaf in enumerate(leaves)}
        try:
            body = FormulaPrinter(names).doprint(expr)
        except NotImplementedError as error:  # which sympy's printers raise for what they have no rule for
            raise FrontendError("symbolic size", expected="arithmetic that Python can do", got=str(expr)) from error
        numbers, symbols = self.builder.numbers, self.builder.symbols
        values = [numbers[leaf] if leaf in numbers else symbols.translate(leaf) for leaf in leaves]
        return f"lambda {', '.join(names.values())}: {body}", values

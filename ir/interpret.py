"""Runs programs of any level in the reference interpreters: one call, whatever dialects the function holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_callable,
    impl_terminator,
    register_impls,
)

from .arithmetic import Array, ScalarFunctions, dtype_of
from .errors import InterpreterError
from .graph.interpreter import Extern, GraphFunctions, elementwise_functions
from .host.interpreter import HostFunctions
from .loop.interpreter import LoopFunctions
from .memory import tensor_shape
from .shapes import symbol_ranges
from .tile.interpreter import TileFunctions, Traffic
from .tt.interpreter import CastFunctions, TritonFunctions


def symbol_names(function: func.FuncOp) -> list[str]:
    """The symbols of a function that its index arguments give, one for each."""
    count = sum(isinstance(argument.type, IndexType) for argument in function.body.block.args)
    declared = list(symbol_ranges(function))
    return [*declared, *(f"s{k}" for k in range(len(declared), count))][:count]


@register_impls
class FunctionFunctions(InterpreterFunctions):
    """Calls of functions: index arguments give the symbols their values, tensors must be as their types say.

    xDSL has interpreter functions for these ops, in a package that imports every dialect there is.
    """

    def __init__(self, symbols: dict[str, int]) -> None:
        self.symbols = symbols

    @impl_callable(func.FuncOp)
    def call_func(self, interpreter: Interpreter, op: func.FuncOp, args: PythonValues) -> PythonValues:
        outer = dict(self.symbols)
        types = op.function_type.inputs.data
        indices = [int(value) for value, type_ in zip(args, types, strict=True) if isinstance(type_, IndexType)]
        self.symbols.clear()
        self.symbols.update(zip(symbol_names(op), indices, strict=True))
        self.check(op, args)
        results = interpreter.run_ssacfg_region(op.body, args, op.sym_name.data)
        self.symbols.clear()
        self.symbols.update(outer)
        return results

    @impl(func.CallOp)
    def run_call(self, interpreter: Interpreter, op: func.CallOp, args: PythonValues) -> PythonValues:
        return interpreter.call_op(op.callee, args)

    @impl_terminator(func.ReturnOp)
    def run_return(
        self, interpreter: Interpreter, op: func.ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    def check(self, op: func.FuncOp, args: PythonValues) -> None:
        for position, (value, type_) in enumerate(zip(args, op.function_type.inputs.data, strict=True)):
            expected = () if isinstance(type_, IndexType) else tensor_shape(type_, self.symbols)
            if np.shape(value) != expected or np.asarray(value).dtype != dtype_of(type_):
                raise InterpreterError(
                    f"argument {position} of @{op.sym_name.data}",
                    expected=f"{dtype_of(type_)} of shape {expected}",
                    got=f"{np.asarray(value).dtype} of shape {np.shape(value)}",
                )


class Interpretation:
    """An interpreter that knows all levels, for one module.

    `weights` are the tensors that `graph.weight` names, `extern` runs eager ops. `traffic` lists what each launch of
    a tile kernel moved.
    """

    def __init__(
        self, module: ModuleOp, weights: Mapping[str, Array] | None = None, extern: Extern | None = None
    ) -> None:
        self.symbols: dict[str, int] = {}
        self.tile = TileFunctions()
        self.triton = TritonFunctions()
        self.interpreter = Interpreter(module)
        self.register(self.interpreter, weights, extern)

    def register(self, interpreter: Interpreter, weights: Mapping[str, Array] | None, extern: Extern | None) -> None:
        for functions in (
            FunctionFunctions(self.symbols),
            ScalarFunctions(),
            elementwise_functions(),
            GraphFunctions(self.symbols, weights or {}, extern),
            LoopFunctions(self.symbols),
            HostFunctions(self.symbols, self.tile, self.triton),
            self.tile,
            self.triton,
            CastFunctions(),
        ):
            interpreter.register_implementations(functions)

    @property
    def traffic(self) -> list[Traffic]:
        return self.tile.traffic

    def call(self, arguments: Sequence[Any], function: str = "main") -> tuple[Array, ...]:
        """The results of a function: arrays in the order of their indices. Arguments are arrays, and integers for
        symbols; those that the program writes to are written."""
        values = tuple(np.asarray(value, np.int64) if isinstance(value, int) else value for value in arguments)
        try:
            with np.errstate(all="ignore"):
                return self.interpreter.call_op(function, values)
        except Exception as error:
            if notes := getattr(error, "__notes__", None):
                del notes[1:]  # the first one shows the op at fault, the others the ops around it
            raise


def interpret(
    module: ModuleOp,
    arguments: Sequence[Any],
    function: str = "main",
    *,
    weights: Mapping[str, Array] | None = None,
    extern: Extern | None = None,
) -> tuple[Array, ...]:
    """Runs one function of a module; see `Interpretation.call`."""
    return Interpretation(module, weights, extern).call(arguments, function)


__all__ = ["Interpretation", "interpret", "symbol_names"]

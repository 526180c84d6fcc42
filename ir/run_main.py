"""`stepwell-run`: runs a function of a file in the reference interpreters and prints its results.

Like xDSL's `xdsl-run`, with our levels. It starts without torch, so that externs have nobody to run them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.tools.command_line_tool import CommandLineTool
from xdsl.utils.exceptions import ParseError, VerifyException

from .arithmetic import Array, DType, dtype_of, is_float
from .errors import InterpreterError
from .graph import DataAttr, WeightOp
from .interpret import interpret, symbol_names
from .memory import Symbols, tensor_shape
from .shapes import symbol_ranges

DEFAULT_SIZE = 4
"""What a symbol without hint is taken for, as far as its range allows."""


def value_of(attr: Attribute, type_: Attribute, symbols: Symbols) -> Array:
    """The value of an argument written as an attribute: `8 : index`, `dense<…> : tensor<…>`, `#graph.data<…>`."""
    if isinstance(attr, IntegerAttr):
        return np.asarray(attr.value.data, np.int64)
    if isinstance(attr, DataAttr):
        return attr.array.reshape(tensor_shape(type_, symbols)).copy()
    if isinstance(attr, DenseIntOrFPElementsAttr):
        return np.array(attr.get_values(), dtype_of(type_)).reshape(tensor_shape(type_, symbols))
    raise InterpreterError("--args", expected="an integer, dense elements or #graph.data", got=str(attr))


def random_value(generator: np.random.Generator, shape: Sequence[int], dtype: DType) -> Array:
    """Normal floats, integers from 0 to 9, coin flips."""
    if is_float(dtype):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 2 if dtype == np.bool_ else 10, shape).astype(dtype)


class Inputs:
    """What a function is called with: attributes as far as they are given, then numbers from a seed."""

    def __init__(self, function: FuncOp, given: Sequence[Attribute], seed: int) -> None:
        self.function = function
        self.given = iter(given)
        self.generator = np.random.default_rng(seed)
        self.symbols: dict[str, int] = {}

    def arguments(self) -> list[Array]:
        arguments = self.function.body.block.args
        names = iter(symbol_names(self.function))
        found: dict[SSAValue, Array] = {}
        for argument in sorted(arguments, key=lambda value: not isinstance(value.type, IndexType)):
            if isinstance(argument.type, IndexType):
                name = next(names)
                found[argument] = self.size(name, next(self.given, None))
                self.symbols[name] = int(found[argument])
            else:
                found[argument] = self.tensor(argument.type, next(self.given, None))
        return [found[argument] for argument in arguments]

    def size(self, name: str, given: Attribute | None) -> Array:
        if given is not None:
            return value_of(given, IndexType(), self.symbols)
        known = symbol_ranges(self.function).get(name)
        low, high, hint = (0, None, None) if known is None else (known.low, known.high, known.hint)
        likely = max(low, DEFAULT_SIZE) if hint is None else hint
        return np.asarray(likely if high is None else min(likely, high), np.int64)

    def tensor(self, type_: Attribute, given: Attribute | None) -> Array:
        if given is not None:
            return value_of(given, type_, self.symbols)
        return random_value(self.generator, tensor_shape(type_, self.symbols), dtype_of(type_))

    def weights(self) -> dict[str, Array]:
        """Random tensors for those that the function has by name."""
        found = {op.weight.data: op.type for op in self.function.walk() if isinstance(op, WeightOp)}
        return {name: self.tensor(type_, None) for name, type_ in found.items()}


def result_text(position: int, type_: Attribute, value: Array) -> str:
    text = np.array2string(np.asarray(value), separator=", ", floatmode="unique")
    return f"result {position} : {type_}\n{text}"


class RunMain(CommandLineTool):
    """The tool."""

    def __init__(self, arguments: Sequence[str] | None = None) -> None:
        from xdsl.context import Context

        self.available_frontends = {}
        self.ctx = Context()
        self.register_all_dialects()  # type: ignore[no-untyped-call]
        self.register_all_frontends()  # type: ignore[no-untyped-call]
        parser = argparse.ArgumentParser("stepwell-run", description="Run a function in the reference interpreters.")
        self.register_all_arguments(parser)
        self.args = parser.parse_args(arguments)
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument("--function", default="main", help="the function to call (main)")
        arg_parser.add_argument(
            "--args",
            default="",
            help="attributes for the arguments, separated by commas: those of type index first, then the others; "
            "arguments left out are random",
        )
        arg_parser.add_argument("--seed", type=int, default=0, help="seed of random arguments and weights (0)")

    def attributes(self) -> list[Attribute]:
        parser = Parser(self.ctx, self.args.args, "--args")
        found = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_attribute, parser.parse_attribute
        )
        return list(found or ())

    def module(self) -> ModuleOp:
        stream, extension = self.get_input_stream()
        with stream:
            parsed = self.parse_chunk(stream, extension)
        assert parsed is not None
        if not self.args.disable_verify:
            parsed.verify()
        return parsed

    def run(self) -> Iterator[str]:
        """The text of each result."""
        module = self.module()
        functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        function = functions.get(self.args.function)
        if function is None:
            raise InterpreterError(f"function @{self.args.function}", expected="a function of the module", got="none")
        inputs = Inputs(function, self.attributes(), self.args.seed)
        arguments = inputs.arguments()
        results: Sequence[Any] = interpret(module, arguments, self.args.function, weights=inputs.weights())
        for position, (type_, value) in enumerate(zip(function.function_type.outputs.data, results, strict=True)):
            yield result_text(position, type_, value)


def main() -> None:
    """Run the tool; a fault of the input is a message, not a traceback."""
    try:
        for text in RunMain().run():
            print(text)
    except (InterpreterError, ParseError, VerifyException, IndexError, RuntimeError, OSError) as error:
        sys.exit(f"stepwell-run: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()

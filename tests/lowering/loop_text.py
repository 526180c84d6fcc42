"""Reads functions of loop kernels from text and runs passes on them, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from stepwell.ir import loop
from stepwell.ir.graph import Graph
from stepwell.ir.shapes import Stepwell
from stepwell.tests.lowering.loop_evaluator import evaluate, random_arguments


def context() -> Context:
    made = Context()
    for dialect in (arith.Arith, builtin.Builtin, func.Func, math.Math, Stepwell, loop.Loop, Graph):
        made.load_dialect(dialect)
    return made


def parse(text: str) -> ModuleOp:
    """The verified module of a text."""
    module = Parser(context(), text).parse_module()
    module.verify()
    return module


def function_of(module: ModuleOp) -> FuncOp:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    return function


def kernels_of(module: ModuleOp) -> list[loop.KernelOp]:
    return [op for op in function_of(module).body.block.ops if isinstance(op, loop.KernelOp)]


def run(module: ModuleOp, passes: Sequence[type[ModulePass]]) -> None:
    """Runs passes one after the other, verifying after each."""
    for cls in passes:
        cls().apply(context(), module)
        module.verify()


def transform_and_compare(
    text: str, passes: Sequence[type[ModulePass]], symbols: dict[str, int] | None = None, rtol: float = 2e-6
) -> list[loop.KernelOp]:
    """Runs passes on a function and checks that its results stay the same; the kernels that are left."""
    before, module = parse(text), parse(text)
    run(module, passes)
    for seed in range(2):
        arguments = random_arguments(function_of(before), symbols or {}, seed)
        expected = evaluate(function_of(before), arguments, symbols)
        got = evaluate(function_of(module), arguments, symbols)
        assert got.errors == expected.errors
        for one, other in zip(got.results, expected.results, strict=True):
            np.testing.assert_allclose(one.astype("f8"), other.astype("f8"), rtol=rtol, atol=1e-6)
    return kernels_of(module)

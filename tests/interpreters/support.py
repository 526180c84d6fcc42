"""Reads programs from text, moves data between torch and NumPy, and compares results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import PythonValues
from xdsl.parser import Parser

from stepwell.ir import graph, host, loop, shapes, tile
from stepwell.ir.arithmetic import Array
from stepwell.ir.graph import Argument, Named, OperandRef
from stepwell.ir.interpret import interpret
from stepwell.lowering.pipelines import make_pass

DTYPES: dict[str, torch.dtype] = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "ui8": torch.uint8, "i1": torch.bool,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def context() -> Context:
    made = Context()
    for dialect in (
        arith.Arith, builtin.Builtin, func.Func, math.Math, shapes.Stepwell, graph.Graph, loop.Loop, tile.Tile,
        host.Host,
    ):  # fmt: skip
        made.load_dialect(dialect)
    return made


def parse(text: str) -> ModuleOp:
    """The verified module of a text."""
    module = Parser(context(), text).parse_module()
    module.verify()
    return module


def lowered(text: str, *passes: str) -> ModuleOp:
    """The module after passes, verified after each."""
    module = parse(text)
    for name in passes:
        make_pass(name).apply(context(), module)
        module.verify()
    return module


# -- data --------------------------------------------------------------------------------------------


def to_array(value: Tensor) -> Array:
    value = value.detach().resolve_conj().contiguous()
    return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if value.dtype == torch.bfloat16 else value.numpy()


def to_tensor(value: Array) -> Tensor:
    value = np.ascontiguousarray(value).reshape(np.shape(value))
    if value.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(value.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(value.copy())


def type_of(value: Tensor) -> str:
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{NAMES[value.dtype]}>"


def run(program: str | ModuleOp, *inputs: Tensor | int, **options: Any) -> list[Array]:
    """The results of a program on torch tensors and integers."""
    module = parse(program) if isinstance(program, str) else program
    arguments = [to_array(value) if isinstance(value, Tensor) else value for value in inputs]
    return list(interpret(module, arguments, **options))


def eager_extern(op: graph.ExternOp, args: PythonValues) -> Sequence[Array]:
    """Runs an extern with torch."""
    tensors = [to_tensor(value) for value in args]

    def argument(value: Argument) -> Any:
        if isinstance(value, OperandRef):
            return tensors[value.position].item() if value.item else tensors[value.position]
        assert not isinstance(value, Named)
        return [argument(item) for item in value] if isinstance(value, tuple) else value

    overload: Any = torch.ops
    for name in op.target.data.split("."):
        overload = getattr(overload, name)
    keywords = {name: argument(value) for name, value in op.arguments.data.keywords}
    result = overload(*map(argument, op.arguments.data.positional), **keywords)
    leaves = result if isinstance(result, tuple | list) else (result,)
    return [to_array(leaf) if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in leaves]


# -- comparison --------------------------------------------------------------------------------------


def assert_same(found: Array, expected: Tensor | Array, rtol: float = 0.0, *, signed_zeros: bool = True) -> None:
    """Equal with NaN equal to NaN and 0 unequal to -0, or close where eager's own functions are no better."""
    wanted = to_array(expected) if isinstance(expected, Tensor) else expected
    found = np.asarray(found)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    left, right = found.astype("f8"), wanted.astype("f8")
    np.testing.assert_allclose(left, right, rtol=rtol, atol=4e-45 if rtol else 0, equal_nan=True)
    zeros = (left == 0) & (right == 0) & signed_zeros
    np.testing.assert_array_equal(np.signbit(left[zeros]), np.signbit(right[zeros]))


Eager = Callable[..., Tensor]

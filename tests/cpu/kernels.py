"""Running tile kernels written as text: compiled to machine code, called on NumPy arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.context import Context
from xdsl.dialects import arith, builtin
from xdsl.dialects.math import Math
from xdsl.parser import Parser

from stepwell.backends.cpu.emit import emit_kernel
from stepwell.backends.cpu.target import host_target
from stepwell.backends.native.jit import NativeModule, compile_module
from stepwell.ir import tile
from stepwell.ir.shapes import Stepwell
from stepwell.ir.target import Target
from stepwell.ir.tile import Tile

Array = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}

SHAPES = ((), (64,), (4, 16))
"""Blocks that elementwise tests run on: a scalar, several registers, several rows."""

WIDTHS = (1, 2, 7, 16, 100)
"""Other numbers of lanes, for a few operations of each family."""


def parse_module(text: str) -> builtin.ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, Math, Stepwell, Tile):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def parse_kernel(text: str) -> tile.KernelOp:
    kernel = parse_module(text).body.block.first_op
    assert isinstance(kernel, tile.KernelOp)
    return kernel


class Kernel:
    """A compiled kernel; `run` takes its arguments in order, arrays and integers."""

    def __init__(self, text: str, target: Target | None = None) -> None:
        self.op = parse_kernel(text)
        self.llvm = emit_kernel(self.op, target or host_target())
        self.module: NativeModule = compile_module(self.llvm)
        self.slot = np.zeros(2, np.int64)

    def run(self, *arguments: Array | int, programs: tuple[int, int] | None = None) -> None:
        """Runs all programs or a range of them, and the finish region after all."""
        words = [self.slot.ctypes.data, *(a if isinstance(a, int) else a.ctypes.data for a in arguments)]
        packed = np.array(words, np.int64)
        low, high = programs or (0, self._call(".grid", ctypes.c_int64, packed.ctypes.data))
        self._call("", None, packed.ctypes.data, low, high)
        if self.op.finish is not None and programs is None:
            self._call(".finish", None, packed.ctypes.data)

    def _call(self, suffix: str, result: Any, *arguments: int) -> Any:
        types = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64][: len(arguments)]
        address = self.module.address(self.op.sym_name.data + suffix)
        return ctypes.CFUNCTYPE(result, *types)(address)(*arguments)

    @cached_property
    def assembly(self) -> str:
        return self.module.assembly()


def block(element: str, shape: Sequence[int]) -> str:
    """The text of a block type."""
    return f"vector<{'x'.join(map(str, shape))}x{element}>" if shape else element


def row_major(shape: Sequence[int]) -> str:
    """The text of the strides of a dense block."""
    return ", ".join(str(math.prod(shape[k + 1 :])) for k in range(len(shape)))


def elementwise_kernel(op: str, elements: Sequence[str], result: str, shape: Sequence[int]) -> str:
    """A kernel that applies `op`, written over `%0`, `%1`, … with types `{0}`, `{1}`, …, `{r}`, to flat arrays."""
    lanes = math.prod(shape)
    masked = len(shape) == 1
    strides = row_major(shape)
    mask = " mask %mask" if masked else ""
    types = {str(k): block(element, shape) for k, element in enumerate(elements)} | {"r": block(result, shape)}
    for name, type_ in types.items():
        op = op.replace(f"{{{name}}}", type_)
    loads = [
        f"%{k} = tile.load %x{k}[%i] strides ({strides}){mask} : memref<?x{element}> -> {types[str(k)]}"
        for k, element in enumerate(elements)
    ]
    buffers = "".join(f"%x{k} : memref<?x{element}>, " for k, element in enumerate(elements))
    body = "\n".join(loads)
    return f"""
    tile.kernel @elementwise({buffers}%out : memref<?x{result}>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      tile.for %i{", %mask" if masked else ""} = [0] to [s0] step {lanes} {{
        {body}
        {op}
        tile.store %r, %out[%i] strides ({strides}){mask} : {types["r"]}, memref<?x{result}>
        tile.yield
      }}
    }}"""


def apply(op: str, inputs: Sequence[Array], result: str, shape: Sequence[int], elements: Sequence[str]) -> Array:
    """The result of an elementwise operation on arrays, whose length a block of rank 2 must divide."""
    out = np.zeros(len(inputs[0]), DTYPES[result])
    Kernel(elementwise_kernel(op, elements, result, shape)).run(*inputs, out, len(out))
    return out


def same(actual: Array, expected: Array) -> bool:
    """Equal bit by bit, except that every NaN is like every other."""
    assert actual.dtype == expected.dtype
    if actual.dtype.kind in "biu":
        return bool((actual == expected).all())
    nans = np.isnan(actual) & np.isnan(expected)
    bits = f"i{actual.itemsize}"
    return bool((nans | (actual.view(bits) == expected.view(bits))).all())


def samples(element: str, count: int = 448, seed: int = 0) -> Array:
    """Values of a type: ordinary ones, and all that is special about it."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[element]
    if element == "i1":
        return random.integers(0, 2, count).astype(dtype)
    if element.startswith("i"):
        bits = int(element[1:])
        edges = np.array([0, 1, -1, 2, -2, 3, -(1 << (bits - 1)), (1 << (bits - 1)) - 1])
        drawn = np.concatenate([edges, random.integers(-20, 20, 100)])
        wide = random.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, count - len(drawn))
        return random.permutation(np.concatenate([drawn, wide]).astype(dtype))
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-6, 300.0, 65504.0])
    scaled = random.standard_normal(count - len(edges)) * 10.0 ** random.integers(-3, 4, count - len(edges))
    with np.errstate(all="ignore"):
        return random.permutation(np.concatenate([edges, scaled]).astype(dtype))

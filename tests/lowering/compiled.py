"""Compiles functions of loop kernels to machine code and calls them on torch tensors, for tests and timing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from stepwell.backends.cpu.emit import emit_kernel
from stepwell.backends.cpu.target import host_target
from stepwell.backends.native.jit import NativeModule, compile_module
from stepwell.ir import tile
from stepwell.ir.expr import Expr
from stepwell.ir.host import Host, LaunchOp
from stepwell.ir.loop import Loop
from stepwell.ir.shapes import Stepwell, sizes_of
from stepwell.ir.target import TARGET, Target, TargetAttr
from stepwell.ir.tile import Tile
from stepwell.lowering.convert.loop_to_tile import ConvertLoopToTile
from stepwell.lowering.loop.split_phases import LoopSplitPhases

Function = Callable[..., Any]

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "ui8": torch.uint8, "i1": torch.bool,
}  # fmt: skip

GUARD = 64
"""Bytes around every result that a kernel must leave alone."""

UNTOUCHED = 0xA5


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (arith.Arith, builtin.Builtin, func.Func, math.Math, Stepwell, Loop, Tile, Host):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def convert(text: str, target: Target | None = None) -> ModuleOp:
    """The module of a text with its kernels as tile kernels for this machine or another one."""
    module = parse(text)
    module.attributes[TARGET] = TargetAttr(target or host_target())
    LoopSplitPhases().apply(Context(), module)
    ConvertLoopToTile().apply(Context(), module)
    module.verify()
    return module


class Guarded:
    """Memory of a result with untouched bytes on both sides."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        size = prod(shape) * dtype.itemsize
        self.bytes = torch.full((size + 2 * GUARD,), UNTOUCHED, dtype=torch.uint8)
        self.tensor = self.bytes[GUARD : GUARD + size].view(dtype).view(tuple(shape))

    def check(self) -> None:
        for side in (self.bytes[:GUARD], self.bytes[-GUARD:]):
            assert bool((side == UNTOUCHED).all()), "a kernel wrote outside of its result"


class Native:
    """The machine code of one tile kernel."""

    def __init__(self, op: tile.KernelOp, target: Target) -> None:
        self.op = op
        self.name = op.sym_name.data
        self.llvm = emit_kernel(op, target)
        self.module: NativeModule = compile_module(self.llvm)
        self.programs = self._function("", None, 3)
        self.grid = self._function(".grid", ctypes.c_int64, 1)
        self.finish = None if op.finish is None else self._function(".finish", None, 1)

    def _function(self, suffix: str, result: Any, arguments: int) -> Function:
        types = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64][:arguments]
        function: Function = ctypes.CFUNCTYPE(result, *types)(self.module.address(self.name + suffix))
        return function


@dataclass
class Call:
    """One launch with its arguments bound."""

    native: Native
    words: Any
    keep: Sequence[object]

    @property
    def grid(self) -> int:
        return int(self.native.grid(ctypes.addressof(self.words)))

    def programs(self, low: int, high: int) -> None:
        self.native.programs(ctypes.addressof(self.words), low, high)

    def finish(self) -> None:
        if self.native.finish is not None:
            self.native.finish(ctypes.addressof(self.words))

    def run(self, parts: int = 1) -> None:
        """Runs all programs, in ranges as that many threads would take them, the last range first."""
        grid = self.grid
        for part in reversed(range(parts)):
            self.programs(grid * part // parts, grid * (part + 1) // parts)
        self.finish()


class Compiled:
    """A function of loop kernels as machine code."""

    def __init__(self, text: str, target: Target | None = None) -> None:
        self.target = target or host_target()
        self.module = convert(text, self.target)
        self.kernels = [op for op in self.module.ops if isinstance(op, tile.KernelOp)]
        self.natives = {op.sym_name.data: Native(op, self.target) for op in self.kernels}
        function = self.module.body.block.first_op
        assert isinstance(function, FuncOp)
        self.function = function

    def bind(
        self, inputs: Sequence[Tensor], symbols: Mapping[str, int] | None = None
    ) -> tuple[list[Call], list[Tensor], list[Guarded], Any]:
        """The calls, the results, their memory, and the error slot."""
        known = symbols or {}
        block = self.function.body.block
        values: dict[SSAValue, Tensor] = dict(zip(block.args, inputs, strict=False))
        slot = (ctypes.c_int64 * 2)()
        calls: list[Call] = []
        memory: list[Guarded] = []
        for op in block.ops:
            if isinstance(op, LaunchOp):
                made = [self._result(op, position, values, known) for position in range(len(op.results))]
                memory += made
                values.update(zip(op.results, [guarded.tensor for guarded in made], strict=True))
                tensors = [values[value] for value in (*op.inputs, *op.results)]
                numbers = [evaluated(expr, known) for expr in op.symbol_values]
                words = [ctypes.addressof(slot), *[tensor.data_ptr() for tensor in tensors], *numbers]
                packed = (ctypes.c_int64 * len(words))(*words)
                calls.append(Call(self.natives[op.kernel.string_value()], packed, (tensors, slot)))
        last = block.last_op
        assert last is not None
        return calls, [values[value] for value in last.operands], memory, slot

    def _result(
        self, op: LaunchOp, position: int, values: Mapping[SSAValue, Tensor], symbols: Mapping[str, int]
    ) -> Guarded:
        type_ = op.results[position].type
        shape = [evaluated(size, symbols) for size in sizes_of(type_)]
        guarded = Guarded(shape, DTYPES[str(type_.element_type)])  # type: ignore[attr-defined]
        init = op.init_of.get(position)
        if init is not None:
            guarded.tensor.copy_(values[init])
        return guarded

    def run(
        self, inputs: Sequence[Tensor], symbols: Mapping[str, int] | None = None, parts: int = 1
    ) -> tuple[list[Tensor], tuple[int, int]]:
        """The results, and what the error slot holds."""
        calls, results, memory, slot = self.bind(inputs, symbols)
        for call in calls:
            call.run(parts)
        for guarded in memory:
            guarded.check()
        return results, (slot[0], slot[1])


def evaluated(expr: Expr, symbols: Mapping[str, int]) -> int:
    return int(expr.evaluate(lambda leaf: symbols[leaf.args[0]]))

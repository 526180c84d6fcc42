"""Plans from hand-written host IR, for tests that need no frontend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from stepwell.backends.cpu.emit import emit_kernel
from stepwell.backends.native.jit import compile_modules
from stepwell.frontend.import_fx import ArgumentSource, ImportedGraph, TensorInput
from stepwell.frontend.symbols import SizeSource
from stepwell.ir import tile
from stepwell.ir.host import BufferType
from stepwell.ir.target import target_of
from stepwell.lowering.pipelines import HOST, run
from stepwell.runtime.compiler import kernel_code, make_context
from stepwell.runtime.memory import POOL
from stepwell.runtime.plan import Plan, PlanWriter

KERNELS = """
tile.kernel @add_one(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index)
    grid (s0 ceildiv 8) attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>]} {
  %p = tile.program_id : index
  %one = arith.constant dense<1.0> : vector<8xf32>
  tile.for %j, %mask = [%p * 8] to [min(%p * 8 + 8, s0)] step 8 {
    %v = tile.load %x[%j] strides (1) mask %mask : memref<?xf32> -> vector<8xf32>
    %w = arith.addf %v, %one : vector<8xf32>
    tile.store %w, %o[%j] strides (1) mask %mask : vector<8xf32>, memref<?xf32>
    tile.yield
  }
}
tile.kernel @double(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %w = arith.addf %v, %v : vector<8xf32>
  tile.store %w, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
}
tile.kernel @check(%x : memref<?xi64>, %o : memref<?xi64>) grid (1) errors ["IndexError", "index {} is out of range"] {
  %limit = arith.constant dense<4> : vector<8xi64>
  %v = tile.load %x[0] strides (1) : memref<?xi64> -> vector<8xi64>
  %ok = tile.compare slt %v, %limit : vector<8xi64>
  tile.assert %ok, %v code 1 : vector<8xi64>
  tile.store %v, %o[0] strides (1) : vector<8xi64>, memref<?xi64>
}
"""
"""Adds 1 to s0 elements; doubles 8 elements; copies 8 integers, all of which must be below 4."""


def planned(function: str, *, sizes: Sequence[SizeSource] = (), objects: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a host function in value form, given as text, over KERNELS. Every buffer argument is an input, in
    order; `sizes` are the sources of its symbols, `objects` its weights."""
    context = make_context()
    module = Parser(context, function + KERNELS).parse_module()
    module.verify()
    run(context, module, (HOST,))
    module.verify()
    func, *kernels = module.body.block.ops
    assert isinstance(func, FuncOp)
    operations = [op for op in kernels if isinstance(op, tile.KernelOp)]
    owners = compile_modules([emit_kernel(op, target_of(module)) for op in operations])
    codes = [kernel_code(op, owner) for op, owner in zip(operations, owners, strict=True)]
    buffers = [argument for argument in func.body.block.args if isinstance(argument.type, BufferType)]
    arguments: list[ArgumentSource] = [*sizes, *(TensorInput(position) for position in range(len(buffers)))]
    imported = ImportedGraph(module, tuple(arguments), (), dict(objects or {}))
    count = max(len(buffers), *(source.input + 1 for source in sizes), 0)
    return PlanWriter("inference", imported, count, {code.name: code for code in codes}, POOL, 1).write()

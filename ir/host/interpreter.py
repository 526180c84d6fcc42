"""The reference interpreter of the host level in value form, in which values are tensors and nobody owns memory.

Buffer form has no interpreter: what is left of it is the program that the runtime writes down.
"""

from __future__ import annotations

import numpy as np
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import SSAValue

from .. import host, tt
from ..arithmetic import Array, dtype_of
from ..dtypes import element_of
from ..loop.ops import scalar_type
from ..memory import Memory, Symbols, places_of, size_of, tensor_shape
from ..tile import KernelOp
from ..tile.interpreter import TileFunctions
from ..tt.interpreter import TritonFunctions


@register_impls
class HostFunctions(InterpreterFunctions):
    """`symbols` are those of the function that runs, `tile` and `triton` run the kernels that it launches."""

    def __init__(self, symbols: Symbols, tile: TileFunctions, triton: TritonFunctions) -> None:
        self.symbols = symbols
        self.tile = tile
        self.triton = triton

    @impl(host.ViewOp)
    def run_view(self, interpreter: Interpreter, op: host.ViewOp, args: PythonValues) -> PythonValues:
        memory = Memory.holding(args[0], places_of(op.source.type, self.symbols))
        places = places_of(op.result.type, self.symbols) + size_of(op.element_offset, self.symbols)
        return (memory.read(places, op.name),)

    @impl(host.LaunchOp)
    def run_launch(self, interpreter: Interpreter, op: host.LaunchOp, args: PythonValues) -> PythonValues:
        inputs, inits = args[: len(op.inputs)], dict(zip(op.init_positions, args[len(op.inputs) :], strict=True))
        buffers = [self.memory(value, array) for value, array in zip(op.inputs, inputs, strict=True)]
        results = [self.memory(result, inits.get(position)) for position, result in enumerate(op.results)]
        symbols = [size_of(expr, self.symbols) for expr in op.symbol_values]
        kernel = interpreter.get_op_for_symbol(op.kernel)
        arguments = (*buffers, *results, *symbols)
        if isinstance(kernel, tt.FuncOp):
            self.triton.run_kernel(interpreter, kernel, arguments)
        else:
            assert isinstance(kernel, KernelOp)
            self.tile.run_kernel(interpreter, kernel, arguments)
        return tuple(self.tensor(value, memory, op.name) for value, memory in zip(op.results, results, strict=True))

    def memory(self, value: SSAValue, array: Array | None) -> Memory:
        """Memory laid out as a tensor's type says, as kernels see it: integers have no signedness there."""
        places, dtype = places_of(value.type, self.symbols), dtype_of(scalar_type(element_of(value.type)))
        return Memory.spanning(places, dtype) if array is None else Memory.holding(array.view(dtype), places)

    def tensor(self, value: SSAValue, memory: Memory, writer: str) -> Array:
        """What a kernel left; a result that nobody uses is its own memory, of which it may leave parts."""
        dtype = dtype_of(value.type)
        if value.first_use is None:
            return np.zeros(tensor_shape(value.type, self.symbols), dtype)
        return memory.read(places_of(value.type, self.symbols), writer).view(dtype)


__all__ = ["HostFunctions"]

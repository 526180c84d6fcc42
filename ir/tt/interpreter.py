"""The reference interpreter of the tt level: programs run one after the other, a block at a time.

A pointer is a buffer with an offset, so that every access outside of a buffer, and every read of what was never
written, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from .. import tt
from ..arithmetic import (
    CONVERSIONS,
    F64,
    SCALARS,
    Array,
    combine,
    compare_floats,
    compare_integers,
    dtype_of,
)
from ..dtypes import BFLOAT16
from ..errors import InterpreterError, eager_error
from ..memory import Memory, Symbols, size_of
from ..shapes import SYMBOLS, MapAttr, SymbolAttr
from . import libdevice
from .ops import (
    ERROR_SHIFT,
    ERRORS,
    FLOAT_PREDICATES,
    GRID,
    INTEGER_PREDICATES,
    RECIPROCAL,
    ROUND_TO_BF16,
    CastOp,
    CombiningOp,
    shape_of,
)


def _rounded_to_bf16(values: Array) -> Array:
    return np.asarray(values.astype(dtype_of(BFLOAT16)).astype(values.dtype))


def _near_reciprocal(values: Array) -> Array:
    """A unit in the last place too large, as it may be; 0 instead of what is not normal."""
    exact = np.float32(1) / values
    return np.where(np.abs(exact) < np.finfo(np.float32).tiny, np.float32(0), np.nextafter(exact, 2 * exact))


_ASSEMBLY = {ROUND_TO_BF16: _rounded_to_bf16, RECIPROCAL: _near_reciprocal}

Ended = tuple[TerminatorValue, PythonValues]

_LIBRARY = libdevice.symbols()
_COMBINERS = {"fadd": "add", "umax": "maxu", "umin": "minu"}
"""Kinds of atomic operations → the combiners that they are, where the name is another; `exch` just writes."""


@dataclass(frozen=True)
class Pointers:
    """Places in one buffer."""

    memory: Memory
    offsets: Array


@dataclass(frozen=True)
class Descriptor:
    """An array in one buffer, and the shape of the boxes of it."""

    pointers: Pointers
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, ...]

    def box(self, places: Sequence[Array]) -> tuple[Array, Array]:
        """The offset of each lane, and the lanes that lie within the array."""
        offsets = np.broadcast_to(np.int64(self.pointers.offsets), self.shape)
        inside = np.ones(self.shape, bool)
        lanes = np.indices(self.shape)
        for k, (place, size, stride) in enumerate(zip(places, self.sizes, self.strides, strict=True)):
            index = lanes[k] + int(place)
            inside = inside & (index >= 0) & (index < size)
            offsets = offsets + index * stride
        return offsets, inside


@register_impls
class TritonFunctions(InterpreterFunctions):
    """A kernel takes a `Memory` for each buffer, then the values of its symbols."""

    def __init__(self) -> None:
        self.program = 0
        self.programs = 0

    def run_kernel(self, interpreter: Interpreter, op: tt.FuncOp, args: PythonValues) -> None:
        """Runs all programs of a kernel, as many as its grid says, and raises the error that one recorded."""
        names = symbol_names(op)
        count = len(args) - len(names)
        symbols: Symbols = {name: int(value) for name, value in zip(names, args[count:], strict=True)}
        pointers = [Pointers(memory, np.int64(0)) for memory in args[:count]]
        types = op.function_type.inputs.data[count : len(args)]
        numbers = [np.asarray(value).astype(dtype_of(type_)) for value, type_ in zip(args[count:], types, strict=True)]
        slot = Memory(np.zeros(1, np.int64), np.ones(1, bool))
        errors = error_table(op)
        extra = [Pointers(slot, np.int64(0))] if errors else []
        grid = op.attributes[GRID]
        assert isinstance(grid, MapAttr)
        self.programs = size_of(grid.results[0], symbols)
        for program in range(self.programs):
            self.program = program
            interpreter.run_ssacfg_region(op.body, (*pointers, *numbers, *extra), op.sym_name.data)
        word = int(slot.values[0])
        if word:
            exception, message = errors[(word >> ERROR_SHIFT) - 1]
            value = (word & ((1 << ERROR_SHIFT) - 1)) << (64 - ERROR_SHIFT)
            raise eager_error(exception, message, int(np.uint64(value).astype(np.int64)) >> (64 - ERROR_SHIFT))

    # control

    @impl_terminator(tt.ReturnOp)
    def run_return(self, interpreter: Interpreter, op: tt.ReturnOp, args: PythonValues) -> Ended:
        return ReturnedValues(args), ()

    @impl_terminator(tt.ReduceReturnOp)
    def run_reduce_return(self, interpreter: Interpreter, op: tt.ReduceReturnOp, args: PythonValues) -> Ended:
        return ReturnedValues(args), ()

    @impl_terminator(tt.ScanReturnOp)
    def run_scan_return(self, interpreter: Interpreter, op: tt.ScanReturnOp, args: PythonValues) -> Ended:
        return ReturnedValues(args), ()

    @impl_terminator(scf.YieldOp)
    def run_yield(self, interpreter: Interpreter, op: scf.YieldOp, args: PythonValues) -> Ended:
        return ReturnedValues(args), ()

    @impl(scf.ForOp)
    def run_for(self, interpreter: Interpreter, op: scf.ForOp, args: PythonValues) -> PythonValues:
        low, high, step, *carried = args
        values: PythonValues = tuple(carried)
        for index in range(int(low), int(high), int(step)):
            number = np.asarray(index, dtype_of(op.body.block.args[0].type))
            values = interpreter.run_ssacfg_region(op.body, (number, *values), "for")
        return values

    @impl(tt.GetProgramIdOp)
    def run_program(self, interpreter: Interpreter, op: tt.GetProgramIdOp, args: PythonValues) -> PythonValues:
        return (np.int32(self.program),)

    @impl(tt.GetNumProgramsOp)
    def run_programs(self, interpreter: Interpreter, op: tt.GetNumProgramsOp, args: PythonValues) -> PythonValues:
        return (np.int32(self.programs),)

    # shapes

    @impl(tt.MakeRangeOp)
    def run_range(self, interpreter: Interpreter, op: tt.MakeRangeOp, args: PythonValues) -> PythonValues:
        return (np.arange(op.start.value.data, op.end.value.data, dtype=np.int32),)

    @impl(tt.SplatOp)
    def run_splat(self, interpreter: Interpreter, op: tt.SplatOp, args: PythonValues) -> PythonValues:
        return (on_places(args[0], lambda value: np.broadcast_to(value, shape_of(op.result.type))),)

    @impl(tt.BroadcastOp)
    def run_broadcast(self, interpreter: Interpreter, op: tt.BroadcastOp, args: PythonValues) -> PythonValues:
        return (on_places(args[0], lambda value: np.broadcast_to(value, shape_of(op.result.type))),)

    @impl(tt.ExpandDimsOp)
    def run_expand(self, interpreter: Interpreter, op: tt.ExpandDimsOp, args: PythonValues) -> PythonValues:
        return (on_places(args[0], lambda value: np.expand_dims(value, op.axis.value.data)),)

    @impl(tt.TransOp)
    def run_trans(self, interpreter: Interpreter, op: tt.TransOp, args: PythonValues) -> PythonValues:
        return (on_places(args[0], lambda value: value.transpose(op.dims)),)

    # memory

    @impl(tt.AddPtrOp)
    def run_addptr(self, interpreter: Interpreter, op: tt.AddPtrOp, args: PythonValues) -> PythonValues:
        pointers, offset = args
        return (Pointers(pointers.memory, pointers.offsets + np.asarray(offset).astype(np.int64)),)

    @impl(tt.LoadOp)
    def run_load(self, interpreter: Interpreter, op: tt.LoadOp, args: PythonValues) -> PythonValues:
        pointers, *rest = args
        places = np.asarray(pointers.offsets)
        active = np.broadcast_to(rest[0] if rest else True, places.shape)
        other = rest[1] if len(rest) > 1 else 0
        result = np.broadcast_to(other, places.shape).astype(dtype_of(op.result.type))
        result[active] = pointers.memory.read(places[active], op.name)
        return (result,)

    @impl(tt.StoreOp)
    def run_store(self, interpreter: Interpreter, op: tt.StoreOp, args: PythonValues) -> PythonValues:
        pointers, value, *mask = args
        places = np.asarray(pointers.offsets)
        active = np.broadcast_to(mask[0] if mask else True, places.shape)
        pointers.memory.write(places[active], np.broadcast_to(value, places.shape)[active], op.name)
        return ()

    @impl(tt.AtomicRMWOp)
    def run_atomic(self, interpreter: Interpreter, op: tt.AtomicRMWOp, args: PythonValues) -> PythonValues:
        pointers, value, *mask = args
        places = np.asarray(pointers.offsets)
        active = np.broadcast_to(mask[0] if mask else True, places.shape)
        result = np.zeros(places.shape, dtype_of(op.result.type))
        for lane in zip(*np.nonzero(np.atleast_1d(active)), strict=True):
            at = lane if places.shape else ()
            held = pointers.memory.read(places[at], op.name)
            result[at] = held
            new = np.broadcast_to(value, places.shape)[at]
            if op.kind != "exch":
                new = combine(_COMBINERS.get(op.kind, op.kind), [np.asarray(held)], [np.asarray(new)])[0]
            pointers.memory.write(places[at], new, op.name)
        return (result,)

    @impl(tt.MakeDescriptorOp)
    def run_descriptor(self, interpreter: Interpreter, op: tt.MakeDescriptorOp, args: PythonValues) -> PythonValues:
        base, *numbers = args
        count = len(op.sizes)
        sizes, strides = tuple(map(int, numbers[:count])), tuple(map(int, numbers[count:]))
        return (Descriptor(base, sizes, strides, shape_of(op.result.type.block)),)

    @impl(tt.DescriptorLoadOp)
    def run_load_box(self, interpreter: Interpreter, op: tt.DescriptorLoadOp, args: PythonValues) -> PythonValues:
        descriptor, *places = args
        offsets, inside = descriptor.box(places)
        result = np.zeros(offsets.shape, dtype_of(op.result.type))
        result[inside] = descriptor.pointers.memory.read(offsets[inside], op.name)
        return (result,)

    @impl(tt.DescriptorStoreOp)
    def run_store_box(self, interpreter: Interpreter, op: tt.DescriptorStoreOp, args: PythonValues) -> PythonValues:
        descriptor, value, *places = args
        offsets, inside = descriptor.box(places)
        descriptor.pointers.memory.write(offsets[inside], value[inside], op.name)
        return ()

    @impl(tt.ReshapeOp)
    def run_reshape(self, interpreter: Interpreter, op: tt.ReshapeOp, args: PythonValues) -> PythonValues:
        return (on_places(args[0], lambda value: value.reshape(shape_of(op.result.type))),)

    @impl(tt.SplitOp)
    def run_split(self, interpreter: Interpreter, op: tt.SplitOp, args: PythonValues) -> PythonValues:
        return args[0][..., 0], args[0][..., 1]

    # values

    @impl(tt.CmpIOp)
    def run_cmpi(self, interpreter: Interpreter, op: tt.CmpIOp, args: PythonValues) -> PythonValues:
        return (compare_integers(INTEGER_PREDICATES[op.predicate.value.data], *args),)

    @impl(tt.CmpFOp)
    def run_cmpf(self, interpreter: Interpreter, op: tt.CmpFOp, args: PythonValues) -> PythonValues:
        return (compare_floats(FLOAT_PREDICATES[op.predicate.value.data], *args),)

    @impl(tt.SelectOp)
    def run_select(self, interpreter: Interpreter, op: tt.SelectOp, args: PythonValues) -> PythonValues:
        condition, first, second = args
        if isinstance(first, Pointers) and not np.ndim(condition):
            return (first if condition else second,)
        return (np.where(*args),)

    @impl(tt.BitcastOp)
    def run_bitcast(self, interpreter: Interpreter, op: tt.BitcastOp, args: PythonValues) -> PythonValues:
        return (np.asarray(args[0]).view(dtype_of(op.result.type)),)

    @impl(tt.MulhiUIOp)
    def run_mulhiui(self, interpreter: Interpreter, op: tt.MulhiUIOp, args: PythonValues) -> PythonValues:
        lhs, rhs = (np.asarray(value).view(np.uint32).astype(np.uint64) for value in args)
        return ((lhs * rhs >> np.uint64(32)).astype(np.uint32).view(np.int32),)

    @impl(tt.PreciseSqrtOp)
    def run_sqrt(self, interpreter: Interpreter, op: tt.PreciseSqrtOp, args: PythonValues) -> PythonValues:
        return (np.sqrt(args[0]),)

    @impl(tt.PreciseDivFOp)
    def run_divide(self, interpreter: Interpreter, op: tt.PreciseDivFOp, args: PythonValues) -> PythonValues:
        return (np.divide(*args),)

    @impl(tt.ExternElementwiseOp)
    def run_extern(self, interpreter: Interpreter, op: tt.ExternElementwiseOp, args: PythonValues) -> PythonValues:
        function = _LIBRARY.get(op.symbol.data)
        if function is None:
            raise InterpreterError(op.name, expected="a function of libdevice that is known", got=op.symbol.data)
        return (SCALARS[function](op, *args),)

    @impl(tt.InlineAsmOp)
    def run_assembly(self, interpreter: Interpreter, op: tt.InlineAsmOp, args: PythonValues) -> PythonValues:
        function = _ASSEMBLY.get(op.asm_string.data)
        if function is None:
            raise InterpreterError(op.name, expected="PTX that is known", got=op.asm_string.data)
        return (function(np.asarray(args[0])),)

    @impl(tt.DotOp)
    def run_dot(self, interpreter: Interpreter, op: tt.DotOp, args: PythonValues) -> PythonValues:
        lhs, rhs, addend = (np.asarray(value).astype(F64) for value in args)
        return ((lhs @ rhs + addend).astype(dtype_of(op.d.type)),)

    # combinations

    @impl(tt.ReduceOp)
    def run_reduce(self, interpreter: Interpreter, op: tt.ReduceOp, args: PythonValues) -> PythonValues:
        values = [np.moveaxis(value, op.axis.value.data, 0) for value in args]
        while len(values[0]) > 1:
            half = len(values[0]) // 2
            values = self.combined(
                interpreter, op, [value[:half] for value in values], [value[half:] for value in values]
            )
        return tuple(value[0] for value in values)

    @impl(tt.ScanOp)
    def run_scan(self, interpreter: Interpreter, op: tt.ScanOp, args: PythonValues) -> PythonValues:
        axis, backwards = op.axis.value.data, -1 if op.reverse.value.data else 1
        values = [np.moveaxis(value, axis, 0)[::backwards].copy() for value in args]
        distance = 1
        while distance < len(values[0]):
            left, right = [value[:-distance] for value in values], [value[distance:] for value in values]
            for value, new in zip(values, self.combined(interpreter, op, left, right), strict=True):
                value[distance:] = new
            distance *= 2
        return tuple(np.moveaxis(value[::backwards], 0, axis) for value in values)

    def combined(
        self, interpreter: Interpreter, op: CombiningOp, left: Sequence[Array], right: Sequence[Array]
    ) -> list[Array]:
        """The region of a combination on many lanes at once."""
        return list(interpreter.run_ssacfg_region(op.body, (*left, *right), op.name))


def _cast(kind: str) -> Callable[..., PythonValues]:
    def run(_: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
        return (CONVERSIONS[kind](args[0], dtype_of(op.results[0].type)),)

    return run


_CASTS: tuple[type[CastOp], ...] = (
    tt.ExtSIOp, tt.ExtUIOp, tt.TruncIOp, tt.SIToFPOp, tt.UIToFPOp, tt.FPToSIOp, tt.FPToUIOp
)  # fmt: skip

CastFunctions: type[InterpreterFunctions] = register_impls(
    type("CastFunctions", (InterpreterFunctions,), {op.name: impl(op)(_cast(op.name[3:])) for op in _CASTS})
)
"""The casts that stand for those of `arith`."""


def on_places(value: Array | Pointers, function: Callable[[Array], Array]) -> Array | Pointers:
    """A function of arrays on values, or on the offsets of pointers."""
    if isinstance(value, Pointers):
        return Pointers(value.memory, function(value.offsets))
    return function(np.asarray(value))


def symbol_names(op: tt.FuncOp) -> list[str]:
    """The symbols whose values a kernel takes behind its pointers."""
    declared = op.attributes.get(SYMBOLS)
    known = declared.data if isinstance(declared, ArrayAttr) else ()
    return [attr.data.name for attr in known if isinstance(attr, SymbolAttr)]


def error_table(op: tt.FuncOp) -> list[tuple[str, str]]:
    """Exception and message of each code, from 1 on."""
    listed = op.attributes.get(ERRORS)
    texts = [attr.data for attr in listed if isinstance(attr, StringAttr)] if isinstance(listed, ArrayAttr) else []
    return list(zip(texts[::2], texts[1::2], strict=True))


__all__ = ["CastFunctions", "TritonFunctions"]

"""The reference interpreter of the tile level: programs run one after the other, on flat memory.

Lanes that a mask excludes touch nothing; every other access must lie within its buffer and read only what was
written. What a kernel moves is counted, so that models of it can be checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
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

from .. import tile
from ..arithmetic import (
    CONVERSIONS,
    F64,
    Array,
    combine,
    compare_floats,
    compare_integers,
    dtype_of,
    is_float,
    philox,
)
from ..errors import InterpreterError, eager_error
from ..expr import Atom, Expr
from ..memory import Memory, Symbols, size_of
from .ops import BlockAccessOp, shape_of

Mask: TypeAlias = Array
"""Which lanes of a block take part."""


@dataclass
class Traffic:
    """What one launch moved: bytes of all loads and stores of active lanes, and for each buffer argument the bytes of
    the distinct elements that were loaded and stored."""

    kernel: str
    loaded: int = 0
    stored: int = 0
    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()


@dataclass
class Tracked:
    """A buffer with notes of which elements programs touched."""

    memory: Memory
    loaded: Array
    stored: Array

    @staticmethod
    def of(memory: Memory) -> Tracked:
        return Tracked(memory, np.zeros(len(memory.values), bool), np.zeros(len(memory.values), bool))

    def bytes_of(self, touched: Array) -> int:
        return int(touched.sum()) * int(self.memory.values.itemsize)


@dataclass
class Launch:
    """One running kernel."""

    traffic: Traffic
    symbols: Symbols
    programs: int
    errors: tuple[tuple[str, str], ...]
    program: int | None = None
    error: Exception | None = None


@register_impls
class TileFunctions(InterpreterFunctions):
    """A kernel takes a `Memory` for each buffer, then the values of its symbols."""

    def __init__(self) -> None:
        self.launch: Launch | None = None
        self.traffic: list[Traffic] = []

    @property
    def running(self) -> Launch:
        if self.launch is None:
            raise InterpreterError("tile", expected="ops within a kernel that is launched", got="none is running")
        return self.launch

    # kernels

    def run_kernel(self, interpreter: Interpreter, op: tile.KernelOp, args: PythonValues) -> None:
        """Runs all programs of a kernel and then its finish region."""
        count = len(args) - len(op.symbols)
        symbols = {known.name: int(value) for known, value in zip(op.symbols, args[count:], strict=True)}
        buffers = [Tracked.of(memory) for memory in args[:count]]
        values = (*buffers, *(np.asarray(value, np.int64) for value in args[count:]))
        launch = Launch(Traffic(op.sym_name.data), symbols, size_of(op.grid_size, symbols), op.error_table)
        self.launch = launch
        for program in range(launch.programs):
            launch.program = program
            interpreter.run_ssacfg_region(op.body, values, op.sym_name.data)
        launch.program = None
        if op.finish is not None:
            interpreter.run_ssacfg_region(op.finish, values, op.sym_name.data)
        self.launch = None
        launch.traffic.read = tuple(buffer.bytes_of(buffer.loaded) for buffer in buffers)
        launch.traffic.written = tuple(buffer.bytes_of(buffer.stored) for buffer in buffers)
        self.traffic.append(launch.traffic)
        if launch.error is not None:
            raise launch.error

    @impl(tile.ProgramIdOp)
    def run_program_id(self, interpreter: Interpreter, op: tile.ProgramIdOp, args: PythonValues) -> PythonValues:
        if self.running.program is None:
            raise InterpreterError(op.name, expected="a program that runs", got="the finish region")
        return (np.asarray(self.running.program),)

    @impl(tile.GridSizeOp)
    def run_grid_size(self, interpreter: Interpreter, op: tile.GridSizeOp, args: PythonValues) -> PythonValues:
        return (np.asarray(self.running.programs),)

    @impl(tile.ChooseOp)
    def run_choose(self, interpreter: Interpreter, op: tile.ChooseOp, args: PythonValues) -> PythonValues:
        return (args[1 + int(args[0])],)

    # loops

    @impl(tile.ForOp)
    def run_for(self, interpreter: Interpreter, op: tile.ForOp, args: PythonValues) -> PythonValues:
        indices, carried = args[: len(op.indices)], args[len(op.indices) :]
        low, high = (int(self.value(bound, indices)) for bound in op.bounds.results)
        for index in range(low, high, op.lanes):
            mask = () if op.mask is None else (index + np.arange(op.lanes) < high,)
            carried = interpreter.run_ssacfg_region(op.body, (np.asarray(index), *mask, *carried), "for")
        return carried

    @impl_terminator(tile.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: tile.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    def value(self, expr: Expr, indices: Sequence[Array]) -> Array:
        """An expression over index values and symbols."""

        def leaf(atom: Atom) -> Array:
            return self.running.symbols[atom.args[0]] if atom.kind == "symbol" else indices[atom.args[0]]

        return np.asarray(expr.evaluate(leaf), np.int64)

    # memory

    @impl(tile.ScratchOp)
    def run_scratch(self, interpreter: Interpreter, op: tile.ScratchOp, args: PythonValues) -> PythonValues:
        return (Tracked.of(Memory.unset(int(op.size.value.data), dtype_of(op.buffer.type))),)

    def lanes(self, op: BlockAccessOp, indices: Sequence[Array], shape: Sequence[int]) -> Array:
        """The element that each lane addresses."""
        place = np.broadcast_to(self.value(op.offset, indices), shape)
        for dim, stride in enumerate(op.lane_strides):
            lane = np.arange(shape[dim]).reshape(-1, *[1] * (len(shape) - dim - 1))
            place = place + lane * self.value(stride, ())
        return place

    def load(self, op: Operation, buffer: Tracked, places: Array, mask: Mask, other: Array) -> Array:
        active = np.broadcast_to(mask, places.shape)
        result = np.broadcast_to(other, places.shape).astype(dtype_of(op.results[0].type))
        result[active] = buffer.memory.read(places[active], op.name)
        buffer.loaded[places[active]] = True
        self.running.traffic.loaded += int(active.sum()) * result.itemsize
        return result

    def store(
        self, op: Operation, value: Array, buffer: Tracked, places: Array, mask: Mask, combiner: str | None
    ) -> None:
        active = np.broadcast_to(mask, places.shape)
        places, values = places[active], np.broadcast_to(value, active.shape)[active]
        if combiner is None:
            buffer.memory.write(places, values, op.name)
        else:
            for place, one in zip(places, values, strict=True):
                held = buffer.memory.read(place, op.name)
                buffer.memory.write(place, combine(combiner, [held], [one])[0], op.name)
        buffer.stored[places] = True
        self.running.traffic.stored += values.size * values.itemsize

    @impl(tile.LoadOp)
    def run_load(self, interpreter: Interpreter, op: tile.LoadOp, args: PythonValues) -> PythonValues:
        buffer, rest = args[0], args[1:]
        indices, rest = rest[: len(op.indices)], rest[len(op.indices) :]
        places = self.lanes(op, indices, shape_of(op.result.type))
        return (self.load(op, buffer, places, *_mask_and_other(op.mask is not None, rest)),)

    @impl(tile.StoreOp)
    def run_store(self, interpreter: Interpreter, op: tile.StoreOp, args: PythonValues) -> PythonValues:
        value, buffer, *rest = args
        indices, rest = rest[: len(op.indices)], rest[len(op.indices) :]
        places = self.lanes(op, indices, shape_of(op.value.type))
        combiner = None if op.combiner is None else op.combiner.data
        self.store(op, value, buffer, places, rest[0] if rest else True, combiner)
        return ()

    @impl(tile.GatherOp)
    def run_gather(self, interpreter: Interpreter, op: tile.GatherOp, args: PythonValues) -> PythonValues:
        buffer, offsets, *rest = args
        return (self.load(op, buffer, np.asarray(offsets), *_mask_and_other(op.mask is not None, rest)),)

    @impl(tile.ScatterOp)
    def run_scatter(self, interpreter: Interpreter, op: tile.ScatterOp, args: PythonValues) -> PythonValues:
        value, buffer, offsets, *rest = args
        combiner = None if op.combiner is None else op.combiner.data
        self.store(op, value, buffer, np.asarray(offsets), rest[0] if rest else True, combiner)
        return ()

    def box(self, op: tile.BoxOp, indices: Sequence[Array], shape: Sequence[int]) -> tuple[Array, Mask]:
        """The element that each lane of a box addresses, and the lanes that lie within the array."""
        place = np.broadcast_to(self.value(op.array_start, ()), shape)
        inside = np.ones(shape, bool)
        lead = len(op.places) - len(shape)
        for position, parts in enumerate(zip(op.places, op.sizes, op.array_strides, strict=True)):
            first, size, stride = self.value(parts[0], indices), self.value(parts[1], ()), self.value(parts[2], ())
            if not 0 <= first < size:
                raise InterpreterError(op.name, expected=f"a place below {size}", got=str(first))
            lanes = np.indices(shape)[position - lead] if position >= lead else np.int64(0)
            inside = inside & (first + lanes < size)
            place = place + (first + lanes) * stride
        return place, inside

    @impl(tile.LoadBoxOp)
    def run_load_box(self, interpreter: Interpreter, op: tile.LoadBoxOp, args: PythonValues) -> PythonValues:
        buffer, *indices = args
        return (self.load(op, buffer, *self.box(op, indices, shape_of(op.result.type)), np.asarray(0)),)

    @impl(tile.StoreBoxOp)
    def run_store_box(self, interpreter: Interpreter, op: tile.StoreBoxOp, args: PythonValues) -> PythonValues:
        value, buffer, *indices = args
        self.store(op, value, buffer, *self.box(op, indices, shape_of(op.value.type)), None)
        return ()

    # blocks

    @impl(tile.DotOp)
    def run_dot(self, interpreter: Interpreter, op: tile.DotOp, args: PythonValues) -> PythonValues:
        lhs, rhs, addend = (np.asarray(value).astype(F64) for value in args)
        return ((lhs @ rhs + addend).astype(dtype_of(op.result.type)),)

    @impl(tile.HalvesOp)
    def run_halves(self, interpreter: Interpreter, op: tile.HalvesOp, args: PythonValues) -> PythonValues:
        low, high = np.split(args[0], 2, axis=-1)
        return low, high

    @impl(tile.IndexOp)
    def run_index(self, interpreter: Interpreter, op: tile.IndexOp, args: PythonValues) -> PythonValues:
        return (self.value(op.access.results[0], args).astype(dtype_of(op.result.type)),)

    @impl(tile.IotaOp)
    def run_iota(self, interpreter: Interpreter, op: tile.IotaOp, args: PythonValues) -> PythonValues:
        shape, dimension = shape_of(op.result.type), op.dimension.value.data
        return (np.indices(shape)[dimension].astype(dtype_of(op.result.type)),)

    @impl(tile.BroadcastOp)
    def run_broadcast(self, interpreter: Interpreter, op: tile.BroadcastOp, args: PythonValues) -> PythonValues:
        shape = shape_of(op.result.type)
        order = np.argsort(op.dim_list)
        placed = [size if dim in op.dim_list else 1 for dim, size in enumerate(shape)]
        return (np.broadcast_to(np.asarray(args[0]).transpose(order).reshape(placed), shape),)

    @impl(tile.TransposeOp)
    def run_transpose(self, interpreter: Interpreter, op: tile.TransposeOp, args: PythonValues) -> PythonValues:
        return (args[0].T,)

    @impl(tile.CompareOp)
    def run_compare(self, interpreter: Interpreter, op: tile.CompareOp, args: PythonValues) -> PythonValues:
        compare = compare_floats if is_float(dtype_of(op.lhs.type)) else compare_integers
        return (compare(op.predicate.data, *args),)

    @impl(tile.SelectOp)
    def run_select(self, interpreter: Interpreter, op: tile.SelectOp, args: PythonValues) -> PythonValues:
        return (np.where(*args),)

    @impl(tile.ConvertOp)
    def run_convert(self, interpreter: Interpreter, op: tile.ConvertOp, args: PythonValues) -> PythonValues:
        return (CONVERSIONS[op.kind.data](args[0], dtype_of(op.result.type)),)

    @impl(tile.ReduceOp)
    def run_reduce(self, interpreter: Interpreter, op: tile.ReduceOp, args: PythonValues) -> PythonValues:
        lanes = [np.moveaxis(value, op.dimension.value.data, 0) for value in args]
        total: Sequence[Array] = [value[0] for value in lanes]
        for lane in range(1, len(lanes[0])):
            total = combine(op.combiner.data, total, [value[lane] for value in lanes])
        return tuple(total)

    @impl(tile.ScanOp)
    def run_scan(self, interpreter: Interpreter, op: tile.ScanOp, args: PythonValues) -> PythonValues:
        result = np.moveaxis(args[0].copy(), op.dimension.value.data, 0)
        for lane in range(1, len(result)):
            result[lane] = combine(op.combiner.data, [result[lane - 1]], [result[lane]])[0]
        return (np.moveaxis(result, 0, op.dimension.value.data),)

    @impl(tile.PrefetchOp)
    def run_prefetch(self, interpreter: Interpreter, op: tile.PrefetchOp, args: PythonValues) -> PythonValues:
        return ()

    @impl(tile.AssertOp)
    def run_assert(self, interpreter: Interpreter, op: tile.AssertOp, args: PythonValues) -> PythonValues:
        condition, value, *mask = args
        failed = ~np.asarray(condition) & (mask[0] if mask else True)
        if failed.any() and self.running.error is None:
            exception, message = self.running.errors[op.code.value.data - 1]
            self.running.error = eager_error(exception, message, int(np.asarray(value)[failed].flat[0]))
        return ()

    @impl(tile.PhiloxOp)
    def run_philox(self, interpreter: Interpreter, op: tile.PhiloxOp, args: PythonValues) -> PythonValues:
        seed, counter = args
        return (philox(seed, counter, op.stream.value.data),)


def _mask_and_other(masked: bool, operands: Sequence[Array]) -> tuple[Mask, Array]:
    """The trailing operands of a load, with what stands for those not given."""
    mask, rest = (operands[0], operands[1:]) if masked else (True, operands)
    return mask, rest[0] if rest else 0


__all__ = ["TileFunctions", "Traffic"]

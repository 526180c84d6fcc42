"""The reference interpreter of the loop level: a nest runs for all of its indices at once.

A scalar is an array over the indices of the nests around it. The dims of an inner nest stand before those of outer
ones, so that values of outer nests broadcast by NumPy's own rule. What the level forbids is an error here: a read
outside of a tensor or of an element that nobody wrote, two iterations that write one element, a result not written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType
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
from xdsl.ir import Operation, SSAValue

from .. import loop
from ..arithmetic import Array, DType, combine, dtype_of, is_float, philox, rounded
from ..combiners import COMBINERS, Combiner, identity_value, last_index
from ..errors import InterpreterError, eager_error
from ..expr import Atom, Expr
from ..memory import Symbols, shape_of, tensor_shape
from .ops import AccessOp, NestOp

Shape: TypeAlias = tuple[int, ...]


@dataclass
class Buffer:
    """Elements that a kernel writes. The trailing dims of a local are the space in which it stands: one each."""

    values: Array
    written: Array
    space: Shape = ()
    rewritable: bool = True

    @staticmethod
    def holding(values: Array, dtype: DType) -> Buffer:
        """One that is written already."""
        return Buffer(values.view(dtype), np.ones(values.shape, bool))

    @staticmethod
    def unset(shape: Shape, dtype: DType, space: Shape = (), *, rewritable: bool = True) -> Buffer:
        return Buffer(np.zeros((*shape, *space), dtype), np.zeros((*shape, *space), bool), space, rewritable)


# -- reductions --------------------------------------------------------------------------------------


def _identity(combiner: Combiner, dtypes: Sequence[DType], types: Sequence[SSAValue], shape: Shape) -> list[Array]:
    numbers = [identity_value(combiner, types[0].type), *(last_index(value.type) for value in types[1:])]
    return [np.full(shape, number, dtype) for number, dtype in zip(numbers, dtypes, strict=False)]


def _folded(combiner: Combiner, values: Sequence[Array]) -> list[Array]:
    """Combines along the leading dim, which is not empty, by halves."""
    values = list(values)
    while (count := len(values[0])) > 1:
        half = count // 2
        both = combine(combiner.name, [v[:half] for v in values], [v[half : 2 * half] for v in values])
        values = [np.concatenate([new, old[2 * half :]]) for new, old in zip(both, values, strict=True)]
    return [value[0] for value in values]


def _accumulated(combiner: Combiner, value: Array) -> Array:
    """A sum or product of floats along the leading dim, in f64 and rounded once: as good as any order of adding."""
    total = np.sum if combiner.name == "add" else np.prod
    return rounded(total(value.astype(np.float64), axis=0), value.dtype)


# -- the level ---------------------------------------------------------------------------------------


@register_impls
class LoopFunctions(InterpreterFunctions):
    """`symbols` are those of the function that runs, `space` the extents of the nests around, inner ones first."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.space: Shape = ()
        self.error: Exception | None = None

    # kernels

    @impl(loop.KernelOp)
    def run_kernel(self, interpreter: Interpreter, op: loop.KernelOp, args: PythonValues) -> PythonValues:
        inits = dict(zip(op.init_positions, args, strict=True))
        destinations = [self.destination(result, inits.get(k)) for k, result in enumerate(op.results)]
        self.error = None
        interpreter.run_ssacfg_region(op.body, tuple(destinations), "kernel")
        if self.error is not None:
            raise self.error
        for position, buffer in enumerate(destinations):
            if not buffer.written.all():
                place = tuple(int(index) for index in np.argwhere(~buffer.written)[0])
                raise InterpreterError(
                    f"kernel {op.kernel_name.data}",
                    expected=f"a write of every element of result {position}",
                    got=f"none of {place}",
                )
        return tuple(
            buffer.values.view(dtype_of(result.type)) for buffer, result in zip(destinations, op.results, strict=True)
        )

    def destination(self, result: SSAValue, init: Array | None) -> Buffer:
        if init is not None:
            return Buffer.holding(init.copy(), _scalar_dtype(result))
        return Buffer.unset(tensor_shape(result.type, self.symbols), _scalar_dtype(result), rewritable=False)

    # nests

    @contextmanager
    def inside(self, op: NestOp) -> Iterator[tuple[Array, ...]]:
        """The indices of a nest, while its dims are part of the space."""
        outer, extents = self.space, shape_of(op.sizes, self.symbols)
        self.space = (*extents, *outer)
        try:
            yield tuple(_along(self.space, position) for position in range(len(extents)))
        finally:
            self.space = outer

    def everywhere(self, value: Array) -> Array:
        """The value for each iteration."""
        return np.broadcast_to(value, self.space)

    @impl(loop.ParallelOp)
    def run_parallel(self, interpreter: Interpreter, op: loop.ParallelOp, args: PythonValues) -> PythonValues:
        with self.inside(op) as indices:
            interpreter.run_ssacfg_region(op.body, indices, "parallel")
        return ()

    @impl(loop.ReduceOp)
    def run_reduce(self, interpreter: Interpreter, op: loop.ReduceOp, args: PythonValues) -> PythonValues:
        with self.inside(op) as indices:
            yielded = interpreter.run_ssacfg_region(op.body, indices, "reduce")
            shape = (math.prod(self.space[: op.rank]), *self.space[op.rank :])
            values = [self.everywhere(value).reshape(shape) for value in yielded]
        results: list[Array] = []
        for name in op.combiner_names:
            group = slice(len(results), len(results) + COMBINERS[name].arity)
            results += self.reduced(COMBINERS[name], values[group], op.results[group])
        return tuple(results)

    def reduced(self, combiner: Combiner, values: Sequence[Array], results: Sequence[SSAValue]) -> list[Array]:
        dtypes = [value.dtype for value in values]
        if not len(values[0]):
            return _identity(combiner, dtypes, results, self.space)
        if combiner.name in ("add", "mul") and is_float(dtypes[0]):
            return [_accumulated(combiner, values[0])]
        return _folded(combiner, values)

    @impl(loop.ForOp)
    def run_for(self, interpreter: Interpreter, op: loop.ForOp, args: PythonValues) -> PythonValues:
        (count,) = shape_of(op.sizes, self.symbols)
        for index in range(count):
            args = interpreter.run_ssacfg_region(op.body, (np.asarray(index), *args), "for")
        return args

    @impl_terminator(loop.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: loop.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    # accesses

    @impl(loop.LocalOp)
    def run_local(self, interpreter: Interpreter, op: loop.LocalOp, args: PythonValues) -> PythonValues:
        return (Buffer.unset(shape_of(op.sizes, self.symbols), _scalar_dtype(op.buffer), self.space),)

    def places(self, op: AccessOp, indices: Sequence[Array], space: Shape = ()) -> list[Array]:
        """Where the op's map leads for each iteration, then the iteration itself for a buffer of that space."""

        def leaf(atom: Atom) -> Array:
            return self.symbols[atom.args[0]] if atom.kind == "symbol" else indices[atom.args[0]]

        def value(expr: Expr) -> Array:
            return np.asarray(expr.evaluate(leaf), np.int64)

        own = [_along(self.space, len(self.space) - len(space) + k) for k in range(len(space))]
        return [self.everywhere(place) for place in (*map(value, op.map.results), *own)]

    @impl(loop.ReadOp)
    def run_read(self, interpreter: Interpreter, op: loop.ReadOp, args: PythonValues) -> PythonValues:
        source, *rest = args
        count = len(op.indices)
        guard, other = rest[count:] if op.guard is not None else (True, None)
        dtype = _scalar_dtype(op.source)
        buffer = source if isinstance(source, Buffer) else Buffer.holding(source, dtype)
        places = self.places(op, rest[:count], buffer.space)
        active = self.everywhere(guard)
        _check_inside(op, places, buffer.values.shape, active)
        safe = tuple(np.where(active, place, 0) for place in places)
        if not active.any():
            return (self.everywhere(dtype.type(0) if other is None else other),)
        if not (buffer.written[safe] | ~active).all():
            raise InterpreterError(str(op), expected="an element that was written before", got="one that was not")
        read = self.everywhere(buffer.values[safe])
        return (read if other is None else np.where(active, read, other),)

    @impl(loop.WriteOp)
    def run_write(self, interpreter: Interpreter, op: loop.WriteOp, args: PythonValues) -> PythonValues:
        value, buffer, *indices = args
        places = self.places(op, indices, buffer.space)
        _check_inside(op, places, buffer.values.shape, self.everywhere(True))
        flat = _flattened(places, buffer.values.shape)
        stored = self.everywhere(value).reshape(-1)
        if op.combiner is None:
            self.overwrite(op, buffer, flat, stored)
        else:
            _combine_into(op.combiner.data, buffer.values, flat, stored)
        return ()

    def overwrite(self, op: loop.WriteOp, buffer: Buffer, flat: Array, stored: Array) -> None:
        again = len(np.unique(flat)) != len(flat) or (not buffer.rewritable and buffer.written.reshape(-1)[flat].any())
        if again:
            raise InterpreterError(str(op), expected="one write of each element", got="a second one")
        buffer.values.reshape(-1)[flat] = stored
        buffer.written.reshape(-1)[flat] = True

    # scalars

    @impl(loop.IndexOp)
    def run_index(self, interpreter: Interpreter, op: loop.IndexOp, args: PythonValues) -> PythonValues:
        return (self.places(op, args)[0],)

    @impl(loop.AssertOp)
    def run_assert(self, interpreter: Interpreter, op: loop.AssertOp, args: PythonValues) -> PythonValues:
        condition, value = map(self.everywhere, args)
        if self.error is None and not condition.all():
            self.error = eager_error(op.exception.data, op.message.data, value[~condition].flat[0])
        return ()

    @impl(loop.PhiloxOp)
    def run_philox(self, interpreter: Interpreter, op: loop.PhiloxOp, args: PythonValues) -> PythonValues:
        assert isinstance(op.stream, IntegerAttr)
        seed, counter = args
        return (philox(seed, counter, op.stream.value.data),)


def _scalar_dtype(tensor: SSAValue) -> DType:
    """The type of a tensor's or buffer's elements as scalars, which have no signedness."""
    assert isinstance(tensor.type, TensorType | MemRefType)
    return dtype_of(loop.scalar_type(tensor.type.element_type))


def _along(space: Shape, position: int) -> Array:
    """The index along one dim of a space."""
    return np.arange(space[position]).reshape(-1, *[1] * (len(space) - position - 1))


def _check_inside(op: Operation, places: Sequence[Array], shape: Shape, active: Array) -> None:
    for dim, (place, size) in enumerate(zip(places, shape, strict=True)):
        outside = active & ((place < 0) | (place >= size))
        if outside.any():
            raise InterpreterError(
                str(op), expected=f"an index below {size} along dim {dim}", got=str(place[outside].flat[0])
            )


def _flattened(places: Sequence[Array], shape: Shape) -> Array:
    """Row-major positions of elements, in a list."""
    flat = np.zeros((), np.int64)
    for place, size in zip(places, shape, strict=True):
        flat = flat * size + place
    return np.asarray(flat).reshape(-1)


def _combine_into(name: str, values: Array, flat: Array, stored: Array) -> None:
    """Combines values into elements; of several for one element the first ones go first."""
    elements, left = values.reshape(-1), np.arange(len(flat))
    while len(left):
        places, first = np.unique(flat[left], return_index=True)
        (elements[places],) = combine(name, [elements[places]], [stored[left[first]]])
        left = np.delete(left, first)


__all__ = ["Buffer", "LoopFunctions"]

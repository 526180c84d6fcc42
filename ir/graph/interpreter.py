"""The reference interpreter of the graph level: each op on whole arrays, as its documentation says.

A value is an array in the order of its indices, whatever the layout of its type; every result is a new array.
Sums and products of floats are accumulated in f64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Operation, SSAValue

from .. import graph
from ..arithmetic import Array, DType, dtype_of, functions_of_rows, is_float, philox, rounded, wide_dtype
from ..definitions import definitions_of
from ..errors import InterpreterError, eager_error
from ..memory import Memory, places_of, shape_of, size_of, tensor_shape
from .base import integer_of, integers_of
from .evaluate import FUNCTIONS, convert, evaluate

Extern: TypeAlias = Callable[["graph.ExternOp", PythonValues], Sequence[Array | int]]
"""(op, its operands) → its results: how eager ops run, which this package does not know."""

# -- elementwise -------------------------------------------------------------------------------------


def _elementwise(op: Operation, *operands: Array) -> Array:
    return evaluate(op, operands)


def elementwise_functions() -> InterpreterFunctions:
    """One function for each row that there is by now, those of other packages too."""
    return _elementwise_functions(frozenset((*FUNCTIONS, graph.CompareOp, graph.ConvertOp, graph.BitcastOp)))()


@lru_cache(maxsize=4)
def _elementwise_functions(ops: frozenset[type[Operation]]) -> type[InterpreterFunctions]:
    return functions_of_rows("ElementwiseFunctions", dict.fromkeys(ops, _elementwise))


# -- reductions --------------------------------------------------------------------------------------


def _limit(dtype: DType, *, highest: bool) -> Array:
    """The greatest or smallest value of a type, infinities included."""
    if is_float(dtype):
        return np.array(np.inf if highest else -np.inf, dtype)
    if dtype == np.bool_:
        return np.array(highest)
    limits = np.iinfo(dtype)
    return np.array(limits.max if highest else limits.min, dtype)


def _accumulating_dtype(dtype: DType) -> DType:
    return np.dtype(np.float64) if is_float(dtype) else dtype


def _total(ufunc: np.ufunc, value: Array, dims: tuple[int, ...]) -> Array:
    """A sum or product over dims in the value's type."""
    dtype = _accumulating_dtype(value.dtype)
    total = ufunc.reduce(value.astype(dtype), axis=dims, dtype=dtype, initial=dtype.type(ufunc.identity))
    return rounded(total, value.dtype) if is_float(value.dtype) else np.asarray(total)


def _extremum(ufunc: np.ufunc, value: Array, dims: tuple[int, ...], *, highest: bool) -> Array:
    wide = value.astype(wide_dtype(value.dtype))
    extremum = ufunc.reduce(wide, axis=dims, initial=_limit(wide.dtype, highest=not highest))
    return np.asarray(extremum, value.dtype)


def _product(lhs: Array, rhs: Array, *bias: Array) -> Array:
    """A matrix product, rounded once after the bias is added."""
    dtype = _accumulating_dtype(lhs.dtype)
    total = np.matmul(lhs.astype(dtype), rhs.astype(dtype))
    for addend in bias:
        total = total + addend.astype(dtype)
    return rounded(total, lhs.dtype) if is_float(lhs.dtype) else total


# -- places ------------------------------------------------------------------------------------------

Key: TypeAlias = tuple[Any, ...]
"""What NumPy indexes an array with: arrays and slices."""


def _stepped(starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]) -> Key:
    """The box of these sizes that begins at `starts` and takes every step-th element."""
    return tuple(
        slice(start, start + (size - 1) * step + 1, step) if size else slice(0, 0)
        for start, step, size in zip(starts, steps, sizes, strict=True)
    )


def _checked(op: graph.IndexedOp, index: Array, dim: int, size: int) -> Array:
    """Indices into a dim, counted from the end where the op allows that; a bad one raises what eager raises."""
    bounds, index = op.index_bounds, index.astype(np.int64)
    wrapped = np.where(index < 0, index + size, index) if bounds.wraps else index
    bad = (wrapped < 0) | (wrapped >= size)
    if bad.any() and bounds.exception is not None:
        message = bounds.message.replace("{dim}", str(dim)).replace("{size}", str(size))
        raise eager_error(bounds.exception, message, index[bad].flat[0])
    return np.clip(wrapped, 0, max(size - 1, 0))


def _indexed(op: graph.IndexOp | graph.IndexPutOp, shape: Sequence[int], indices: Sequence[Array]) -> Key:
    key: list[Any] = [slice(None)] * len(shape)
    for dim, index in zip(op.indexed, indices, strict=True):
        key[dim] = _checked(op, index, dim, shape[dim])
    return tuple(key)


def _along(op: graph.GatherOp | graph.ScatterOp, shape: Sequence[int], index: Array) -> Key:
    dim = integer_of(op.dim)
    key = list(np.indices(index.shape, sparse=True))
    key[dim] = _checked(op, index, dim, shape[dim])
    return tuple(key)


_COMBINE_AT: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _written(op: graph.ScatterOp | graph.IndexPutOp, target: Array, key: Key, value: Array) -> Array:
    """The target with values written or combined at a key, one after the other."""
    result = target.copy()
    if op.combiner is None:
        result[key] = value
    elif (ufunc := _COMBINE_AT.get(op.combiner.data)) is not None:
        ufunc.at(result, key, value)
    else:
        raise InterpreterError(op.name, expected=f"a combiner of {', '.join(_COMBINE_AT)}", got=op.combiner.data)
    return result


# -- the level ---------------------------------------------------------------------------------------


@register_impls
class GraphFunctions(InterpreterFunctions):
    """The ops that are not elementwise. `symbols` are those of the function that runs, to which its externs add."""

    def __init__(self, symbols: MutableMapping[str, int], weights: Mapping[str, Array], extern: Extern | None) -> None:
        self.symbols = symbols
        self.weights = weights
        self.extern = extern

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        return tensor_shape(value.type, self.symbols)

    # reductions

    @impl(graph.SumOp)
    def run_sum(self, interpreter: Interpreter, op: graph.SumOp, args: PythonValues) -> PythonValues:
        return (_total(np.add, args[0], op.reduced),)

    @impl(graph.ProdOp)
    def run_prod(self, interpreter: Interpreter, op: graph.ProdOp, args: PythonValues) -> PythonValues:
        return (_total(np.multiply, args[0], op.reduced),)

    @impl(graph.MaxOp)
    def run_max(self, interpreter: Interpreter, op: graph.MaxOp, args: PythonValues) -> PythonValues:
        return (_extremum(np.maximum, args[0], op.reduced, highest=True),)

    @impl(graph.MinOp)
    def run_min(self, interpreter: Interpreter, op: graph.MinOp, args: PythonValues) -> PythonValues:
        return (_extremum(np.minimum, args[0], op.reduced, highest=False),)

    @impl(graph.AnyOp)
    def run_any(self, interpreter: Interpreter, op: graph.AnyOp, args: PythonValues) -> PythonValues:
        return (np.asarray(np.any(args[0], axis=op.reduced)),)

    @impl(graph.AllOp)
    def run_all(self, interpreter: Interpreter, op: graph.AllOp, args: PythonValues) -> PythonValues:
        return (np.asarray(np.all(args[0], axis=op.reduced)),)

    @impl(graph.ArgMaxOp)
    def run_argmax(self, interpreter: Interpreter, op: graph.ArgMaxOp, args: PythonValues) -> PythonValues:
        return (np.asarray(np.argmax(args[0].astype(wide_dtype(args[0].dtype)), axis=op.reduced[0])),)

    @impl(graph.ArgMinOp)
    def run_argmin(self, interpreter: Interpreter, op: graph.ArgMinOp, args: PythonValues) -> PythonValues:
        return (np.asarray(np.argmin(args[0].astype(wide_dtype(args[0].dtype)), axis=op.reduced[0])),)

    @impl(graph.ScanOp)
    def run_scan(self, interpreter: Interpreter, op: graph.ScanOp, args: PythonValues) -> PythonValues:
        dtype = _accumulating_dtype(args[0].dtype)
        totals = _COMBINE_AT[op.combiner.data].accumulate(args[0].astype(dtype), axis=integer_of(op.dim), dtype=dtype)
        return (rounded(totals, args[0].dtype) if is_float(dtype) else totals,)

    # views

    @impl(graph.PermuteOp)
    def run_permute(self, interpreter: Interpreter, op: graph.PermuteOp, args: PythonValues) -> PythonValues:
        return (args[0].transpose(op.permutation).copy(),)

    @impl(graph.ReshapeOp)
    def run_reshape(self, interpreter: Interpreter, op: graph.ReshapeOp, args: PythonValues) -> PythonValues:
        return (args[0].reshape(self.shape(op.result)).copy(),)

    @impl(graph.BroadcastOp)
    def run_broadcast(self, interpreter: Interpreter, op: graph.BroadcastOp, args: PythonValues) -> PythonValues:
        return (np.broadcast_to(args[0], self.shape(op.result)).copy(),)

    @impl(graph.SliceOp)
    def run_slice(self, interpreter: Interpreter, op: graph.SliceOp, args: PythonValues) -> PythonValues:
        return (args[0][self.box(op, self.shape(op.result))].copy(),)

    def box(self, op: graph.SliceOp | graph.InsertSliceOp, sizes: Sequence[int]) -> Key:
        return _stepped(shape_of(op.starts.results, self.symbols), shape_of(op.steps.results, self.symbols), sizes)

    @impl(graph.FlipOp)
    def run_flip(self, interpreter: Interpreter, op: graph.FlipOp, args: PythonValues) -> PythonValues:
        return (np.flip(args[0], op.flipped).copy(),)

    @impl(graph.WindowOp)
    def run_window(self, interpreter: Interpreter, op: graph.WindowOp, args: PythonValues) -> PythonValues:
        steps, dilations = integers_of(op.steps), integers_of(op.dilations)
        shape = self.shape(op.result)
        kept = len(shape) - 2 * len(steps)
        index = np.indices(shape, sparse=True)
        slid = (
            index[kept + k] * step + index[kept + len(steps) + k] * dilation
            for k, (step, dilation) in enumerate(zip(steps, dilations, strict=True))
        )
        return (args[0][(*index[:kept], *slid)],)

    @impl(graph.AsStridedOp)
    def run_as_strided(self, interpreter: Interpreter, op: graph.AsStridedOp, args: PythonValues) -> PythonValues:
        memory = Memory.holding(args[0], places_of(op.operand.type, self.symbols))
        places = places_of(op.type, self.symbols) + size_of(op.offset.results[0], self.symbols)
        return (memory.read(places, op.name),)

    # creation

    @impl(graph.FullOp)
    def run_full(self, interpreter: Interpreter, op: graph.FullOp, args: PythonValues) -> PythonValues:
        return (np.full(self.shape(op.result), op.value.array[0]),)

    @impl(graph.ConstantOp)
    def run_constant(self, interpreter: Interpreter, op: graph.ConstantOp, args: PythonValues) -> PythonValues:
        return (op.value.array.reshape(self.shape(op.result)).copy(),)

    @impl(graph.WeightOp)
    def run_weight(self, interpreter: Interpreter, op: graph.WeightOp, args: PythonValues) -> PythonValues:
        name = op.weight.data
        if name not in self.weights:
            known = ", ".join(self.weights) or "none"
            raise InterpreterError(f"weight {name}", expected="a weight given by the caller", got=known)
        return (self.weights[name],)

    @impl(graph.IotaOp)
    def run_iota(self, interpreter: Interpreter, op: graph.IotaOp, args: PythonValues) -> PythonValues:
        start, step = (size_of(attr.results[0], self.symbols) for attr in (op.start, op.step))
        (size,) = self.shape(op.result)
        return (convert(start + step * np.arange(size), dtype_of(op.type)),)

    @impl(graph.SizeOp)
    def run_size(self, interpreter: Interpreter, op: graph.SizeOp, args: PythonValues) -> PythonValues:
        value = np.asarray(size_of(op.expr, self.symbols), np.int64)
        return (value if isinstance(op.result.type, IndexType) else convert(value, dtype_of(op.type)),)

    @impl(graph.RandomOp)
    def run_random(self, interpreter: Interpreter, op: graph.RandomOp, args: PythonValues) -> PythonValues:
        shape = self.shape(op.result)
        counter = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        return (philox(args[0].reshape(()), counter, integer_of(op.stream)),)

    # indexing

    @impl(graph.GatherOp)
    def run_gather(self, interpreter: Interpreter, op: graph.GatherOp, args: PythonValues) -> PythonValues:
        operand, index = args
        return (operand[_along(op, operand.shape, index)],)

    @impl(graph.IndexOp)
    def run_index(self, interpreter: Interpreter, op: graph.IndexOp, args: PythonValues) -> PythonValues:
        operand, *indices = args
        return (operand[_indexed(op, operand.shape, indices)].copy(),)

    @impl(graph.IndexPutOp)
    def run_index_put(self, interpreter: Interpreter, op: graph.IndexPutOp, args: PythonValues) -> PythonValues:
        operand, value, *indices = args
        return (_written(op, operand, _indexed(op, operand.shape, indices), value),)

    @impl(graph.ScatterOp)
    def run_scatter(self, interpreter: Interpreter, op: graph.ScatterOp, args: PythonValues) -> PythonValues:
        operand, index, value = args
        return (_written(op, operand, _along(op, operand.shape, index), value),)

    @impl(graph.InsertSliceOp)
    def run_insert_slice(self, interpreter: Interpreter, op: graph.InsertSliceOp, args: PythonValues) -> PythonValues:
        result = args[0].copy()
        result[self.box(op, args[1].shape)] = args[1]
        return (result,)

    @impl(graph.CatOp)
    def run_cat(self, interpreter: Interpreter, op: graph.CatOp, args: PythonValues) -> PythonValues:
        return (np.concatenate(args, integer_of(op.dim)),)

    @impl(graph.PadOp)
    def run_pad(self, interpreter: Interpreter, op: graph.PadOp, args: PythonValues) -> PythonValues:
        result = np.full(self.shape(op.result), op.value.array[0])
        result[_stepped(shape_of(op.low.results, self.symbols), (1,) * result.ndim, args[0].shape)] = args[0]
        return (result,)

    # products and calls

    @impl(graph.MatmulOp)
    def run_matmul(self, interpreter: Interpreter, op: graph.MatmulOp, args: PythonValues) -> PythonValues:
        return (_product(*args),)

    @impl(graph.BatchMatmulOp)
    def run_batch_matmul(self, interpreter: Interpreter, op: graph.BatchMatmulOp, args: PythonValues) -> PythonValues:
        return (_product(*args),)

    @impl(graph.ExternOp)
    def run_extern(self, interpreter: Interpreter, op: graph.ExternOp, args: PythonValues) -> PythonValues:
        if self.extern is None:
            raise InterpreterError(
                f"extern {op.target.data}",
                expected="a way to call eager ops",
                got="none",
                hint="give `interpret` an `extern`: this package does not know torch",
            )
        results = tuple(self.extern(op, args))
        self.symbols.update((known.name, known.value(results)) for known in definitions_of(op))
        return results

    @impl(graph.CopyIntoOp)
    def run_copy_into(self, interpreter: Interpreter, op: graph.CopyIntoOp, args: PythonValues) -> PythonValues:
        value, target = args
        target[...] = value
        return ()


__all__ = ["Extern", "GraphFunctions", "elementwise_functions"]

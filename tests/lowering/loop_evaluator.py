"""A reference for functions of loop kernels: NumPy scalars, one iteration after the other, nothing clever.

Tests run a function before and after a pass on the same inputs. Numbers have the types of the IR (bf16 through
ml_dtypes); `loop.assert` failures are recorded as (exception, message with the value).
"""

from __future__ import annotations

import math as scalar_math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.ir import loop
from stepwell.ir.combiners import COMBINERS, identity_value
from stepwell.ir.dtypes import element_of
from stepwell.ir.expr import Expr
from stepwell.ir.loop.ops import AccessOp, NestOp
from stepwell.ir.shapes import sizes_of

FLOATS: dict[str, np.dtype[Any]] = {
    "f64": np.dtype("f8"),
    "f32": np.dtype("f4"),
    "f16": np.dtype("f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """The NumPy type of an IR scalar type; integers of the loop level are signed where it matters."""
    if isinstance(type_, IndexType):
        return np.dtype(np.int64)
    if isinstance(type_, IntegerType):
        return np.dtype("bool" if type_.width.data == 1 else f"int{type_.width.data}")
    return FLOATS[str(type_)]


# -- scalars -----------------------------------------------------------------------------------------


def _nan_propagating(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: a if a != a else b if b != b else pick(a, b)


def _unsigned(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: compare(int(a) % (1 << 64), int(b) % (1 << 64))


_INTEGER_COMPARISONS = [
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    _unsigned(operator.lt), _unsigned(operator.le), _unsigned(operator.gt), _unsigned(operator.ge),
]  # fmt: skip


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: a == a and b == b and compare(a, b)


def _unordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: a != a or b != b or compare(a, b)


_ORDER = [operator.eq, operator.gt, operator.ge, operator.lt, operator.le, operator.ne]
_FLOAT_COMPARISONS: list[Callable[[Any, Any], bool]] = [
    lambda a, b: False,
    *map(_ordered, _ORDER),
    lambda a, b: a == a and b == b,
    *map(_unordered, _ORDER),
    lambda a, b: a != a or b != b,
    lambda a, b: True,
]

_BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddfOp: operator.add,
    arith.SubfOp: operator.sub,
    arith.MulfOp: operator.mul,
    arith.DivfOp: np.divide,
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivSIOp: lambda a, b: int(a / b),
    arith.FloorDivSIOp: operator.floordiv,
    arith.RemSIOp: lambda a, b: a - b * int(a / b),
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
    arith.MaximumfOp: _nan_propagating(max),
    arith.MinimumfOp: _nan_propagating(min),
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    math.PowFOp: np.power,
}

_UNARY: dict[type[Operation], Callable[[Any], Any]] = {
    arith.NegfOp: operator.neg,
    math.ExpOp: np.exp,
    math.LogOp: np.log,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: lambda a: 1 / np.sqrt(a),
    math.TanhOp: np.tanh,
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.RoundEvenOp: np.rint,
    math.Log1pOp: np.log1p,
    math.ExpM1Op: np.expm1,
    math.Log2Op: np.log2,
    math.Exp2Op: np.exp2,
    math.AbsFOp: abs,
    math.ErfOp: lambda a: scalar_math.erf(float(a)),
    arith.ExtFOp: lambda a: a,
    arith.TruncFOp: lambda a: a,
    arith.ExtSIOp: lambda a: a,
    arith.ExtUIOp: lambda a: int(a) % (1 << (8 * np.asarray(a).itemsize)) if np.asarray(a).dtype != bool else a,
    arith.TruncIOp: lambda a: a,
    arith.SIToFPOp: lambda a: a,
    arith.UIToFPOp: lambda a: a,
    arith.FPToSIOp: lambda a: int(a),
    arith.IndexCastOp: lambda a: a,
}


def _combine(name: str, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    if name in ("argmax", "argmin"):
        better = operator.gt if name == "argmax" else operator.lt
        (a, i), (b, j) = left, right
        if a != a or b != b:
            wins = b != b and (a == a or j < i)
        else:
            wins = better(b, a) or (a == b and j < i)
        return list(right if wins else left)
    table: dict[str, Callable[[Any, Any], Any]] = {
        "add": operator.add,
        "mul": operator.mul,
        "max": _nan_propagating(max),
        "min": _nan_propagating(min),
        "maxu": lambda a, b: a if _unsigned(operator.gt)(a, b) else b,
        "minu": lambda a, b: a if _unsigned(operator.lt)(a, b) else b,
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
    }
    return [table[name](left[0], right[0])]


# -- evaluation --------------------------------------------------------------------------------------


@dataclass
class Evaluator:
    """Runs ops on values; `errors` holds what failed `loop.assert`s say."""

    symbols: Mapping[str, int]
    values: dict[SSAValue, Any] = field(default_factory=dict)
    errors: set[tuple[str, str]] = field(default_factory=set)

    def size(self, expr: Expr) -> int:
        return int(expr.evaluate(lambda leaf: self.symbols[leaf.args[0]]))

    def shape(self, sizes: Sequence[Expr]) -> tuple[int, ...]:
        return tuple(self.size(size) for size in sizes)

    def place(self, op: AccessOp, indices: Sequence[SSAValue]) -> tuple[int, ...]:
        def leaf(atom: Any) -> int:
            if atom.kind == "symbol":
                return self.symbols[atom.args[0]]
            return int(self.values[indices[atom.args[0]]])

        return tuple(int(result.evaluate(leaf)) for result in op.map.results)

    def block(self, block: Block) -> list[Any]:
        """Runs a block; what its terminator yields."""
        for op in block.ops:
            if isinstance(op, loop.YieldOp | func.ReturnOp):
                return [self.values[operand] for operand in op.operands]
            self.op(op)
        return []

    def op(self, op: Operation) -> None:
        handler = _HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
            return
        operands = [self.values[operand] for operand in op.operands]
        table: Any = _UNARY if type(op) in _UNARY else _BINARY
        dtype = dtype_of(op.results[0].type)
        self.values[op.results[0]] = np.asarray(table[type(op)](*operands)).astype(dtype)[()]

    def kernel(self, op: loop.KernelOp) -> None:
        buffers = []
        for position, (argument, result) in enumerate(zip(op.block.args, op.results, strict=True)):
            init = op.init_of(position)
            shape = self.shape(sizes_of(result.type))
            dtype = dtype_of(element_of(result.type))
            buffer = _unset(shape, dtype) if init is None else self.values[init].copy()
            self.values[argument] = buffer
            buffers.append(buffer)
        self.block(op.block)
        self.values.update(zip(op.results, buffers, strict=True))

    def points(self, op: NestOp) -> Any:
        return product(*map(range, self.shape(op.sizes)))

    def enter(self, op: NestOp, point: Sequence[int]) -> list[Any]:
        self.values.update(zip(op.indices, point, strict=True))
        return self.block(op.block)

    def parallel(self, op: loop.ParallelOp) -> None:
        for point in reversed(list(self.points(op))):  # any order: take one that finds false dependences
            self.enter(op, point)

    def reduce(self, op: loop.ReduceOp) -> None:
        combiners = [COMBINERS[name] for name in op.combiner_names]
        total: list[Any] = []
        for combiner in combiners:
            for position in range(combiner.arity):
                type_ = op.results[len(total)].type
                dtype = dtype_of(type_)
                value = np.iinfo(dtype).max if position else identity_value(combiner, type_)
                total.append(dtype.type(value))
        for point in self.points(op):
            total = self.combined(combiners, total, self.enter(op, point))
        self.values.update(zip(op.results, total, strict=True))

    def combined(self, combiners: Sequence[Any], total: list[Any], values: list[Any]) -> list[Any]:
        done: list[Any] = []
        for combiner in combiners:
            group = slice(len(done), len(done) + combiner.arity)
            done.extend(_combine(combiner.name, total[group], values[group]))
        return done

    def sequential(self, op: loop.ForOp) -> None:
        carried = [self.values[init] for init in op.operands]
        for point in self.points(op):
            self.values.update(zip(op.carried, carried, strict=True))
            carried = self.enter(op, point)
        self.values.update(zip(op.results, carried, strict=True))

    def local(self, op: loop.LocalOp) -> None:
        element = op.buffer.type.element_type
        self.values[op.buffer] = _unset(self.shape(op.sizes), dtype_of(element))

    def read(self, op: loop.ReadOp) -> None:
        if op.guard is not None and not self.values[op.guard]:
            assert op.other is not None
            self.values[op.result] = self.values[op.other]
            return
        place = self.place(op, list(op.indices))
        buffer = self.values[op.source]
        _check_inside(op, place, buffer.shape)
        value = buffer[place]
        assert not isinstance(op.source.type, MemRefType) or value is not None, f"read before write: {op}"
        self.values[op.result] = dtype_of(op.result.type).type(value)

    def write(self, op: loop.WriteOp) -> None:
        place = self.place(op, list(op.indices))
        buffer, value = self.values[op.target], self.values[op.value]
        _check_inside(op, place, buffer.shape)
        combiner = op.combiner
        buffer[place] = value if combiner is None else _combine(combiner.data, [buffer[place]], [value])[0]

    def index(self, op: loop.IndexOp) -> None:
        self.values[op.result] = np.int64(self.place(op, list(op.indices))[0])

    def check(self, op: loop.AssertOp) -> None:
        if not self.values[op.condition]:
            message = op.message.data.replace("{}", str(self.values[op.value]))
            self.errors.add((op.exception.data, message))

    def constant(self, op: arith.ConstantOp) -> None:
        attr = op.value
        assert isinstance(attr, FloatAttr | IntegerAttr)
        self.values[op.result] = dtype_of(op.result.type).type(attr.value.data)

    def compare_floats(self, op: arith.CmpfOp) -> None:
        compare = _FLOAT_COMPARISONS[op.predicate.value.data]
        self.values[op.result] = np.bool_(compare(self.values[op.lhs], self.values[op.rhs]))

    def compare_integers(self, op: arith.CmpiOp) -> None:
        compare = _INTEGER_COMPARISONS[op.predicate.value.data]
        self.values[op.result] = np.bool_(compare(self.values[op.lhs], self.values[op.rhs]))

    def select(self, op: arith.SelectOp) -> None:
        self.values[op.result] = self.values[op.lhs if self.values[op.cond] else op.rhs]


def _unset(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of None's: reading an element before it is written is an error that tests see."""
    return np.full(shape, None, dtype=object)


def _check_inside(op: Operation, place: Sequence[int], shape: Sequence[int]) -> None:
    inside = all(0 <= index < size for index, size in zip(place, shape, strict=True))
    assert inside, f"{op}: index {place} outside of {shape}"


_HANDLERS: dict[type[Operation], Callable[[Evaluator, Any], None]] = {
    loop.KernelOp: Evaluator.kernel,
    loop.ParallelOp: Evaluator.parallel,
    loop.ReduceOp: Evaluator.reduce,
    loop.ForOp: Evaluator.sequential,
    loop.LocalOp: Evaluator.local,
    loop.ReadOp: Evaluator.read,
    loop.WriteOp: Evaluator.write,
    loop.IndexOp: Evaluator.index,
    loop.AssertOp: Evaluator.check,
    arith.ConstantOp: Evaluator.constant,
    arith.CmpfOp: Evaluator.compare_floats,
    arith.CmpiOp: Evaluator.compare_integers,
    arith.SelectOp: Evaluator.select,
}


@dataclass(frozen=True)
class Outcome:
    """What a call gives: its results as arrays, and the errors it recorded."""

    results: list[np.ndarray[Any, Any]]
    errors: set[tuple[str, str]]


def evaluate(function: func.FuncOp, arguments: Sequence[Any], symbols: Mapping[str, int] | None = None) -> Outcome:
    """Runs a function; `arguments` are arrays, or integers for its leading index arguments."""
    evaluator = Evaluator(symbols or {})
    evaluator.values.update(zip(function.body.block.args, arguments, strict=True))
    with np.errstate(all="ignore"):
        results = evaluator.block(function.body.block)
    last = function.body.block.last_op
    assert last is not None
    arrays = [_as_array(result, value.type) for result, value in zip(results, last.operands, strict=True)]
    return Outcome(arrays, evaluator.errors)


def _as_array(result: Any, type_: Attribute) -> np.ndarray[Any, Any]:
    """A result as an array of its type, every element of which was written."""
    elements = np.asarray(result, dtype=object)
    assert all(element is not None for element in elements.flat), "an element is unset"
    element_type = element_of(type_) if isinstance(type_, TensorType) else type_
    return np.array(elements.tolist(), dtype=dtype_of(element_type)).reshape(elements.shape)


_RANDOM: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray[Any, Any]]] = {
    "b": lambda generator, shape: generator.integers(0, 2, shape),
    "i": lambda generator, shape: generator.integers(0, 3, shape),
    "f": lambda generator, shape: generator.normal(size=shape),
    "V": lambda generator, shape: generator.normal(size=shape),
}


def random_arguments(function: func.FuncOp, symbols: Mapping[str, int], seed: int) -> list[Any]:
    """Inputs for a function: symbols for index arguments, normal floats, small integers, coin flips."""
    generator = np.random.default_rng(seed)
    evaluator = Evaluator(symbols)
    names = iter(symbols)
    arguments: list[Any] = []
    for argument in function.body.block.args:
        if isinstance(argument.type, IndexType):
            arguments.append(symbols[next(names)])
            continue
        shape = evaluator.shape(sizes_of(argument.type))
        dtype = dtype_of(element_of(argument.type))
        integral = dtype.kind in "ib"
        values = (
            generator.integers(0, 2 if dtype.kind == "b" else 3, shape) if integral else generator.normal(size=shape)
        )
        arguments.append(values.astype(dtype))
    return arguments

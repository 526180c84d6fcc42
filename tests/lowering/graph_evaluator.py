"""Runs what `convert-graph-to-loop` leaves: the loop reference with every scalar op, exact integers and host views."""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation

from stepwell.ir import graph, host, loop
from stepwell.ir.dtypes import numpy_dtype
from stepwell.ir.shapes import layout_of
from stepwell.lowering.convert.graph_to_loop import ConvertGraphToLoop
from stepwell.tests.lowering.loop_evaluator import Evaluator, dtype_of
from stepwell.tests.lowering.loop_text import context, function_of, parse

Array = np.ndarray[Any, Any]
Scalar = Callable[..., Any]

# -- scalars that the loop reference lacks or rounds -------------------------------------------------


def _bits(value: Any) -> int:
    """An integer as unsigned."""
    return int(value) % (1 << (8 * np.asarray(value).itemsize))


def _truncated(a: Any, b: Any) -> int:
    quotient = abs(int(a)) // abs(int(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def _whole(value: Any, width: int) -> int:
    """A float as an integer of a register: the least one where it does not fit."""
    limit = 1 << (width - 1)
    return int(value) if abs(float(value)) < limit else -limit


def _power(a: Any, b: Any) -> int:
    if b >= 0:
        return pow(int(a), int(b), 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(int(a), 0)


def _float_power(a: float, b: float) -> float:
    """C's `pow`; NumPy takes square roots where the exponent is 0.5, which differs at -inf and -0."""
    try:
        return scalar_math.pow(a, b)
    except ValueError:
        return scalar_math.nan if a else scalar_math.copysign(scalar_math.inf, a if b % 2 == 1 else 1.0)
    except OverflowError:
        return scalar_math.copysign(scalar_math.inf, a if b % 2 == 1 else 1.0)


def _in_double(function: Callable[[float], float]) -> Scalar:
    return lambda value: function(np.float64(value))


SCALARS: dict[type[Operation], Scalar] = {
    arith.DivSIOp: _truncated,
    arith.RemSIOp: lambda a, b: int(a) - int(b) * _truncated(a, b),
    arith.DivUIOp: lambda a, b: _bits(a) // _bits(b),
    arith.RemUIOp: lambda a, b: _bits(a) % _bits(b),
    arith.MaxUIOp: lambda a, b: max(_bits(a), _bits(b)),
    arith.MinUIOp: lambda a, b: min(_bits(a), _bits(b)),
    arith.ShLIOp: lambda a, b: int(a) << int(b),
    arith.ShRSIOp: lambda a, b: int(a) >> int(b),
    arith.ShRUIOp: lambda a, b: _bits(a) >> int(b),
    arith.UIToFPOp: _bits,
    arith.ExtUIOp: _bits,
    math.AbsIOp: abs,
    math.IPowIOp: _power,
    math.PowFOp: lambda a, b: _float_power(float(a), float(b)),
    math.Exp2Op: _in_double(np.exp2),
    math.ExpM1Op: _in_double(np.expm1),
    math.Log2Op: _in_double(np.log2),
    math.Log10Op: _in_double(np.log10),
    math.Log1pOp: _in_double(np.log1p),
    math.SinOp: _in_double(np.sin),
    math.CosOp: _in_double(np.cos),
    math.TanOp: _in_double(np.tan),
    math.AsinOp: _in_double(np.arcsin),
    math.AcosOp: _in_double(np.arccos),
    math.AtanOp: _in_double(np.arctan),
    math.SinhOp: _in_double(np.sinh),
    math.CoshOp: _in_double(np.cosh),
    math.AsinhOp: _in_double(np.arcsinh),
    math.AcoshOp: _in_double(np.arccosh),
    math.AtanhOp: _in_double(np.arctanh),
    math.ErfOp: _in_double(scalar_math.erf),
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.TruncOp: np.trunc,
    math.RoundEvenOp: np.rint,
    math.CopySignOp: np.copysign,
    math.Atan2Op: np.arctan2,
    math.FmaOp: lambda a, b, c: _fused(a, b, c),
}


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once, by exact rational arithmetic."""
    if not all(map(np.isfinite, (a, b, c))):
        return a * b + c
    total = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return float(total) if total else np.float64(a) * np.float64(b) + np.float64(c)


LOW = 0xFFFFFFFF


def philox(seed: int, counter: int, stream: int) -> int:
    """The first word of Philox4x32-10, as the paper writes it down."""
    key = [seed & LOW, seed >> 32]
    words = [counter & LOW, counter >> 32, stream & LOW, stream >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ key[0], second & LOW, first >> 32 ^ words[3] ^ key[1], first & LOW]
        key = [(key[0] + 0x9E3779B9) & LOW, (key[1] + 0xBB67AE85) & LOW]
    return words[0]


# -- evaluation --------------------------------------------------------------------------------------


class ConvertedEvaluator(Evaluator):
    """Also runs the ops of the host that the conversion leaves or makes."""

    def op(self, op: Operation) -> None:
        if isinstance(op, host.ViewOp):
            self.view(op)
        elif isinstance(op, graph.ConstantOp):
            self.values[op.result] = op.value.array.reshape(self.shape(op.sizes))
        elif isinstance(op, loop.PhiloxOp):
            stream = op.stream.value.data  # type: ignore[attr-defined]
            bits = philox(_bits(self.values[op.seed]), _bits(self.values[op.counter]), stream)
            self.values[op.bits] = np.uint32(bits).astype(np.int32)
        elif isinstance(op, arith.BitcastOp):
            self.values[op.result] = self.values[op.operands[0]].view(dtype_of(op.result.type))
        elif isinstance(op, arith.FPToSIOp):
            dtype = dtype_of(op.result.type)
            self.values[op.result] = dtype.type(_whole(self.values[op.input], 8 * dtype.itemsize))
        elif type(op) in SCALARS:
            dtype = dtype_of(op.results[0].type)
            value = SCALARS[type(op)](*[self.values[operand] for operand in op.operands])
            self.values[op.results[0]] = _wrapped(value, dtype)
        else:
            super().op(op)

    def view(self, op: host.ViewOp) -> None:
        """A view as the source's memory shows it; the array stands for the memory, row by row of its layout."""
        source, layout = self.values[op.source], layout_of(op.result.type)
        strides = [self.size(stride) for stride in layout_of(op.source.type).strides]
        places = sum(
            (index * stride for index, stride in zip(np.indices(source.shape), strides, strict=True)),
            np.zeros(source.shape, int),
        )
        memory = np.empty(int(places.max(initial=0)) + 1, source.dtype)
        memory[places] = source
        if memory.dtype == object:
            assert isinstance(op.result.type, TensorType)
            memory = memory.astype(dtype_of(op.result.type.element_type))
        start = self.size(op.element_offset)
        steps = [self.size(stride) * memory.itemsize for stride in layout.strides]
        self.values[op.result] = as_strided(memory[start:], self.shape(layout.sizes), steps).copy()


def _wrapped(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number in a type; integers lose their high bits."""
    if dtype.kind == "i":
        value = int(value) % (1 << (8 * dtype.itemsize))
        return np.asarray(value, f"u{dtype.itemsize}").astype(dtype)[()]
    return np.asarray(value).astype(dtype)[()]


def converted(text: str) -> ModuleOp:
    """A module of graph ops after the conversion, verified."""
    module = parse(text)
    ConvertGraphToLoop().apply(context(), module)
    module.verify()
    return module


def call(
    module: ModuleOp, arguments: Sequence[Any], symbols: Mapping[str, int] | None = None
) -> tuple[list[Array], set[tuple[str, str]]]:
    """The results of a converted function, in the types of its graph values, and the errors that it recorded."""
    function = function_of(module)
    evaluator = ConvertedEvaluator(symbols or {})
    evaluator.values.update(zip(function.body.block.args, arguments, strict=True))
    with np.errstate(all="ignore"):
        results = evaluator.block(function.body.block)
    types = function.function_type.outputs.data
    return [_as_graph(result, type_) for result, type_ in zip(results, types, strict=True)], evaluator.errors


def _as_graph(result: Array, type_: Any) -> Array:
    assert all(element is not None for element in result.flat), "an element was never written"
    dtype = numpy_dtype(type_.element_type)
    stored = np.array(result.tolist(), dtype=dtype_of(type_.element_type)).reshape(result.shape)
    return stored.view(dtype) if stored.dtype.itemsize == dtype.itemsize else stored.astype(dtype)

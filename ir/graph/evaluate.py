"""What elementwise ops compute, in numpy: one row per op, exact where eager is exact.

bf16 and f16 compute in f32 and round once; functions that no machine rounds exactly are computed in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..dtypes import BFLOAT16, BOOL, FLOAT16, element_of, is_float, numpy_dtype
from . import elementwise as ops

Array = np.ndarray[Any, Any]


def _in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *operands: function(*(operand.astype(np.float64) for operand in operands))


def _relu(value: Array) -> Array:
    return np.where(value > 0, value, np.where(np.isnan(value), value, 0)) if value.dtype.kind == "f" else value.clip(0)


FUNCTIONS: dict[type[Operation], Callable[..., Array]] = {
    ops.NegOp: np.negative,
    ops.AbsOp: np.abs,
    ops.ReluOp: _relu,
    ops.NotOp: np.invert,
    ops.SqrtOp: np.sqrt,
    ops.ReciprocalOp: lambda value: 1 / value,
    ops.RsqrtOp: lambda value: 1 / np.sqrt(value),
    ops.FloorOp: np.floor,
    ops.CeilOp: np.ceil,
    ops.RoundOp: np.rint,
    ops.TruncOp: np.trunc,
    ops.IsNanOp: np.isnan,
    ops.IsInfOp: np.isinf,
    ops.SignBitOp: np.signbit,
    ops.ExpOp: _in_double(np.exp),
    ops.LogOp: _in_double(np.log),
    ops.Log2Op: _in_double(np.log2),
    ops.SinOp: _in_double(np.sin),
    ops.CosOp: _in_double(np.cos),
    ops.TanhOp: _in_double(np.tanh),
    ops.AddOp: np.add,
    ops.SubOp: np.subtract,
    ops.MulOp: np.multiply,
    ops.DivOp: np.divide,
    ops.MaximumOp: np.maximum,
    ops.MinimumOp: np.minimum,
    ops.AndOp: np.bitwise_and,
    ops.OrOp: np.bitwise_or,
    ops.XorOp: np.bitwise_xor,
    ops.SelectOp: np.where,
    ops.CopyOp: lambda value: value,
}

_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def can_evaluate(op: Operation) -> bool:
    """Whether `evaluate` knows the op."""
    if isinstance(op, ops.ConvertOp):
        return not (is_float(element_of(op.operand.type)) and not is_float(op.element) and op.element != BOOL)
    return isinstance(op, ops.CompareOp) or type(op) in FUNCTIONS


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of an elementwise op on arrays of its operands' element types."""
    dtype = numpy_dtype(element_of(op.results[0].type))
    with np.errstate(all="ignore"):
        if isinstance(op, ops.ConvertOp):
            return (operands[0] != 0) if op.element == BOOL else operands[0].astype(dtype)
        narrow = [element_of(operand.type) in (BFLOAT16, FLOAT16) for operand in op.operands]
        values = [value.astype(np.float32) if wide else value for value, wide in zip(operands, narrow, strict=True)]
        function = _COMPARISONS[op.predicate.data] if isinstance(op, ops.CompareOp) else FUNCTIONS[type(op)]
        return np.asarray(function(*values)).astype(dtype)

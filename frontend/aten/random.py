"""Random numbers as functions of (seed, stream, index): what `frontend.random` put in place of eager's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ir.dtypes import FLOAT32, FLOAT64, INT64
from .. import random_ops
from ..builder import Declined, GraphBuilder, Value, cos, log, sqrt
from .registry import imports


def _bits(builder: GraphBuilder, seed: Value, size: Sequence[Any], stream: int) -> Value:
    return builder.emit(graph.RandomOp.make(seed.ssa, size, stream))


def _fraction(builder: GraphBuilder, seed: Value, size: Sequence[Any], stream: int, width: int) -> Value:
    """Uniform in [0, 1) in f32, a multiple of 2^-width."""
    bits = builder.binary(graph.AndOp, _bits(builder, seed, size, stream), (1 << width) - 1)
    return bits.to(FLOAT32) * (1 / (1 << width))


@imports("stepwell.uniform")
def uniform(builder: GraphBuilder, seed: Value, size: Sequence[Any], stream: int, dtype: Any) -> Value:
    if builder.element != FLOAT64:
        return _fraction(builder, seed, size, stream, random_ops.FRACTION_BITS[dtype])
    high = builder.binary(graph.AndOp, _bits(builder, seed, size, stream), (1 << 26) - 1)
    low = builder.binary(graph.AndOp, _bits(builder, seed, size, stream + 1), (1 << 27) - 1)
    return (high.to(FLOAT64) * float(1 << 27) + low.to(FLOAT64)) * (1 / (1 << 53))


@imports("stepwell.normal")
def normal(builder: GraphBuilder, seed: Value, size: Sequence[Any], stream: int, dtype: Any) -> Value:
    """Box-Muller: a radius from one stream, an angle from the next."""
    if builder.element == FLOAT64:
        raise Declined
    radius = sqrt(-2.0 * log(1.0 - _fraction(builder, seed, size, stream, 24)))
    return radius * cos(_fraction(builder, seed, size, stream + 1, 24) * (2 * math.pi))


@imports("stepwell.integers")
def integers(
    builder: GraphBuilder, seed: Value, low: int, high: int, size: Sequence[Any], stream: int, dtype: Any
) -> Value:
    """The remainder of 32 bits; the range is far below 2^32, so its bias is too small to be seen."""
    bits = builder.binary(graph.AndOp, _bits(builder, seed, size, stream).to(INT64), (1 << 32) - 1)
    return builder.binary(graph.RemainderOp, bits, high - low) + low

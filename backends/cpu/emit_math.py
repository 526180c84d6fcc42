"""Mathematical functions: those that LLVM has instructions for, and calls of the vector math library, which inlines."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import Operation

from .blocks import INT64, Block
from .builder import Module
from .emit_arith import Compute, choose, compare, elementwise
from .emitter import Emitter, Table
from .vector_math import MathFunction, definition


def _intrinsic(name: str) -> Compute:
    return lambda e, block, *pieces: e.intrinsic(name, block, *pieces)


def _flagged(name: str) -> Compute:
    """An intrinsic whose flag would exclude an argument: zero for counts, the least number for abs."""

    def compute(e: Emitter, block: Block, piece: str) -> str:
        return e.call(block.text, f"llvm.{name}.{block.suffix}", (block.text, piece), ("i1", "false"))

    return compute


def _reciprocal_root(e: Emitter, block: Block, piece: str) -> str:
    return e.value(f"fdiv {block.text} {block.constant(1.0)}, {e.intrinsic('sqrt', block, piece)}")


def _library(name: str) -> Compute:
    """A call of a vector math function, which is defined in the module."""

    def compute(e: Emitter, block: Block, *pieces: str) -> str:
        function = definition(name, block.element.name, max(block.lanes, 1))
        _define(e.module, function)
        scalars = [e.lane(block, piece, 0) for piece in pieces] if block.lanes == 1 else pieces
        text = block.element.register if block.lanes == 1 else block.text
        result = e.value(f"call {text} @{function.name}({', '.join(f'{text} {piece}' for piece in scalars)})")
        return e.splat(block, result) if block.lanes == 1 else result

    return compute


def _define(module: Module, function: MathFunction) -> None:
    if function.name in module.definitions:
        return
    for required in function.requires:
        _define(module, required)
    module.define(function.name, function.text)
    for line in function.declares:
        module.declare(line)


def _integer_power(e: Emitter, block: Block, base: str, exponent: str) -> str:
    """Square and multiply over the bits of the greatest exponent; a negative one gives the whole part of the
    reciprocal."""
    text, one = block.text, block.constant(1)
    greatest = exponent
    if block.lanes:
        reduced = f"llvm.vector.reduce.umax.{block.suffix}"
        greatest = e.call(block.element.register, reduced, (text, exponent))
    scalar = block.element.register
    zeros = e.call(scalar, f"llvm.ctlz.{block.element.name}", (scalar, greatest), ("i1", "false"))
    if block.element is not INT64:
        zeros = e.value(f"zext {scalar} {zeros} to i64")
    bits = e.value(f"sub i64 {block.element.bits}, {zeros}")

    def body(_: str, carried: Sequence[str]) -> Sequence[str]:
        result, square, left = carried
        odd = e.value(f"trunc {text} {left} to {block.mask.text}")
        factor = choose(e, block, odd, square, one)
        return [
            e.value(f"mul {text} {result}, {factor}"),
            e.value(f"mul {text} {square}, {square}"),
            e.value(f"lshr {text} {left}, {one}"),
        ]

    power, _, _ = e.loop("0", bits, 1, [(text, one), (text, base), (text, exponent)], body)
    unit = compare(e, block, "ule", e.value(f"add {text} {base}, {one}"), block.constant(2))  # -1, 0 or 1
    reciprocal = choose(e, block, unit, power, block.constant(0))
    return choose(e, block, compare(e, block, "slt", exponent, block.constant(0)), reciprocal, power)


COMPUTE: dict[type[Operation], Compute] = {
    math.SqrtOp: _intrinsic("sqrt"),
    math.RsqrtOp: _reciprocal_root,
    math.AbsFOp: _intrinsic("fabs"),
    math.FloorOp: _intrinsic("floor"),
    math.CeilOp: _intrinsic("ceil"),
    math.TruncOp: _intrinsic("trunc"),
    math.RoundOp: _intrinsic("round"),
    math.RoundEvenOp: _intrinsic("roundeven"),
    math.CopySignOp: _intrinsic("copysign"),
    math.FmaOp: _intrinsic("fma"),
    math.AbsIOp: _flagged("abs"),
    math.CtPopOp: _intrinsic("ctpop"),
    math.CountLeadingZerosOp: _flagged("ctlz"),
    math.CountTrailingZerosOp: _flagged("cttz"),
    math.IPowIOp: _integer_power,
    math.ExpOp: _library("exp"),
    math.Exp2Op: _library("exp2"),
    math.ExpM1Op: _library("expm1"),
    math.LogOp: _library("log"),
    math.Log2Op: _library("log2"),
    math.Log10Op: _library("log10"),
    math.Log1pOp: _library("log1p"),
    math.ErfOp: _library("erf"),
    math.TanhOp: _library("tanh"),
    math.SinOp: _library("sin"),
    math.CosOp: _library("cos"),
    math.TanOp: _library("tan"),
    math.AsinOp: _library("asin"),
    math.AcosOp: _library("acos"),
    math.AtanOp: _library("atan"),
    math.Atan2Op: _library("atan2"),
    math.SinhOp: _library("sinh"),
    math.CoshOp: _library("cosh"),
    math.AsinhOp: _library("asinh"),
    math.AcoshOp: _library("acosh"),
    math.AtanhOp: _library("atanh"),
    math.PowFOp: _library("pow"),
}

MATH: Table = {op: elementwise(compute) for op, compute in COMPUTE.items()}

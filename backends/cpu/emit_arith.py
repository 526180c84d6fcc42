"""Elementwise arithmetic, comparison and selection on scalars and blocks: one row per operation.

bf16 and f16 are computed in f32 and rounded once per operation. No instruction carries fast-math flags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...ir import tile
from .blocks import ALWAYS, F16, F32, F64, INT32, NARROW_FLOATS, NEVER, Block, Element, constant_text
from .convert import narrow, widen
from .emitter import Emitter, OpEmitter, Table, unsupported

Compute = Callable[..., str]
"""(emitter, block, *pieces) → piece."""


def elementwise(compute: Compute) -> OpEmitter:
    """Applies `compute` piece by piece; narrow floats go through f32."""

    def emit(e: Emitter, op: Operation) -> None:
        result = SSAValue.get(op)
        block, values = e.block(result.type), e.values
        rows = zip(*[values[operand] for operand in op.operands], strict=True)
        apply = _through_f32(compute) if block.element in NARROW_FLOATS else compute
        values[result] = tuple([apply(e, block, *row) for row in rows])

    return emit


def _through_f32(compute: Compute) -> Compute:
    def apply(e: Emitter, block: Block, *pieces: str) -> str:
        return narrow(e, block, compute(e, block.of(F32), *[widen(e, block, piece) for piece in pieces]))

    return apply


def _binary(opcode: str) -> Compute:
    return lambda e, block, first, second: e.value(f"{opcode} {block.text} {first}, {second}")


def _intrinsic(name: str) -> Compute:
    return lambda e, block, *pieces: e.intrinsic(name, block, *pieces)


def choose(e: Emitter, block: Block, condition: str, first: str, second: str) -> str:
    """Lane by lane, the first where the condition holds."""
    if condition in ALWAYS or first == second:
        return first
    if condition in NEVER:
        return second
    return e.value(f"select {block.mask.text} {condition}, {block.text} {first}, {block.text} {second}")


def compare(e: Emitter, block: Block, predicate: str, first: str, second: str) -> str:
    opcode = "fcmp" if block.element.is_float else "icmp"
    return e.value(f"{opcode} {predicate} {block.text} {first}, {second}")


def both(e: Emitter, block: Block, first: str, second: str) -> str:
    """Bitwise and; a mask constant disappears."""
    if first in ALWAYS or second in NEVER:
        return second
    if second in ALWAYS or first in NEVER:
        return first
    return e.value(f"and {block.text} {first}, {second}")


def negate_mask(e: Emitter, block: Block, mask: str) -> str:
    return e.value(f"xor {block.text} {mask}, {block.splat('true')}")


def _negate(e: Emitter, block: Block, piece: str) -> str:
    return e.value(f"fneg {block.text} {piece}")


def _extremum(name: str) -> Compute:
    """The greater or smaller value, NaN if either is. `nsz` spares LLVM the order of zeros, which eager has not either:
    of equal values x86 gives the second. Three instructions, six without."""

    def compute(e: Emitter, block: Block, first: str, second: str) -> str:
        function, text = f"llvm.{name}.{block.suffix}", block.text
        e.module.declare_intrinsic(text, function, [(text, first), (text, second)])
        return e.value(f"call nsz {text} @{function}({text} {first}, {text} {second})")

    return compute


def _extremum_of_numbers(predicate: str) -> Compute:
    """The greater or smaller value, the number if one is NaN; x86 gives the second operand if either is."""

    def compute(e: Emitter, block: Block, first: str, second: str) -> str:
        better = choose(e, block, compare(e, block, predicate, first, second), first, second)
        return choose(e, block, compare(e, block, "uno", second, second), first, better)

    return compute


# -- float division ----------------------------------------------------------------------------------

REPEATS_WORTH_A_RECIPROCAL = 8
"""How often a division by one number runs, from which on its reciprocal is computed first."""

_SAFE_DIVISORS = (2.0**-20, 2.0**20)
"""Positive, because with negative ones -0 would lose its sign."""

_SAFE_DIVIDENDS = (0x0D800000, 0x71800000)
"""The bits of 2^-100 and 2^100: between them nothing under- or overflows on the way."""


def _emit_divide_float(e: Emitter, op: arith.DivfOp) -> None:
    """A division by one number for all lanes takes its reciprocal once, if there are enough of them."""
    block, divisor = e.block(op.result.type), op.rhs.owner
    scalar = ""
    if isinstance(divisor, tile.BroadcastOp) and not e.block(divisor.operand.type).lanes:
        scalar = e.scalar(divisor.operand)
    often = e.repeats >= REPEATS_WORTH_A_RECIPROCAL and e.depth(scalar) < len(e.scopes) - 1
    if not scalar or not often or block.element is not F32:
        _divide_float(e, op)
        return
    e.values[op.result] = tuple([_divide_by_scalar(e, block.piece, piece, scalar) for piece in e.values[op.lhs]])


def _divide_by_scalar(e: Emitter, block: Block, piece: str, scalar: str) -> str:
    """x / s, correctly rounded, in three operations: q = x·r with r = 1/s rounded, then q - (q·s - x)·r.

    With one correction q may be 1.5 ulp off before it; that this suffices was checked for all f32 s on the x whose
    quotients come nearest to the middle between two floats. Outside of the safe ranges it divides.
    """
    reciprocal = e.pure(f"fdiv float {constant_text(F32, 1.0)}, {scalar}", scalar)
    divisor, inverse = e.splat(block, scalar), e.splat(block, reciprocal)
    quotient = multiply_float(e, block, piece, inverse)
    excess = e.intrinsic("fma", block, quotient, divisor, _negate(e, block, piece))
    corrected = e.intrinsic("fma", block, _negate(e, block, excess), inverse, quotient)
    unsafe = e.any_lane(_is_extreme(e, block, piece), block.lanes)
    doubtful = e.value(f"or i1 {unsafe}, {_is_unsafe_divisor(e, scalar)}")
    exact = f"fdiv {block.text} {piece}, {divisor}"
    (result,) = e.conditional(doubtful, [(block.text, corrected)], lambda: [e.value(exact)])
    return result


def _is_unsafe_divisor(e: Emitter, scalar: str) -> str:
    low, high = (constant_text(F32, bound) for bound in _SAFE_DIVISORS)
    below, above = (
        e.pure(f"fcmp {test} float {scalar}, {bound}", scalar) for test, bound in (("ult", low), ("ugt", high))
    )
    return e.pure(f"or i1 {below}, {above}", below, above)


def _is_extreme(e: Emitter, block: Block, piece: str) -> str:
    """Where a number other than zero is too small, too large or NaN."""
    words, (low, high) = block.of(INT32), _SAFE_DIVIDENDS
    bits = e.value(f"bitcast {block.text} {piece} to {words.text}")
    size = both(e, words, bits, words.constant(0x7FFFFFFF))
    excess = e.value(f"sub {words.text} {size}, {words.constant(low)}")
    outside = compare(e, words, "ugt", excess, words.constant(high - low))
    return both(e, block.mask, outside, compare(e, words, "ne", size, words.constant(0)))


# -- integer division --------------------------------------------------------------------------------


def _safe_divisor(e: Emitter, block: Block, first: str, second: str, signed: bool) -> str:
    """The divisor, replaced by 1 where a division would trap: by zero, and the least number by -1, which wraps."""
    if not second.startswith("%") and second not in (block.constant(0), block.constant(-1)):
        return second
    bad = compare(e, block, "eq", second, block.constant(0))
    if signed:
        least = compare(e, block, "eq", first, block.constant(-1 << (block.element.bits - 1)))
        minus = compare(e, block, "eq", second, block.constant(-1))
        bad = e.value(f"or {block.mask.text} {bad}, {both(e, block.mask, least, minus)}")
    return choose(e, block, bad, block.constant(1), second)


def _exact_float(element: Element) -> Element:
    """The float whose quotients, truncated, are those of n-bit integers: what lies below a whole number does so by
    a relative distance of at least 2^-(n+1)."""
    return F32 if element.bits <= F16.bits else F64


def divide(e: Emitter, block: Block, first: str, second: str, signed: bool = True) -> str:
    """The quotient rounded towards zero. Blocks of narrow integers divide as floats: x86 divides no integer vectors."""
    divisor = _safe_divisor(e, block, first, second, signed)
    s, u = ("s", "si") if signed else ("u", "ui")
    if not block.lanes or block.element.bits == 64 or not divisor.startswith("%"):
        return e.value(f"{s}div {block.text} {first}, {divisor}")
    exact = block.of(_exact_float(block.element))
    left, right = (e.value(f"{u}tofp {block.text} {piece} to {exact.text}") for piece in (first, divisor))
    return e.value(f"fpto{u} {exact.text} {e.value(f'fdiv {exact.text} {left}, {right}')} to {block.text}")


def remainder(e: Emitter, block: Block, first: str, second: str, signed: bool = True) -> str:
    divisor = _safe_divisor(e, block, first, second, signed)
    if not block.lanes or block.element.bits == 64 or not divisor.startswith("%"):
        return e.value(f"{'s' if signed else 'u'}rem {block.text} {first}, {divisor}")
    product = e.value(f"mul {block.text} {divide(e, block, first, divisor, signed)}, {divisor}")
    return e.value(f"sub {block.text} {first}, {product}")


def _divide_unsigned(e: Emitter, block: Block, first: str, second: str) -> str:
    return divide(e, block, first, second, signed=False)


def _remainder_unsigned(e: Emitter, block: Block, first: str, second: str) -> str:
    return remainder(e, block, first, second, signed=False)


def _divide_rounding(toward: int) -> Compute:
    """Division rounded down (-1) or up (1): the truncated quotient, corrected where the remainder says so."""

    def compute(e: Emitter, block: Block, first: str, second: str) -> str:
        quotient = divide(e, block, first, second)
        product = e.value(f"mul {block.text} {quotient}, {second}")
        rest = e.value(f"sub {block.text} {first}, {product}")
        inexact = compare(e, block, "ne", rest, block.constant(0))
        signs = e.value(f"xor {block.text} {rest if toward < 0 else first}, {second}")
        wrong = compare(e, block, "slt" if toward < 0 else "sge", signs, block.constant(0))
        moved = e.value(f"add {block.text} {quotient}, {block.constant(toward)}")
        return choose(e, block, both(e, block.mask, inexact, wrong), moved, quotient)

    return compute


def _ceil_divide_unsigned(e: Emitter, block: Block, first: str, second: str) -> str:
    quotient = divide(e, block, first, second, signed=False)
    product = e.value(f"mul {block.text} {quotient}, {second}")
    inexact = compare(e, block, "ne", product, first)
    return e.value(f"add {block.text} {quotient}, {e.value(f'zext {block.mask.text} {inexact} to {block.text}')}")


def _extended(opcode: str, extension: str) -> OpEmitter:
    """Both halves of the result of an operation in twice the width."""

    def emit(e: Emitter, op: Operation) -> None:
        block, other = (e.block(result.type) for result in op.results)
        bits, halves = block.element.bits, []
        text = f"<{block.lanes} x i{2 * bits}>" if block.lanes else f"i{2 * bits}"
        shift = f"splat (i{2 * bits} {bits})" if block.lanes else str(bits)
        for row in zip(*[e.values[operand] for operand in op.operands], strict=True):
            first, second = (e.value(f"{extension} {block.text} {piece} to {text}") for piece in row)
            whole = e.value(f"{opcode} {text} {first}, {second}")
            high = e.value(f"lshr {text} {whole}, {shift}")
            halves.append([(whole, block), (high, other)])
        for result, pieces in zip(op.results, zip(*halves, strict=True), strict=True):
            e.values[result] = tuple([e.value(f"trunc {text} {piece} to {half.text}") for piece, half in pieces])

    return emit


# -- comparison, selection, constants ----------------------------------------------------------------

_FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _emit_compare(e: Emitter, op: Operation, predicate: str) -> None:
    left, *_ = op.operands
    block = e.block(left.type)
    rows = list(zip(*[e.values[operand] for operand in op.operands], strict=True))
    if block.element in NARROW_FLOATS:
        rows = [tuple([widen(e, block, piece) for piece in row]) for row in rows]
        block = block.of(F32)
    e.values[SSAValue.get(op)] = tuple([compare(e, block, predicate, first, second) for first, second in rows])


def _emit_arith_compare(e: Emitter, op: arith.CmpfOp | arith.CmpiOp) -> None:
    names = _FLOAT_PREDICATES if isinstance(op, arith.CmpfOp) else _INTEGER_PREDICATES
    _emit_compare(e, op, names[op.predicate.value.data])


def _emit_tile_compare(e: Emitter, op: tile.CompareOp) -> None:
    _emit_compare(e, op, op.predicate.data)


def _emit_select(e: Emitter, op: Operation) -> None:
    block = e.block(SSAValue.get(op).type)
    chooser, *_ = op.operands
    condition, first, second = (e.values[operand] for operand in op.operands)
    if not e.block(chooser.type).lanes:
        (scalar,) = condition
        condition = (e.splat(block.piece.mask, scalar),) * block.rows
    rows = zip(condition, first, second, strict=True)
    e.values[SSAValue.get(op)] = tuple([choose(e, block, *row) for row in rows])


def _emit_constant(e: Emitter, op: arith.ConstantOp) -> None:
    block, value = e.block(SSAValue.get(op).type), op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        e.values[SSAValue.get(op)] = (block.constant(value.value.data),)
    elif isinstance(value, DenseIntOrFPElementsAttr):
        e.values[SSAValue.get(op)] = _dense(block, value)
    else:
        raise unsupported(op, "an integer, a float or a dense constant")


def _dense(block: Block, attr: DenseIntOrFPElementsAttr[Any]) -> tuple[str, ...]:
    values = attr.get_values()
    if attr.is_splat():
        first, *_ = values
        return (block.constant(first),) * block.rows
    texts = [f"{block.element.register} {constant_text(block.element, value)}" for value in values]
    return tuple([f"<{', '.join(texts[at : at + block.lanes])}>" for at in range(0, len(texts), block.lanes)])


add, multiply = _binary("add"), _binary("mul")
add_float, multiply_float = _binary("fadd"), _binary("fmul")
_divide_float = elementwise(_binary("fdiv"))
either, differ = _binary("or"), _binary("xor")
maximum_float, minimum_float = _extremum("maximum"), _extremum("minimum")
maximum_signed, minimum_signed = _intrinsic("smax"), _intrinsic("smin")
maximum_unsigned, minimum_unsigned = _intrinsic("umax"), _intrinsic("umin")

ELEMENTWISE: dict[type[Operation], Compute] = {
    arith.AddfOp: add_float,
    arith.SubfOp: _binary("fsub"),
    arith.MulfOp: multiply_float,
    arith.NegfOp: _negate,
    arith.MaximumfOp: maximum_float,
    arith.MinimumfOp: minimum_float,
    arith.MaxnumfOp: _extremum_of_numbers("ogt"),
    arith.MinnumfOp: _extremum_of_numbers("olt"),
    arith.AddiOp: add,
    arith.SubiOp: _binary("sub"),
    arith.MuliOp: multiply,
    arith.DivSIOp: divide,
    arith.DivUIOp: _divide_unsigned,
    arith.RemSIOp: remainder,
    arith.RemUIOp: _remainder_unsigned,
    arith.FloorDivSIOp: _divide_rounding(-1),
    arith.CeilDivSIOp: _divide_rounding(1),
    arith.CeilDivUIOp: _ceil_divide_unsigned,
    arith.MaxSIOp: maximum_signed,
    arith.MinSIOp: minimum_signed,
    arith.MaxUIOp: maximum_unsigned,
    arith.MinUIOp: minimum_unsigned,
    arith.AndIOp: both,
    arith.OrIOp: either,
    arith.XOrIOp: differ,
    arith.ShLIOp: _binary("shl"),
    arith.ShRSIOp: _binary("ashr"),
    arith.ShRUIOp: _binary("lshr"),
}

ARITH: Table = {
    **{op: elementwise(compute) for op, compute in ELEMENTWISE.items()},
    arith.AddUIExtendedOp: _extended("add", "zext"),
    arith.MulUIExtendedOp: _extended("mul", "zext"),
    arith.MulSIExtendedOp: _extended("mul", "sext"),
    arith.CmpfOp: _emit_arith_compare,
    arith.CmpiOp: _emit_arith_compare,
    arith.DivfOp: _emit_divide_float,
    tile.CompareOp: _emit_tile_compare,
    arith.SelectOp: _emit_select,
    tile.SelectOp: _emit_select,
    arith.ConstantOp: _emit_constant,
}

"""Conversions between element types: what eager on x86 gives, also out of range.

bf16 is handled by its bits, rounded to nearest even; the AVX-512 instruction flushes denormals, so it serves where
there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import Operation

from ...ir import tile
from .blocks import BF16, BOOL, F16, F32, F64, INT16, INT32, INT64, NARROW_FLOATS, Block, Element, block_of
from .builder import Builder
from .emitter import Emitter, Table


def convert(b: Builder, opcode: str, source: Block, target: Block, piece: str) -> str:
    return piece if source is target else b.value(f"{opcode} {source.text} {piece} to {target.text}")


# -- floats ------------------------------------------------------------------------------------------


def widen(b: Builder, block: Block, piece: str) -> str:
    """bf16 or f16 as f32, exactly."""
    if block.element is F16:
        return convert(b, "fpext", block, block.of(F32), piece)
    wide = convert(b, "zext", block, block.of(INT32), piece)
    shifted = b.value(f"shl {block.of(INT32).text} {wide}, {block.of(INT32).constant(16)}")
    return convert(b, "bitcast", block.of(INT32), block.of(F32), shifted)


def narrow(b: Builder, block: Block, piece: str) -> str:
    """f32 rounded to bf16 or f16, whichever `block` holds: to nearest, ties to even, NaN stays NaN."""
    if block.element is F16:
        return convert(b, "fptrunc", block.of(F32), block, piece)
    if b.target.rounds_to_bf16 and block.lanes and block.lanes % PAIR_LANES == 0:
        return _round_pairs(b, block, piece)
    return _round_bits(b, block, piece)


PAIR_LANES = 32
"""Lanes that the AVX-512 instruction rounds at once, from two registers to one."""

DENORMAL = 0x20
"""The class of denormals in `vfpclassps`."""


def _round_pairs(b: Builder, block: Block, piece: str) -> str:
    """f32 as bf16 by an instruction, or by bits where some lane is denormal: five cycles for 32 lanes, not eleven."""
    floats, half, pair = block.of(F32), block_of(F32, (PAIR_LANES // 2,)), block_of(BF16, (PAIR_LANES,))
    halves = [b.part(floats, piece, start, half) for start in range(0, block.lanes, half.lanes)]
    result = f"<{PAIR_LANES} x bfloat>"
    rounded: list[str] = []
    left = iter(halves)
    for low, high in zip(left, left, strict=True):
        both = b.call(result, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", (half.text, high), (half.text, low))
        rounded.append(b.value(f"bitcast {result} {both} to {pair.text}"))
    name = "llvm.x86.avx512.fpclass.ps.512"
    rare = [b.call(half.mask.text, name, (half.text, lanes), ("i32", str(DENORMAL))) for lanes in halves]
    somewhere = b.any_lane(reduce(lambda one, other: b.value(f"or {half.mask.text} {one}, {other}"), rare), half.lanes)
    joined = b.join(block, rounded, pair)
    (result,) = b.conditional(somewhere, [(block.text, joined)], lambda: [_round_bits(b, block, piece)])
    return result


def _round_bits(b: Builder, block: Block, piece: str) -> str:
    """f32 as bf16: the upper half of its bits, one more where the lower half is more than half a unit."""
    words, floats = block.of(INT32), block.of(F32)
    bits = convert(b, "bitcast", floats, words, piece)
    upper = b.value(f"lshr {words.text} {bits}, {words.constant(16)}")
    odd = b.value(f"and {words.text} {upper}, {words.constant(1)}")
    bias = b.value(f"add {words.text} {odd}, {words.constant(0x7FFF)}")
    rounded = b.value(f"add {words.text} {bits}, {bias}")
    nan = b.value(f"fcmp uno {floats.text} {piece}, {piece}")
    quiet = words.constant(0x7FC00000)
    return _upper_half(
        b, words, b.value(f"select {block.mask.text} {nan}, {words.text} {quiet}, {words.text} {rounded}")
    )


def _upper_half(b: Builder, words: Block, piece: str) -> str:
    """The upper 16 bits of 32-bit words. Of a vector, every second 16-bit lane: one instruction for two registers,
    where shifting and truncating takes six."""
    if not words.lanes:
        return b.value(f"trunc i32 {b.value(f'lshr i32 {piece}, 16')} to i16")
    halves = block_of(INT16, (2 * words.lanes,))
    return b.shuffle(halves, convert(b, "bitcast", words, halves, piece), "poison", range(1, 2 * words.lanes, 2))


def _round_to_odd(b: Builder, block: Block, piece: str) -> str:
    """f64 as the f32 towards zero from it, with the last bit set if inexact: a second rounding then gives what one
    rounding from f64 would."""
    doubles, floats, words = block.of(F64), block.of(F32), block.of(INT32)
    nearest = convert(b, "fptrunc", doubles, floats, piece)
    back = convert(b, "fpext", floats, doubles, nearest)
    inexact = b.value(f"fcmp one {doubles.text} {back}, {piece}")
    magnitudes = [b.intrinsic("fabs", doubles, value) for value in (back, piece)]
    beyond = b.value(f"fcmp ogt {doubles.text} {magnitudes[0]}, {magnitudes[1]}")
    excess, sticky = (convert(b, "zext", block.mask, words, mask) for mask in (beyond, inexact))
    towards_zero = b.value(f"sub {words.text} {convert(b, 'bitcast', floats, words, nearest)}, {excess}")
    return convert(b, "bitcast", words, floats, b.value(f"or {words.text} {towards_zero}, {sticky}"))


def extend_float(b: Builder, source: Block, target: Block, piece: str) -> str:
    if source.element in NARROW_FLOATS:
        source, piece = source.of(F32), widen(b, source, piece)
    return convert(b, "fpext", source, target, piece)


def truncate_float(b: Builder, source: Block, target: Block, piece: str) -> str:
    if target.element not in NARROW_FLOATS:
        return convert(b, "fptrunc", source, target, piece)
    if source.element is F64:
        piece = _round_to_odd(b, target, piece)
    return narrow(b, target, piece)


# -- floats and integers -----------------------------------------------------------------------------


def float_to_signed(b: Builder, source: Block, target: Block, piece: str) -> str:
    """Truncation. What does not fit the register integer, NaN included, is its least number; narrow integers take
    the low bits, as x86 does it."""
    return _float_to_integer(b, source, target, piece, INT64 if target.element is INT64 else INT32)


def float_to_unsigned(b: Builder, source: Block, target: Block, piece: str) -> str:
    """Truncation by way of i64, of which the low bits are taken."""
    return _float_to_integer(b, source, target, piece, INT64)


def _float_to_integer(b: Builder, source: Block, target: Block, piece: str, register: Element) -> str:
    if source.element in NARROW_FLOATS:
        source, piece = source.of(F32), widen(b, source, piece)
    whole, limit = source.of(register), source.constant(2.0 ** (register.bits - 1))
    fits = b.value(f"fcmp olt {source.text} {b.intrinsic('fabs', source, piece)}, {limit}")
    truncated = convert(b, "fptosi", source, whole, piece)
    least = whole.constant(-1 << (register.bits - 1))
    result = b.value(f"select {source.mask.text} {fits}, {whole.text} {truncated}, {whole.text} {least}")
    return convert(b, "trunc", whole, target, result)


def _integer_to_float(opcode: str) -> Conversion:
    """Eager makes narrow floats from integers by way of f32."""

    def convert_integer(b: Builder, source: Block, target: Block, piece: str) -> str:
        if target.element not in NARROW_FLOATS:
            return convert(b, opcode, source, target, piece)
        return narrow(b, target, convert(b, opcode, source, target.of(F32), piece))

    return convert_integer


# -- integers and bits -------------------------------------------------------------------------------


def _integer(extension: str) -> Conversion:
    """To a wider integer by the extension, to a narrower one by its low bits."""

    def convert_integer(b: Builder, source: Block, target: Block, piece: str) -> str:
        opcode = extension if target.element.bits > source.element.bits else "trunc"
        return convert(b, opcode, source, target, piece)

    return convert_integer


def _bitcast(b: Builder, source: Block, target: Block, piece: str) -> str:
    same = source.element.register == target.element.register
    return piece if same else convert(b, "bitcast", source, target, piece)


# -- to and from memory ------------------------------------------------------------------------------


def from_memory(b: Builder, block: Block, piece: str) -> str:
    """A loaded piece as it lies in registers."""
    if block.element is not BOOL:
        return piece
    return b.value(f"icmp ne {block.stored.text} {piece}, {block.stored.constant(0)}")


def to_memory(b: Builder, block: Block, piece: str) -> str:
    return piece if block.element is not BOOL else convert(b, "zext", block, block.stored, piece)


Conversion = Callable[[Builder, Block, Block, str], str]
"""(builder, source block, target block, piece) → piece."""


CONVERSIONS: dict[str, Conversion] = {
    "extf": extend_float,
    "truncf": truncate_float,
    "fptosi": float_to_signed,
    "fptoui": float_to_unsigned,
    "sitofp": _integer_to_float("sitofp"),
    "uitofp": _integer_to_float("uitofp"),
    "extsi": _integer("sext"),
    "extui": _integer("zext"),
    "trunci": _integer("trunc"),
    "index_cast": _integer("sext"),
    "bitcast": _bitcast,
}


def _emit(e: Emitter, op: Operation, conversion: Conversion) -> None:
    (operand,), (result,) = op.operands, op.results
    source, target = e.block(operand.type), e.block(result.type)
    e.values[result] = tuple([conversion(e, source, target, piece) for piece in e.values[operand]])


def _emit_arith(e: Emitter, op: Operation) -> None:
    _emit(e, op, CONVERSIONS[op.name.removeprefix("arith.")])


def _emit_tile(e: Emitter, op: tile.ConvertOp) -> None:
    _emit(e, op, CONVERSIONS[op.kind.data])


_ARITH_OPS: tuple[type[Operation], ...] = (
    arith.ExtFOp, arith.TruncFOp, arith.FPToSIOp, arith.FPToUIOp, arith.SIToFPOp, arith.UIToFPOp, arith.ExtSIOp,
    arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp, arith.BitcastOp,
)  # fmt: skip

CONVERT: Table = {**dict.fromkeys(_ARITH_OPS, _emit_arith), tile.ConvertOp: _emit_tile}

"""Elementwise ops and reductions of the tile level as ops that Triton lowers: one row per op.

Results are eager's: bf16 and f16 are computed in f32 and rounded once per op, quotients and roots are rounded
correctly, and functions come from libdevice, as in eager's own kernels. Nothing is contracted or reassociated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, IndexType, IntegerType, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...ir import tile, tt
from ...ir.errors import LoweringError
from ...ir.tt import libdevice
from ...ir.tt.ops import ROUND_TO_BF16, block_type, element_of, shape_of
from .block_builder import CASTS as SCALAR_CASTS
from .block_builder import COMBINER_OPS, ON_BOOLS
from .tt_builder import TritonBuilder

Compute = Callable[..., SSAValue]
"""(builder, *operands) → the result, on scalars or blocks of any element but bf16 and f16."""

Emit = Callable[[TritonBuilder, Any], None]


def is_narrow(element: Attribute) -> bool:
    return isinstance(element, BFloat16Type | Float16Type)


def widen(b: TritonBuilder, value: SSAValue) -> SSAValue:
    """Narrow floats as f32."""
    rounded = value.owner
    if b.rounds_in_place and isinstance(rounded, arith.TruncFOp) and isinstance(element_of(value.type), BFloat16Type):
        return b.add(tt.InlineAsmOp.make(ROUND_TO_BF16, rounded.input))
    return b.op(arith.ExtFOp, value, element=f32) if is_narrow(element_of(value.type)) else value


def narrow(b: TritonBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    """f32 rounded to the element, if that is narrow."""
    return (
        b.op(arith.TruncFOp, value, element=element) if is_narrow(element) and element_of(value.type) == f32 else value
    )


def elementwise(compute: Compute) -> Emit:
    """Applies `compute` in f32 where elements are narrow."""

    def emit(b: TritonBuilder, op: Operation) -> None:
        operands = [widen(b, b.values[operand]) for operand in op.operands]
        element = element_of_tile(op.results[0].type)
        b.values[op.results[0]] = narrow(b, compute(b, *operands), element)

    return emit


def element_of_tile(type_: Attribute) -> Attribute:
    return tile.ops.element_of(type_)


def same(op_class: type[Operation]) -> Compute:
    return lambda b, *operands: b.op(op_class, *operands)


def _divide(b: TritonBuilder, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    if element_of(lhs.type) == f32:
        return b.add(tt.PreciseDivFOp.make(lhs, rhs))
    return b.op(arith.DivfOp, lhs, rhs)


def _root(b: TritonBuilder, value: SSAValue) -> SSAValue:
    return b.add(tt.PreciseSqrtOp.make(value)) if element_of(value.type) == f32 else b.op(math.SqrtOp, value)


def _negate(b: TritonBuilder, value: SSAValue) -> SSAValue:
    """A product, since Triton 3.6 and 3.7 do not lower `arith.negf` on blocks."""
    return b.op(arith.MulfOp, value, b.constant(-1.0, value.type))


def library(name: str) -> Compute:
    """A function of libdevice, `__nv_<name>` on f64 and with an f behind it on f32."""

    def compute(b: TritonBuilder, *operands: SSAValue) -> SSAValue:
        suffix = "f" if element_of(operands[0].type) == f32 else ""
        return b.add(tt.ExternElementwiseOp.make(f"__nv_{name}{suffix}", operands))

    return compute


def _count(narrow_name: str, wide_name: str) -> Compute:
    """A function of libdevice on i32 and another on i64, both with an i32 result."""

    def compute(b: TritonBuilder, value: SSAValue) -> SSAValue:
        element = element_of(value.type)
        assert isinstance(element, IntegerType)
        wide = element.width.data > 32
        operand = b.cast_integer(value, i64 if wide else i32, signed=False)
        found = b.add(tt.ExternElementwiseOp.make(f"__nv_{wide_name if wide else narrow_name}", [operand], i32))
        return b.cast_integer(found, element, signed=False)

    return compute


def _leading_zeros(b: TritonBuilder, value: SSAValue) -> SSAValue:
    element = element_of(value.type)
    assert isinstance(element, IntegerType)
    count = _count(*libdevice.COUNTS[math.CountLeadingZerosOp])(b, value)
    beyond = max(32 - element.width.data, 0)
    return b.op(arith.SubiOp, count, b.constant(beyond, count.type)) if beyond else count


def _integer_power(b: TritonBuilder, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """Square and multiply over all bits; a negative exponent gives the whole part of the reciprocal."""
    type_ = base.type
    one, zero = b.constant(1, type_), b.constant(0, type_)
    power, square = one, base
    for bit in range(element_of(type_).bitwidth):  # type: ignore[attr-defined]
        odd = b.op(arith.AndIOp, b.op(arith.ShRUIOp, exponent, b.constant(bit, type_)), one)
        power = b.op(arith.MuliOp, power, select(b, compare(b, "ne", odd, zero), square, one))
        square = b.op(arith.MuliOp, square, square)
    unit = compare(b, "ule", b.op(arith.AddiOp, base, one), b.constant(2, type_))  # -1, 0 or 1
    negative = compare(b, "slt", exponent, zero)
    nonzero = b.op(arith.AndIOp, unit, compare(b, "ne", base, zero))
    return select(b, negative, select(b, nonzero, power, zero), power)


# -- comparison, selection, casts --------------------------------------------------------------------


def compare(b: TritonBuilder, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    lhs, rhs = widen(b, lhs), widen(b, rhs)
    op = tt.CmpIOp if isinstance(element_of(lhs.type), IntegerType) else tt.CmpFOp
    return b.add(op.make(predicate, lhs, rhs))


def select(b: TritonBuilder, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return b.add(tt.SelectOp.make(b.splat(condition, shape_of(lhs.type)), lhs, rhs))


def _emit_compare(b: TritonBuilder, op: tile.CompareOp) -> None:
    b.values[op.result] = compare(b, op.predicate.data, b.values[op.lhs], b.values[op.rhs])


def _emit_select(b: TritonBuilder, op: tile.SelectOp) -> None:
    b.values[op.result] = select(b, *(b.values[operand] for operand in op.operands))


def _emit_constant(b: TritonBuilder, op: arith.ConstantOp) -> None:
    element = b.index if isinstance(op.result.type, IndexType) else op.result.type
    b.values[op.result] = b.scalar(op.value.value.data, element)  # type: ignore[union-attr]


def _emit_cast(b: TritonBuilder, op: Operation, kind: str) -> None:
    value, element = widen(b, b.values[op.operands[0]]), element_of_tile(op.results[0].type)
    value = b.op(CASTS[kind], value, element=f32 if is_narrow(element) else element)
    b.values[op.results[0]] = narrow(b, value, element)


def _emit_convert(b: TritonBuilder, op: tile.ConvertOp) -> None:
    _emit_cast(b, op, op.kind.data)


def _emit_scalar_cast(b: TritonBuilder, op: Operation) -> None:
    _emit_cast(b, op, op.name.removeprefix("arith."))


def _emit_extend_or_truncate(b: TritonBuilder, op: Operation) -> None:
    """`arith.extf` and `arith.truncf`: the element decides what is left to do."""
    value, element = widen(b, b.values[op.operands[0]]), element_of_tile(op.results[0].type)
    own = element_of(value.type)
    if own == f64 and element != f64:
        value = b.op(arith.TruncFOp, value, element=f32)
    elif own == f32 and element == f64:
        value = b.op(arith.ExtFOp, value, element=f64)
    b.values[op.results[0]] = narrow(b, value, element)


def _emit_index_cast(b: TritonBuilder, op: arith.IndexCastOp) -> None:
    wanted = op.result.type
    target = wanted if isinstance(wanted, IntegerType) else b.index
    b.values[op.result] = b.cast_integer(b.values[op.input], target)


def _emit_bitcast(b: TritonBuilder, op: Operation) -> None:
    b.values[op.results[0]] = b.add(tt.BitcastOp.make(b.values[op.operands[0]], element_of_tile(op.results[0].type)))


CASTS: dict[str, type[Operation]] = {
    "extsi": tt.ExtSIOp,
    "extui": tt.ExtUIOp,
    "trunci": tt.TruncIOp,
    "sitofp": tt.SIToFPOp,
    "uitofp": tt.UIToFPOp,
    "fptosi": tt.FPToSIOp,
    "fptoui": tt.FPToUIOp,
}

# -- reductions --------------------------------------------------------------------------------------


def combine_scalars(b: TritonBuilder, name: str, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> list[SSAValue]:
    """One combination of the combiner of that name."""
    if name in ("argmax", "argmin"):
        takes = _beats(b, name, left, right)
        return [select(b, takes, other, one) for one, other in zip(left, right, strict=True)]
    on_integers, on_floats = COMBINER_OPS[name]
    is_integer = isinstance(element_of(left[0].type), IntegerType)
    return [b.op(on_integers if is_integer else on_floats, left[0], right[0])]


def _beats(b: TritonBuilder, name: str, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> SSAValue:
    """Where the right pair of key and index wins: NaN over numbers, then the key, then the smaller index."""
    (key, index), (other, other_index) = left, right
    earlier = compare(b, "slt", other_index, index)
    is_float = not isinstance(element_of(key.type), IntegerType)
    order = "gt" if name == "argmax" else "lt"
    better = compare(b, f"o{order}" if is_float else f"s{order}", other, key)
    tied = b.op(arith.AndIOp, compare(b, "oeq" if is_float else "eq", other, key), earlier)
    takes = b.op(arith.OrIOp, better, tied)
    if not is_float:
        return takes
    beats_nan = b.op(arith.OrIOp, compare(b, "ord", key, key), earlier)
    return b.op(arith.OrIOp, takes, b.op(arith.AndIOp, compare(b, "uno", other, other), beats_nan))


def _emit_reduce(b: TritonBuilder, op: tile.ReduceOp) -> None:
    name = op.combiner.data
    elements = [element_of_tile(value.type) for value in op.values]
    if elements == [i1]:
        name = ON_BOOLS.get(name, name)
    values = [_reducible(b, b.values[value]) for value in op.values]
    made = tt.ReduceOp.make(values, int(op.dimension.value.data))
    with b.inside(made.block, isolated=True):
        count = len(values)
        combined = combine_scalars(b, name, made.block.args[:count], made.block.args[count:])
        b.append(tt.ReduceReturnOp.make(combined))
    b.append(made)
    for result, element, value in zip(op.results, elements, made.results, strict=True):
        b.values[result] = _reduced(b, value, element)


def _emit_scan(b: TritonBuilder, op: tile.ScanOp) -> None:
    element = element_of_tile(op.value.type)
    name = ON_BOOLS.get(op.combiner.data, op.combiner.data) if element == i1 else op.combiner.data
    made = tt.ScanOp.make([_reducible(b, b.values[op.value])], int(op.dimension.value.data))
    with b.inside(made.block, isolated=True):
        combined = combine_scalars(b, name, made.block.args[:1], made.block.args[1:])
        b.append(tt.ScanReturnOp.make(combined))
    b.append(made)
    b.values[op.result] = _reduced(b, made.results[0], element)


def _reducible(b: TritonBuilder, value: SSAValue) -> SSAValue:
    """A value in an element that reductions take."""
    if element_of(value.type) == i1:
        return b.op(tt.ExtUIOp, value, element=i32)
    return widen(b, value)


def _reduced(b: TritonBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    if element == i1:
        return compare(b, "ne", value, b.constant(0, value.type))
    return narrow(b, value, element)


# -- random numbers ----------------------------------------------------------------------------------

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def _signed(word: int) -> int:
    """The i32 of the same bits."""
    return word - (1 << 32) if word >> 31 else word


def _words(b: TritonBuilder, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Low and high half of i64."""
    high = b.op(arith.ShRUIOp, value, b.constant(32, value.type))
    return b.op(tt.TruncIOp, value, element=i32), b.op(tt.TruncIOp, high, element=i32)


def _emit_philox(b: TritonBuilder, op: tile.PhiloxOp) -> None:
    """Philox4x32-10 on 32-bit words (Salmon et al., SC'11)."""
    shape = tile.ops.shape_of(op.counter.type)
    type_ = block_type(i32, shape)
    stream = int(op.stream.value.data)
    x0, x1 = _words(b, b.values[op.counter])
    x2, x3 = (b.constant(_signed(word), type_) for word in (stream & 0xFFFFFFFF, stream >> 32))
    keys = list(_words(b, b.values[op.seed]))
    first, second = (b.constant(_signed(factor), type_) for factor in _FACTORS)
    for _ in range(_ROUNDS):
        k0, k1 = (b.splat(key, shape) for key in keys)
        low = (b.op(arith.MuliOp, first, x0), b.op(arith.MuliOp, second, x2))
        high = (b.add(tt.MulhiUIOp.make(first, x0)), b.add(tt.MulhiUIOp.make(second, x2)))
        x0, x2 = (
            b.op(arith.XOrIOp, b.op(arith.XOrIOp, one, other), key)
            for one, other, key in ((high[1], x1, k0), (high[0], x3, k1))
        )
        x1, x3 = low[1], low[0]
        keys = [b.op(arith.AddiOp, key, b.scalar(_signed(step), i32)) for key, step in zip(keys, _STEPS, strict=True)]
    b.values[op.bits] = x0


# -- the table ---------------------------------------------------------------------------------------

_SAME: tuple[type[Operation], ...] = (
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,
    arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp,
    arith.CeilDivUIOp, arith.RemSIOp, arith.RemUIOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp,
    arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp, math.AbsFOp, math.AbsIOp,
    math.FloorOp, math.CeilOp, math.FmaOp,
)  # fmt: skip
"""Ops that Triton lowers as they are."""

ARITHMETIC: dict[type[Operation], Emit] = {
    **{op: elementwise(same(op)) for op in _SAME},
    **{op: elementwise(library(name)) for op, name in libdevice.FUNCTIONS.items()},
    arith.DivfOp: elementwise(_divide),
    arith.NegfOp: elementwise(_negate),
    math.SqrtOp: elementwise(_root),
    math.IPowIOp: elementwise(_integer_power),
    math.CtPopOp: elementwise(_count(*libdevice.COUNTS[math.CtPopOp])),
    math.CountLeadingZerosOp: elementwise(_leading_zeros),
    arith.ConstantOp: _emit_constant,
    arith.IndexCastOp: _emit_index_cast,
    arith.ExtFOp: _emit_extend_or_truncate,
    arith.TruncFOp: _emit_extend_or_truncate,
    arith.BitcastOp: _emit_bitcast,
    **dict.fromkeys(SCALAR_CASTS, _emit_scalar_cast),
    tile.ConvertOp: _emit_convert,
    tile.CompareOp: _emit_compare,
    tile.SelectOp: _emit_select,
    tile.ReduceOp: _emit_reduce,
    tile.ScanOp: _emit_scan,
    tile.PhiloxOp: _emit_philox,
}
"""Op of a tile kernel → what emits it."""


def unsupported(op: Operation, expected: str) -> LoweringError:
    return LoweringError("convert-tile-to-tt", expected=expected, got=op.name)


__all__ = ["ARITHMETIC", "Emit", "unsupported"]

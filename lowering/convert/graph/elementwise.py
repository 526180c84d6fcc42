"""Elementwise ops: one row per op, saying how its scalar is computed from scalars.

bf16 and f16 arrive as f32 and leave rounded once. Rows are chosen by the operands' element type.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....ir import graph, loop
from ....ir.dtypes import BOOL, FLOAT32, UINT8, element_of, is_float
from . import division
from .conversion import convert, narrow, reinterpret
from .errors import not_convertible
from .kernels import Kernel
from .scalars import Scalars
from .sources import Values

Expansion = Callable[..., SSAValue]
"""(scalars, *operands) → the scalar."""

Table = dict[type[Operation], Expansion]


def _plain(op: type[Operation]) -> Expansion:
    """One op that takes the operands as they are."""
    return lambda s, *operands: s.apply(op, *operands)


def _same(s: Scalars, x: SSAValue) -> SSAValue:
    return x


def _ones(s: Scalars, x: SSAValue) -> SSAValue:
    """All bits set, in the type of x."""
    return s.constant(1 if x.type == i1 else -1, x.type)


# -- floats ------------------------------------------------------------------------------------------


def _sigmoid(s: Scalars, x: SSAValue) -> SSAValue:
    one = s.constant(1.0, x.type)
    falling = s.apply(math.ExpOp, s.apply(arith.NegfOp, x))
    return s.apply(arith.DivfOp, one, s.apply(arith.AddfOp, one, falling))


def _reciprocal(s: Scalars, x: SSAValue) -> SSAValue:
    return s.apply(arith.DivfOp, s.constant(1.0, x.type), x)


def _probability(s: Scalars, x: SSAValue) -> SSAValue:
    above, below = s.compare("oge", x, s.constant(0.0, x.type)), s.compare("ole", x, s.constant(1.0, x.type))
    inside = s.apply(arith.AndIOp, above, below)
    s.append(loop.AssertOp.make(inside, s.constant(0, i64), "RuntimeError", graph.ProbabilityOp.MESSAGE))
    return x


def _float_sign(s: Scalars, x: SSAValue) -> SSAValue:
    zero = s.constant(0.0, x.type)
    negative = s.select(s.compare("olt", x, zero), s.constant(-1.0, x.type), zero)
    return s.select(s.compare("ogt", x, zero), s.constant(1.0, x.type), negative)


def _float_relu(s: Scalars, x: SSAValue) -> SSAValue:
    """Keeps NaN and -0, as eager's maximum does."""
    zero = s.constant(0.0, x.type)
    return s.select(s.compare("olt", x, zero), zero, x)


def _is_nan(s: Scalars, x: SSAValue) -> SSAValue:
    return s.compare("uno", x, x)


def _is_inf(s: Scalars, x: SSAValue) -> SSAValue:
    return s.compare("oeq", s.apply(math.AbsFOp, x), s.constant(float("inf"), x.type))


def _sign_bit(s: Scalars, x: SSAValue) -> SSAValue:
    bits = IntegerType(32 if x.type == FLOAT32 else 64)
    return s.compare("slt", s.cast(arith.BitcastOp, x, bits), s.constant(0, bits))


FLOAT: Table = {
    graph.ExpOp: _plain(math.ExpOp),
    graph.Exp2Op: _plain(math.Exp2Op),
    graph.Expm1Op: _plain(math.ExpM1Op),
    graph.LogOp: _plain(math.LogOp),
    graph.Log2Op: _plain(math.Log2Op),
    graph.Log10Op: _plain(math.Log10Op),
    graph.Log1pOp: _plain(math.Log1pOp),
    graph.SqrtOp: _plain(math.SqrtOp),
    graph.RsqrtOp: _plain(math.RsqrtOp),
    graph.ReciprocalOp: _reciprocal,
    graph.SinOp: _plain(math.SinOp),
    graph.CosOp: _plain(math.CosOp),
    graph.TanOp: _plain(math.TanOp),
    graph.AsinOp: _plain(math.AsinOp),
    graph.AcosOp: _plain(math.AcosOp),
    graph.AtanOp: _plain(math.AtanOp),
    graph.SinhOp: _plain(math.SinhOp),
    graph.CoshOp: _plain(math.CoshOp),
    graph.TanhOp: _plain(math.TanhOp),
    graph.AsinhOp: _plain(math.AsinhOp),
    graph.AcoshOp: _plain(math.AcoshOp),
    graph.AtanhOp: _plain(math.AtanhOp),
    graph.ErfOp: _plain(math.ErfOp),
    graph.SigmoidOp: _sigmoid,
    graph.FloorOp: _plain(math.FloorOp),
    graph.CeilOp: _plain(math.CeilOp),
    graph.RoundOp: _plain(math.RoundEvenOp),
    graph.TruncOp: _plain(math.TruncOp),
    graph.NegOp: _plain(arith.NegfOp),
    graph.AbsOp: _plain(math.AbsFOp),
    graph.SignOp: _float_sign,
    graph.ReluOp: _float_relu,
    graph.IsNanOp: _is_nan,
    graph.IsInfOp: _is_inf,
    graph.SignBitOp: _sign_bit,
    graph.AddOp: _plain(arith.AddfOp),
    graph.SubOp: _plain(arith.SubfOp),
    graph.MulOp: _plain(arith.MulfOp),
    graph.DivOp: _plain(arith.DivfOp),
    graph.FloorDivOp: division.float_flooring_quotient,
    graph.TruncDivOp: division.float_truncating_quotient,
    graph.RemainderOp: division.float_flooring_rest,
    graph.FmodOp: division.float_truncating_rest,
    graph.PowOp: _plain(math.PowFOp),
    graph.MaximumOp: _plain(arith.MaximumfOp),
    graph.MinimumOp: _plain(arith.MinimumfOp),
    graph.Atan2Op: _plain(math.Atan2Op),
    graph.CopySignOp: _plain(math.CopySignOp),
    graph.FmaOp: _plain(math.FmaOp),
    graph.ProbabilityOp: _probability,
}

# -- integers ----------------------------------------------------------------------------------------


def _negative(s: Scalars, x: SSAValue) -> SSAValue:
    return s.apply(arith.SubiOp, s.constant(0, x.type), x)


def _sign(s: Scalars, x: SSAValue) -> SSAValue:
    zero = s.constant(0, x.type)
    negative = s.select(s.compare("slt", x, zero), s.constant(-1, x.type), zero)
    return s.select(s.compare("sgt", x, zero), s.constant(1, x.type), negative)


def _unsigned_sign(s: Scalars, x: SSAValue) -> SSAValue:
    return s.apply(arith.MinUIOp, x, s.constant(1, x.type))


def _relu(s: Scalars, x: SSAValue) -> SSAValue:
    return s.apply(arith.MaxSIOp, x, s.constant(0, x.type))


def _not(s: Scalars, x: SSAValue) -> SSAValue:
    return s.apply(arith.XOrIOp, x, _ones(s, x))


def _unsigned_power(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """In i32, whose low bits wrap alike, because exponents of `math.ipowi` are signed."""
    wide = (s.cast(arith.ExtUIOp, value, i32) for value in (x, y))
    return s.cast(arith.TruncIOp, s.apply(math.IPowIOp, *wide), x.type)


def _width(x: SSAValue) -> int:
    assert isinstance(x.type, IntegerType)
    width: int = x.type.width.data
    return width


def _shift_left(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """0 for a shift that is negative or not below the width; unsigned comparison covers both."""
    zero = s.constant(0, x.type)
    fits = s.compare("ult", y, s.constant(_width(x), x.type))
    return s.select(fits, s.apply(arith.ShLIOp, x, s.select(fits, y, zero)), zero)


def _shift_right(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """At most by the width - 1, so that only the sign is left."""
    return s.apply(arith.ShRSIOp, x, s.apply(arith.MinUIOp, y, s.constant(_width(x) - 1, x.type)))


def _unsigned_shift_right(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    zero = s.constant(0, x.type)
    fits = s.compare("ult", y, s.constant(_width(x), x.type))
    return s.select(fits, s.apply(arith.ShRUIOp, x, s.select(fits, y, zero)), zero)


BITS: Table = {
    graph.NotOp: _not,
    graph.AndOp: _plain(arith.AndIOp),
    graph.OrOp: _plain(arith.OrIOp),
    graph.XorOp: _plain(arith.XOrIOp),
}

SIGNED: Table = {
    **BITS,
    graph.NegOp: _negative,
    graph.AbsOp: _plain(math.AbsIOp),
    graph.SignOp: _sign,
    graph.ReluOp: _relu,
    graph.AddOp: _plain(arith.AddiOp),
    graph.SubOp: _plain(arith.SubiOp),
    graph.MulOp: _plain(arith.MuliOp),
    graph.FloorDivOp: division.flooring_quotient,
    graph.TruncDivOp: division.truncating_quotient,
    graph.RemainderOp: division.flooring_rest,
    graph.FmodOp: division.truncating_rest,
    graph.PowOp: _plain(math.IPowIOp),
    graph.MaximumOp: _plain(arith.MaxSIOp),
    graph.MinimumOp: _plain(arith.MinSIOp),
    graph.ShlOp: _shift_left,
    graph.ShrOp: _shift_right,
}

UNSIGNED: Table = {
    **SIGNED,
    graph.AbsOp: _same,
    graph.SignOp: _unsigned_sign,
    graph.ReluOp: _same,
    graph.FloorDivOp: division.unsigned_quotient,
    graph.TruncDivOp: division.unsigned_quotient,
    graph.RemainderOp: division.unsigned_rest,
    graph.FmodOp: division.unsigned_rest,
    graph.PowOp: _unsigned_power,
    graph.MaximumOp: _plain(arith.MaxUIOp),
    graph.MinimumOp: _plain(arith.MinUIOp),
    graph.ShrOp: _unsigned_shift_right,
}


def table_for(element: Attribute) -> Table:
    """The rows for operands of that element type."""
    if is_float(element):
        return FLOAT
    if element == BOOL:
        return BITS
    return UNSIGNED if element == UINT8 else SIGNED


# -- comparison --------------------------------------------------------------------------------------

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_SIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


def predicate_for(name: str, element: Attribute) -> str:
    """The predicate of the scalar comparison on an element type."""
    if is_float(element):
        return _FLOAT_PREDICATES[name]
    return (_UNSIGNED_PREDICATES if element in (BOOL, UINT8) else _SIGNED_PREDICATES)[name]


# -- from ops to kernels -----------------------------------------------------------------------------


def _compute(kernel: Kernel, op: graph.ElementwiseOp) -> SSAValue:
    expansion = table_for(element_of(op.operands[0].type)).get(type(op))
    if expansion is None:
        raise not_convertible(op)
    value = expansion(kernel, *[kernel.read_wide(operand) for operand in op.operands])
    return narrow(kernel, value, op.element) if is_float(op.element) else value


def _compare(kernel: Kernel, op: graph.CompareOp) -> SSAValue:
    predicate = predicate_for(op.predicate.data, element_of(op.lhs.type))
    return kernel.compare(predicate, kernel.read_wide(op.lhs), kernel.read_wide(op.rhs))


def _select(kernel: Kernel, op: graph.SelectOp) -> SSAValue:
    return kernel.select(*[kernel.read(operand) for operand in op.operands])


def _copy(kernel: Kernel, op: graph.CopyOp) -> SSAValue:
    return kernel.read(op.operand)


def _convert(kernel: Kernel, op: graph.ConvertOp) -> SSAValue:
    return convert(kernel, kernel.read(op.operand), element_of(op.operand.type), op.element)


def _bitcast(kernel: Kernel, op: graph.BitcastOp) -> SSAValue:
    return reinterpret(kernel, kernel.read(op.operand), element_of(op.operand.type), op.element)


_SPECIAL: dict[type[Operation], Callable[..., SSAValue]] = {
    graph.CompareOp: _compare,
    graph.SelectOp: _select,
    graph.CopyOp: _copy,
    graph.ConvertOp: _convert,
    graph.BitcastOp: _bitcast,
}
"""Ops that move values or change their type."""


def elementwise(values: Values, op: graph.ElementwiseOp) -> Kernel:
    kernel = Kernel.of(values, op)
    kernel.enter_parallel(op.sizes)
    kernel.write(_SPECIAL.get(type(op), _compute)(kernel, op))
    return kernel

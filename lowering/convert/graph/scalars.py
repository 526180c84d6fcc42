"""Appends scalar `arith` and `math` ops to a block, so that expansions read like formulas.

Values are scalars of the loop level; nothing here knows of tensors, loops or graph ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, LocationAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....ir import loop
from ....ir.expr import Expr

Number = bool | int | float

_PREDICATES: dict[type[Operation], list[str]] = {
    arith.CmpfOp: arith.CMPF_COMPARISON_OPERATIONS,
    arith.CmpiOp: arith.CMPI_COMPARISON_OPERATIONS,
}
"""The comparison ops and the names of their predicates in the order of their numbers."""


class Scalars:
    """Appends to `block`, which callers may exchange, at one source location."""

    def __init__(self, block: Block, location: LocationAttr) -> None:
        self.block = block
        self.location = location
        self._constants: dict[tuple[Block, Attribute], SSAValue] = {}

    def append(self, op: Operation) -> None:
        op.location = self.location
        self.block.add_op(op)

    def add(self, op: Operation) -> SSAValue:
        """Appends an op; its first result."""
        op.location = self.location
        self.block.add_op(op)
        return SSAValue.get(op)

    def _create(
        self, op: type[Operation], operands: Sequence[SSAValue], type_: Attribute, properties: dict[str, Attribute]
    ) -> SSAValue:
        made = op.create(operands=operands, result_types=(type_,), properties=properties, location=self.location)
        self.block.add_op(made)
        return SSAValue.get(made)

    def apply(self, op: type[Operation], *operands: SSAValue) -> SSAValue:
        """An op whose result has the type of its operands."""
        first, *_ = operands
        return self._create(op, operands, first.type, default_properties(op))

    def cast(self, op: type[Operation], operand: SSAValue, type_: Attribute) -> SSAValue:
        """A conversion; none where the type is right already."""
        if operand.type == type_:
            return operand
        return self._create(op, (operand,), type_, default_properties(op))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`arith.cmpf` or `arith.cmpi` by the operands' type, e.g. "oeq" or "slt"."""
        op = arith.CmpfOp if isinstance(lhs.type, AnyFloat) else arith.CmpiOp
        properties = default_properties(op) | {"predicate": _predicate(_PREDICATES[op].index(predicate))}
        return self._create(op, (lhs, rhs), i1, properties)

    def select(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._create(arith.SelectOp, (condition, lhs, rhs), lhs.type, {})

    def constant(self, value: Number, type_: Attribute) -> SSAValue:
        """A constant, made once per block."""
        attr = constant_attr(value, type_)
        known = self._constants.get((self.block, attr))
        if known is None:
            known = self._constants[(self.block, attr)] = self._create(arith.ConstantOp, (), type_, {"value": attr})
        return known

    def index(self, indices: tuple[SSAValue, ...], expr: Expr) -> SSAValue:
        """The value of an index expression as i64."""
        if expr.is_constant:
            return self.constant(expr.constant, i64)
        return self.add(loop.IndexOp.make(indices, expr))


def known_number(value: SSAValue) -> int | float | None:
    """The number that a scalar is known to be."""
    attr = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return attr.value.data if isinstance(attr, IntegerAttr | FloatAttr) else None


def constant_attr(value: Number, type_: Attribute) -> IntegerAttr | FloatAttr:
    """The number as a constant of a scalar type; xDSL keeps integers signed."""
    if isinstance(type_, IntegerType | IndexType):
        return _integer(int(value), type_)
    assert isinstance(type_, AnyFloat)
    return _float(float(value).hex(), type_)


@cache
def _integer(value: int, type_: IntegerType | IndexType) -> IntegerAttr:
    return IntegerAttr(value, type_)


@cache
def _float(text: str, type_: AnyFloat) -> FloatAttr:
    """By text, because -0 equals 0 and NaN does not equal itself."""
    return FloatAttr(float.fromhex(text), type_)


@cache
def _predicate(number: int) -> IntegerAttr:
    return IntegerAttr(number, 64)


@cache
def default_properties(op: type[Operation]) -> dict[str, Attribute]:
    """What the op's own constructor would set: fast-math and overflow flags, all off."""
    definition = op.get_irdl_definition()  # type: ignore[attr-defined]
    return {
        name: known.default_value for name, known in definition.properties.items() if known.default_value is not None
    }

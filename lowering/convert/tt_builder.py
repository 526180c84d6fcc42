"""Appends ops of the tt level: constants, shapes, index expressions and addresses, each value made once.

Knows what a program of Triton is made of, and nothing of the ops of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, LocationAttr, i1, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ...ir import tt
from ...ir.expr import ONE, ZERO, Atom, Domain, Expr, const
from ...ir.tt.ops import block_type, element_of, pointer_type, shape_of

ADDI, SUBI, MULI = arith.AddiOp, arith.SubiOp, arith.MuliOp
DIVIDE = {"floordiv": arith.FloorDivSIOp, "ceildiv": arith.CeilDivSIOp}
EXTREMA = {"min": arith.MinSIOp, "max": arith.MaxSIOp}
NO_FLAGS = {"fastmath": arith.FastMathFlagsAttr("none")}
NO_OVERFLOW = {"overflowFlags": arith.IntegerOverflowAttr("none")}

_EXTENTS = {position: const(1 << 62) for position in range(16)}
"""Of what expressions are over: indices of loops and programs, which are not negative."""


def memory_element(element: Attribute) -> Attribute:
    """How an element lies in memory: a bool takes a byte."""
    return i8 if element == i1 else element


class TritonBuilder:
    """Appends to `block`. `symbols` are the values of size symbols, `index` is the type of indices and offsets.

    `rounds_in_place` has what is rounded to bf16, and goes on in f32, rounded in one step.
    """

    rounds_in_place = False

    def __init__(
        self,
        block: Block,
        index: IntegerType,
        symbols: Mapping[str, SSAValue],
        ranges: Mapping[str, tuple[int | None, int | None]],
    ):
        self.block = block
        self.index = index
        self.symbols = symbols
        self.domain = Domain(_EXTENTS, dict(ranges))
        self.values: dict[SSAValue, SSAValue] = {}
        self.made: list[dict[object, SSAValue]] = [{}]
        self.location: LocationAttr | None = None

    # -- plumbing --------------------------------------------------------------------------------

    def add(self, op: Operation) -> SSAValue:
        """Appends an op unless an equal one without effects is there; gives its result."""
        key = None
        if is_side_effect_free(op) and not op.regions:
            key = (op.name, tuple(map(id, op.operands)), frozenset(op.properties.items()), tuple(op.result_types))
            for known in reversed(self.made):
                if key in known:
                    op.erase()
                    return known[key]
        self.append(op)
        result: SSAValue = op.results[0]
        if key is not None:
            self.made[-1][key] = result
        return result

    def append(self, op: Operation) -> None:
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)

    @contextmanager
    def inside(self, block: Block, *, isolated: bool = False) -> Iterator[None]:
        """Appends to another block for a while, which sees the values made so far unless it is isolated."""
        previous, self.block, made = self.block, block, self.made
        self.made = [{}] if isolated else [*made, {}]
        yield
        self.block, self.made = previous, made

    # -- values ----------------------------------------------------------------------------------

    def scalar(self, value: float, element: Attribute) -> SSAValue:
        attr: Attribute
        if isinstance(element, IntegerType):
            attr = IntegerAttr(int(value), element)
        else:
            assert isinstance(element, AnyFloat)
            attr = FloatAttr(float(value), element)
        return self.add(arith.ConstantOp.create(properties={"value": attr}, result_types=[element]))

    def constant(self, value: float, type_: Attribute) -> SSAValue:
        """A constant of a scalar or block type."""
        return self.splat(self.scalar(value, element_of(type_)), shape_of(type_))

    def splat(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A scalar over a block; a block stays as it is."""
        return value if shape_of(value.type) or not shape else self.add(tt.SplatOp.make(value, shape))

    def spread(self, value: SSAValue, dims: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """A block along further dimensions: its own are the dimensions `dims`, in ascending order, of the result."""
        if not shape_of(value.type):
            return self.splat(value, shape)
        for dimension in range(len(shape)):
            if dimension not in dims:
                value = self.add(tt.ExpandDimsOp.make(value, dimension))
        return value if shape_of(value.type) == tuple(shape) else self.add(tt.BroadcastOp.make(value, shape))

    def op(self, op_class: type[Operation], *operands: SSAValue, element: Attribute | None = None) -> SSAValue:
        """An elementwise op of arith or math; the result has the operands' type, or that element."""
        type_ = operands[0].type if element is None else block_type(element, shape_of(operands[0].type))
        return self.add(
            op_class.create(operands=operands, result_types=[type_], properties=default_properties(op_class))
        )

    def cast_integer(self, value: SSAValue, element: IntegerType, *, signed: bool = True) -> SSAValue:
        """The value in another width."""
        own = element_of(value.type)
        assert isinstance(own, IntegerType)
        if own.width.data == element.width.data:
            return value
        wider = tt.ExtSIOp if signed else tt.ExtUIOp
        return self.op(wider if own.width.data < element.width.data else tt.TruncIOp, value, element=element)

    def range(self, dimension: int, shape: Sequence[int]) -> SSAValue:
        """The lane numbers along one dimension, as the index type, over that dimension alone."""
        return self.cast_integer(self.add(tt.MakeRangeOp.make(shape[dimension])), self.index)

    # -- index expressions -----------------------------------------------------------------------

    def expression(self, expr: Expr, dims: Sequence[SSAValue]) -> SSAValue:
        """The value of an expression over scalars and symbols in the index type."""
        total: SSAValue | None = None
        for monomial, coefficient in expr.terms:
            term = self.monomial(monomial, coefficient, dims)
            total = term if total is None else self.op(ADDI, total, term)
        return self.scalar(0, self.index) if total is None else total

    def monomial(self, monomial: Sequence[Atom], coefficient: int, dims: Sequence[SSAValue]) -> SSAValue:
        result: SSAValue | None = None
        for atom in monomial:
            factor = self.atom(atom, dims)
            result = factor if result is None else self.op(MULI, result, factor)
        if result is None:
            return self.scalar(coefficient, self.index)
        return result if coefficient == 1 else self.op(MULI, result, self.scalar(coefficient, self.index))

    def atom(self, atom: Atom, dims: Sequence[SSAValue]) -> SSAValue:
        if atom.kind == "dim":
            position: int = atom.args[0]
            return dims[position]
        if atom.kind == "symbol":
            return self.symbols[atom.args[0]]
        lhs, rhs = (self.expression(arg, dims) for arg in atom.args)
        if atom.kind in EXTREMA:
            return self.op(EXTREMA[atom.kind], lhs, rhs)
        plain = all(self.domain.is_nonnegative(arg) for arg in atom.args)
        if atom.kind == "mod" and plain:
            return self.op(arith.RemSIOp, lhs, rhs)
        if atom.kind == "mod":
            return self.op(SUBI, lhs, self.op(MULI, self.op(arith.FloorDivSIOp, lhs, rhs), rhs))
        if atom.kind == "floordiv" and plain:
            return self.op(arith.DivSIOp, lhs, rhs)
        return self.op(DIVIDE[atom.kind], lhs, rhs)

    # -- addresses -------------------------------------------------------------------------------

    def strided(
        self, pointer: SSAValue, offset: SSAValue | None, shape: Sequence[int], strides: Sequence[Expr]
    ) -> SSAValue:
        """Pointers to a strided block, `offset` elements from the pointer on."""
        if offset is not None:
            pointer = self.add(tt.AddPtrOp.make(pointer, offset))
        if not shape:
            return pointer
        total: SSAValue | None = None
        for dimension, stride in enumerate(strides):
            if stride != ZERO:
                steps = self.steps(dimension, shape, stride)
                total = steps if total is None else self.op(ADDI, total, steps)
        pointers = self.splat(pointer, shape)
        return pointers if total is None else self.add(tt.AddPtrOp.make(pointers, total))

    def steps(self, dimension: int, shape: Sequence[int], stride: Expr) -> SSAValue:
        """How far each lane lies along one dimension."""
        steps = self.range(dimension, shape)
        if stride != ONE:
            steps = self.op(MULI, steps, self.splat(self.expression(stride, ()), shape_of(steps.type)))
        return self.spread(steps, [dimension], shape)

    def load(self, pointer: SSAValue, element: Attribute, mask: SSAValue | None, other: SSAValue | None) -> SSAValue:
        """What is there; lanes that the mask excludes hold `other`, or 0.

        A computed `other` is selected afterwards: a load that takes it would wait for what it is computed from.
        """
        type_ = block_type(memory_element(element), shape_of(pointer.type))
        rest = None if other is None else self.in_memory(other)
        if mask is None:
            value = self.add(tt.LoadOp.make(pointer))
        elif rest is not None and is_constant(rest):
            value = self.add(tt.LoadOp.make(pointer, mask, rest))
        else:
            value = self.add(tt.LoadOp.make(pointer, mask, self.constant(0, type_)))
            value = value if rest is None else self.add(tt.SelectOp.make(mask, value, rest))
        return self.from_memory(value, element)

    def from_memory(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A stored value as one of its element type."""
        return self.add(tt.CmpIOp.make("ne", value, self.constant(0, value.type))) if element == i1 else value

    def in_memory(self, value: SSAValue) -> SSAValue:
        """A value as it is stored."""
        return self.op(tt.ExtUIOp, value, element=i8) if element_of(value.type) == i1 else value


def is_constant(value: SSAValue) -> bool:
    """Whether a scalar or block is a number known now."""
    owner = value.owner
    return is_constant(owner.src) if isinstance(owner, tt.SplatOp) else isinstance(owner, arith.ConstantOp)


def argument_type(element: Attribute) -> Attribute:
    """The type of a kernel's argument for a buffer of such elements."""
    return pointer_type(memory_element(element))


def default_properties(op_class: type[Operation]) -> dict[str, Attribute]:
    """The properties that xDSL's own constructors give an op."""
    if issubclass(op_class, arith.SignlessIntegerBinaryOperationWithOverflow):
        return dict(NO_OVERFLOW)
    defined = op_class.get_irdl_definition().properties  # type: ignore[attr-defined]
    return dict(NO_FLAGS) if "fastmath" in defined else {}


__all__ = ["TritonBuilder", "argument_type", "memory_element"]

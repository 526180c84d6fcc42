"""Builds graph ops while reading like the formula: tensors with operators, one rounding at the end.

A row of `frontend/aten` computes with `Value`s in the type it likes; `GraphBuilder.finish` converts what it
returns to the type that eager gives. This module knows nothing of single ATen ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import torch
from torch import fx
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..ir import graph
from ..ir.dtypes import (
    BOOL,
    compute_type,
    dtype_name,
    element_of,
    element_type,
    is_float,
    is_native,
)
from ..ir.expr import ONE, Expr, ExprLike, as_expr, product
from ..ir.graph import DataAttr, GraphOp
from ..ir.graph.elementwise import BinaryOp, UnaryOp
from ..ir.graph.reductions import ReductionOp
from ..ir.shapes import sizes_of, strides_of, tensor_type
from .promotion import Priority, promoted_type
from .symbols import SymbolTable

Number: TypeAlias = bool | int | float
UnaryClass: TypeAlias = type[UnaryOp]
BinaryClass: TypeAlias = type[BinaryOp]
ReductionClass: TypeAlias = type[ReductionOp]


class Declined(Exception):
    """A row cannot express this call natively; it becomes an extern."""


def torch_dtype(element: Attribute) -> torch.dtype:
    dtype = getattr(torch, dtype_name(element))
    assert isinstance(dtype, torch.dtype)
    return dtype


@lru_cache(maxsize=64)
def element_for(dtype: torch.dtype) -> Attribute:
    return element_type(str(dtype).removeprefix("torch."))


# -- values ------------------------------------------------------------------------------------------


class Value:
    """A tensor value of the graph under construction. Operators broadcast and take Python numbers and sizes."""

    __slots__ = ("builder", "ssa")

    WEAK: ClassVar[bool] = False
    """Whether it stands for a Python number, which yields to every tensor in type promotion."""

    def __init__(self, builder: GraphBuilder, ssa: SSAValue) -> None:
        self.builder = builder
        self.ssa = ssa

    @property
    def type(self) -> TensorType[Attribute]:
        type_ = self.ssa.type
        assert isinstance(type_, TensorType)
        return type_

    @property
    def element(self) -> Attribute:
        return self.type.element_type

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return sizes_of(self.ssa.type)

    @property
    def strides(self) -> tuple[Expr, ...]:
        return strides_of(self.ssa.type)

    @property
    def rank(self) -> int:
        return len(self.type.shape.data)

    @property
    def count(self) -> Expr:
        """How many elements it has."""
        return product(self.sizes)

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Value:
        return self.builder.binary(graph.AddOp, self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.builder.binary(graph.AddOp, other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.builder.binary(graph.SubOp, self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.builder.binary(graph.SubOp, other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.builder.binary(graph.MulOp, self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.builder.binary(graph.MulOp, other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.builder.binary(graph.DivOp, self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.builder.binary(graph.DivOp, other, self)

    def __neg__(self) -> Value:
        return self.builder.unary(graph.NegOp, self)

    def __and__(self, other: Operand) -> Value:
        return self.builder.binary(graph.AndOp, self, other)

    def __or__(self, other: Operand) -> Value:
        return self.builder.binary(graph.OrOp, self, other)

    def __invert__(self) -> Value:
        return self.builder.unary(graph.NotOp, self)

    # -- comparison ------------------------------------------------------------------------------

    def __lt__(self, other: Operand) -> Value:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.builder.compare("ge", self, other)

    def equals(self, other: Operand) -> Value:
        return self.builder.compare("eq", self, other)

    def differs(self, other: Operand) -> Value:
        return self.builder.compare("ne", self, other)

    # -- type ------------------------------------------------------------------------------------

    def to(self, element: Attribute) -> Value:
        """The value in another element type."""
        if element == self.element:
            return self
        if not (is_native(element) and is_native(self.element)):
            raise Declined
        return self.builder.emit(graph.ConvertOp.make(self.ssa, element))

    def up(self) -> Value:
        """The value in the type that eager computes in: f32 for bf16 and f16."""
        return self.to(compute_type(self.element))

    # -- shape -----------------------------------------------------------------------------------

    def dim(self, position: int) -> int:
        """A dim counted from 0, for one that may count from the end; 0 for a scalar's only one. Eager refuses others,
        which not all of torch's meta functions do."""
        rank = max(self.rank, 1)
        if not -rank <= position < rank:
            raise Declined
        return position % rank

    def dims(self, positions: int | Sequence[int] | None) -> tuple[int, ...]:
        """Dims counted from 0; none given means all."""
        if positions is None or positions == []:
            return tuple(range(self.rank))
        given = [positions] if isinstance(positions, int) else positions
        return tuple(self.dim(position) for position in given) if self.rank else ()

    def reshape(self, sizes: Iterable[ExprLike]) -> Value:
        wanted = tuple(as_expr(size) for size in sizes)
        return self if wanted == self.sizes else self.builder.emit(graph.ReshapeOp.make(self.ssa, wanted))

    def broadcast(self, sizes: Iterable[ExprLike]) -> Value:
        wanted = tuple(as_expr(size) for size in sizes)
        return self if wanted == self.sizes else self.builder.emit(graph.BroadcastOp.make(self.ssa, wanted))

    def permute(self, dims: Sequence[int]) -> Value:
        order = [self.dim(dim) for dim in dims]
        return self if order == [*range(self.rank)] else self.builder.emit(graph.PermuteOp.make(self.ssa, order))

    def transpose(self) -> Value:
        """The matrix (or each one of a batch) with its last two dims exchanged."""
        return self.permute([*range(self.rank - 2), self.rank - 1, self.rank - 2])

    def unsqueeze(self, position: int) -> Value:
        sizes = list(self.sizes)
        sizes.insert(position, ONE)
        return self.reshape(sizes)

    def slice(self, dim: int, start: ExprLike, size: ExprLike, step: ExprLike = 1) -> Value:
        """`size` elements along a dim from `start` on."""
        if as_expr(size) == self.sizes[dim] and as_expr(start) == as_expr(0):
            return self
        starts: list[ExprLike] = [0] * self.rank
        sizes: list[ExprLike] = list(self.sizes)
        steps: list[ExprLike] = [1] * self.rank
        starts[dim], sizes[dim], steps[dim] = start, size, step
        return self.builder.emit(graph.SliceOp.make(self.ssa, starts, sizes, steps))

    # -- reduction -------------------------------------------------------------------------------

    def reduce(self, op: ReductionClass, dims: Sequence[int], keep: bool = False) -> Value:
        """Reduces along the dims, which stay with size 1 if `keep`."""
        if not op.accepts(self.element):
            raise Declined
        reduced = self.builder.emit(op.make(self.ssa, dims)) if dims else self
        kept = [ONE if dim in dims else size for dim, size in enumerate(self.sizes)]
        return reduced.reshape(kept) if keep else reduced

    def sum(self, dims: Sequence[int], keep: bool = False) -> Value:
        return self.reduce(graph.SumOp, dims, keep)

    def max(self, dims: Sequence[int], keep: bool = False) -> Value:
        return self.reduce(graph.MaxOp, dims, keep)

    def mean(self, dims: Sequence[int], keep: bool = False) -> Value:
        return self.sum(dims, keep) / product(self.sizes[dim] for dim in dims)


class WeakValue(Value):
    """A value of rank 0 that stands for a Python number (a SymFloat or SymInt)."""

    __slots__ = ()

    WEAK: ClassVar[bool] = True


Operand: TypeAlias = Value | Number | Expr
"""What arithmetic takes: a tensor, a Python number, a size."""


# -- functions of values -----------------------------------------------------------------------------


def _function(op: UnaryClass) -> Callable[[Value], Value]:
    return lambda value: value.builder.unary(op, value)


absolute = _function(graph.AbsOp)
cos = _function(graph.CosOp)
erf = _function(graph.ErfOp)
exp = _function(graph.ExpOp)
expm1 = _function(graph.Expm1Op)
isinf = _function(graph.IsInfOp)
isnan = _function(graph.IsNanOp)
log = _function(graph.LogOp)
log1p = _function(graph.Log1pOp)
reciprocal = _function(graph.ReciprocalOp)
rsqrt = _function(graph.RsqrtOp)
signbit = _function(graph.SignBitOp)
sqrt = _function(graph.SqrtOp)
tanh = _function(graph.TanhOp)


def maximum(lhs: Value, rhs: Operand) -> Value:
    return lhs.builder.binary(graph.MaximumOp, lhs, rhs)


def minimum(lhs: Value, rhs: Operand) -> Value:
    return lhs.builder.binary(graph.MinimumOp, lhs, rhs)


def fma(lhs: Value, rhs: Operand, addend: Operand) -> Value:
    """`lhs * rhs + addend`, rounded once."""
    return lhs.builder.fma(lhs, rhs, addend)


def where(condition: Value, lhs: Operand, rhs: Operand) -> Value:
    """lhs where the condition holds, else rhs; one of them is a tensor."""
    return condition.builder.select(condition, lhs, rhs)


# -- the builder -------------------------------------------------------------------------------------


def broadcast_sizes(first: Sequence[Expr], second: Sequence[Expr]) -> tuple[Expr, ...]:
    """The sizes that both broadcast to; sizes that are not 1 are equal by torch's guards."""
    if len(first) < len(second):
        first, second = second, first
    lead = len(first) - len(second)
    return (
        *first[:lead],
        *(b if a == ONE else a for a, b in zip(first[lead:], second, strict=True)),
    )


_ON_BOOLS: dict[BinaryClass, BinaryClass] = {graph.MaximumOp: graph.OrOp, graph.MinimumOp: graph.AndOp}
"""What an extremum is where false < true."""


class GraphBuilder:
    """Appends graph ops to a block, at the source location of the ATen op under import."""

    def __init__(self, block: Block, symbols: SymbolTable) -> None:
        self.block = block
        self.symbols = symbols
        self.location: LocationAttr = UNKNOWN_LOC
        self.node: fx.Node | None = None
        self.results: tuple[Attribute | None, ...] = ()
        self.numbers: dict[Any, Value] = {}
        """Floats that tensors hold, by torch's symbols for them."""
        self._emitted: list[Operation] = []
        self._scalars: dict[tuple[DataAttr | Expr, Attribute, tuple[Expr, ...]], Value] = {}
        self._broadcasts: dict[tuple[SSAValue, tuple[Expr, ...]], Value] = {}

    # -- the result that is wanted ---------------------------------------------------------------

    @property
    def type(self) -> Attribute:
        """The type that eager gives the (first) result."""
        first = self.results[0]
        assert first is not None
        return first

    @property
    def element(self) -> Attribute:
        return element_of(self.type)

    @property
    def dtype(self) -> torch.dtype:
        return torch_dtype(self.element)

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return sizes_of(self.type)

    def result_sizes(self, position: int) -> tuple[Expr, ...]:
        type_ = self.results[position]
        assert type_ is not None
        return sizes_of(type_)

    @property
    def _operand(self) -> torch.Tensor:
        """torch's fake of the op's first operand."""
        assert self.node is not None
        operand = self.node.args[0]
        assert isinstance(operand, fx.Node)
        fake = operand.meta["val"]
        assert isinstance(fake, torch.Tensor)
        return fake

    @property
    def is_on_cpu(self) -> bool:
        """Whether eager runs the op on the CPU, where it may add up in wider types than on a GPU, and where fewer
        threads meet in memory."""
        return self._operand.device.type == "cpu"

    def operand_offset(self) -> Expr:
        """Where in its storage, in elements, the op's first operand begins in eager."""
        return self.symbols.expr(self._operand.storage_offset())

    def begin(self, node: fx.Node, results: tuple[Attribute | None, ...], location: LocationAttr) -> None:
        """Starts the import of one ATen op, whose results have these types."""
        self.node = node
        self.results = results
        self.location = location
        self._emitted.clear()

    def finish(self, value: Value, wanted: Attribute, aliases: bool = False) -> Value:
        """The value in the wanted type: rounded to its element, with its strides, and, unless the ATen op gives
        an alias, not an operand itself."""
        assert isinstance(wanted, TensorType)
        value = value.to(wanted.element_type).broadcast(sizes_of(wanted))
        owner = value.ssa.owner
        if isinstance(owner, graph.FullOp):  # shared with other uses of the number
            return self.emit(graph.FullOp.build_from((), wanted, value=owner.value))
        if not any(owner is op for op in self._emitted):
            if not aliases:
                return self.emit(graph.CopyOp.make(value.ssa, wanted))
            return value if value.ssa.type == wanted else self.emit(graph.ReshapeOp.build_from((value.ssa,), wanted))
        if value.ssa.type == wanted:
            return value
        if value.ssa.first_use is not None or isinstance(owner, graph.AsStridedOp):  # its strides are its meaning
            return self.emit(graph.CopyOp.make(value.ssa, wanted))
        return Value(self, Rewriter.replace_value_with_new_type(value.ssa, wanted))

    # -- creation --------------------------------------------------------------------------------

    def append(self, op: Operation) -> None:
        op.location = self.location
        self.block.add_op(op)
        self._emitted.append(op)

    def emit(self, op: GraphOp) -> Value:
        """Appends the op; its (first) result."""
        self.append(op)
        return Value(self, op.results[0])

    def full(self, number: Number | Expr, element: Attribute, sizes: Iterable[ExprLike] = ()) -> Value:
        """A tensor of one number, made once for each number, type and sizes."""
        wanted = tuple(as_expr(size) for size in sizes)
        if isinstance(number, Expr):
            if not number.is_constant:
                return self._size(number, element, wanted)
            number = number.constant
        if not is_native(element):
            raise Declined
        data = DataAttr.of(element, number)
        known = self._scalars.get((data, element, wanted))
        if known is None:
            known = self.emit(graph.FullOp.build_from((), tensor_type(element, wanted), value=data))
            self._scalars[(data, element, wanted)] = known
        return known

    def _size(self, size: Expr, element: Attribute, sizes: tuple[Expr, ...]) -> Value:
        known = self._scalars.get((size, element, sizes))
        if known is None:
            known = self.emit(graph.SizeOp.make(size)).to(element).broadcast(sizes)
            self._scalars[(size, element, sizes)] = known
        return known

    def iota(self, size: ExprLike, start: ExprLike = 0, step: ExprLike = 1) -> Value:
        return self.emit(graph.IotaOp.make(size, start, step))

    def index_along(self, dim: int, sizes: Sequence[Expr]) -> Value:
        """The index along one dim as an i64 that broadcasts to the sizes."""
        return self.iota(sizes[dim]).reshape([sizes[dim], *[ONE] * (len(sizes) - dim - 1)])

    # -- elementwise -----------------------------------------------------------------------------

    def unary(self, op: UnaryClass, operand: Value) -> Value:
        if not op.accepts(operand.element):
            raise Declined
        return self.emit(op.make(operand.ssa))

    def binary(self, op: BinaryClass, lhs: Operand, rhs: Operand) -> Value:
        left, right = self.matched(*self._with_tensor(lhs, rhs, lambda: compute_type(self.element)))
        if left.element == BOOL:
            op = _ON_BOOLS.get(op, op)
        if not op.accepts(left.element):
            raise Declined
        return self.emit(op.make(left.ssa, right.ssa))

    def compare(self, predicate: str, lhs: Operand, rhs: Operand) -> Value:
        left, right = self.matched(*self._with_tensor(lhs, rhs, lambda: self.common_element(lhs, rhs)))
        return self.emit(graph.CompareOp.make(predicate, left.ssa, right.ssa))

    def select(self, condition: Value, lhs: Operand, rhs: Operand) -> Value:
        left, right = self.matched(lhs, rhs)
        sizes = broadcast_sizes(condition.sizes, left.sizes)
        chosen, left, right = (value.broadcast(sizes) for value in (condition.to(BOOL), left, right))
        return self.emit(graph.SelectOp.make(chosen.ssa, left.ssa, right.ssa))

    def fma(self, lhs: Value, rhs: Operand, addend: Operand) -> Value:
        left, right = self.matched(lhs, rhs)
        left, third = self.matched(left, addend)
        if not is_float(left.element):
            return left * right + third
        return self.emit(graph.FmaOp.make(left.ssa, right.broadcast(left.sizes).ssa, third.ssa))

    def _with_tensor(self, lhs: Operand, rhs: Operand, element: Callable[[], Attribute]) -> tuple[Operand, Operand]:
        """The operands, the first of two numbers as a tensor of rank 0: an ATen op may be called on numbers alone."""
        if isinstance(lhs, Value) or isinstance(rhs, Value):
            return lhs, rhs
        return self.full(lhs, element()), rhs

    def matched(self, lhs: Operand, rhs: Operand) -> tuple[Value, Value]:
        """Both as tensors of one element type and common sizes; a number takes the type of the other."""
        if not isinstance(lhs, Value):
            assert isinstance(rhs, Value)
            return self.full(lhs, rhs.element, rhs.sizes), rhs
        if not isinstance(rhs, Value):
            return lhs, self.full(rhs, lhs.element, lhs.sizes)
        if lhs.element != rhs.element:
            raise TypeError(f"operands of one element type expected, got {lhs.element} and {rhs.element}")
        if lhs.sizes == rhs.sizes:
            return lhs, rhs
        sizes = broadcast_sizes(lhs.sizes, rhs.sizes)
        return self._broadcast(lhs, sizes), self._broadcast(rhs, sizes)

    def _broadcast(self, value: Value, sizes: tuple[Expr, ...]) -> Value:
        """The value broadcast as an operand, once for each sizes."""
        if value.sizes == sizes:
            return value
        known = self._broadcasts.get((value.ssa, sizes))
        if known is None:
            known = self._broadcasts[(value.ssa, sizes)] = value.broadcast(sizes)
        return known

    # -- type promotion --------------------------------------------------------------------------

    def operand(self, operand: Operand, element: Attribute) -> Operand:
        """A tensor in that element type; a number as it is."""
        return operand.to(element) if isinstance(operand, Value) else operand

    def promoted(self, *operands: Operand) -> list[Operand]:
        """The operands in the type that eager computes in for a result of this node's type.

        Two tensors of bf16 stay so, since one op rounds once anyway; next to a scalar they are computed in
        f32, because eager rounds a scalar only where it stands first.
        """
        element = self.element
        if compute_type(element) == element or not any(self._is_scalar(operand) for operand in operands):
            return [self.operand(operand, element) for operand in operands]
        first = operands[0].to(element) if isinstance(operands[0], Value) else self.full(operands[0], element)
        return [self.operand(operand, compute_type(element)) for operand in (first, *operands[1:])]

    def computed(self, operand: Operand) -> Value:
        """The operand in the result's type, then in the type that eager computes in; a number at rank 0."""
        if isinstance(operand, Value):
            return operand.to(self.element).up()
        return self.full(operand, compute_type(self.element))

    @staticmethod
    def _is_scalar(operand: Operand) -> bool:
        return not isinstance(operand, Value) or operand.rank == 0

    def common_element(self, *operands: Operand) -> Attribute:
        """The type that torch promotes the operands to."""
        return element_for(promoted_type(map(_priority, operands)))


def _priority(operand: Operand) -> tuple[Priority, torch.dtype]:
    if isinstance(operand, Value) and not operand.WEAK:
        return Priority.TENSOR if operand.rank else Priority.SCALAR, torch_dtype(operand.element)
    if isinstance(operand, bool):
        return Priority.NUMBER, torch.bool
    floating = isinstance(operand, float) or (isinstance(operand, Value) and is_float(operand.element))
    return Priority.NUMBER, torch.get_default_dtype() if floating else torch.int64

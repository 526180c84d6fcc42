"""Random graph programs that are well typed by construction and shrink to few ops on small tensors.

Each value carries how far another correct evaluation of the program may be from this one: bits, numbers, or a bound
on the error. Ops that would magnify a difference without limit (comparisons, roundings, bit patterns) are only
applied to values that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from random import Random
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from stepwell.ir import graph
from stepwell.ir.arithmetic import Array, dtype_of
from stepwell.ir.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    element_of,
    is_float,
)
from stepwell.ir.expr import Expr, as_expr, contiguous_strides, maximum, minimum, product, symbol
from stepwell.ir.graph.attributes import DataAttr
from stepwell.ir.memory import shape_of, tensor_shape
from stepwell.ir.shapes import SYMBOLS, SymbolAttr, SymbolRange, sizes_of, tensor_type


class Trust(IntEnum):
    """In what two correct evaluations of a value agree."""

    BITS = 0
    VALUES = 1  # all but the payload and sign of NaN
    NUMBERS = 2  # nor the sign of zero
    BOUND = 3  # only as far as rounding errors allow


@dataclass(frozen=True)
class Value:
    """A value of the program."""

    ssa: SSAValue
    trust: Trust

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return sizes_of(self.ssa.type)

    @property
    def element(self) -> Attribute:
        return element_of(self.ssa.type)

    @property
    def rank(self) -> int:
        return len(self.sizes)


@dataclass
class Program:
    """A module with `@main`, and what to call it with."""

    module: ModuleOp
    arguments: list[Any]
    trusts: list[Trust]
    exact_functions: bool

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        shown = [value if isinstance(value, int) else f"{value.dtype}{value.tolist()}" for value in self.arguments]
        printer.text(f"\n{self.module}\narguments: {shown}\n")


# -- choices -----------------------------------------------------------------------------------------

T = TypeVar("T")


class Choices(Protocol):
    """Where a program's choices come from. The first of several options is the simplest."""

    def integer(self, low: int, high: int) -> int: ...

    def boolean(self) -> bool: ...

    def one_of(self, options: Sequence[T]) -> T: ...

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]: ...

    def order(self, count: int) -> list[int]: ...

    def subset(self, count: int, most: int | None = None) -> list[int]:
        """Some of the numbers below `count`, at least one, in any order."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Choices of hypothesis, which shrinks them."""

    draw: DrawFn

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def boolean(self) -> bool:
        return self.draw(st.booleans())

    def one_of(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]:
        return self.draw(st.lists(st.sampled_from(options), min_size=least, max_size=most))

    def order(self, count: int) -> list[int]:
        return self.draw(st.permutations(range(count)))

    def subset(self, count: int, most: int | None = None) -> list[int]:
        return self.draw(st.lists(st.integers(0, count - 1), unique=True, min_size=1, max_size=most))


class Rolled:
    """Choices of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def boolean(self) -> bool:
        return self.random.random() < 0.5

    def one_of(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]:
        return self.random.choices(options, k=self.random.randint(least, most))

    def order(self, count: int) -> list[int]:
        return self.random.sample(range(count), count)

    def subset(self, count: int, most: int | None = None) -> list[int]:
        return self.random.sample(range(count), self.random.randint(1, min(count, most or count)))


# -- data --------------------------------------------------------------------------------------------

ELEMENTS = (FLOAT32, INT64, BOOL, BFLOAT16, FLOAT64, FLOAT16, INT32, UINT8, INT8)

_FLOAT_VALUES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 100.0, 1e-5, np.nan, np.inf, -np.inf, 3e38, 1e-40, 1e-45, 65504.0,
]  # fmt: skip


def _data(choose: Choices, element: Attribute, shape: Sequence[int]) -> Array:
    """Small whole numbers, or whatever the type can hold."""
    dtype = dtype_of(element)
    generator = np.random.default_rng(choose.integer(0, 3))
    kind = choose.one_of(("whole", "normal", "special"))
    if element == BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    if is_float(element):
        made = {
            "whole": lambda: generator.integers(-3, 4, shape),
            "normal": lambda: generator.normal(size=shape),
            "special": lambda: generator.choice(_FLOAT_VALUES, shape),
        }[kind]()
        with np.errstate(over="ignore"):
            return np.asarray(made).astype(dtype)
    limits = np.iinfo(dtype)
    extremes = [0, 1, 2, 3, 7, limits.max, limits.min, limits.max - 1]
    small = generator.integers(max(limits.min, -3), 4, shape)
    return (generator.choice(np.array(extremes, dtype), shape) if kind == "special" else small).astype(dtype)


# -- growing -----------------------------------------------------------------------------------------

Step = Callable[["Grower"], "Value | None"]

BOUND, BOUNDS = "bound", (-2, 1)
"""The symbol that is no size, and its range."""


@dataclass
class Grower:
    """A function under construction."""

    choose: Choices
    symbols: dict[str, int]
    exact_functions: bool
    block: Block
    values: list[Value] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)

    BOUNDED: ClassVar[bool] = False
    """Whether slices may begin where a symbol says that is no size."""

    @property
    def steps(self) -> Sequence[Step]:
        """What a program may do next."""
        return STEPS

    def pick(self, accepts: Callable[[Value], bool], trust: Trust = Trust.BOUND) -> Value | None:
        fitting = [value for value in self.values if value.trust <= trust and accepts(value)]
        return self.choose.one_of(fitting) if fitting else None

    def like(self, value: Value, trust: Trust = Trust.BOUND) -> Value:
        """A value of the same sizes and element; at worst itself."""
        found = self.pick(lambda other: (other.sizes, other.element) == (value.sizes, value.element), trust)
        return value if found is None else found

    def add(self, op: Any, trust: Trust) -> Value:
        self.block.add_op(op)
        value = Value(op.results[0], trust)
        self.values.append(value)
        return value

    def shape(self, value: Value) -> tuple[int, ...]:
        return tensor_shape(value.ssa.type, self.symbols)

    def size(self, expr: Expr) -> int:
        return shape_of([expr], self.symbols)[0]

    def argument(self, type_: Attribute, data: Array | None) -> Value:
        value = Value(self.block.insert_arg(type_, len(self.block.args)), Trust.BITS)
        self.values.append(value)
        self.arguments.append(data)
        return value

    def new_argument(self, element: Attribute | None = None) -> Value:
        element = self.choose.one_of((FLOAT32, *ELEMENTS, FLOAT32, BFLOAT16)) if element is None else element
        sizes = self.choose.several(self.sizes, 0, 3)
        order = self.choose.order(len(sizes)) if self.choose.boolean() else range(len(sizes))
        inner = contiguous_strides([sizes[k] for k in order])
        strides = [inner[list(order).index(k)] for k in range(len(sizes))]
        type_ = tensor_type(element, sizes, strides)
        return self.argument(type_, _data(self.choose, element, tensor_shape(type_, self.symbols)))

    @property
    def sizes(self) -> Sequence[Expr]:
        """What a dim may measure, simple sizes first; one takes more than a vector register."""
        named = [symbol(name) for name in self.symbols if name != BOUND]
        return [as_expr(2), as_expr(3), as_expr(1), *named, as_expr(4), as_expr(0), as_expr(5), *named, as_expr(19)]

    def index(self, sizes: Sequence[Expr], below: int) -> Value | None:
        """A new argument of good indices into a dim of that size."""
        type_ = tensor_type(INT64, sizes)
        shape = tensor_shape(type_, self.symbols)
        if not below and 0 not in shape:
            return None
        generator = np.random.default_rng(self.choose.integer(0, 3))
        value = self.argument(type_, generator.integers(0, max(below, 1), shape))
        self.values.pop()  # not an operand like others: what else is done with it must stay in range
        return value


def _kind(element: Attribute) -> str:
    if is_float(element):
        return "float"
    return "bool" if element == BOOL else "integer"


def _worst(*values: Value, least: Trust = Trust.BITS) -> Trust:
    return max(least, *(value.trust for value in values))


def _computed(element: Attribute, *values: Value, least: Trust = Trust.VALUES) -> Trust:
    """Trust in a result of arithmetic: NaN has no certain payload after that."""
    return _worst(*values, least=least) if is_float(element) else Trust.BITS


# -- elementwise -------------------------------------------------------------------------------------

ANYTHING, SMOOTH, EXACT = Trust.BOUND, Trust.BOUND, Trust.VALUES

UNARY: dict[str, tuple[tuple[type[graph.UnaryOp], Trust], ...]] = {
    "float": (
        (graph.NegOp, SMOOTH), (graph.AbsOp, SMOOTH), (graph.ReluOp, SMOOTH), (graph.CopyOp, ANYTHING),
        (graph.ExpOp, EXACT), (graph.LogOp, EXACT), (graph.SqrtOp, EXACT), (graph.RsqrtOp, EXACT),
        (graph.TanhOp, EXACT), (graph.ReciprocalOp, EXACT), (graph.Exp2Op, EXACT), (graph.Expm1Op, EXACT),
        (graph.Log2Op, EXACT), (graph.Log10Op, EXACT), (graph.Log1pOp, EXACT), (graph.SinOp, EXACT),
        (graph.CosOp, EXACT), (graph.TanOp, EXACT), (graph.AtanOp, EXACT), (graph.ErfOp, EXACT),
        (graph.FloorOp, Trust.NUMBERS), (graph.CeilOp, Trust.NUMBERS), (graph.TruncOp, Trust.NUMBERS),
        (graph.RoundOp, Trust.NUMBERS), (graph.SignOp, Trust.NUMBERS), (graph.IsNanOp, Trust.NUMBERS),
        (graph.IsInfOp, Trust.NUMBERS), (graph.SignBitOp, Trust.BITS), (graph.SigmoidOp, EXACT),
    ),
    "integer": (
        (graph.NegOp, ANYTHING), (graph.AbsOp, ANYTHING), (graph.SignOp, ANYTHING), (graph.ReluOp, ANYTHING),
        (graph.NotOp, ANYTHING), (graph.CopyOp, ANYTHING),
    ),
    "bool": ((graph.NotOp, ANYTHING), (graph.CopyOp, ANYTHING)),
}  # fmt: skip

BINARY: dict[str, tuple[tuple[type[graph.BinaryOp], Trust], ...]] = {
    "float": (
        (graph.AddOp, SMOOTH), (graph.SubOp, SMOOTH), (graph.MulOp, SMOOTH), (graph.DivOp, EXACT),
        (graph.MaximumOp, SMOOTH), (graph.MinimumOp, SMOOTH), (graph.RemainderOp, EXACT), (graph.FmodOp, EXACT),
        (graph.TruncDivOp, EXACT), (graph.FloorDivOp, EXACT), (graph.PowOp, EXACT), (graph.Atan2Op, EXACT),
        (graph.CopySignOp, Trust.BITS),
    ),
    "integer": (
        (graph.AddOp, ANYTHING), (graph.SubOp, ANYTHING), (graph.MulOp, ANYTHING), (graph.MaximumOp, ANYTHING),
        (graph.MinimumOp, ANYTHING), (graph.AndOp, ANYTHING), (graph.OrOp, ANYTHING), (graph.XorOp, ANYTHING),
        (graph.ShlOp, ANYTHING), (graph.ShrOp, ANYTHING), (graph.PowOp, ANYTHING),
    ),
    "bool": ((graph.AndOp, ANYTHING), (graph.OrOp, ANYTHING), (graph.XorOp, ANYTHING)),
}  # fmt: skip

LEAST: dict[type[Any], Trust] = {
    graph.CopyOp: Trust.BITS,
    graph.MaximumOp: Trust.NUMBERS,
    graph.MinimumOp: Trust.NUMBERS,
    graph.MaxOp: Trust.NUMBERS,
    graph.MinOp: Trust.NUMBERS,
    graph.SigmoidOp: Trust.BOUND,
    graph.PowOp: Trust.BOUND,
    graph.SumOp: Trust.BOUND,
    graph.ProdOp: Trust.BOUND,
    graph.ScanOp: Trust.BOUND,
}
"""What the op itself makes of exact floats, where that is not VALUES."""


APPROXIMATE: tuple[type[Any], ...] = (
    graph.ExpOp, graph.Exp2Op, graph.Expm1Op, graph.LogOp, graph.Log2Op, graph.Log10Op, graph.Log1pOp, graph.TanhOp,
    graph.SinOp, graph.CosOp, graph.TanOp, graph.AtanOp, graph.Atan2Op, graph.ErfOp, graph.RsqrtOp,
)  # fmt: skip
"""Functions that every interpreter rounds from f64, and machine code does not."""


def _least(g: Grower, op: type[Any]) -> Trust:
    return Trust.BOUND if op in APPROXIMATE and not g.exact_functions else LEAST.get(op, Trust.VALUES)


def _double(value: Value) -> bool:
    return value.element == FLOAT64


def unary(g: Grower) -> Value | None:
    value = g.pick(lambda _: True)
    if value is None:
        return None
    rows = [op for op, trust in UNARY[_kind(value.element)] if value.trust <= trust]
    op = g.choose.one_of(rows) if rows else graph.CopyOp
    made = op.make(value.ssa)
    return g.add(made, _computed(element_of(made.results[0].type), value, least=_least(g, op)))


def binary(g: Grower) -> Value | None:
    left = g.pick(lambda _: True)
    if left is None:
        return None
    right = g.like(left)
    worst = _worst(left, right)
    rows = [op for op, trust in BINARY[_kind(left.element)] if worst <= trust]
    if _double(left):  # called as externs, which these tests have nobody to run
        rows = [op for op in rows if op not in (graph.RemainderOp, graph.FmodOp, graph.FloorDivOp)]
    if not rows:
        return None
    op = g.choose.one_of(rows)
    return g.add(op.make(left.ssa, right.ssa), _computed(left.element, left, right, least=_least(g, op)))


def divide(g: Grower) -> Value | None:
    """An integer division by a number that is not 0."""
    value = g.pick(lambda value: _kind(value.element) == "integer")
    if value is None:
        return None
    divisor = g.choose.one_of((2, 3, 1, 100) if value.element == UINT8 else (2, 3, -1, -3, 1, 100))
    rhs = g.add(graph.FullOp.make(divisor, value.element, value.sizes), Trust.BITS)
    op = g.choose.one_of((graph.FloorDivOp, graph.TruncDivOp, graph.RemainderOp, graph.FmodOp))
    return g.add(op.make(value.ssa, rhs.ssa), Trust.BITS)


def fma(g: Grower) -> Value | None:
    value = g.pick(lambda value: is_float(value.element), Trust.VALUES)
    if value is None:
        return None
    factor, addend = g.like(value, Trust.VALUES), g.like(value, Trust.VALUES)
    return g.add(graph.FmaOp.make(value.ssa, factor.ssa, addend.ssa), Trust.VALUES)


_SAME_WIDTH = {
    FLOAT32: INT32, INT32: FLOAT32, FLOAT64: INT64, INT64: FLOAT64, BFLOAT16: INT16, UINT8: INT8, INT8: UINT8,
}  # fmt: skip


def bitcast(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.element in _SAME_WIDTH, Trust.BITS)
    if value is None:
        return None
    return g.add(graph.BitcastOp.make(value.ssa, _SAME_WIDTH[value.element]), Trust.BITS)


def compare(g: Grower) -> Value | None:
    left = g.pick(lambda _: True, Trust.NUMBERS)
    if left is None:
        return None
    predicate = g.choose.one_of(graph.PREDICATES)
    return g.add(graph.CompareOp.make(predicate, left.ssa, g.like(left, Trust.NUMBERS).ssa), Trust.BITS)


def select(g: Grower) -> Value | None:
    condition = g.pick(lambda value: value.element == BOOL)
    left = None if condition is None else g.pick(lambda value: value.sizes == condition.sizes)
    if condition is None or left is None:
        return None
    right = g.like(left)
    return g.add(graph.SelectOp.make(condition.ssa, left.ssa, right.ssa), _worst(left, right))


def convert(g: Grower) -> Value | None:
    value = g.pick(lambda _: True)
    if value is None:
        return None
    floats = [element for element in ELEMENTS if is_float(element)]
    target = g.choose.one_of(floats if value.trust == Trust.BOUND else ELEMENTS)
    return g.add(graph.ConvertOp.make(value.ssa, target), _computed(target, value))


# -- views -------------------------------------------------------------------------------------------


def permute(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 1)
    if value is None:
        return None
    return g.add(graph.PermuteOp.make(value.ssa, g.choose.order(value.rank)), value.trust)


def broadcast(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank < 4)
    if value is None:
        return None
    sizes = [g.choose.one_of(g.sizes) if size == as_expr(1) else size for size in value.sizes]
    lead = [g.choose.one_of(g.sizes)] if value.rank < 3 and g.choose.boolean() else []
    return g.add(graph.BroadcastOp.make(value.ssa, [*lead, *sizes]), value.trust)


def reshape(g: Grower) -> Value | None:
    value = g.pick(lambda _: True)
    if value is None:
        return None
    sizes = list(value.sizes)
    how = g.choose.one_of(("flatten", "unsqueeze", "squeeze", "merge", "split"))
    if how == "flatten":
        sizes = [product(sizes)]
    elif how == "unsqueeze":
        sizes.insert(g.choose.integer(0, len(sizes)), as_expr(1))
    elif how == "squeeze":
        sizes = [size for size in sizes if size != as_expr(1)]
    elif how == "merge" and len(sizes) > 1:
        at = g.choose.integer(0, len(sizes) - 2)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    elif how == "split":
        even = [k for k, size in enumerate(sizes) if size.is_constant and size.constant and size.constant % 2 == 0]
        for at in even[:1]:
            sizes[at : at + 1] = [as_expr(2), as_expr(sizes[at].constant // 2)]
    return g.add(graph.ReshapeOp.make(value.ssa, sizes), value.trust)


def _box(g: Grower, value: Value) -> tuple[list[Expr | int], list[Expr], list[int]]:
    """Starts, sizes and steps of a part of a tensor, of one element where a bound says which."""
    starts: list[Expr | int] = []
    sizes: list[Expr] = []
    steps: list[int] = []
    for size in value.sizes:
        known = g.size(size)
        if BOUND in g.symbols and known > BOUNDS[1] and g.choose.boolean():
            bound = symbol(BOUND)
            starts.append(bound + minimum(maximum(-bound, 0), 1) * size)
            steps.append(1)
            sizes.append(as_expr(1))
            continue
        start = g.choose.integer(0, min(known, 2)) if size.is_constant else g.choose.integer(0, min(known, 1))
        step = g.choose.integer(1, 2) if size.is_constant else 1
        starts.append(start)
        steps.append(step)
        sizes.append(as_expr(-(-(size.constant - start) // step)) if size.is_constant else size - start)
    return starts, sizes, steps


def slice_(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    return g.add(graph.SliceOp.make(value.ssa, *_box(g, value)), value.trust)


def flip(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    dims = g.choose.subset(value.rank)
    return g.add(graph.FlipOp.make(value.ssa, dims), value.trust)


def window(g: Grower) -> Value | None:
    value = g.pick(lambda value: 0 < value.rank < 4 and value.sizes[-1].is_constant and value.sizes[-1].constant >= 2)
    if value is None:
        return None
    extent = g.choose.integer(1, 2)
    step, dilation = g.choose.integer(1, 2), g.choose.integer(1, value.sizes[-1].constant - 1)
    return g.add(graph.WindowOp.make(value.ssa, [extent], [step], [dilation]), value.trust)


def as_strided(g: Grower) -> Value | None:
    """Every other element of a tensor that fills its memory, or overlapping pairs; copied, since ops give their
    results the layout of an operand and nobody writes to elements that overlap."""

    def fills(value: Value) -> bool:
        static = all(size.is_constant for size in value.sizes)
        return static and value.ssa.type == tensor_type(value.element, value.sizes)

    value = g.pick(fills)
    if value is None:
        return None
    count = product(value.sizes).constant
    if count < 3:
        return None
    layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        (((count + 1) // 2,), (2,)),
        ((count - 1, 2), (1, 1)),
        ((2, count - 1), (0, 1)),
    )
    sizes, strides = g.choose.one_of(layouts)
    view = graph.AsStridedOp.make(value.ssa, 0, tensor_type(value.element, sizes, strides))
    g.block.add_op(view)
    return g.add(graph.CopyOp.make(view.results[0], tensor_type(value.element, sizes)), value.trust)


# -- reductions --------------------------------------------------------------------------------------

REDUCTIONS: dict[str, tuple[type[graph.ReductionOp], ...]] = {
    "float": (graph.SumOp, graph.MaxOp, graph.MinOp, graph.ProdOp),
    "integer": (graph.SumOp, graph.MaxOp, graph.MinOp, graph.ProdOp),
    "bool": (graph.AnyOp, graph.AllOp, graph.MaxOp, graph.MinOp),
}


def reduce(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    op = g.choose.one_of(REDUCTIONS[_kind(value.element)])
    if op is graph.ProdOp and value.trust > Trust.VALUES:
        op = graph.MaxOp
    dims = g.choose.subset(value.rank)
    return g.add(op.make(value.ssa, sorted(dims)), _computed(value.element, value, least=_least(g, op)))


def arg_reduce(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0, Trust.NUMBERS)
    if value is None:
        return None
    dims = [k for k, size in enumerate(g.shape(value)) if size]
    if not dims:
        return None
    op = g.choose.one_of((graph.ArgMaxOp, graph.ArgMinOp))
    return g.add(op.make(value.ssa, [g.choose.one_of(dims)]), Trust.BITS)


def scan(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0 and value.element != BOOL)
    if value is None:
        return None
    combiner = "add" if is_float(value.element) else g.choose.one_of(("add", "mul"))
    op = graph.ScanOp.make(value.ssa, g.choose.integer(0, value.rank - 1), combiner)
    return g.add(op, _computed(value.element, value, least=Trust.BOUND))


# -- creation ----------------------------------------------------------------------------------------


def argument(g: Grower) -> Value | None:
    return g.new_argument()


def full(g: Grower) -> Value | None:
    """A number in the shape of another value, so that they meet."""
    value = g.pick(lambda _: True)
    if value is None:
        return None
    numbers = (1, 0, 2) if value.element in (UINT8, BOOL) else (1, 0, 2, -1)
    number = g.choose.one_of((*numbers, 0.5, -0.0, 3.0, float("nan")) if is_float(value.element) else numbers)
    return g.add(graph.FullOp.make(number, value.element, value.sizes), Trust.BITS)


def constant(g: Grower) -> Value | None:
    element = g.choose.one_of(ELEMENTS)
    shape = g.choose.several((0, 1, 2, 3), 0, 2)
    data = DataAttr.of(element, _data(g.choose, element, shape).reshape(-1))
    return g.add(graph.ConstantOp.make(data, tensor_type(element, shape)), Trust.BITS)


def iota(g: Grower) -> Value | None:
    element = g.choose.one_of((INT64, INT32, FLOAT32))
    op = graph.IotaOp.make(g.choose.one_of(g.sizes), g.choose.integer(-2, 2), g.choose.integer(-1, 3), element)
    return g.add(op, Trust.BITS)


def size(g: Grower) -> Value | None:
    return g.add(graph.SizeOp.make(g.choose.one_of(g.sizes) * 2), Trust.BITS)


def random(g: Grower) -> Value | None:
    seed = g.pick(lambda value: value.element == INT64 and not value.rank)
    if seed is None:
        return None
    sizes = g.choose.several(g.sizes, 0, 2)
    return g.add(graph.RandomOp.make(seed.ssa, sizes, g.choose.integer(0, 2)), Trust.BITS)


# -- indexing and joining ----------------------------------------------------------------------------


def gather(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    dim = g.choose.integer(0, value.rank - 1)
    sizes = [*value.sizes]
    sizes[dim] = g.choose.one_of(g.sizes)
    index = g.index(sizes, g.shape(value)[dim])
    return None if index is None else g.add(graph.GatherOp.make(value.ssa, index.ssa, dim), value.trust)


def index(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    dims = sorted(g.choose.subset(value.rank, most=2))
    sizes = g.choose.several(g.sizes, 0, 2 if value.rank < 3 else 1)
    indices = [g.index(sizes, g.shape(value)[dim]) for dim in dims]
    found = [index.ssa for index in indices if index is not None]
    return g.add(graph.IndexOp.make(value.ssa, found, dims), value.trust) if len(found) == len(dims) else None


def _combiner(g: Grower, value: Value) -> str | None:
    return g.choose.one_of((None, "add", "max")) if value.element != BOOL else None


def _combined(combiner: str | None, *values: Value) -> Trust:
    least = {None: Trust.BITS, "max": Trust.NUMBERS, "add": Trust.BOUND}[combiner]
    return _computed(values[0].element, *values, least=least) if combiner else _worst(*values)


def scatter(g: Grower) -> Value | None:
    target = g.pick(lambda value: value.rank > 0)
    value = None if target is None else g.pick(lambda v: (v.rank, v.element) == (target.rank, target.element))
    if target is None or value is None:
        return None
    dim = g.choose.integer(0, target.rank - 1)
    others = [k for k in range(target.rank) if k != dim]
    if any(g.shape(value)[k] > g.shape(target)[k] for k in others):
        return None
    index, combiner = g.index(value.sizes, g.shape(target)[dim]), _combiner(g, target)
    if index is None:
        return None
    op = graph.ScatterOp.make(target.ssa, index.ssa, value.ssa, dim, combiner=combiner)
    return g.add(op, _combined(combiner, target, value))


def index_put(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0)
    if value is None:
        return None
    target = g.pick(lambda t: (t.rank, t.element, t.sizes[1:]) == (value.rank, value.element, value.sizes[1:]))
    if target is None:
        return None
    index, combiner = g.index(value.sizes[:1], g.shape(target)[0]), _combiner(g, target)
    if index is None:
        return None
    op = graph.IndexPutOp.make(target.ssa, value.ssa, [index.ssa], [0], combiner=combiner)
    return g.add(op, _combined(combiner, target, value))


def insert_slice(g: Grower) -> Value | None:
    target = g.pick(lambda value: value.rank > 0)
    if target is None:
        return None
    starts, sizes, steps = _box(g, target)
    fitting = g.pick(lambda value: (value.sizes, value.element) == (tuple(sizes), target.element))
    if fitting is None:
        source = g.like(target)
        fitting = g.add(graph.SliceOp.make(source.ssa, starts, sizes, steps), source.trust)
    value = fitting
    return g.add(graph.InsertSliceOp.make(target.ssa, value.ssa, starts, steps), _worst(target, value))


def cat(g: Grower) -> Value | None:
    first = g.pick(lambda value: value.rank > 0)
    if first is None:
        return None
    dim = g.choose.integer(0, first.rank - 1)

    def joins(value: Value) -> bool:
        rest = [*value.sizes[:dim], *value.sizes[dim + 1 :]]
        return value.element == first.element and value.rank == first.rank and rest == [
            *first.sizes[:dim], *first.sizes[dim + 1 :]
        ]  # fmt: skip

    parts = [first, *(g.pick(joins) or first for _ in range(g.choose.integer(0, 2)))]
    return g.add(graph.CatOp.make([part.ssa for part in parts], dim), _worst(*parts))


def pad(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank > 0, Trust.NUMBERS)
    if value is None:
        return None
    low, high = ([g.choose.integer(0, 2) for _ in value.sizes] for _ in range(2))
    return g.add(graph.PadOp.make(value.ssa, low, high, DataAttr.of(value.element, [1])), value.trust)


def matmul(g: Grower) -> Value | None:
    value = g.pick(lambda value: value.rank == 2 and value.element != BOOL)
    if value is None:
        return None
    other = g.pick(lambda v: v.rank == 2 and v.element == value.element and v.sizes[0] == value.sizes[1])
    if other is None:
        other = g.add(graph.PermuteOp.make(value.ssa, [1, 0]), value.trust)
    op = graph.MatmulOp.make(value.ssa, other.ssa)
    return g.add(op, _computed(value.element, value, other, least=Trust.BOUND))


STEPS: tuple[Step, ...] = (
    unary, binary, reduce, broadcast, permute, reshape, slice_, compare, select, convert, cat, flip, pad, full,
    argument, gather, index, scatter, index_put, insert_slice, arg_reduce, scan, window, as_strided, constant, iota,
    size, random, matmul, divide, fma, bitcast, binary, unary, reduce, reshape,
)  # fmt: skip


class BoundedGrower(Grower):
    """Grows programs that also slice at a bound, which counts from the start or the end of a dim."""

    BOUNDED = True


class RoomyGrower(BoundedGrower):
    """Grows programs on tensors of many vector registers, which are for machine code, as interpreters take long: loops
    over them are cut into runs, pieces and programs, none of which need end where a register does, along dims in any
    order."""

    @property
    def sizes(self) -> Sequence[Expr]:
        named = [symbol(name) for name in self.symbols if name != BOUND]
        return [as_expr(37), as_expr(2), as_expr(19), *named, as_expr(70), *named, as_expr(8)]

    @property
    def steps(self) -> Sequence[Step]:
        small = [step for step in STEPS if step is not matmul]  # of two rows it makes what no memory holds
        return (*small, *[unary, binary, permute, reduce] * 4)

    def new_argument(self, element: Attribute | None = None) -> Value:
        made = super().new_argument(element or self.choose.one_of((FLOAT32, FLOAT64, FLOAT32, BFLOAT16, INT32)))
        return self.add(graph.PermuteOp.make(made.ssa, self.choose.order(made.rank)), made.trust)


def _finished(g: Grower) -> Program:
    """The program that returns every value which nothing else uses."""
    used = {operand for op in g.block.ops for operand in op.operands}
    results = [value for value in g.values if value.ssa not in used]
    g.block.add_op(ReturnOp(*(value.ssa for value in results)))
    inputs, outputs = [argument.type for argument in g.block.args], [value.ssa.type for value in results]
    function = FuncOp("main", (inputs, outputs), Region(g.block))
    if g.symbols:
        ranges = []
        for name, value in g.symbols.items():
            low, high = BOUNDS if name == BOUND else (2, None)
            ranges.append(SymbolAttr(SymbolRange(name, low, high, value)))
        function.attributes[SYMBOLS] = ArrayAttr(ranges)
    return Program(ModuleOp([function]), g.arguments, [value.trust for value in results], g.exact_functions)


def grown(choose: Choices, most: int, exact_functions: bool, grower: type[Grower] = Grower) -> Program:
    symbols = {f"s{k}": choose.one_of((2, 3, 5, 4, 21)) for k in range(choose.integer(0, 2))}
    if grower.BOUNDED and choose.boolean():
        symbols[BOUND] = choose.integer(*BOUNDS)
    block = Block(arg_types=[IndexType()] * len(symbols))
    for argument, name in zip(block.args, symbols, strict=True):
        argument.name_hint = name
    g = grower(choose, symbols, exact_functions, block, arguments=list(symbols.values()))
    g.new_argument()
    for step in choose.several(g.steps, choose.integer(1, most // 2), most):
        step(g)
    return _finished(g)


@st.composite
def programs(draw: DrawFn, most: int = 18, exact_functions: bool = True) -> Program:
    """Programs of up to `most` steps, for hypothesis. Machine code is no `exact_functions`: its exponentials and the
    like are an ulp or two from the reference, so that no op may ask for their last bits."""
    return grown(Drawn(draw), most, exact_functions, BoundedGrower)


def rolled_program(seed: int, most: int = 16, exact_functions: bool = True, grower: type[Grower] = Grower) -> Program:
    """The program of a seed, without what hypothesis needs to shrink it: several times as fast."""
    return grown(Rolled(seed), most, exact_functions, grower)


__all__ = [
    "APPROXIMATE", "BoundedGrower", "Grower", "Program", "RoomyGrower", "Trust", "Value", "programs", "rolled_program",
]  # fmt: skip

"""Rules over integers, proved for all values with z3: index expressions, and what graph-simplify-algebra does; over
floats it is tried on the numbers that are special."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.ir import graph
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
    numpy_dtype,
)
from stepwell.ir.expr import (
    CONSTRUCTORS,
    Atom,
    Domain,
    Expr,
    ceildiv,
    const,
    delinearize,
    dim,
    floordiv,
    linearize,
    mod,
    symbol,
)
from stepwell.ir.graph.attributes import DataAttr
from stepwell.ir.interpret import interpret
from stepwell.ir.shapes import tensor_type
from stepwell.lowering.graph.patterns import scalar_of
from stepwell.lowering.pipelines import make_pass
from stepwell.tests.interpreters.support import assert_same, context
from stepwell.tests.property.test_programs import text_of

Term: TypeAlias = Any
"""What z3 reasons about; its Python has no types."""


def proved(claim: Term, *given_: Term) -> bool:
    """Whether there is no counterexample; False, too, where z3 does not know."""
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*given_, z3.Not(claim))
    return bool(solver.check() == z3.unsat)


# -- index expressions -------------------------------------------------------------------------------

D0, D1, S0 = z3.Ints("d0 d1 s0")
IN_RANGE = (D0 >= 0, D0 < 5, D1 >= 0, D1 < S0, S0 >= 2)
DOMAIN = Domain({0: const(5), 1: symbol("s0")}, {"s0": (2, None)})
LEAVES = {dim(0): D0, dim(1): D1, symbol("s0"): S0}

MEANINGS: dict[str, Callable[[Term, Term], Term]] = {
    "floordiv": lambda x, y: x / y,  # of z3's integers: rounds down where y > 0
    "ceildiv": lambda x, y: -(-x / y),
    "mod": lambda x, y: x % y,
    "min": lambda x, y: z3.If(x < y, x, y),
    "max": lambda x, y: z3.If(x > y, x, y),
}


def term_of(expr: Expr) -> Term:
    """What an expression says, read from its canonical form."""
    total = z3.IntVal(0)
    for monomial, coefficient in expr.terms:
        factors = [_atom_term(atom) for atom in monomial]
        total = total + z3.Product(z3.IntVal(coefficient), *factors)
    return total


def _atom_term(atom: Atom) -> Term:
    if atom.kind in MEANINGS:
        return MEANINGS[atom.kind](*map(term_of, atom.args))
    return LEAVES[Expr((((atom,), 1),))]


Pair: TypeAlias = tuple[Expr, Term]
"""An expression as it was built, which makes it canonical, and what was meant."""

_leaves: st.SearchStrategy[Pair] = st.one_of(
    st.sampled_from([*LEAVES.items()]), st.integers(-4, 12).map(lambda value: (const(value), z3.IntVal(value)))
)


def _compound(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """Linear but for divisions by numbers: z3 decides all of that."""
    divided = st.tuples(st.sampled_from(["floordiv", "ceildiv", "mod"]), inner, st.integers(1, 9))
    least = st.tuples(st.sampled_from(["min", "max"]), inner, inner)
    return st.one_of(
        st.tuples(inner, inner).map(lambda pair: (pair[0][0] + pair[1][0], pair[0][1] + pair[1][1])),
        st.tuples(inner, st.integers(-3, 6)).map(lambda pair: (pair[0][0] * pair[1], pair[0][1] * pair[1])),
        divided.map(lambda t: (CONSTRUCTORS[t[0]](t[1][0], const(t[2])), MEANINGS[t[0]](t[1][1], z3.IntVal(t[2])))),
        least.map(lambda t: (CONSTRUCTORS[t[0]](t[1][0], t[2][0]), MEANINGS[t[0]](t[1][1], t[2][1]))),
    )


@given(st.recursive(_leaves, _compound, max_leaves=5))
def test_an_expression_means_what_it_was_built_from(pair: Pair) -> None:
    expr, meant = pair
    assert proved(term_of(expr) == meant), str(expr)
    simplified = DOMAIN.simplify(expr)
    assert proved(term_of(simplified) == meant, *IN_RANGE), f"{expr} became {simplified}"


BY_SYMBOLS = (
    floordiv(dim(0) * symbol("s0") + dim(1), symbol("s0")),
    mod(dim(0) * symbol("s0") + dim(1), symbol("s0")),
    ceildiv(dim(0) * symbol("s0"), symbol("s0")),
    floordiv(dim(1), symbol("s0")) * symbol("s0") + mod(dim(1), symbol("s0")),
    mod(dim(1) * 4 + 3, symbol("s0") * 4),
)


@pytest.mark.parametrize("expr", BY_SYMBOLS, ids=str)
def test_what_ranges_decide_of_divisions_by_symbols(expr: Expr) -> None:
    assert proved(term_of(DOMAIN.simplify(expr)) == term_of(expr), *IN_RANGE)


def test_indices_come_back_from_the_place_in_memory() -> None:
    sizes, indices = (const(5), symbol("s0")), (dim(0), dim(1))
    found = delinearize(linearize(indices, (symbol("s0"), const(1))), sizes)
    for index, meant in zip(found, (D0, D1), strict=True):
        assert proved(term_of(index) == meant, *IN_RANGE)


# -- algebra -----------------------------------------------------------------------------------------

TYPES: tuple[Attribute, ...] = (INT8, INT16, INT32, INT64, UINT8, BOOL)

CONSTANTS = (0, 1, 2, 3, -1)

FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 8.0, -8.0, 2.0**-20, float("inf"), float("nan"))

UNARY = (
    graph.NegOp, graph.NotOp, graph.AbsOp, graph.ReluOp, graph.CopyOp, graph.FloorOp, graph.CeilOp, graph.TruncOp,
    graph.RoundOp,
)  # fmt: skip

BINARY = (
    graph.AddOp, graph.SubOp, graph.MulOp, graph.AndOp, graph.OrOp, graph.XorOp, graph.ShlOp, graph.ShrOp,
    graph.MaximumOp, graph.MinimumOp, graph.TruncDivOp, graph.FloorDivOp, graph.PowOp, graph.DivOp, graph.FmodOp,
)  # fmt: skip


def signed(element: Attribute) -> bool:
    return element not in (UINT8, BOOL)


def less(element: Attribute, x: Term, y: Term) -> Term:
    return x < y if signed(element) else z3.ULT(x, y)


def quotient(element: Attribute, x: Term, y: Term) -> Term:
    return x / y if signed(element) else z3.UDiv(x, y)


def floored(element: Attribute, x: Term, y: Term) -> Term:
    whole = quotient(element, x, y)
    inexact = z3.And(whole * y != x, less(element, x, 0 * x) != less(element, y, 0 * y))
    return z3.If(inexact, whole - 1, whole)


def power(element: Attribute, x: Term, y: Term) -> Term:
    """Exponents from 0 to 3; another one is a number of its own."""
    known, one = z3.simplify(y).as_long(), z3.BitVecVal(1, x.size())
    return [one, x, x * x, x * x * x][known] if known < 4 else z3.BitVec(f"power{known}", x.size())


OPS: dict[type[Operation], Callable[..., Term]] = {
    graph.CopyOp: lambda element, x: x,
    graph.NegOp: lambda element, x: -x,
    graph.NotOp: lambda element, x: ~x,
    graph.AbsOp: lambda element, x: z3.If(less(element, x, 0 * x), -x, x),
    graph.ReluOp: lambda element, x: z3.If(less(element, x, 0 * x), 0 * x, x),
    graph.AddOp: lambda element, x, y: x + y,
    graph.SubOp: lambda element, x, y: x - y,
    graph.MulOp: lambda element, x, y: x * y,
    graph.AndOp: lambda element, x, y: x & y,
    graph.OrOp: lambda element, x, y: x | y,
    graph.XorOp: lambda element, x, y: x ^ y,
    graph.ShlOp: lambda element, x, y: x << y,
    graph.ShrOp: lambda element, x, y: x >> y if signed(element) else z3.LShR(x, y),
    graph.MaximumOp: lambda element, x, y: z3.If(less(element, x, y), y, x),
    graph.MinimumOp: lambda element, x, y: z3.If(less(element, x, y), x, y),
    graph.TruncDivOp: quotient,
    graph.FloorDivOp: floored,
    graph.PowOp: power,
    graph.SelectOp: lambda element, condition, x, y: z3.If(condition == 1, x, y),
}
"""(element type, operands as bit vectors) → the result, on every element of a tensor."""


def meaning(value: SSAValue) -> Term:
    element = element_of(value.type)
    assert isinstance(element, IntegerType)
    width, constant = element.width.data, scalar_of(value)
    if constant is not None:
        return z3.BitVecVal(int(constant), width)
    if isinstance(value.owner, Block):
        return z3.BitVec(f"argument{value.index}", width)  # type: ignore[attr-defined]
    return OPS[type(value.owner)](element, *map(meaning, value.owner.operands))


Make = Callable[[SSAValue, SSAValue, SSAValue], Sequence[Operation]]
"""(two values, a condition) → ops; the last one has the result."""


def candidates(element: Attribute, numbers: Sequence[float]) -> Iterator[Make]:
    """Small programs."""

    def full(number: float, like: SSAValue) -> graph.FullOp:
        return graph.FullOp.build_from((), like.type, value=DataAttr.of(element_of(like.type), number))

    for unary in UNARY:
        yield lambda x, y, c, op=unary: [first := op.make(x), op.make(first.results[0])]  # type: ignore[misc]
    for binary in BINARY:
        yield lambda x, y, c, op=binary: [op.make(x, x)]  # type: ignore[misc]
        for number in numbers:
            yield lambda x, y, c, op=binary, n=number: [k := full(n, x), op.make(x, k.results[0])]  # type: ignore[misc]
            yield lambda x, y, c, op=binary, n=number: [k := full(n, x), op.make(k.results[0], x)]  # type: ignore[misc]
    yield lambda x, y, c: [graph.SelectOp.make(c, x, x)]
    for number in (0, 1):
        yield lambda x, y, c, n=number: [k := full(n, c), graph.SelectOp.make(k.results[0], x, y)]  # type: ignore[misc]


def program(element: Attribute, make: Make, size: int = 2) -> ModuleOp | None:
    """None where the ops do not take that type, or z3 has no value: a division by 0, an unknown power."""
    block = Block(arg_types=[tensor_type(element, [size]), tensor_type(element, [size]), tensor_type(BOOL, [size])])
    try:
        ops = make(*block.args)
        block.add_ops(ops)
        for op in ops:
            op.verify()
    except Exception:
        return None
    block.add_op(ReturnOp(ops[-1].results[0]))
    returned = [ops[-1].results[0].type]
    return ModuleOp([FuncOp("main", ([argument.type for argument in block.args], returned), Region(block))])


def result_of(module: ModuleOp) -> SSAValue:
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    returned = function.body.block.last_op
    assert returned is not None
    return returned.operands[0]


REWRITTEN = {INT8: 30, INT16: 30, INT32: 30, INT64: 30, UINT8: 25, BOOL: 15}
"""How many programs a rule must fire on at least, or else nothing is proved."""


@pytest.mark.parametrize("element", TYPES, ids=str)
def test_algebra_on_integers_holds_for_all_values(element: Attribute) -> None:
    rewritten = 0
    numbers = [number for number in CONSTANTS if number >= 0 or signed(element)][: 2 if element == BOOL else None]
    for make in candidates(element, numbers):
        module = program(element, make)
        if module is None:
            continue
        before, text = result_of(module), text_of(module)
        changed = module.clone()
        make_pass("graph-simplify-algebra").apply(context(), changed)
        if text_of(changed) != text:
            rewritten += 1
            assert proved(meaning(before) == meaning(result_of(changed))), f"{text}\nbecame\n{text_of(changed)}"
    assert rewritten >= REWRITTEN[element], rewritten


@pytest.mark.parametrize("element", [FLOAT32, FLOAT64, BFLOAT16, FLOAT16], ids=str)
def test_algebra_on_floats_keeps_every_bit_of_special_numbers(element: Attribute) -> None:
    dtype = numpy_dtype(element)
    with np.errstate(over="ignore"):
        numbers = np.array([*FLOATS, 1.7, -1.7, 1e-40, -1e30, 2.0**-14, 65504.0, -3.0, 1e21], dtype)
    x, y = (np.ascontiguousarray(grid).reshape(-1) for grid in np.meshgrid(numbers, numbers))
    condition = np.arange(x.size) % 3 == 0
    rewritten = 0
    for make in candidates(element, FLOATS):
        module = program(element, make, x.size)
        if module is None:
            continue
        changed = module.clone()
        make_pass("graph-simplify-algebra").apply(context(), changed)
        if text_of(changed) != text_of(module):
            rewritten += 1
            (before,), (after,) = (interpret(each, [x, y, condition]) for each in (module, changed))
            assert_same(after, before, NEAR if has_power(module) else 0.0)
    assert rewritten >= 15, rewritten


NEAR = 1e-6
"""Eager multiplies where it would take a small power."""


def has_power(module: ModuleOp) -> bool:
    return any(isinstance(op, graph.PowOp) for op in module.walk())

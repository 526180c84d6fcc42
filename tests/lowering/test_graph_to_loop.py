"""Every row of the conversion against eager, special values included; which views cost nothing; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from stepwell.ir import graph, host, loop
from stepwell.ir.errors import LoweringError
from stepwell.ir.expr import const, dim, symbol
from stepwell.ir.locations import file_line
from stepwell.lowering.convert.graph.views import reshaped
from stepwell.lowering.convert.graph_to_loop import ConvertGraphToLoop
from stepwell.tests.interpreters.cases import rounded_root
from stepwell.tests.lowering.graph_evaluator import Array, call, converted, philox
from stepwell.tests.lowering.loop_text import context, function_of, kernels_of, parse

Tensor = torch.Tensor

DTYPES: dict[str, torch.dtype] = {
    "f32": torch.float32,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i1": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

FLOATS = [
    float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 100.0,
    1e-5, -3e4,
]  # fmt: skip
WIDE_FLOATS = [*FLOATS, 3.0e38, -1e-40, 1e-45, 16777217.0]
INTEGERS: dict[str, list[Any]] = {
    "i64": [0, 1, -1, 2, -3, 7, 63, 64, 1 << 40, -(1 << 63), (1 << 63) - 1],
    "i32": [0, 1, -1, 2, -3, 7, 31, 32, -(1 << 31), (1 << 31) - 1],
    "i8": [0, 1, -1, 2, -3, 7, 8, 9, -128, 127],
    "ui8": [0, 1, 2, 3, 7, 8, 9, 128, 200, 255],
    "i1": [False, True],
}


def special_values(name: str) -> list[Any]:
    """Values of an element type at which ops differ."""
    floats = WIDE_FLOATS if name in ("f32", "f64") else FLOATS
    return list(INTEGERS.get(name, floats))


def tensor(values: Sequence[Any], name: str) -> Tensor:
    return torch.tensor(values, dtype=DTYPES[name])


def to_array(value: Tensor) -> Array:
    value = value.detach().contiguous()
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def stored(value: Tensor) -> Array:
    """As the loop level holds it: integers signed."""
    array = to_array(value)
    return array.view(np.int8) if array.dtype == np.uint8 else array


def type_of(value: Tensor) -> str:
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{NAMES[value.dtype]}>"


def run(op: str, inputs: Sequence[Tensor], result: str) -> tuple[Array, set[tuple[str, str]]]:
    """The result of one op, written with `{0}`, `{1}`, … for its operands and without its types."""
    names = [f"%x{k}" for k in range(len(inputs))]
    types = [type_of(value) for value in inputs]
    arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    module = converted(
        f"func.func @f({arguments}) -> {result} {{\n"
        f"  %y = {op.format(*names)} : ({', '.join(types)}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )
    assert not [op for op in function_of(module).body.block.ops if not isinstance(op, loop.KernelOp | ReturnOp)]
    results, errors = call(module, [stored(value) for value in inputs])
    return results[0], errors


def assert_same(found: Array, expected: Tensor, rtol: float = 0.0) -> None:
    """Equal with NaN equal to NaN and 0 unequal to -0, or close where that is as good as eager's functions are."""
    wanted = to_array(expected)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    left, right = found.astype("f8"), wanted.astype("f8")
    np.testing.assert_allclose(left, right, rtol=rtol, atol=4e-45 if rtol else 0, equal_nan=True)
    zeros = (left == 0) & (right == 0)
    np.testing.assert_array_equal(np.signbit(left[zeros]), np.signbit(right[zeros]))


# -- elementwise -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A graph op, the eager function that it must equal, and the element types on which it is tried."""

    op: str
    eager: Callable[..., Tensor]
    types: str
    rtol: float = 0.0


NEAR = 2e-6
"""Relative error between two good implementations of a function in f32; bf16 and f16 get one unit."""

UNIT = {"bf16": 2**-7, "f16": 2**-10}


UNARY = (
    Row("exp", torch.exp, "f32 f64 bf16 f16", NEAR),
    Row("exp2", torch.exp2, "f32 bf16", NEAR),
    Row("expm1", torch.expm1, "f32 bf16", NEAR),
    Row("log", torch.log, "f32 bf16", NEAR),
    Row("log2", torch.log2, "f32 bf16", NEAR),
    Row("log10", torch.log10, "f32 bf16", NEAR),
    Row("log1p", torch.log1p, "f32 bf16", NEAR),
    Row("sqrt", rounded_root, "f32 bf16 f16"),
    Row("rsqrt", torch.rsqrt, "f32 f64 bf16 f16", NEAR),
    Row("reciprocal", torch.reciprocal, "f32 f64 bf16 f16", NEAR),
    Row("sin", torch.sin, "f32 bf16", NEAR),
    Row("cos", torch.cos, "f32 bf16", NEAR),
    Row("tan", torch.tan, "f32", NEAR),
    Row("asin", torch.asin, "f32", NEAR),
    Row("acos", torch.acos, "f32", NEAR),
    Row("atan", torch.atan, "f32", NEAR),
    Row("sinh", torch.sinh, "f32", NEAR),
    Row("cosh", torch.cosh, "f32", NEAR),
    Row("tanh", torch.tanh, "f32 bf16", NEAR),
    Row("asinh", torch.asinh, "f32", NEAR),
    Row("acosh", torch.acosh, "f32", NEAR),
    Row("atanh", torch.atanh, "f32", NEAR),
    Row("erf", torch.erf, "f32", NEAR),
    Row("sigmoid", torch.sigmoid, "f32 bf16", NEAR),
    Row("floor", torch.floor, "f32 bf16"),
    Row("ceil", torch.ceil, "f32 bf16"),
    Row("round", torch.round, "f32 bf16"),
    Row("trunc", torch.trunc, "f32 bf16"),
    Row("neg", torch.neg, "f32 bf16 i64 i8 ui8"),
    Row("abs", torch.abs, "f32 bf16 i64 i8 ui8"),
    Row("sign", torch.sign, "f32 bf16 i64 i8 ui8"),
    Row("relu", torch.relu, "f32 bf16 i64 i8 ui8"),
    Row("not", torch.bitwise_not, "i64 i8 ui8 i1"),
    Row("isnan", torch.isnan, "f32 f64 bf16 f16"),
    Row("isinf", torch.isinf, "f32 bf16"),
    Row("signbit", torch.signbit, "f32 f64 bf16 f16"),
    Row("copy", torch.clone, "f32 bf16 i64 ui8 i1"),
)


def parameters(rows: Sequence[Row]) -> list[Any]:
    return [pytest.param(row, name, id=f"{row.op}-{name}") for row in rows for name in row.types.split()]


@pytest.mark.parametrize(("row", "name"), parameters(UNARY))
def test_unary(row: Row, name: str) -> None:
    x = tensor(special_values(name), name)
    expected = row.eager(x)
    found, errors = run(f"graph.{row.op} {{0}}", [x], type_of(expected))
    assert not errors
    assert_same(found, expected, UNIT.get(name, row.rtol) if row.rtol else 0.0)


def one_by_one(eager: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Eager on single numbers: its vector code loses denormal divisors and the largest quotients."""
    return lambda x, y: torch.cat([eager(x[k : k + 1], y[k : k + 1]) for k in range(len(x))])


def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="floor")


def truncate_divide(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="trunc")


BINARY = (
    Row("add", torch.add, "f32 bf16 f16 i64 i8 ui8"),
    Row("sub", torch.sub, "f32 bf16 i64 i8 ui8"),
    Row("mul", torch.mul, "f32 bf16 i64 i8 ui8"),
    Row("div", torch.div, "f32 f64 bf16 f16"),
    Row("floordiv", one_by_one(floor_divide), "f32 bf16 f16"),
    Row("truncdiv", truncate_divide, "f32 bf16"),
    Row("remainder", one_by_one(torch.remainder), "f32 bf16 f16"),
    Row("fmod", one_by_one(torch.fmod), "f32 bf16 f16"),
    Row("pow", torch.pow, "f32 bf16", NEAR),
    Row("pow", torch.pow, "i64 i8 ui8"),
    Row("maximum", torch.maximum, "i64 i8 ui8"),
    Row("minimum", torch.minimum, "i64 i8 ui8"),
    Row("atan2", torch.atan2, "f32", NEAR),
    Row("copysign", torch.copysign, "f32 bf16"),
    Row("and", torch.bitwise_and, "i64 i8 ui8 i1"),
    Row("or", torch.bitwise_or, "i64 i8 ui8 i1"),
    Row("xor", torch.bitwise_xor, "i64 i8 ui8 i1"),
    Row("shl", torch.bitwise_left_shift, "i64 i32 i8 ui8"),
    Row("shr", torch.bitwise_right_shift, "i64 i32 i8 ui8"),
)


def pairs(name: str) -> tuple[Tensor, Tensor]:
    left, right = zip(*product(special_values(name), repeat=2), strict=True)
    return tensor(left, name), tensor(right, name)


@pytest.mark.parametrize(("row", "name"), parameters(BINARY))
def test_binary(row: Row, name: str) -> None:
    x, y = pairs(name)
    expected = row.eager(x, y)
    found, errors = run(f"graph.{row.op} {{0}}, {{1}}", [x, y], type_of(expected))
    assert not errors
    assert_same(found, expected, UNIT.get(name, row.rtol) if row.rtol else 0.0)


@pytest.mark.parametrize("name", ["f32", "bf16"])
@pytest.mark.parametrize(("op", "eager"), [("maximum", torch.maximum), ("minimum", torch.minimum)])
def test_extrema_of_floats_let_nan_win(op: str, eager: Callable[..., Tensor], name: str) -> None:
    x, y = pairs(name)
    found, _ = run(f"graph.{op} {{0}}, {{1}}", [x, y], type_of(x))
    np.testing.assert_array_equal(found.astype("f8"), to_array(eager(x, y)).astype("f8"))


DIVISIONS = (
    Row("floordiv", floor_divide, "i64 i32 i8 ui8"),
    Row("truncdiv", truncate_divide, "i64 i32 i8 ui8"),
    Row("remainder", torch.remainder, "i64 i32 i8 ui8"),
    Row("fmod", torch.fmod, "i64 i32 i8 ui8"),
)


@pytest.mark.parametrize(("row", "name"), parameters(DIVISIONS))
def test_integer_division(row: Row, name: str) -> None:
    x, y = pairs(name)
    least = torch.iinfo(x.dtype).min
    eager_survives = (y != 0) & ~((x == least) & (y == -1))
    divisible = torch.where(eager_survives, y, 1)
    expected = torch.where(eager_survives, row.eager(x, divisible), 0)
    found, errors = run(f"graph.{row.op} {{0}}, {{1}}", [x, y], type_of(x))
    assert errors == {("RuntimeError", "ZeroDivisionError")}
    found = np.where(eager_survives.numpy(), found, 0).astype(found.dtype)
    assert_same(found, expected)


@pytest.mark.parametrize(("op", "wrapped"), [("floordiv", -128), ("truncdiv", -128), ("remainder", 0), ("fmod", 0)])
def test_the_least_integer_divided_by_minus_one_wraps(op: str, wrapped: int) -> None:
    found, errors = run(f"graph.{op} {{0}}, {{1}}", [tensor([-128], "i8"), tensor([-1], "i8")], "tensor<1xi8>")
    assert found.tolist() == [wrapped]
    assert not errors


def test_a_remainder_is_exact_for_the_largest_quotients() -> None:
    generator = np.random.default_rng(0)
    x = torch.from_numpy(generator.integers(0, 1 << 31, 400).astype("i4").view("f4"))
    y = torch.from_numpy(generator.integers(0, 1 << 31, 400).astype("i4").view("f4"))
    found, _ = run("graph.fmod {0}, {1}", [x, y], type_of(x))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, np.fmod(x.numpy(), y.numpy()))


@pytest.mark.parametrize("exponent", [0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, 2.5])
@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_a_constant_exponent_is_an_exponent_like_any_other(exponent: float, name: str) -> None:
    """For some numbers eager has other ways, which the import takes: 1 / (x * x) is 0 for 1e21, the power is not."""
    x = tensor([*special_values(name), 1e21, 1e-21], name)
    expected, type_ = torch.pow(x, torch.full_like(x, exponent)), type_of(x)
    module = converted(
        f"func.func @f(%x: {type_}) -> {type_} {{\n"
        f"  %e = graph.full {name}<{exponent}> : {type_}\n"
        f"  %y = graph.pow %x, %e : {type_}\n  func.return %y : {type_}\n}}"
    )
    assert_same(call(module, [stored(x)])[0][0], expected, UNIT.get(name, NEAR))


@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("name", ["f32", "bf16", "i64", "i8", "ui8", "i1"])
def test_compare(predicate: str, name: str) -> None:
    x, y = pairs(name)
    expected = getattr(torch, predicate)(x, y)
    found, _ = run(f"graph.compare {{0}}, {{1}} is {predicate}", [x, y], type_of(expected))
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["f32", "bf16", "i64", "ui8", "i1"])
def test_select(name: str) -> None:
    x, y = pairs(name)
    condition = torch.arange(len(x)) % 3 == 0
    found, _ = run("graph.select {0}, {1}, {2}", [condition, x, y], type_of(x))
    assert_same(found, torch.where(condition, x, y))


def test_fma_rounds_once() -> None:
    x = tensor([1 + 2**-12, 3.0, float("inf")], "f32")
    z = tensor([-1.0, 0.5, float("-inf")], "f32")
    found, _ = run("graph.fma {0}, {1}, {2}", [x, x, z], type_of(x))
    exact = (x.double() * x.double() + z.double()).float()
    assert_same(found, exact)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_convert(source: str, target: str) -> None:
    values = special_values(source)
    if source not in INTEGERS:
        values = [*values, 300.7, -300.7, 3e9, 1e20, 1 + 2**-8 + 2**-30, 1 + 2**-11 + 2**-40, 255.5]
    x = tensor(values, source)
    expected = x.to(DTYPES[target])
    found, _ = run("graph.convert {0}", [x], type_of(expected))
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i8", "ui8"), ("ui8", "i8"), ("i1", "ui8")]
)
def test_bitcast(source: str, target: str) -> None:
    x = tensor(special_values(source), source)
    expected = x.view(DTYPES[target])
    found, _ = run("graph.bitcast {0}", [x], type_of(expected))
    assert_same(found, expected)


# -- reductions and scans ----------------------------------------------------------------------------


REDUCTIONS: dict[str, tuple[Callable[[Tensor, list[int]], Tensor], str]] = {
    "sum": (lambda x, dims: x.sum(dims, dtype=x.dtype), "f32 bf16 i64 i8 ui8"),
    "prod": (lambda x, dims: _product(x, dims), "f32 i64"),
    "max": (torch.amax, "f32 bf16 i64 i8 ui8 i1"),
    "min": (torch.amin, "f32 bf16 i64 i8 ui8 i1"),
    "any": (torch.any, "i1"),
    "all": (torch.all, "i1"),
}


def _product(x: Tensor, dims: list[int]) -> Tensor:
    for position in sorted(dims, reverse=True):
        x = x.prod(position, dtype=x.dtype)
    return x


def box(name: str, *sizes: int) -> Tensor:
    """A tensor of small numbers, NaN among the floats."""
    count = int(np.prod(sizes))
    if name == "i1":
        return (torch.arange(count) * 7 % 5 < 2).reshape(sizes)
    values = (torch.arange(count) * 37 % 23 - 11).reshape(sizes)
    values = values.abs() if name == "ui8" else values
    return values.to(DTYPES[name])


ON_TYPES = [(op, name) for op, (_, names) in REDUCTIONS.items() for name in names.split()]


@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 2], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize(("op", "name"), ON_TYPES)
def test_reduction(op: str, name: str, dims: list[int]) -> None:
    x = box(name, 3, 4, 5)
    expected = REDUCTIONS[op][0](x, dims)
    found, _ = run(f"graph.{op} {{0}} {dims}", [x], type_of(expected))
    assert_same(found, expected, 2**-7 if name == "bf16" and op == "sum" else NEAR)


@pytest.mark.parametrize(("op", "name"), ON_TYPES)
def test_a_reduction_of_nothing_is_the_identity(op: str, name: str) -> None:
    x = torch.empty((2, 0), dtype=DTYPES[name])
    lowest, highest = (False, True) if name == "i1" else _bounds(DTYPES[name])
    expected = {"sum": 0, "prod": 1, "max": lowest, "min": highest, "any": False, "all": True}[op]
    found, _ = run(f"graph.{op} {{0}} [1]", [x], f"tensor<2x{name}>")
    assert found.tolist() == [expected, expected]


def _bounds(dtype: torch.dtype) -> tuple[Any, Any]:
    if dtype.is_floating_point:
        return -float("inf"), float("inf")
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


@pytest.mark.parametrize("op", ["max", "min"])
def test_extrema_of_a_row_with_nan_are_nan(op: str) -> None:
    x = tensor([[1.0, float("nan"), 3.0], [3.0, 2.0, 1.0]], "f32")
    found, _ = run(f"graph.{op} {{0}} [1]", [x], "tensor<2xf32>")
    assert_same(found, getattr(torch, f"a{op}")(x, 1))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["f32", "bf16", "i64", "i8", "ui8", "i1"])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_index_reduction(op: str, name: str, dim: int) -> None:
    x = box(name, 4, 9)
    if name in ("f32", "bf16"):
        x[2, 3] = x[2, 5] = float("nan")
    as_numbers = x.to(torch.uint8) if name == "i1" else x
    expected = getattr(torch, op)(as_numbers, dim)
    found, _ = run(f"graph.{op} {{0}} [{dim}]", [x], type_of(expected))
    assert_same(found, expected)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("combiner", "eager"), [("add", torch.cumsum), ("mul", torch.cumprod)])
@pytest.mark.parametrize("name", ["f32", "f64", "i64"])
def test_scan(name: str, combiner: str, eager: Callable[..., Tensor], dim: int) -> None:
    x = box(name, 3, 6)
    found, _ = run(f"graph.scan {{0}} dim {dim} with {combiner}", [x], type_of(x))
    assert_same(found, eager(x, dim), NEAR)


def test_a_scan_of_f32_accumulates_in_f64() -> None:
    x = torch.full((1000,), 0.1)
    found, _ = run("graph.scan {0} dim 0 with add", [x], type_of(x))
    assert_same(found, x.cumsum(0))


# -- views -------------------------------------------------------------------------------------------

VIEWS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "permute": ("graph.permute {0} [2, 0, 1]", lambda x: x.permute(2, 0, 1)),
    "reshape that joins": ("graph.reshape {0}", lambda x: x.reshape(12, 6)),
    "reshape that splits": ("graph.reshape {0}", lambda x: x.reshape(3, 2, 2, 2, 3)),
    "reshape that mixes": ("graph.reshape {0}", lambda x: x.reshape(2, 9, 4)),
    "reshape with single dims": ("graph.reshape {0}", lambda x: x.reshape(1, 3, 1, 24, 1)),
    "broadcast": ("graph.broadcast {0}", lambda x: x.expand(2, 3, 4, 6)),
    "slice": ("graph.slice {0} from (1, 0, 1) step (1, 2, 2)", lambda x: x[1:, ::2, 1::2]),
    "flip": ("graph.flip {0} [0, 2]", lambda x: x.flip(0, 2)),
    "window": ("graph.window {0} step [2] dilation [1]", lambda x: x.unfold(2, 3, 2)),
    "as_strided": ("graph.as_strided {0} offset (3)", lambda x: x.as_strided((2, 5), (11, 3), 3)),
}


def view_function(view: str, body: str) -> tuple[Tensor, Tensor, str]:
    """An input, what the view makes of it, and a function that views it as `%v`, then goes on with `body`."""
    op, eager = VIEWS[view]
    x = torch.arange(72, dtype=torch.float32).reshape(3, 4, 6)
    expected = eager(x)
    type_ = f"tensor<{'x'.join(map(str, expected.shape))}xf32"
    if view == "as_strided":
        type_ += ", #stepwell.layout<(2, 5), (11, 3)>"
    plain = type_of(expected)
    return (
        x,
        expected,
        (
            f"func.func @f(%x: {type_of(x)}) -> {plain} {{\n"
            f"  %v = {op.format('%x')} : ({type_of(x)}) -> {type_}>\n"
            f"{body.replace('$view', type_ + '>').replace('$plain', plain)}  func.return %y : {plain}\n}}"
        ),
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_folds_into_its_reader(view: str) -> None:
    x, expected, text = view_function(view, "  %y = graph.copy %v : ($view) -> $plain\n")
    module = converted(text)
    assert len(kernels_of(module)) == 1
    assert_same(call(module, [stored(x)])[0][0], expected)


@pytest.mark.parametrize("outer", ["permute", "flip", "reshape"])
@pytest.mark.parametrize("view", [view for view in VIEWS if view not in ("broadcast", "as_strided")])
def test_views_of_views_fold(view: str, outer: str) -> None:
    rank = VIEWS[view][1](torch.zeros(3, 4, 6)).dim()
    dims = [*range(rank)][::-1]
    more = {"permute": f"permute %v {dims}", "flip": "flip %v [0]", "reshape": "reshape %v"}[outer]
    x, viewed, text = view_function(view, "")
    eager = {"permute": viewed.permute(dims), "flip": viewed.flip(0), "reshape": viewed.reshape(-1)}[outer]
    inner, result = type_of(viewed), type_of(eager)
    head, tail = text.split("\n")[:2]
    module = converted(
        f"{head.replace(f'-> {inner}', f'-> {result}')}\n{tail}\n"
        f"  %w = graph.{more} : ({inner}) -> {result}\n"
        f"  %y = graph.copy %w : {result}\n  func.return %y : {result}\n}}"
    )
    assert len(kernels_of(module)) == 1
    assert_same(call(module, [stored(x)])[0][0], eager)


@st.composite
def factorings(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of equally many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5]), min_size=1, max_size=5))

    def shape() -> list[int]:
        shuffled = draw(st.permutations(factors))
        cuts = sorted(draw(st.sets(st.integers(0, len(shuffled)), max_size=3)) | {0, len(shuffled)})
        return [int(np.prod(shuffled[low:high])) for low, high in pairwise(cuts)]

    return shape(), shape()


@given(factorings())
def test_a_reshape_finds_each_element(shapes: tuple[list[int], list[int]]) -> None:
    sizes, results = (tuple(map(const, shape)) for shape in shapes)
    place = reshaped(sizes, results)
    x = np.arange(np.prod(shapes[0])).reshape(shapes[0])
    for index, element in np.ndenumerate(x.reshape(shapes[1])):
        assert x[tuple(expr.substitute_dims(list(map(const, index))).constant for expr in place)] == element


def test_dims_that_a_reshape_keeps_need_no_division() -> None:
    s0, s1 = symbol("s0"), symbol("s1")
    assert reshaped((s0, const(6), s1), (s0, const(2), const(3), s1)) == (dim(0), dim(1) * 3 + dim(2), dim(3))
    assert reshaped((s0, const(4), s1), (s0 * 4, const(1), s1)) == (dim(0) // const(4), dim(0) % const(4), dim(2))
    assert reshaped((const(4), const(6), s1), (const(3), const(8), s1))[2] == dim(2)


def test_a_reshape_takes_sizes_for_equal_that_only_a_guard_makes_so() -> None:
    s0, s1, s2 = symbol("s0"), symbol("s1"), symbol("s2")
    assert reshaped((s0,), (s1, s2)) == (dim(0) * s2 + dim(1),)
    assert reshaped((s1, s2), (s0,)) == (dim(0) // s2, dim(0) % s2)
    assert reshaped((s0,), (s0, s1)) == (dim(0),)
    assert reshaped((s0, s1), (s0,)) == (dim(0), const(0))
    assert reshaped((s0 * s1, s2), (s0,)) == (dim(0) // s2, dim(0) % s2)


def test_a_view_of_a_dynamic_size_folds() -> None:
    module = converted("""
        func.func @f(%s0: index, %x: tensor<?x6xf32, #stepwell.layout<(s0, 6), (6, 1)>>)
            -> tensor<?x3xf32, #stepwell.layout<(s0 * 2, 3), (3, 1)>>
            attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
          %v = graph.reshape %x : (tensor<?x6xf32, #stepwell.layout<(s0, 6), (6, 1)>>)
            -> tensor<?x3xf32, #stepwell.layout<(s0 * 2, 3), (3, 1)>>
          %y = graph.exp %v : tensor<?x3xf32, #stepwell.layout<(s0 * 2, 3), (3, 1)>>
          func.return %y : tensor<?x3xf32, #stepwell.layout<(s0 * 2, 3), (3, 1)>>
        }""")
    x = np.arange(24, dtype="f4").reshape(4, 6)
    np.testing.assert_allclose(call(module, [4, x], {"s0": 4})[0][0], np.exp(x).reshape(8, 3), rtol=1e-6)


MEMORY_TEXT = """
func.func @f(%x: tensor<4x6xf32>) -> {type} {{
  %y = graph.exp %x : tensor<4x6xf32>
  %v = {op} : (tensor<4x6xf32>) -> {type}
  func.return %v : {type}
}}"""


def layout(sizes: str, strides: str) -> str:
    return f"tensor<{sizes.replace(', ', 'x')}xf32, #stepwell.layout<({sizes}), ({strides})>>"


@pytest.mark.parametrize(
    ("op", "type_", "is_view"),
    [
        ("graph.permute %y [1, 0]", layout("6, 4", "1, 6"), True),
        ("graph.permute %y [1, 0]", "tensor<6x4xf32>", False),
        ("graph.slice %y from (1, 2) step (1, 2)", layout("3, 2", "6, 2"), True),
        ("graph.slice %y from (1, 2) step (1, 2)", "tensor<3x2xf32>", False),
        ("graph.reshape %y", "tensor<2x12xf32>", True),
        ("graph.reshape %y", layout("2, 12", "1, 2"), False),
        ("graph.reshape %y", layout("1, 24", "5, 1"), True),
        ("graph.broadcast %y", layout("3, 4, 6", "0, 6, 1"), True),
        ("graph.broadcast %y", "tensor<3x4x6xf32>", False),
        ("graph.flip %y [0]", "tensor<4x6xf32>", False),
        ("graph.window %y step [2] dilation [1]", layout("4, 2, 3", "6, 2, 1"), True),
        ("graph.as_strided %y offset (2)", layout("3, 2", "5, 7"), True),
    ],
)
def test_a_returned_view_has_the_strides_of_its_type(op: str, type_: str, is_view: bool) -> None:
    module = converted(MEMORY_TEXT.format(op=op, type=type_))
    views = [inner for inner in function_of(module).body.block.ops if isinstance(inner, host.ViewOp)]
    assert len(views) == is_view
    assert len(kernels_of(module)) == 2 - is_view


def test_a_view_that_changes_nothing_is_its_operand() -> None:
    module = converted(MEMORY_TEXT.format(op="graph.reshape %y", type="tensor<4x6xf32>"))
    assert len([*function_of(module).body.block.ops]) == 2


def test_a_constant_that_is_returned_is_copied() -> None:
    module = converted("""
        func.func @f() -> (tensor<2xi64>, tensor<i64>, tensor<3xf32>) {
          %c = graph.constant i64<1, 2> : tensor<2xi64>
          %d = graph.constant i64<7> : tensor<i64>
          %e = graph.full f32<0.5> : tensor<3xf32>
          func.return %c, %d, %e : tensor<2xi64>, tensor<i64>, tensor<3xf32>
        }""")
    assert len(kernels_of(module)) == 3
    results, _ = call(module, [])
    assert [result.tolist() for result in results] == [[1, 2], 7, [0.5, 0.5, 0.5]]


def test_one_number_returned_twice_is_two_tensors() -> None:
    module = converted("""
        func.func @f() -> (tensor<3xf32>, tensor<3xf32>) {
          %z = graph.full f32<0.0> : tensor<3xf32>
          func.return %z, %z : tensor<3xf32>, tensor<3xf32>
        }""")
    assert len(kernels_of(module)) == 2


SHARING = """
func.func @f(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, TRANSPOSED)
    attributes {{stepwell.storages = array<i64: {storages}>}} {{
  %y = graph.exp %x : tensor<4x6xf32>
  %t = graph.permute %y [1, 0] : (tensor<4x6xf32>) -> TRANSPOSED
  func.return {results} : tensor<4x6xf32>, tensor<4x6xf32>, TRANSPOSED
}}""".replace("TRANSPOSED", "tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>")


@pytest.mark.parametrize(
    ("results", "storages", "copies"),
    [
        ("%y, %y, %t", "1, 1, 1", 0),  # one tensor and a view of it
        ("%y, %y, %t", "1, 2, 3", 2),  # three equal computations that became one
        ("%y, %y, %t", "1, 2, 1", 1),
        ("%x, %y, %t", "0, 1, 1", 0),  # an argument that is returned
        ("%x, %y, %t", "1, 2, 2", 1),  # x * 1, simplified
        ("%x, %x, %t", "0, 2, 3", 1),
    ],
)
def test_results_share_memory_just_as_in_eager(results: str, storages: str, copies: int) -> None:
    module = converted(SHARING.format(results=results, storages=storages))
    assert len(kernels_of(module)) == 1 + copies
    x = np.arange(24, dtype="f4").reshape(4, 6)
    found, _ = call(module, [x])
    expected = {"%x": x, "%y": np.exp(x), "%t": np.exp(x).T}
    for name, array in zip(results.split(", "), found, strict=True):
        np.testing.assert_allclose(array, expected[name], rtol=1e-6)


def test_an_extern_takes_strided_views_and_computed_values_from_memory() -> None:
    module = converted("""
        func.func @f(%x: tensor<4x6xf32>) -> tensor<6x6xf32> {
          %t = graph.permute %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>
          %i = graph.iota from (0) step (2) : tensor<4xi64>
          %y = graph.extern "aten.none.default"(%t, %x, %i) : (tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>,
            tensor<4x6xf32>, tensor<4xi64>) -> tensor<6x6xf32>
          func.return %y : tensor<6x6xf32>
        }""")
    ops = [*function_of(module).body.block.ops]
    assert [op.name for op in ops] == ["host.view", "loop.kernel", "graph.extern", "func.return"]
    assert [operand.owner for operand in ops[2].operands][::2] == [ops[0], ops[1]]


# -- creation ----------------------------------------------------------------------------------------


def test_numbers_and_formulas_need_no_memory() -> None:
    module = converted("""
        func.func @f(%s0: index, %x: tensor<4xf32>) -> tensor<4xf32>
            attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
          %c = graph.full f32<0.5> : tensor<4xf32>
          %i = graph.iota from (s0) step (3) : tensor<4xf32>
          %n = graph.size (s0 * 2) : tensor<i64>
          %m = graph.convert %n : (tensor<i64>) -> tensor<f32>
          %w = graph.broadcast %m : (tensor<f32>) -> tensor<4xf32>
          %a = graph.fma %x, %c, %i : tensor<4xf32>
          %y = graph.add %a, %w : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }""")
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(call(module, [5, x], {"s0": 5})[0][0], x * 0.5 + 5 + 3 * np.arange(4) + 10)
    assert [op.kernel_name.data for op in kernels_of(module)] == ["convert", "fma", "add"]


def test_random_bits_depend_on_the_place_alone() -> None:
    seed = -(1 << 40) + 12345
    found, _ = run("graph.random {0} stream 3", [torch.tensor(seed)], "tensor<3x5xi32>")
    expected = [philox(seed % (1 << 64), counter, 3) for counter in range(15)]
    assert found.reshape(-1).view("u4").tolist() == expected
    assert philox(0, 0, 0) == 0x6627E8D5  # the published test vector


# -- indexing ----------------------------------------------------------------------------------------

X = torch.arange(24, dtype=torch.float32).reshape(4, 6)
ROWS = torch.tensor([3, 0, 3, 1, 2])
COLUMNS = torch.tensor([5, -1, 0, -6, 2])


def test_gather() -> None:
    index = torch.tensor([[0, 5, 2], [3, 3, 3], [1, 0, 4], [2, 5, 5]])
    found, errors = run("graph.gather {0}, {1} dim 1 bounds gather", [X, index], "tensor<4x3xf32>")
    assert not errors
    assert_same(found, X.gather(1, index))


def test_a_gather_along_a_shorter_index() -> None:
    index = torch.tensor([[3, 0, 1]])
    found, _ = run("graph.gather {0}, {1} dim 0 bounds gather", [X, index], "tensor<1x3xf32>")
    assert_same(found, X.gather(0, index))


@pytest.mark.parametrize("name", ["i64", "i32"])
def test_index_along_one_dim(name: str) -> None:
    found, _ = run("graph.index {0}, {1} dims [1] bounds index", [X, COLUMNS.to(DTYPES[name])], "tensor<4x5xf32>")
    assert_same(found, X[:, COLUMNS])


def test_index_by_several_tensors() -> None:
    y = torch.arange(120, dtype=torch.float32).reshape(4, 5, 6)
    first, second = (ROWS + 1).reshape(5, 1).expand(5, 2).contiguous(), torch.tensor([[1, -2]] * 5)
    found, _ = run("graph.index {0}, {1}, {2} dims [1, 2] bounds index", [y, first, second], "tensor<4x5x2xf32>")
    assert_same(found, y[:, first, second])
    found, _ = run("graph.index {0}, {1}, {2} dims [0, 2] bounds index", [y, ROWS, COLUMNS], "tensor<5x5xf32>")
    assert_same(found, y[ROWS, :, COLUMNS])


BAD_INDEX = {
    "index": (9, "IndexError", "index 9 is out of bounds for dimension 0 with size 4"),
    "select": (-1, "IndexError", "index out of range in self"),
    "gather": (-1, "RuntimeError", "index -1 is out of bounds for dimension 0 with size 4"),
    "target": (4, "IndexError", "Target 4 is out of bounds."),
}


@pytest.mark.parametrize("bounds", BAD_INDEX)
def test_a_bad_index_raises_what_eager_raises(bounds: str) -> None:
    bad, exception, message = BAD_INDEX[bounds]
    index = torch.tensor([1, bad])
    _, errors = run(f"graph.index {{0}}, {{1}} dims [0] bounds {bounds}", [X, index], "tensor<2x6xf32>")
    assert errors == {(exception, message)}


@pytest.mark.parametrize("bounds", ["wrapped", "unchecked"])
def test_an_index_known_to_be_good_raises_nothing(bounds: str) -> None:
    index = torch.tensor([1, 7])
    found, errors = run(f"graph.index {{0}}, {{1}} dims [0] bounds {bounds}", [X, index], "tensor<2x6xf32>")
    assert not errors
    assert_same(found[:1], X[1:2])


def test_nothing_is_read_from_an_empty_dim() -> None:
    module = converted("""
        func.func @f(%x: tensor<0x2xf32>, %i: tensor<1xi64>) -> tensor<1x2xf32> {
          %y = graph.index %x, %i dims [0] bounds index : (tensor<0x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
          func.return %y : tensor<1x2xf32>
        }""")
    inner = [op for op in kernels_of(module)[0].body.walk() if isinstance(op, loop.ParallelOp)][1]
    assert [*map(str, inner.sizes)] == ["0"]
    assert any(isinstance(op, loop.ReadOp) for op in inner.block.ops)


def test_an_index_that_is_a_formula_needs_no_check() -> None:
    module = converted("""
        func.func @f(%x: tensor<4x6xf32>, %j: tensor<4xi64>) -> tensor<4xf32> {
          %i = graph.iota from (0) step (1) : tensor<4xi64>
          %y = graph.index %x, %i, %j dims [0, 1] bounds index
            : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
          func.return %y : tensor<4xf32>
        }""")
    assert len([op for op in kernels_of(module)[0].body.walk() if isinstance(op, loop.AssertOp)]) == 1
    found, _ = call(module, [X.numpy(), np.array([5, 0, -1, 2])])
    assert found[0].tolist() == [5.0, 6.0, 17.0, 20.0]


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate: bool) -> None:
    value = torch.arange(30, dtype=torch.float32).reshape(5, 6) + 100
    suffix = " with add" if accumulate else ""
    found, _ = run(f"graph.index_put {{0}}, {{1}}, {{2}} dims [0] bounds index{suffix}", [X, value, ROWS], type_of(X))
    expected = X.clone()
    for row, values in zip(ROWS.tolist(), value, strict=True):  # in order: the last of repeated rows stays
        expected[row] = expected[row] + values if accumulate else values
    assert_same(found, expected)


@pytest.mark.parametrize("reduce", [None, "add", "mul", "max", "min"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter(dim: int, reduce: str | None) -> None:
    index = torch.tensor([[3, 0, 1], [3, 2, 1]])
    value = torch.tensor([[0.5, 2.0, -1.0], [30.0, 4.0, 8.0]])
    suffix = f" with {reduce}" if reduce else ""
    found, _ = run(f"graph.scatter {{0}}, {{1}}, {{2}} dim {dim} bounds gather{suffix}", [X, index, value], type_of(X))
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    expected = X.scatter_reduce(dim, index, value, names[reduce]) if reduce else X.scatter(dim, index, value)
    assert_same(found, expected)


# -- joining -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f32", "bf16", "i64", "ui8", "i1"])
@pytest.mark.parametrize("dim", [0, 1])
def test_cat(name: str, dim: int) -> None:
    parts = [box(name, *((size, 3) if dim == 0 else (3, size))) for size in (2, 0, 1, 4)]
    operands = ", ".join(f"{{{k}}}" for k in range(len(parts)))
    expected = torch.cat(parts, dim)
    found, _ = run(f"graph.cat {operands} dim {dim}", parts, type_of(expected))
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["f32", "bf16", "i64", "i1"])
def test_pad(name: str) -> None:
    x, number = box(name, 2, 3), {"f32": "-inf", "bf16": "1.5", "i64": "-7", "i1": "true"}[name]
    expected = torch.nn.functional.pad(x, (1, 2, 0, 1), value=True if name == "i1" else float(number))
    found, _ = run(f"graph.pad {{0}} low (0, 1) value {name}<{number}>", [x], type_of(expected))
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("place", "eager"),
    [
        ("from (0, 2) step (1, 3)", np.s_[:, 2::3]),
        ("from (1, 0) step (2, 1)", np.s_[1::2, :2]),
        ("from (0, 4) step (1, 1)", np.s_[:, 4:]),
        ("from (2, 1) step (1, 2)", np.s_[2:, 1:5:2]),
    ],
)
def test_insert_slice(place: str, eager: Any) -> None:
    value = -1.0 - torch.arange(X[eager].numel(), dtype=torch.float32).reshape(X[eager].shape)
    expected = X.clone()
    expected[eager] = value
    found, _ = run(f"graph.insert_slice {{0}}, {{1}} {place}", [X, value], type_of(X))
    assert_same(found, expected)


# -- what is called, kept or refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "target"),
    [
        ("cat", 9, "aten.cat.default"),
        ("erfc", 1, "aten.erfc.default"),
        ("fmod", 2, "aten.fmod.Tensor"),
        ("remainder", 2, "aten.remainder.Tensor"),
        ("floordiv", 2, "aten.div.Tensor_mode"),
    ],
)
def test_what_has_no_good_kernel_becomes_a_call(op: str, operands: int, target: str) -> None:
    names = ", ".join(["%x"] * operands)
    sizes, suffix = ("9", " dim 0") if op == "cat" else ("1", "")
    types = ", ".join(["tensor<1xf64>"] * operands)
    module = converted(
        f"func.func @f(%x: tensor<1xf64>) -> tensor<{sizes}xf64> {{\n"
        f"  %y = graph.{op} {names}{suffix} : ({types}) -> tensor<{sizes}xf64>\n"
        f"  func.return %y : tensor<{sizes}xf64>\n}}"
    )
    (called,) = [inner for inner in function_of(module).body.block.ops if isinstance(inner, graph.ExternOp)]
    assert called.target.data == target
    value = torch.tensor([2.5], dtype=torch.float64)
    _, name, overload = target.split(".")
    tensors = [[value] * operands] if op == "cat" else [value] * operands
    literals = [argument for argument in called.arguments.data.positional if isinstance(argument, int)]
    keywords: dict[str, Any] = dict(called.arguments.data.keywords)
    assert getattr(getattr(torch.ops.aten, name), overload)(*tensors, *literals, **keywords).shape == (int(sizes),)


def test_an_op_that_no_row_knows_is_refused_with_its_name() -> None:
    with pytest.raises(LoweringError, match=r"got graph\.shl on tensor<4xi1>"):
        run("graph.shl {0}, {1}", [torch.ones(4, dtype=torch.bool)] * 2, "tensor<4xi1>")


def test_every_new_op_has_the_location_of_its_graph_op() -> None:
    module = parse(MEMORY_TEXT.format(op="graph.flip %y [0]", type="tensor<4x6xf32>"))
    places = {op: file_line("model.py", 10 + k) for k, op in enumerate(function_of(module).body.block.ops)}
    for op, place in places.items():
        op.location = place
    ConvertGraphToLoop().apply(context(), module)
    first, second = kernels_of(module)
    assert {op.location for op in first.walk()} == {file_line("model.py", 10)}
    assert {op.location for op in second.walk()} == {file_line("model.py", 11)}


def known_results(*types: str, attributes: str = "") -> list[SSAValue]:
    """What a function becomes that returns known numbers of some types, all of one storage."""
    storages = f"stepwell.storages = array<i64: {', '.join('5' for _ in types)}>"
    module = converted(f"""
        func.func @f(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0), (1)>>) -> ({", ".join(types)})
            attributes {{stepwell.symbols = [#stepwell.symbol<s0, 2, ?>], {attributes or storages}}} {{
          {" ".join(f"%r{k} = graph.full f32<1.0> : {type_}" for k, type_ in enumerate(types))}
          func.return {", ".join(f"%r{k}" for k, _ in enumerate(types))} : {", ".join(types)}
        }}""")
    returned = function_of(module).body.block.last_op
    assert isinstance(returned, ReturnOp)
    return list(returned.operands)


ROW, PAIR, STRIDED = "tensor<8xf32>", "tensor<2xf32>", layout("8", "2")


@pytest.mark.parametrize(
    ("types", "offsets", "part"),
    [
        ((ROW, PAIR), (0, 3), 1),
        ((ROW, PAIR), (4, 10), 1),
        ((PAIR, ROW), (4, 4), 0),
        ((ROW, ROW), (0, 0), 1),
        ((ROW, PAIR), (4, 3), None),  # begins before the other
        ((ROW, PAIR), (4, 11), None),  # ends behind it
        ((ROW, PAIR), (-1, -1), None),
        ((ROW, "tensor<?xf32, #stepwell.layout<(s0), (1)>>"), (0, 0), None),
        ((STRIDED, PAIR), (0, 2), None),  # nobody writes what lies between the elements of the other
    ],
)
def test_known_numbers_that_were_part_of_others_are_part_of_them(
    types: Sequence[str], offsets: Sequence[int], part: int | None
) -> None:
    attributes = f"stepwell.storages = array<i64: 5, 5>, stepwell.offsets = array<i64: {offsets[0]}, {offsets[1]}>"
    results = known_results(*types, attributes=attributes)
    views = [(k, value.owner) for k, value in enumerate(results) if isinstance(value.owner, host.ViewOp)]
    if part is None:
        assert not views
    else:
        ((position, view),) = views
        assert position == part
        assert view.source is results[1 - part]
        assert view.offset.result == const(offsets[part] - offsets[1 - part])


def test_known_numbers_whose_places_are_unknown_are_tensors_of_their_own() -> None:
    for attributes in ("", "stepwell.offsets = array<i64: 0, 0>"):
        assert all(isinstance(value.owner, loop.KernelOp) for value in known_results(ROW, ROW, attributes=attributes))


def test_a_table_that_was_part_of_another_is_part_of_it() -> None:
    module = converted("""
        func.func @f() -> (tensor<3xi64>, tensor<2xi64>)
            attributes {stepwell.storages = array<i64: 5, 5>, stepwell.offsets = array<i64: 0, 1>} {
          %a = graph.constant i64<1, 2, 3> : tensor<3xi64>
          %b = graph.constant i64<2, 3> : tensor<2xi64>
          func.return %a, %b : tensor<3xi64>, tensor<2xi64>
        }""")
    assert len(kernels_of(module)) == 1
    assert [result.tolist() for result in call(module, [])[0]] == [[1, 2, 3], [2, 3]]


def test_an_extern_takes_a_constant_of_one_number_as_it_is() -> None:
    module = converted("""
        func.func @f() -> tensor<1xf32> {
          %c = graph.constant f32<2.0> : tensor<1xf32>
          %y = graph.extern "aten.none.default"(%c) : (tensor<1xf32>) -> tensor<1xf32>
          func.return %y : tensor<1xf32>
        }""")
    assert not kernels_of(module)


def test_memory_with_gaps_is_seen_through_a_view() -> None:
    module = converted("""
        func.func @f(%x: tensor<4xf32, #stepwell.layout<(4), (2)>>) -> tensor<3xf32> {
          %v = graph.as_strided %x offset (2) : (tensor<4xf32, #stepwell.layout<(4), (2)>>)
            -> tensor<3xf32, #stepwell.layout<(3), (2)>>
          %y = graph.exp %v : (tensor<3xf32, #stepwell.layout<(3), (2)>>) -> tensor<3xf32>
          func.return %y : tensor<3xf32>
        }""")
    ops = [*function_of(module).body.block.ops]
    assert [op.name for op in ops] == ["host.view", "loop.kernel", "func.return"]


@pytest.mark.parametrize(("start", "step"), [(-1, 1), (8, -2), (5, 1), (1, 2)])
def test_a_formula_that_may_leave_its_dim_is_checked(start: int, step: int) -> None:
    module = converted(f"""
        func.func @f(%x: tensor<9x8xf32>) -> tensor<5x8xf32> {{
          %i = graph.iota from ({start}) step ({step}) : tensor<5xi64>
          %y = graph.index %x, %i dims [0] bounds index : (tensor<9x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
          func.return %y : tensor<5x8xf32>
        }}""")
    inside = all(0 <= start + step * k < 9 for k in range(5))
    assert any(isinstance(op, loop.AssertOp) for op in module.walk()) != inside

"""The table of `arith` and `math`: integers against Python's own, floats against eager, predicates by definition."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import ModuleOp

from stepwell.ir import graph, loop, tile
from stepwell.ir.arithmetic import CONVERSIONS, SCALARS, compare_floats, compare_integers, fused
from stepwell.ir.interpret import Interpretation, interpret
from stepwell.tests.interpreters.cases import SPECIAL
from stepwell.tests.interpreters.support import DTYPES, assert_same, parse, to_array

NUMPY = {"i1": np.dtype("?"), "i8": np.dtype("i1"), "i32": np.dtype("i4"), "i64": np.dtype("i8")}
WIDTH = {"i1": 1, "i8": 8, "i32": 32, "i64": 64}


def scalar(op: str, type_: str, *values: Any, result: str = "") -> Any:
    """One op on single values through a kernel: `op` with `%0`, `%1`, … for its operands, and no type."""
    result = result or type_
    reads = "\n".join(f"%{k} = loop.read %x{k}[] : tensor<{type_}>" for k in range(len(values)))
    arguments = ", ".join(f"%x{k}: tensor<{type_}>" for k in range(len(values)))
    text = (
        f'func.func @main({arguments}) -> tensor<{result}> {{\n%y = loop.kernel "k" outs(%o : memref<{result}>) -> '
        f"tensor<{result}> {{\n{reads}\n%r = {op}\nloop.write %r, %o[] : memref<{result}>\n}}\n"
        f"func.return %y : tensor<{result}>\n}}"
    )
    dtype = NUMPY.get(type_, np.dtype("f4"))
    return interpret(parse(text), [np.array(value, dtype) for value in values])[0]


# -- coverage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [arith.Arith, math_dialect.Math])
def test_every_op_of_a_dialect_of_scalars_has_a_row(dialect: Any) -> None:
    assert [op.name for op in dialect.operations if op not in SCALARS] == []


@pytest.mark.parametrize("dialect", [graph.Graph, loop.Loop, tile.Tile])
def test_every_op_of_a_level_is_interpreted(dialect: Any) -> None:
    known = Interpretation(ModuleOp([])).interpreter._impls._impl_dict  # xDSL has no public way to ask
    assert [op.name for op in dialect.operations if op not in known and op is not tile.KernelOp] == []


# -- integers ----------------------------------------------------------------------------------------


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def wrap(value: int, bits: int) -> int:
    """As signed in that many bits; a bool is 0 or 1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": truncated,
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
    "remsi": lambda a, b: a - b * truncated(a, b),
    "maxsi": max,
    "minsi": min,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv,
    "ceildivui": lambda a, b: -(-a // b),
    "remui": operator.mod,
    "maxui": max,
    "minui": min,
}


@pytest.mark.parametrize("type_", ["i8", "i32", "i64"])
@pytest.mark.parametrize("op", [*SIGNED, *UNSIGNED])
def test_integer_arithmetic(op: str, type_: str) -> None:
    bits = WIDTH[type_]
    pairs = [(a, b) for a, b in product(SPECIAL[type_], repeat=2) if b or ("div" not in op and "rem" not in op)]
    left, right = (np.array(side, NUMPY[type_]) for side in zip(*pairs, strict=True))
    found = row(f"arith.{op}", type_, left, right)
    for (a, b), value in zip(pairs, found.tolist(), strict=True):
        expected = SIGNED[op](a, b) if op in SIGNED else UNSIGNED[op](a % (1 << bits), b % (1 << bits))
        assert value == wrap(expected, bits), (a, b)


def row(op: str, type_: str, *values: Any, result: str = "") -> Any:
    """One op on arrays through a kernel."""
    result = result or type_
    count = len(values[0])
    reads = "\n".join(f"%{k} = loop.read %x{k}[%i] : tensor<{count}x{type_}>" for k in range(len(values)))
    arguments = ", ".join(f"%x{k}: tensor<{count}x{type_}>" for k in range(len(values)))
    operands = ", ".join(f"%{k}" for k in range(len(values)))
    signature = type_ if result == type_ else f"{type_} to {result}"
    text = (
        f'func.func @main({arguments}) -> tensor<{count}x{result}> {{\n%y = loop.kernel "k" outs(%o : memref<{count}x'
        f"{result}>) -> tensor<{count}x{result}> {{\nloop.parallel (%i) to ({count}) {{\n{reads}\n"
        f"%r = {op} {operands} : {signature}\nloop.write %r, %o[%i] : memref<{count}x{result}>\n}}\n}}\n"
        f"func.return %y : tensor<{count}x{result}>\n}}"
    )
    return interpret(parse(text), values)[0]


@pytest.mark.parametrize(("op", "expected"), [("addi", 0), ("subi", 0), ("muli", 1), ("xori", 0), ("andi", 1)])
def test_arithmetic_of_bools_is_modulo_2(op: str, expected: int) -> None:
    assert int(scalar(f"arith.{op} %0, %1 : i1", "i1", True, True)) == expected


def test_a_true_bool_is_minus_1_where_it_counts_as_signed() -> None:
    assert int(scalar("arith.extsi %0 : i1 to i32", "i1", True, result="i32")) == -1
    assert int(scalar("arith.extui %0 : i1 to i32", "i1", True, result="i32")) == 1
    assert bool(scalar("arith.cmpi slt, %0, %1 : i1", "i1", True, False, result="i1"))
    assert not bool(scalar("arith.cmpi ult, %0, %1 : i1", "i1", True, False, result="i1"))


@pytest.mark.parametrize(
    ("op", "value", "shift", "expected"),
    [("shli", 3, 6, -64), ("shrsi", -128, 3, -16), ("shrui", -128, 3, 16), ("shli", 1, 7, -128), ("shrsi", -1, 7, -1)],
)
def test_shifts(op: str, value: int, shift: int, expected: int) -> None:
    assert int(scalar(f"arith.{op} %0, %1 : i8", "i8", value, shift)) == expected


@pytest.mark.parametrize(("base", "exponent"), list(product([0, 1, -1, 2, -3, 7, 127, -128], [0, 1, 2, 5, 64, -1, -2])))
def test_integer_powers_wrap(base: int, exponent: int) -> None:
    negative = {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
    expected = base**exponent if exponent >= 0 else negative
    assert int(scalar("math.ipowi %0, %1 : i8", "i8", base, exponent)) == wrap(expected, 8)


@pytest.mark.parametrize(("op", "view"), [("mului", 1 << 64), ("mulsi", 0)])
def test_both_halves_of_a_product(op: str, view: int) -> None:
    a, b = -(1 << 62) - 5, (1 << 61) + 3
    whole = (a % view if view else a) * (b % view if view else b)
    for half, expected in ((0, whole), (1, whole >> 64)):
        text = f"""
        func.func @main(%x: tensor<i64>, %y: tensor<i64>) -> tensor<i64> {{
          %z = loop.kernel "k" outs(%o : memref<i64>) -> tensor<i64> {{
            %a = loop.read %x[] : tensor<i64>
            %b = loop.read %y[] : tensor<i64>
            %low, %high = arith.{op}_extended %a, %b : i64
            loop.write {("%low", "%high")[half]}, %o[] : memref<i64>
          }}
          func.return %z : tensor<i64>
        }}"""
        (found,) = interpret(parse(text), [np.array(a), np.array(b)])
        assert int(found) == wrap(expected, 64)


@pytest.mark.parametrize("value", [0, 1, -1, 64, -128, 96])
def test_bit_counts(value: int) -> None:
    bits = format(value % 256, "08b")
    assert int(scalar("math.ctpop %0 : i8", "i8", value)) == bits.count("1")
    assert int(scalar("math.ctlz %0 : i8", "i8", value)) == len(bits) - len(bits.lstrip("0"))
    assert int(scalar("math.cttz %0 : i8", "i8", value)) == len(bits) - len(bits.rstrip("0"))


# -- comparisons -------------------------------------------------------------------------------------

ORDER = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
FLOATS = [math.nan, -math.inf, -1.0, -0.0, 0.0, 2.0, math.inf]


@pytest.mark.parametrize("predicate", arith.CMPF_COMPARISON_OPERATIONS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_float_predicates(predicate: str, dtype: Any) -> None:
    left, right = (np.array(side, dtype) for side in zip(*product(FLOATS, repeat=2), strict=True))
    for a, b, holds in zip(left, right, compare_floats(predicate, left, right), strict=True):
        unordered = bool(a != a or b != b)
        expected = {
            "false": False,
            "true": True,
            "ord": not unordered,
            "uno": unordered,
        }.get(predicate)
        if expected is None:
            expected = unordered if unordered else ORDER[predicate[1:]](a, b)
            expected = expected if predicate[0] == "u" or not unordered else False
        assert holds == expected, (predicate, a, b)


@pytest.mark.parametrize("predicate", arith.CMPI_COMPARISON_OPERATIONS)
def test_integer_predicates(predicate: str) -> None:
    pairs = list(product(SPECIAL["i8"], repeat=2))
    left, right = (np.array(side, "i1") for side in zip(*pairs, strict=True))
    order = ORDER[predicate if predicate in ORDER else predicate[1:]]
    modulus = 256 if predicate[0] == "u" else None
    for (a, b), holds in zip(pairs, compare_integers(predicate, left, right), strict=True):
        assert holds == (order(a % modulus, b % modulus) if modulus else order(a, b))


# -- floats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"), [("maximumf", math.nan), ("maxnumf", 1.0), ("minimumf", math.nan), ("minnumf", 1.0)]
)
def test_extrema_and_nan(op: str, expected: float) -> None:
    for pair in ((1.0, math.nan), (math.nan, 1.0)):
        assert_same(scalar(f"arith.{op} %0, %1 : f32", "f32", *pair), np.array(expected, "f4"))


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("roundeven", [0.5, 1.5, 2.5, -0.5, -1.5]),
        ("round", [0.5, 1.5, 2.5, -0.5, 0.49999997]),
        ("trunc", [1.9, -1.9, -0.2, math.inf, math.nan]),
    ],
)
def test_rounding(op: str, values: list[float]) -> None:
    def away(x: float) -> float:
        return x if not math.isfinite(x) else math.copysign(math.floor(abs(x) + 0.5) if abs(x) != 0.49999997 else 0, x)

    functions: dict[str, Any] = {"roundeven": np.rint, "trunc": np.trunc, "round": np.vectorize(away)}
    expected = functions[op](np.array(values))
    found = row(f"math.{op}", "f32", np.array(values, "f4"))
    assert_same(found, expected.astype("f4"))


@pytest.mark.parametrize("name", ["f32", "bf16", "f16"])
def test_narrow_floats_compute_in_f32_and_round_once(name: str) -> None:
    left, right = zip(*product(SPECIAL[name], repeat=2), strict=True)
    x, y = (torch.tensor(side, dtype=DTYPES[name]) for side in (left, right))
    for op, eager in (("addf", torch.add), ("mulf", torch.mul), ("divf", torch.div)):
        found = row(f"arith.{op}", name, to_array(x), to_array(y))
        assert_same(found, eager(x.float(), y.float()).to(x.dtype))


@np.errstate(invalid="ignore")
def test_a_fused_multiply_add_rounds_once() -> None:
    tie = np.float32(1 + 2**-23), np.float32(2**-24)
    exact = np.float32(1 + 2**-22)  # 1 + 2^-23 + 2^-24 + 2^-47 lies above the tie that f64 cannot tell
    assert fused(tie[0], np.float32(1), np.float32(2**-24)) == np.float32(1 + 2**-22)
    assert fused(tie[0], tie[1], tie[0]) == exact
    assert fused(np.float64(1 + 2**-52), np.float64(1 - 2**-53), np.float64(-1)) > 0
    assert np.signbit(fused(np.float32(-0.0), np.float32(1), np.float32(-0.0)))
    assert np.isnan(fused(np.float32(math.inf), np.float32(0), np.float32(1)))
    assert fused(np.float32(3e38), np.float32(2), np.float32(-3e38)) == np.float32(3e38)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_powers(name: str) -> None:
    left, right = zip(*product([*FLOATS, 0.5, -2.0, 3.0, -8.0], [*FLOATS, 0.5, -0.5, 3.0, -1.0]), strict=True)
    x, y = (torch.tensor(side, dtype=DTYPES[name]) for side in (left, right))
    assert_same(row("math.powf", name, to_array(x), to_array(y)), torch.pow(x, y), 2e-6)


# -- conversions -------------------------------------------------------------------------------------


@np.errstate(over="ignore")
def test_truncation_from_f64_rounds_once() -> None:
    values = np.array([1 + 2**-8 + 2**-30, 1 + 2**-8 - 2**-30, 1 + 2**-8, -(1 + 2**-8 + 2**-30), 1e300, math.nan])
    found = CONVERSIONS["truncf"](values, np.dtype(ml_dtypes.bfloat16)).astype("f8")
    np.testing.assert_array_equal(found, [1 + 2**-7, 1, 1, -(1 + 2**-7), math.inf, math.nan])


@pytest.mark.parametrize("target", ["i8", "i32", "i64"])
def test_floats_become_integers_as_in_eager(target: str) -> None:
    values = [*SPECIAL["f32"], 300.7, -300.7, 3e9, 1e20]
    x = torch.tensor(values)
    assert_same(row("arith.fptosi", "f32", to_array(x), result=target), x.to(DTYPES[target]))


@pytest.mark.parametrize("target", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("source", ["i8", "i64"])
def test_integers_become_floats_as_in_eager(source: str, target: str) -> None:
    x = torch.tensor(SPECIAL[source], dtype=DTYPES[source])
    assert_same(row("arith.sitofp", source, to_array(x), result=target), x.to(DTYPES[target]))

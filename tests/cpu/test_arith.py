"""Arithmetic, comparison and selection on every element type and block shape, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepwell.tests.cpu.kernels import DTYPES, SHAPES, WIDTHS, Array, Kernel, apply, elementwise_kernel, same, samples

FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("i8", "i16", "i32", "i64")

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def in_f32(compute: Callable[..., Array], *inputs: Array) -> Array:
    """What the type's arithmetic gives: bf16 and f16 are computed in f32 and rounded."""
    dtype = inputs[0].dtype
    wide = np.float64 if dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        return compute(*(x.astype(wide) for x in inputs)).astype(dtype)


FLOAT_OPS: dict[str, Callable[..., Array]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


@every_shape
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", FLOAT_OPS)
def test_float_operations(name: str, element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    actual = apply(f"%r = arith.{name} %0, %1 : {{0}}", (x, y), element, shape, (element, element))
    expected = in_f32(FLOAT_OPS[name], x, y)
    if name in ("maxnumf", "minnumf"):  # which zero wins is not said
        actual, expected = actual + DTYPES[element].type(0), expected + DTYPES[element].type(0)
    assert same(actual, expected)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("element", "name"), [("f32", "mulf"), ("bf16", "addf"), ("i8", "divsi"), ("i64", "remsi")])
def test_every_width(element: str, name: str, width: int) -> None:
    x, y = samples(element), samples(element, seed=1)
    actual = apply(f"%r = arith.{name} %0, %1 : {{0}}", (x, y), element, (width,), (element, element))
    with np.errstate(all="ignore"):
        expected = INTEGER_OPS[name](x, y) if name in INTEGER_OPS else in_f32(FLOAT_OPS[name], x, y)
    assert same(actual, expected)


@every_shape
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize(("name", "compute"), [("maximumf", np.maximum), ("minimumf", np.minimum)])
def test_extrema_keep_nan(name: str, compute: Callable[..., Array], element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    actual = apply(f"%r = arith.{name} %0, %1 : {{0}}", (x, y), element, shape, (element, element))
    with np.errstate(all="ignore"):
        expected = compute(x, y)
    assert (np.isnan(actual) == (np.isnan(x) | np.isnan(y))).all()
    assert (np.isnan(actual) | (actual == expected)).all()


@pytest.mark.parametrize("element", FLOATS)
def test_negation(element: str) -> None:
    x = samples(element)
    assert same(apply("%r = arith.negf %0 : {0}", (x,), element, (64,), (element,)), -x)


def wrapped_quotient(x: Array, y: Array) -> Array:
    """Rounded towards zero; the least number divided by -1 wraps, division by zero gives the dividend."""
    y = np.where(y == 0, 1, y)
    exact = [int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y, strict=True)]
    bits = x.itemsize * 8
    return np.array([(q + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for q in exact], x.dtype)


def unsigned(compute: Callable[..., Any]) -> Callable[..., Array]:
    """Computes on the same bits read as unsigned numbers."""

    def on_bits(x: Array, y: Array) -> Array:
        kind = f"u{x.itemsize}"
        return np.asarray(compute(x.view(kind), y.view(kind))).astype(kind).view(x.dtype)

    return on_bits


def nonzero(compute: Callable[..., Any]) -> Callable[..., Array]:
    return lambda x, y: compute(x, np.where(y == 0, 1, y).astype(y.dtype))


INTEGER_OPS: dict[str, Callable[..., Array]] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": wrapped_quotient,
    "divui": unsigned(nonzero(np.floor_divide)),
    "remsi": lambda x, y: (x - wrapped_quotient(x, y) * np.where(y == 0, 1, y)).astype(x.dtype),
    "remui": unsigned(nonzero(np.remainder)),
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": unsigned(np.maximum),
    "minui": unsigned(np.minimum),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}


@every_shape
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_operations(name: str, element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    actual = apply(f"%r = arith.{name} %0, %1 : {{0}}", (x, y), element, shape, (element, element))
    with np.errstate(all="ignore"):
        assert same(actual, INTEGER_OPS[name](x, y))


@pytest.mark.parametrize("shape", [(), (64,)], ids=str)
@pytest.mark.parametrize("element", INTEGERS)
def test_division_of_the_least_number_by_minus_one_wraps(element: str, shape: tuple[int, ...]) -> None:
    x = np.full(64, np.iinfo(DTYPES[element]).min, DTYPES[element])
    y = np.full(64, -1, DTYPES[element])
    assert same(apply("%r = arith.divsi %0, %1 : {0}", (x, y), element, shape, (element, element)), x)
    assert not apply("%r = arith.remsi %0, %1 : {0}", (x, y), element, shape, (element, element)).any()


@pytest.mark.parametrize("shape", [(), (64,)], ids=str)
@pytest.mark.parametrize("element", INTEGERS)
def test_rounding_divisions(element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    least = np.iinfo(DTYPES[element]).min
    y[(y == 0) | ((y == -1) & (x == least))] = 3
    floor = apply("%r = arith.floordivsi %0, %1 : {0}", (x, y), element, shape, (element, element))
    ceil = apply("%r = arith.ceildivsi %0, %1 : {0}", (x, y), element, shape, (element, element))
    assert same(floor, np.floor_divide(x, y))
    assert same(ceil, np.array([-(-int(a) // int(b)) for a, b in zip(x, y, strict=True)], x.dtype))
    kind = f"u{x.itemsize}"
    up = np.array([-(-int(a) // int(b)) for a, b in zip(x.view(kind), y.view(kind), strict=True)], kind)
    assert same(apply("%r = arith.ceildivui %0, %1 : {0}", (x, y), element, shape, (element,) * 2), up.view(x.dtype))


@pytest.mark.parametrize("divisor", [1, 3, 7, -5, 64])
@pytest.mark.parametrize("element", INTEGERS)
def test_division_by_a_constant(element: str, divisor: int) -> None:
    x = samples(element)
    op = f"""%c = arith.constant {divisor} : {element}
      %d = tile.broadcast %c dims [] : {element} -> {{0}}
      %r = arith.divsi %0, %d : {{0}}"""
    y = np.full(len(x), divisor, x.dtype)
    assert same(apply(op, (x,), element, (64,), (element,)), wrapped_quotient(x, y))


@every_shape
@pytest.mark.parametrize("element", INTEGERS)
def test_shifts(element: str, shape: tuple[int, ...]) -> None:
    x = samples(element)
    by = np.random.default_rng(2).integers(0, x.itemsize * 8, len(x)).astype(x.dtype)
    kind = f"u{x.itemsize}"
    shifts = {"shli": np.left_shift(x, by), "shrsi": np.right_shift(x, by)}
    shifts["shrui"] = np.right_shift(x.view(kind), by.view(kind)).view(x.dtype)
    for name, expected in shifts.items():
        op = f"%r = arith.{name} %0, %1 : {{0}}"
        assert same(apply(op, (x, by), element, shape, (element, element)), expected), name


@pytest.mark.parametrize("element", INTEGERS)
def test_extended_multiplication(element: str) -> None:
    x, y = samples(element), samples(element, seed=1)
    bits = x.itemsize * 8
    high = [int(a) * int(b) >> bits for a, b in zip(x, y, strict=True)]
    op = "%l, %r = arith.mulsi_extended %0, %1 : {0}"
    assert same(apply(op, (x, y), element, (64,), (element, element)), np.array(high).astype(x.dtype))


@pytest.mark.parametrize("name", ["andi", "ori", "xori", "addi", "muli", "maxsi", "minui"])
def test_bools(name: str) -> None:
    x, y = samples("i1"), samples("i1", seed=1)
    logic = {"andi": x & y, "muli": x & y, "minui": x & y, "maxsi": x & y, "ori": x | y, "xori": x ^ y, "addi": x ^ y}
    assert same(apply(f"%r = arith.{name} %0, %1 : {{0}}", (x, y), "i1", (64,), ("i1", "i1")), logic[name])


COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@every_shape
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_float_comparisons(name: str, element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    y[::3] = x[::3]
    nan = np.isnan(x) | np.isnan(y)
    with np.errstate(all="ignore"):
        holds = COMPARISONS[name](x, y)
    for prefix, expected in (("o", holds & ~nan), ("u", holds | nan)):
        op = f"%r = tile.compare {prefix}{name} %0, %1 : {{0}}"
        assert same(apply(op, (x, y), "i1", shape, (element, element)), expected), prefix


@every_shape
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_integer_comparisons(name: str, element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    y[::3] = x[::3]
    signed = name if name in ("eq", "ne") else f"s{name}"
    op = f"%r = tile.compare {signed} %0, %1 : {{0}}"
    assert same(apply(op, (x, y), "i1", shape, (element, element)), COMPARISONS[name](x, y))
    if name not in ("eq", "ne"):
        op = f"%r = tile.compare u{name} %0, %1 : {{0}}"
        kind = f"u{x.itemsize}"
        assert same(apply(op, (x, y), "i1", shape, (element, element)), COMPARISONS[name](x.view(kind), y.view(kind)))


def test_scalar_comparisons_of_the_arith_dialect() -> None:
    x, y = samples("f32"), samples("f32", seed=1)
    assert same(apply("%r = arith.cmpf oge, %0, %1 : f32", (x, y), "i1", (), ("f32", "f32")), x >= y)
    a, b = samples("i32"), samples("i32", seed=1)
    assert same(apply("%r = arith.cmpi slt, %0, %1 : i32", (a, b), "i1", (), ("i32", "i32")), a < b)


@every_shape
@pytest.mark.parametrize("element", ["i1", "i8", "i64", "bf16", "f16", "f32", "f64"])
def test_select(element: str, shape: tuple[int, ...]) -> None:
    mask, x, y = samples("i1"), samples(element), samples(element, seed=1)
    op = "%r = tile.select %0, %1, %2 : {0}, {1}"
    assert same(apply(op, (mask, x, y), element, shape, ("i1", element, element)), np.where(mask, x, y))


@pytest.mark.parametrize("shape", [(64,), (4, 16)], ids=str)
def test_select_by_a_scalar(shape: tuple[int, ...]) -> None:
    x, y = samples("f32"), samples("f32", seed=1)
    op = "%c = tile.index [%i mod 2] : i64\n%z = arith.constant 0 : i64\n%m = tile.compare eq %c, %z : i64\n"
    op += "%r = tile.select %m, %0, %1 : i1, {0}"
    assert same(apply(op, (x, y), "f32", shape, ("f32", "f32")), x)


@pytest.mark.parametrize("value", ["0.1", "-0.0", "1.0e-40", "0x7FC00000", "0x7F800000", "0xFF800000", "3.4e38"])
@pytest.mark.parametrize("element", FLOATS)
def test_float_constants(element: str, value: str) -> None:
    text = value
    if value.startswith("0x"):
        exact = np.array([int(value, 16)], np.uint32).view(np.float32).astype(DTYPES[element])
        text = hex(int(exact.view(f"u{exact.itemsize}")[0]))
    with np.errstate(all="ignore"):
        expected = np.array([float(value)] if text == value else exact).astype(np.float64).astype(DTYPES[element])
    out = np.zeros(1, DTYPES[element])
    Kernel(f"""tile.kernel @constant(%o : memref<?x{element}>) grid (1) {{
      %c = arith.constant {text} : {element}
      tile.store %c, %o[0] strides () : {element}, memref<?x{element}>
    }}""").run(out)
    assert same(out, expected)


def test_dense_constants() -> None:
    out = np.zeros((2, 4), np.float32)
    Kernel("""tile.kernel @constant(%o : memref<?xf32>) grid (1) {
      %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.5]]> : vector<2x4xf32>
      tile.store %c, %o[0] strides (4, 1) : vector<2x4xf32>, memref<?xf32>
    }""").run(out)
    assert (out == [[1, 2, 3, 4], [5, 6, 7, 8.5]]).all()


@pytest.mark.parametrize("name", ["divsi", "divui", "remsi", "remui"])
@pytest.mark.parametrize(("element", "through"), [("i8", "float"), ("i16", "float"), ("i32", "double"), ("i64", None)])
def test_blocks_of_narrow_integers_divide_as_floats(element: str, through: str | None, name: str) -> None:
    text = elementwise_kernel(f"%r = arith.{name} %0, %1 : {{0}}", (element, element), element, (16,))
    division = f"fdiv <16 x {through}>" if through else f"= {name[3]}{name[:3]} <16 x {element}>"
    assert division in Kernel(text).llvm


def test_arithmetic_uses_whole_registers_and_calls_nothing() -> None:
    kernel = Kernel(elementwise_kernel("%r = arith.addf %0, %1 : {0}", ("f32", "f32"), "f32", (64,)))
    width = "zmm" if "zmm" in kernel.assembly else "ymm"
    assert kernel.assembly.count("vaddps") >= 4
    assert width in kernel.assembly
    assert "call" not in kernel.assembly


# -- division by one number for all lanes ------------------------------------------------------------


def divided_by_scalar(x: Array, divisor: float) -> Array:
    kernel = Kernel("""
    tile.kernel @divide(%x : memref<?xf32>, %s : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      %one = tile.load %s[0] strides () : memref<?xf32> -> f32
      %s32 = tile.broadcast %one dims [] : f32 -> vector<32xf32>
      tile.for %i, %m = [0] to [1000] step 32 {
        %v = tile.load %x[%i] strides (1) mask %m : memref<?xf32> -> vector<32xf32>
        %q = arith.divf %v, %s32 : vector<32xf32>
        tile.store %q, %o[%i] strides (1) mask %m : vector<32xf32>, memref<?xf32>
        tile.yield
      }
    }""")
    out = np.zeros(1000, np.float32)
    kernel.run(x, np.array([divisor], np.float32), out)
    return out


@pytest.mark.parametrize("divisor", [3.0, 0.1, 1.9999999, -7.0, 1e-30, 3e38, 1e-45, 0.0, np.inf, np.nan, 2.0**20])
def test_division_by_a_scalar_rounds_correctly(divisor: float) -> None:
    x = samples("f32", 1000)
    x[500:] = np.random.default_rng(1).standard_normal(500).astype(np.float32)  # blocks without extremes
    x[600:632] = [0.0, -0.0] * 16
    with np.errstate(all="ignore"):
        assert same(divided_by_scalar(x, divisor), x / np.float32(divisor))


def test_division_by_a_scalar_in_the_hardest_cases() -> None:
    """Quotients X·2^k / S that come nearest to the middle M/2 between two floats: X·2^k = M·S + e with a small e."""
    worst: dict[int, list[int]] = {}
    for scaled in range((1 << 24) - 199, 1 << 24, 2):
        inverse = pow(scaled, -1, 1 << 24)
        for error in (-3, -2, -1, 1, 2, 3):
            middle = (-error * inverse) % (1 << 24) + (1 << 24)
            dividend, rest = divmod(middle * scaled + error, 1 << 24)
            if middle % 2 and not rest and dividend < 1 << 24:
                worst.setdefault(scaled, []).append(dividend)
    for scaled, dividends in list(worst.items())[:20]:
        x = np.resize(np.array(dividends, np.float32), 1000)
        assert same(divided_by_scalar(x, scaled / 2.0**24), x / np.float32(scaled / 2.0**24))

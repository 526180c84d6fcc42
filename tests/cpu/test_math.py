"""Mathematical functions: instructions against NumPy bit by bit, library functions within a few units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepwell.backends.cpu.emit_math import COMPUTE
from stepwell.tests.cpu.kernels import DTYPES, SHAPES, Array, Kernel, apply, elementwise_kernel, same, samples

FLOATS = ("f32", "f64", "bf16", "f16")
INTEGERS = ("i8", "i16", "i32", "i64")

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def in_f32(compute: Callable[..., Any], *inputs: Array) -> Array:
    dtype = inputs[0].dtype
    wide = np.float64 if dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        return np.asarray(compute(*(x.astype(wide) for x in inputs))).astype(dtype)


def round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole), x)


INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.ones((), x.dtype) / np.sqrt(x),
    "absf": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": round_half_away,
    "roundeven": np.rint,
}


@every_shape
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions(name: str, element: str, shape: tuple[int, ...]) -> None:
    x = samples(element)
    actual = apply(f"%r = math.{name} %0 : {{0}}", (x,), element, shape, (element,))
    assert same(actual, in_f32(INSTRUCTIONS[name], x))


@every_shape
@pytest.mark.parametrize("element", FLOATS)
def test_copysign(element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    actual = apply("%r = math.copysign %0, %1 : {0}", (x, y), element, shape, (element, element))
    assert same(actual, in_f32(np.copysign, x, y))


@every_shape
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_fma_rounds_once(element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    with np.errstate(all="ignore"):
        z = -(x * y)
    actual = apply("%r = math.fma %0, %1, %2 : {0}", (x, y, z), element, shape, (element,) * 3)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    if element == "f32":
        wide = x[finite].astype(np.float64) * y[finite].astype(np.float64) + z[finite].astype(np.float64)
        assert same(actual[finite], wide.astype(np.float32))
    assert (actual[finite] != 0).sum() > 100


@every_shape
@pytest.mark.parametrize("element", INTEGERS)
def test_bit_counts(element: str, shape: tuple[int, ...]) -> None:
    x = samples(element)
    bits = x.itemsize * 8
    texts = [f"{int(value) & ((1 << bits) - 1):0{bits}b}" for value in x]
    counts = {
        "ctpop": [text.count("1") for text in texts],
        "ctlz": [bits - len(text.lstrip("0")) for text in texts],
        "cttz": [bits - len(text.rstrip("0")) for text in texts],
    }
    for name, expected in counts.items():
        actual = apply(f"%r = math.{name} %0 : {{0}}", (x,), element, shape, (element,))
        assert actual.tolist() == expected, name
    with np.errstate(all="ignore"):
        assert same(apply("%r = math.absi %0 : {0}", (x,), element, shape, (element,)), np.abs(x))


@every_shape
@pytest.mark.parametrize("element", INTEGERS)
def test_integer_powers(element: str, shape: tuple[int, ...]) -> None:
    x, y = samples(element), samples(element, seed=1)
    y[: len(y) // 2] %= 7
    bits = x.itemsize * 8

    def power(base: int, exponent: int) -> int:
        if exponent >= 0:
            whole = pow(base, exponent, 1 << bits)
            return whole - (1 << bits) if whole >> (bits - 1) else whole
        return 1 if base == 1 else 0 if base != -1 else -1 if exponent % 2 else 1

    actual = apply("%r = math.ipowi %0, %1 : {0}", (x, y), element, shape, (element, element))
    expected = [power(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert actual.tolist() == expected


def erf(x: Array) -> Array:
    return np.array([math.erf(value) for value in x])


LIBRARY: dict[str, tuple[Callable[..., Any], float, float]] = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -100, 100),
    "expm1": (np.expm1, -20, 80),
    "log": (np.log, 0.01, 1e6),
    "log2": (np.log2, 0.01, 1e6),
    "log10": (np.log10, 0.01, 1e6),
    "log1p": (np.log1p, -0.9, 1e6),
    "erf": (erf, -4, 4),
    "tanh": (np.tanh, -10, 10),
    "sin": (np.sin, -100, 100),
    "cos": (np.cos, -100, 100),
    "tan": (np.tan, -100, 100),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -100, 100),
    "sinh": (np.sinh, -80, 80),
    "cosh": (np.cosh, -80, 80),
    "asinh": (np.arcsinh, -1e3, 1e3),
    "acosh": (np.arccosh, 1, 1e3),
    "atanh": (np.arctanh, -0.99, 0.99),
}

TOLERANCE = {"f32": 1e-6, "f64": 1e-14, "bf16": 1e-2, "f16": 2e-3}


@pytest.mark.parametrize("shape", [(), (1,), (64,)], ids=str)
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("name", LIBRARY)
def test_library_functions(name: str, element: str, shape: tuple[int, ...]) -> None:
    compute, low, high = LIBRARY[name]
    if element == "f16":
        low, high = max(low, -7), min(high, 7)
    x = np.random.default_rng(0).uniform(low, high, 256).astype(DTYPES[element])
    actual = apply(f"%r = math.{name} %0 : {{0}}", (x,), element, shape, (element,)).astype(np.float64)
    expected = compute(x.astype(np.float64))
    assert (np.abs(actual - expected) <= TOLERANCE[element] * np.maximum(np.abs(expected), 1e-3)).all()


@pytest.mark.parametrize("shape", [(), (64,)], ids=str)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("name", "compute"), [("powf", np.power), ("atan2", np.arctan2)])
def test_library_functions_of_two(name: str, compute: Any, element: str, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.uniform(0.1, 5, 256).astype(DTYPES[element]), generator.uniform(-5, 5, 256).astype(DTYPES[element])
    actual = apply(f"%r = math.{name} %0, %1 : {{0}}", (x, y), element, shape, (element, element))
    expected = compute(x.astype(np.float64), y.astype(np.float64))
    assert (np.abs(actual - expected) <= TOLERANCE[element] * np.maximum(np.abs(expected), 1e-3)).all()


def test_the_table_names_every_function_that_is_tested() -> None:
    tested = {"copysign", "fma", "ctpop", "ctlz", "cttz", "absi", "ipowi", "powf", "atan2", *INSTRUCTIONS, *LIBRARY}
    assert {op.name.removeprefix("math.") for op in COMPUTE} == tested


@pytest.mark.parametrize("name", [*INSTRUCTIONS, "exp", "tanh", "log"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shape", [(), (64,)], ids=str)
def test_functions_call_nothing(name: str, element: str, shape: tuple[int, ...]) -> None:
    kernel = Kernel(elementwise_kernel(f"%r = math.{name} %0 : {{0}}", (element,), element, shape))
    assert "call" not in kernel.assembly

"""The vector math library: the errors that `docs/vector_math.md` promises, special values as in C, and machine code
without calls. References are NumPy and torch in double for f32, mpmath for f64."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch

from stepwell.backends.cpu.vector_math import FUNCTIONS, MathFunction, coefficients, definition, minimax
from stepwell.backends.native.jit import NativeModule, compile_module, emit_assembly
from stepwell.ir.errors import BackendError

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {"f32": np.float32, "f64": np.float64}
LLVM = {"f32": "float", "f64": "double"}
UNARY = [name for name, function in FUNCTIONS.items() if function.arity == 1]
SPECIAL = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 2.0**24 - 1, 2.0**24, 1e30, 1e-30, 1e-45, 1e-38, 3e38, np.inf, np.nan)
SIGNED = np.array([sign * value for value in SPECIAL for sign in (1.0, -1.0)])


def closure(function: MathFunction) -> Iterator[MathFunction]:
    """The function and all that it requires, each once."""
    found = {function.name: function}
    for required in function.requires:
        found |= {each.name: each for each in closure(required)}
    yield from found.values()


def loop_module(name: str, element: str, lanes: int) -> str:
    """A module with `run(x, y, result, count)`, which applies the function to `lanes` elements at a time."""
    function, arity, scalar = definition(name, element, lanes), FUNCTIONS[name].arity, LLVM[element]
    block = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
    parts = list(closure(function))
    declares = dict.fromkeys(line for part in parts for line in part.declares)
    loads = [
        f"  %at.{operand} = getelementptr {scalar}, ptr %{operand}, i64 %i\n"
        f"  %v.{operand} = load {block}, ptr %at.{operand}, align 4"
        for operand in ("x", "y")[:arity]
    ]
    arguments = ", ".join(f"{block} %v.{operand}" for operand in ("x", "y")[:arity])
    return "\n".join(
        [
            *declares,
            *(part.text for part in parts),
            "define void @run(ptr %x, ptr %y, ptr %result, i64 %count) {",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *loads,
            f"  %r = call {block} @{function.name}({arguments})",
            f"  %at = getelementptr {scalar}, ptr %result, i64 %i",
            f"  store {block} %r, ptr %at, align 4",
            f"  %next = add i64 %i, {lanes}",
            "  %more = icmp slt i64 %next, %count",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


@cache
def native(name: str, element: str, lanes: int) -> NativeModule:
    return compile_module(loop_module(name, element, lanes))


def run(name: str, element: str, *operands: Array, lanes: int = 16) -> Array:
    inputs = [np.resize(operand.astype(DTYPES[element]), -(-operand.size // lanes) * lanes) for operand in operands]
    result = np.empty_like(inputs[0])
    pointers = [array.ctypes.data for array in (inputs[0], inputs[-1], result)]
    address = native(name, element, lanes).address("run")
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(address)(*pointers, result.size)
    return result[: operands[0].size]


def documented() -> dict[str, dict[str, float]]:
    """Function → element → greatest error in units in the last place, from the table in the documentation."""
    page = (Path(__file__).parents[2] / "docs" / "vector_math.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d\.\d) \| (\d\.\d) \|$", page, re.MULTILINE)
    return {name: {"f32": float(f32), "f64": float(f64)} for name, f32, f64 in rows}


def errors_f32(actual: Array, exact: Array) -> Array:
    """|actual - exact| in units of the last place that f32 has at `exact`; ∞ for a wrong sign of 0, NaN or ∞."""
    with np.errstate(all="ignore"):
        unit = np.exp2(np.maximum(np.frexp(exact)[1] - 24.0, -149.0))
        error = np.abs(actual.astype(np.float64) - exact) / unit
        overflow = np.isinf(actual) & (np.abs(exact) >= 2.0**128 - 2.0**103) & (np.signbit(actual) == np.signbit(exact))
    error[overflow | (np.isnan(actual) & np.isnan(exact))] = 0.0
    error[np.isnan(error) | ((actual == 0) & (exact == 0) & (np.signbit(actual) != np.signbit(exact)))] = np.inf
    return error


def in_torch(name: str) -> Callable[[Array], Array]:
    return lambda x: np.asarray(getattr(torch, name)(torch.from_numpy(x)).numpy())


REFERENCE: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in UNARY if hasattr(np, name)},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "erf": in_torch("erf"),
    "erfc": in_torch("erfc"),
    "pow": np.power,
    "atan2": np.arctan2,
}


def exact_f32(name: str, *operands: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(REFERENCE[name](*(operand.astype(np.float64) for operand in operands)))


@pytest.mark.parametrize("name", UNARY)
def test_f32_errors_over_all_exponents(name: str) -> None:
    bits = np.arange(0, 1 << 32, 4093, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([bits.view(np.float32), SIGNED.astype(np.float32)])
    error = errors_f32(run(name, "f32", x), exact_f32(name, x))
    assert error.max() <= documented()[name]["f32"], x[error.argmax()]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_f32_next_to_multiples_of_half_pi(name: str) -> None:
    x = (np.arange(1 << 18) * (np.pi / 2)).astype(np.float32)
    error = errors_f32(run(name, "f32", x), exact_f32(name, x))
    assert error.max() <= documented()[name]["f32"], x[error.argmax()]


def pairs(name: str, element: str, count: int) -> tuple[Array, Array]:
    """Operands whose results spread over the whole range, denormal ones included."""
    generator, dtype = np.random.default_rng(5), DTYPES[element]
    reach = 150 if element == "f32" else 1075
    greatest = 127 if element == "f32" else 1023
    first = np.concatenate(
        [
            generator.uniform(0, 4, count),
            1 + generator.uniform(-1, 1, count) * np.exp2(generator.uniform(-20, -1, count)),
            np.exp2(generator.uniform(-reach, greatest, count)),
        ]
    ).astype(dtype)
    with np.errstate(all="ignore"):
        exponents = generator.uniform(-reach, reach, first.size) / np.log2(first.astype(np.float64))
    second = exponents if name == "pow" else generator.permutation(first) * generator.choice([-1.0, 1.0], first.size)
    return first, second.astype(dtype)


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_f32_errors_of_two_operands(name: str) -> None:
    x, y = pairs(name, "f32", 1 << 17)
    error = errors_f32(run(name, "f32", x, y), exact_f32(name, x, y))
    assert error.max() <= documented()[name]["f32"], (x[error.argmax()], y[error.argmax()])


EXACT: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in (*UNARY, "atan2") if hasattr(mp, name)},
    "exp2": lambda x: mp.mpf(2) ** x,
    "log2": lambda x: mp.log(x) / mp.ln2,
    "log10": lambda x: mp.log(x) / mp.ln10,
    "pow": mp.power,
}
DOMAIN = {
    "exp": (-745.0, 710.0),
    "exp2": (-1075.0, 1024.0),
    "expm1": (-60.0, 709.7),
    "sinh": (-710.0, 710.0),
    "cosh": (-710.0, 710.0),
    "tanh": (-20.0, 20.0),
    "log": (0.0, 1e308),
    "log2": (0.0, 1e308),
    "log10": (0.0, 1e308),
    "log1p": (-1.0, 1e308),
    "acosh": (1.0, 1e308),
    "atanh": (-1.0, 1.0),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "erf": (-6.5, 6.5),
    "erfc": (-6.5, 27.2),
}


def arguments_f64(name: str, count: int) -> Array:
    """Small, middling and extreme arguments within the domain, and some next to 1."""
    generator = np.random.default_rng(7)
    low, high = DOMAIN.get(name, (-1e308, 1e308))
    x = np.concatenate(
        [
            generator.uniform(max(low, -2), min(high, 2), count),
            generator.uniform(max(low, -50), min(high, 50), count),
            np.exp2(generator.uniform(-60, 60, count)) * generator.choice([-1.0, 1.0], count),
            1 + np.exp2(generator.uniform(-52, 0, count)) * generator.choice([-1.0, 1.0], count),
            generator.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64),
            generator.integers(0, 1 << 20, count) * (np.pi / 2),
        ]
    )
    return np.asarray(x[(x >= low) & (x <= high)])


def error_f64(actual: float, exact: Any) -> float:
    unit = mp.mpf(2) ** max(int(mp.frexp(exact)[1]) - 53, -1074)
    if np.isinf(actual):
        return 0.0 if abs(exact) >= mp.mpf(2) ** 1024 - mp.mpf(2) ** 970 else np.inf
    return float(abs(mp.mpf(actual) - exact) / unit)


def assert_f64_errors(name: str, *operands: Array) -> None:
    actual, bound = run(name, "f64", *operands, lanes=8), documented()[name]["f64"]
    with mp.workprec(160):
        for result, *values in zip(actual.tolist(), *(operand.tolist() for operand in operands), strict=True):
            exact = EXACT[name](*map(mp.mpf, values))
            assert error_f64(result, exact) <= bound, (values, result)


@pytest.mark.parametrize("name", UNARY)
def test_f64_errors(name: str) -> None:
    assert_f64_errors(name, arguments_f64(name, 400))


@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_f64_errors_of_two_operands(name: str) -> None:
    x, y = pairs(name, "f64", 700)
    assert_f64_errors(name, x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("element", DTYPES)
def test_special_values_are_those_of_c(name: str, element: str) -> None:
    """Zeros, infinities and NaN where the reference has them, with its signs, and nowhere else."""
    grid = np.array(list(product(SIGNED, repeat=FUNCTIONS[name].arity))).T
    operands = [operand.astype(DTYPES[element]) for operand in grid]
    with np.errstate(all="ignore"):
        exact = exact_f32(name, *operands).astype(DTYPES[element])
    actual = run(name, element, *operands)
    for kind in (np.isnan, np.isinf, lambda value: value == 0):
        assert (kind(actual) == kind(exact)).all(), grid[:, kind(actual) != kind(exact)]
    marked = np.isinf(exact) | (exact == 0)
    assert (np.signbit(actual) == np.signbit(exact))[marked].all()


@pytest.mark.parametrize("element", DTYPES)
def test_values_that_are_exact(element: str) -> None:
    ones = {"exp": 0.0, "exp2": 0.0, "cosh": 0.0, "cos": 0.0, "log2": 2.0, "log10": 10.0, "erfc": 0.0}
    assert {name: run(name, element, np.array([x]))[0] for name, x in ones.items()} == dict.fromkeys(ones, 1.0)
    integers = np.arange(-120.0, 121.0)
    assert (run("exp2", element, integers) == np.exp2(integers)).all()
    assert (run("log2", element, np.exp2(integers)) == integers).all()


def test_sine_and_cosine_stay_within_one() -> None:
    x = np.concatenate(
        [np.arange(1 << 16) * (np.pi / 2), np.linspace(-4, 4, 1 << 18), np.exp2(np.arange(0, 120, 0.01))]
    )
    for name, element in product(("sin", "cos"), DTYPES):
        assert np.abs(run(name, element, x)).max() == 1.0


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("name", "shift"), [("cos", 0.0), ("sin", 0.5)])
def test_sine_and_cosine_reach_one(name: str, shift: float, element: str) -> None:
    """At the numbers next to each peak, of which the function is nearer to 1 than the next number is."""
    peaks = np.array([float(mp.pi * (k + shift)) for k in range(1, 1000)]).astype(DTYPES[element])
    assert (np.abs(run(name, element, peaks)) == 1.0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("element", DTYPES)
def test_number_of_lanes_does_not_change_a_bit(name: str, element: str) -> None:
    generator, integer = np.random.default_rng(3), f"u{np.dtype(DTYPES[element]).itemsize}"
    wild = generator.integers(0, np.iinfo(integer).max, 1024, dtype=integer).view(DTYPES[element])
    operands = [
        np.concatenate([generator.permutation(wild), generator.normal(size=1024).astype(wild.dtype)])
        for _ in range(FUNCTIONS[name].arity)
    ]
    expected = run(name, element, *operands, lanes=1)
    for lanes in (2, 4, 16, 32):
        assert np.array_equal(run(name, element, *operands, lanes=lanes), expected, equal_nan=True), lanes


PROCESSORS = ["x86-64-v3", "x86-64-v4"]
CALL = re.compile(r"^\s*(?:call\w*|jmp)\s+(?!\.L)(.*)", re.MULTILINE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_machine_code_calls_no_library(name: str) -> None:
    """Only the remainder of huge angles is called, out of line; nothing falls back to libm or compiler-rt."""
    for processor, (element, lanes) in product(PROCESSORS, [("f32", 16), ("f64", 8), ("f32", 1), ("f64", 1)]):
        text = loop_module(name, element, lanes)
        callees = CALL.findall(emit_assembly(text, processor, triple="x86_64-unknown-linux-gnu"))
        assert all("sw.large_remainder" in callee for callee in callees), callees


def test_widest_blocks_compile() -> None:
    x = np.linspace(-2, 2, 1024)
    for name in ("exp", "sin"):
        assert np.array_equal(run(name, "f32", x, lanes=128), run(name, "f32", x))


@pytest.mark.parametrize("name", minimax.APPROXIMATIONS)
def test_stored_polynomials_are_near_their_functions(name: str) -> None:
    approximation = minimax.APPROXIMATIONS[name]
    low, high = approximation.interval
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / 128) for k in range(64)]
    for format in approximation.degrees:
        series = getattr(coefficients, name)[format.name]
        assert len(series) == approximation.degrees[format] + 1
        for t in points:
            error = abs(mp.polyval(series[::-1], t) - approximation.target(t)) * approximation.weight(t)
            assert error < 2.0 ** -(format.precision + 0.5)


def test_exchange_finds_the_best_line() -> None:
    """The best line for t² on [0, 1] is t - 1/8, with the error 1/8."""
    square = minimax.Approximation("", lambda t: t**2, lambda t: mp.mpf(1), (mp.mpf(0), mp.mpf(1)), {})
    assert [float(c) for c in square.fit(1, [])] == pytest.approx([-0.125, 1.0], abs=1e-5)
    assert [float(c) for c in square.fit(1, [0.0])] == pytest.approx([2 * 2**0.5 - 2], abs=1e-4)


def test_texts_are_repeatable_and_hold_no_fast_math() -> None:
    for name, element in product(FUNCTIONS, DTYPES):
        function = definition(name, element, 8)
        text = "\n".join(part.text for part in closure(function))
        assert not re.search(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|fmuladd)\b", text)
        assert function.text.startswith(f"define internal <8 x {LLVM[element]}> @sw.{name}.{element}.v8(")
        assert definition.__wrapped__(name, element, 8) == function


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("gamma", "f32", 4), "function one of exp, .*, got 'gamma'"),
        (("exp", "bf16", 4), "element one of f32, f64, got 'bf16'"),
        (("exp", "f32", 3), "lanes one of 1, 2, 4, .*, got 3"),
        (("exp", "f32", 256), "got 256"),
    ],
)
def test_unknown_functions_are_refused(arguments: tuple[str, str, int], complaint: str) -> None:
    with pytest.raises(BackendError, match=complaint):
        definition(*arguments)

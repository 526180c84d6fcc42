"""Conversions between element types: rounding against ml_dtypes, out-of-range values against eager PyTorch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from stepwell.backends.cpu.target import host_target
from stepwell.tests.cpu.kernels import DTYPES, SHAPES, WIDTHS, Array, Kernel, apply, elementwise_kernel, same, samples

ARITH = ("extf", "truncf", "bitcast")

FLOATS = ("bf16", "f16", "f32", "f64")

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)

EXTREMES = (
    0.0, -0.5, -1.7, 127.9, 128.0, 200.7, 255.9, 256.0, 300.0, -129.0, 32768.0, 65536.7, -40000.0, 2147483520.0,
    2147483648.0, 3e9, 3000000005.0, -2147483648.0, -3e9, 1e10, 9.2e18, 9.3e18, 1e19, 1e30, -1e30, np.inf, -np.inf,
    np.nan,
)  # fmt: skip


def cast(op: str, x: Array, source: str, target: str, shape: tuple[int, ...]) -> Array:
    """`op` is a cast of `arith` by name; those that it defines on scalars only are made with `tile.convert`."""
    text = f"%r = arith.{op} %0 : {{0}} to {{r}}" if op in ARITH else f"%r = tile.convert {op} %0 : {{0}} -> {{r}}"
    return apply(text, (x,), target, shape, (source,))


def all_bits_16(element: str) -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(DTYPES[element])


def halfway_values(element: str) -> Array:
    """f64 values at, just below and just above the middle between neighbours of a 16-bit type, where rounding
    first to f32 and then again goes wrong."""
    with np.errstate(all="ignore"):
        low = all_bits_16(element).astype(np.float64)
        high = (np.arange(1, (1 << 16) + 1).astype(np.uint16)).view(DTYPES[element]).astype(np.float64)
        middle = (low + high) / 2
        middle = middle[np.isfinite(middle)]
    return np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])


def nearest(values: Array, element: str) -> Array:
    """Rounded once, ties to even, by exact arithmetic on the neighbours."""
    with np.errstate(all="ignore"):
        numbers = all_bits_16(element).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    step = numbers[-1] - numbers[-2]
    numbers = np.concatenate([[numbers[0] - step], numbers, [numbers[-1] + step]])
    at = np.clip(np.searchsorted(numbers, values), 1, len(numbers) - 1)
    low, high = numbers[at - 1], numbers[at]
    even = np.arange(len(numbers)) % 2 == np.searchsorted(numbers, 0.0) % 2
    down, up = values - low, high - values
    rounded = np.where((down < up) | ((down == up) & even[at - 1]), low, high)
    with np.errstate(all="ignore"):
        return rounded.astype(np.float32).astype(DTYPES[element])


@every_shape
@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_widening_is_exact(element: str, wide: str, shape: tuple[int, ...]) -> None:
    x = all_bits_16(element)
    with np.errstate(all="ignore"):
        assert same(cast("extf", x, element, wide, shape), x.astype(DTYPES[wide]))


@every_shape
@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_narrowing_f32_rounds_to_nearest_even(element: str, shape: tuple[int, ...]) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    middles = halfway_values(element).astype(np.float32)
    x = np.concatenate([bits.view(np.float32), middles[: len(middles) // 64 * 64]])
    with np.errstate(all="ignore"):
        assert same(cast("truncf", x, "f32", element, shape), x.astype(DTYPES[element]))


@every_shape
@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_narrowing_f64_rounds_once(element: str, shape: tuple[int, ...]) -> None:
    middles = halfway_values(element)
    x = middles[: len(middles) // 64 * 64]
    actual = cast("truncf", x, "f64", element, shape)
    expected = nearest(x, element)
    signed_zero = (actual == 0) & (expected == 0)
    assert (signed_zero | (actual.view(np.uint16) == expected.view(np.uint16))).all()


@pytest.mark.parametrize("element", ["bf16", "f16", "f32"])
def test_narrowing_f64_keeps_what_is_special(element: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-300, -1e-300, 1e-45] + [1.0] * 54)
    actual = apply("%r = arith.truncf %0 : {0} to {r}", (x,), element, (64,), ("f64",))
    with np.errstate(all="ignore"):
        assert same(actual, x.astype(np.float32).astype(DTYPES[element]))


@every_shape
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
def test_floats_to_integers_are_eager(source: str, target: str, shape: tuple[int, ...]) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(EXTREMES), samples("f64", 484)]).astype(DTYPES[source])
    dtype = getattr(torch, DTYPES[target].name)
    eager = torch.from_numpy(x.astype(np.float64)).to(getattr(torch, {"bf16": "bfloat16"}.get(source, "float64")))
    if source in ("f16", "f32"):
        eager = torch.from_numpy(x)
    assert same(cast("fptosi", x, source, target, shape), eager.to(dtype).numpy())


@every_shape
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_floats_to_unsigned_bytes_are_eager(source: str, shape: tuple[int, ...]) -> None:
    with np.errstate(all="ignore"):
        x = np.concatenate([np.array(EXTREMES), samples("f64", 484)]).astype(DTYPES[source])
    eager = torch.from_numpy(x).to(torch.uint8).numpy().view(np.int8)
    assert same(cast("fptoui", x, source, "i8", shape), eager)


@every_shape
@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("target", ["bf16", "f16", "f32", "f64"])
def test_integers_to_floats(source: str, target: str, shape: tuple[int, ...]) -> None:
    x = samples(source)
    wide = np.float64 if target == "f64" else np.float32
    kind = f"u{x.itemsize}"
    with np.errstate(all="ignore"):
        signed, unsigned = (value.astype(wide).astype(DTYPES[target]) for value in (x, x.view(kind)))
    assert same(cast("sitofp", x, source, target, shape), signed)
    assert same(cast("uitofp", x, source, target, shape), unsigned)


@every_shape
@pytest.mark.parametrize("target", ["i8", "i64", "f32", "bf16"])
def test_bools_become_numbers(target: str, shape: tuple[int, ...]) -> None:
    x = samples("i1")
    kind = "extui" if target.startswith("i") else "uitofp"
    assert same(cast(kind, x, "i1", target, shape), x.astype(DTYPES[target]))


@every_shape
@pytest.mark.parametrize(("source", "target"), [("i8", "i64"), ("i16", "i32"), ("i32", "i64"), ("i8", "i16")])
def test_integer_widths(source: str, target: str, shape: tuple[int, ...]) -> None:
    x, wide = samples(source), samples(target)
    kind = f"u{x.itemsize}"
    assert same(cast("extsi", x, source, target, shape), x.astype(DTYPES[target]))
    zeros = x.view(kind).astype(DTYPES[target])
    assert same(cast("extui", x, source, target, shape), zeros)
    assert same(cast("trunci", wide, target, source, shape), wide.astype(x.dtype))


@every_shape
@pytest.mark.parametrize(
    ("source", "target"), [("f32", "i32"), ("i64", "f64"), ("bf16", "i16"), ("i16", "bf16"), ("f16", "i16")]
)
def test_bitcast(source: str, target: str, shape: tuple[int, ...]) -> None:
    x = samples(source)
    assert same(cast("bitcast", x, source, target, shape), x.view(DTYPES[target]))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_width(width: int) -> None:
    with np.errstate(all="ignore"):
        x = samples("f32")
        narrow = x.astype(DTYPES["bf16"])
    assert same(cast("truncf", x, "f32", "bf16", (width,)), narrow)
    assert same(cast("extui", samples("i1"), "i1", "i64", (width,)), samples("i1").astype(np.int64))


@pytest.mark.parametrize("by_instruction", [False, True])
@pytest.mark.parametrize("lanes", [16, 32, 64, 96])
def test_rounding_to_bf16(lanes: int, by_instruction: bool) -> None:
    """Any bits, and denormals alone in a block; where the processor has no instruction, only the other way runs."""
    target = replace(host_target(), rounds_to_bf16=by_instruction and host_target().rounds_to_bf16)
    bits = np.random.default_rng(3).integers(0, 1 << 32, 96 * 500, dtype=np.uint64).astype(np.uint32)
    bits[960:1920] >>= 9
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(DTYPES["bf16"])
    text = elementwise_kernel("%r = arith.truncf %0 : {0} to {r}", ("f32",), "bf16", (lanes,))
    kernel, result = Kernel(text, target), np.zeros(x.shape, DTYPES["bf16"])
    kernel.run(x, result, x.size)
    assert same(result, expected)
    assert (result[960:1920].astype(np.float32) != 0).any()
    assert ("cvtne2ps2bf16" in kernel.assembly) == (target.rounds_to_bf16 and lanes % 32 == 0)


def test_scalar_casts_of_the_arith_dialect() -> None:
    x = samples("i32")
    assert same(apply("%r = arith.sitofp %0 : i32 to f64", (x,), "f64", (), ("i32",)), x.astype(np.float64))
    assert same(apply("%r = arith.trunci %0 : i32 to i8", (x,), "i8", (), ("i32",)), x.astype(np.int8))


def test_index_casts() -> None:
    x = samples("i32")
    op = "%j = arith.index_cast %0 : i32 to index\n%r = arith.index_cast %j : index to i64"
    assert same(apply(op, (x,), "i64", (), ("i32",)), x.astype(np.int64))


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_conversions_call_nothing(element: str) -> None:
    for source, target, op in ((element, "f64", "extf"), ("f64", element, "truncf"), ("f32", element, "truncf")):
        for shape in ((), (16,), (64,)):
            text = elementwise_kernel(f"%r = arith.{op} %0 : {{0}} to {{r}}", (source,), target, shape)
            assert "call" not in Kernel(text).assembly

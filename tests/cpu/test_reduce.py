"""Reductions of the lanes and rows of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stepwell.tests.cpu.kernels import DTYPES, Array, Kernel, block, row_major, same, samples

SHAPES = (
    ((64,), 0),
    ((16,), 0),
    ((1,), 0),
    ((7,), 0),
    ((4, 16), 0),
    ((4, 16), 1),
    ((3, 8), 0),
    ((2, 4, 8), 1),
    ((3, 4, 8), 2),
    ((2, 3, 8), 0),
)


def reduce_block(combiner: str, arrays: Sequence[Array], elements: Sequence[str], dimension: int) -> list[Array]:
    shape = arrays[0].shape
    kept = shape[:dimension] + shape[dimension + 1 :]
    outs = [np.zeros(kept, array.dtype) for array in arrays]
    loads, stores, names = "", "", range(len(arrays))
    for k, element in enumerate(elements):
        full = row_major(shape)
        left = row_major(kept)
        loads += f"%v{k} = tile.load %x{k}[0] strides ({full}) : memref<?x{element}> -> {block(element, shape)}\n"
        stores += f"tile.store %r{k}, %o{k}[0] strides ({left}) : {block(element, kept)}, memref<?x{element}>\n"
    buffers = [f"%{side}{k} : memref<?x{elements[k]}>" for side in "xo" for k in names]
    results, operands = (", ".join(f"%{letter}{k}" for k in names) for letter in "rv")
    types = ", ".join(block(element, shape) for element in elements)
    Kernel(f"""tile.kernel @reduce({", ".join(buffers)}) grid (1) {{
      {loads}
      {results} = tile.reduce {combiner} {operands} dim {dimension} : {types}
      {stores}
    }}""").run(*map(np.ascontiguousarray, arrays), *outs)
    return outs


def small(element: str, shape: tuple[int, ...]) -> Array:
    """Whole numbers, whose sums are exact in every type."""
    return np.random.default_rng(3).integers(-3, 4, shape).astype(DTYPES[element])


@pytest.mark.parametrize(("shape", "dimension"), SHAPES, ids=str)
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "f16", "i8", "i32", "i64"])
def test_sums_and_products(element: str, shape: tuple[int, ...], dimension: int) -> None:
    x = small(element, shape)
    wide = x.astype(np.float64)
    (total,) = reduce_block("add", [x], [element], dimension)
    assert same(total, np.asarray(wide.sum(dimension)).astype(x.dtype))
    signs = np.where(x < 0, -1, 1).astype(x.dtype)
    (product,) = reduce_block("mul", [signs], [element], dimension)
    assert same(product, np.asarray(signs.astype(np.float64).prod(dimension)).astype(x.dtype))


@pytest.mark.parametrize(("shape", "dimension"), SHAPES, ids=str)
@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "i64"])
def test_extrema(element: str, shape: tuple[int, ...], dimension: int) -> None:
    x = samples(element, 200)[: int(np.prod(shape))].reshape(shape)
    for name, compute in (("max", np.max), ("min", np.min)):
        (actual,) = reduce_block(name, [x], [element], dimension)
        with np.errstate(all="ignore"):
            expected = np.asarray(compute(x, axis=dimension), x.dtype)
        assert ((actual == expected) | (actual != actual) & (expected != expected)).all()
    if element.startswith("i"):
        kind = f"u{x.itemsize}"
        for name, compute in (("maxu", np.max), ("minu", np.min)):
            (actual,) = reduce_block(name, [x], [element], dimension)
            assert same(actual, np.asarray(compute(x.view(kind), axis=dimension)).view(x.dtype))


@pytest.mark.parametrize("element", ["i1", "i32"])
@pytest.mark.parametrize(
    ("name", "compute"),
    [("and", np.bitwise_and.reduce), ("or", np.bitwise_or.reduce), ("xor", np.bitwise_xor.reduce)],
)
def test_bits(element: str, name: str, compute: Callable[[Array], Array]) -> None:
    x = samples(element, 200)[:64]
    x[0] = 1
    assert same(reduce_block(name, [x], [element], 0)[0], np.asarray(compute(x), x.dtype))


@pytest.mark.parametrize(("name", "expected"), [("add", True), ("mul", False), ("max", True), ("min", False)])
def test_bools_are_reduced_as_logic(name: str, expected: bool) -> None:
    x = np.zeros(64, np.bool_)
    x[[3, 9]] = True
    assert reduce_block(name, [x], ["i1"], 0)[0] == expected


def reference_argmax(keys: Array, indices: Array) -> tuple[float, int]:
    """NaN before numbers, the greater key, the smaller index."""
    best = max(range(len(keys)), key=lambda k: (keys[k] != keys[k], keys[k] if keys[k] == keys[k] else 0, -indices[k]))
    return keys[best], int(indices[best])


@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "i32", "i1"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("nans", [0, 3])
def test_the_first_extremum(name: str, element: str, nans: int) -> None:
    generator = np.random.default_rng(nans)
    for _ in range(5):
        keys = generator.integers(-4, 4, 64).astype(DTYPES[element])
        if element.startswith(("f", "b")):
            keys[generator.integers(0, 64, nans)] = np.nan
        indices = generator.permutation(64).astype(np.int64)
        key, index = reduce_block(name, [keys, indices], [element, "i64"], 0)
        sign = 1 if name == "argmax" else -1
        order = keys.astype(np.float64) * sign
        best, at = reference_argmax(order, indices)
        assert index == at
        assert float(key) * sign == best or (best != best and key != key)


@pytest.mark.parametrize("dimension", [0, 1])
def test_extrema_with_indices_along_either_dimension(dimension: int) -> None:
    keys = np.random.default_rng(5).permutation(64).astype(np.float32).reshape(4, 16)
    indices = np.arange(64).reshape(4, 16)
    key, index = reduce_block("argmax", [keys, indices], ["f32", "i64"], dimension)
    assert (key == keys.max(dimension)).all()
    assert (keys.flat[index] == key).all()


def test_a_bf16_sum_is_rounded_once() -> None:
    x = np.full(64, 1.0078125, DTYPES["bf16"])
    x[0] = 256
    (total,) = reduce_block("add", [x], ["bf16"], 0)
    assert same(total, np.asarray(x.astype(np.float32).sum()).astype(x.dtype))


def test_float_sums_repeat() -> None:
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    first, second = (reduce_block("add", [x], ["f32"], 0)[0] for _ in range(2))
    assert same(first, second)
    halves = x
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert same(first, halves.reshape(()))

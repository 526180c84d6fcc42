"""Index expressions, lane numbers, broadcasts, transposes and random bits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stepwell.backends.cpu.blocks import BF16, F16, F32, F64, Element, constant_text
from stepwell.ir.expr import Expr, as_expr, ceildiv, dim, floordiv, maximum, minimum, mod, symbol
from stepwell.tests.cpu.kernels import DTYPES, Array, Kernel, block, row_major, same, samples

SYMBOLS = "attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>, #stepwell.symbol<s1, 1, ?>]}"


def store_all(value: str, type_: str, element: str, shape: Sequence[int]) -> str:
    return f"tile.store {value}, %o[0] strides ({row_major(shape)}) : {type_}, memref<?x{element}>"


# -- constants ---------------------------------------------------------------------------------------

NUMBERS = (
    *(0.0, -0.0, 1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, 1 + 2.0**-7 - 2.0**-20),
    *(1 + 2.0**-11, 1 + 3 * 2.0**-11, 65504.0, 65519.0, 65520.0, -65520.0, 2.0**-24, 2.0**-25, 3 * 2.0**-25, 2.0**-140),
    *(2.0**128 - 2.0**119, 2.0**128 - 2.0**119 - 2.0**104, 1e300, -1e300, math.inf, -math.inf, math.nan),
)
"""Halfway between two numbers of a type, near that, and beyond its last one."""

CONSTANTS: dict[str, tuple[Element, Callable[[str], Array]]] = {
    "bf16": (BF16, lambda text: np.array([int(text)], np.uint16).view(DTYPES["bf16"])),
    "f16": (F16, lambda text: np.array([int(text.removeprefix("0xH"), 16)], np.uint16).view(np.float16)),
    "f32": (F32, lambda text: np.array([int(text, 16)], np.uint64).view(np.float64).astype(np.float32)),
    "f64": (F64, lambda text: np.array([int(text, 16)], np.uint64).view(np.float64)),
}
"""Type → its element, and what the text of a constant says."""


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_constant_is_the_nearest_number(name: str) -> None:
    element, read = CONSTANTS[name]
    for number in NUMBERS:
        expected: Array = np.array([number]).astype(DTYPES[name])
        assert same(read(constant_text(element, number)), expected), number


# -- index expressions -------------------------------------------------------------------------------

OPERATORS: tuple[Callable[[Expr, Expr], Expr], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    minimum,
    maximum,
    lambda a, b: floordiv(a, _positive(b)),
    lambda a, b: ceildiv(a, _positive(b)),
    lambda a, b: mod(a, _positive(b)),
)


def _positive(expr: Expr) -> Expr:
    return maximum(expr, 1) if not expr.is_constant else as_expr(max(expr.constant, 1))


def random_expr(generator: random.Random, depth: int) -> Expr:
    if depth == 0:
        leaves = [dim(0), dim(1), symbol("s0"), symbol("s1"), as_expr(generator.choice([0, 1, 2, 3, 7, 8, 64, -5]))]
        return generator.choice(leaves)
    operator = generator.choice(OPERATORS)
    return operator(random_expr(generator, depth - 1), random_expr(generator, depth - 1))


def evaluate(expr: Expr, dims: list[int], sizes: list[int]) -> int:
    values = {"s0": sizes[0], "s1": sizes[1], 0: dims[0], 1: dims[1]}
    return int(expr.evaluate(lambda leaf: values[leaf.args[0]]))


def test_index_expressions_are_exact_for_either_sign() -> None:
    generator = random.Random(7)
    exprs = [random_expr(generator, 3) for _ in range(60)]
    texts = [expr.render(lambda leaf: f"%i{leaf.args[0]}" if leaf.kind == "dim" else leaf.args[0]) for expr in exprs]
    body = "\n".join(
        f"%v{k} = tile.index [{text}] : i64\ntile.store %v{k}, %o[{k}] strides () : i64, memref<?xi64>"
        for k, text in enumerate(texts)
    )
    kernel = Kernel(f"""
    tile.kernel @indices(%x : memref<?xi64>, %o : memref<?xi64>, %s0 : index, %s1 : index) grid (1) {SYMBOLS} {{
      %a = tile.load %x[0] strides () : memref<?xi64> -> i64
      %i0 = arith.index_cast %a : i64 to index
      %b = tile.load %x[1] strides () : memref<?xi64> -> i64
      %i1 = arith.index_cast %b : i64 to index
      {body}
    }}""")
    for _ in range(20):
        dims = [generator.randint(-100, 100) for _ in range(2)]
        sizes = [generator.randint(1, 100) for _ in range(2)]
        out = np.zeros(len(exprs), np.int64)
        kernel.run(np.array(dims), out, *sizes)
        assert out.tolist() == [evaluate(expr, dims, sizes) for expr in exprs]


def test_division_by_a_size_that_may_be_zero_does_not_trap() -> None:
    kernel = Kernel("""
    tile.kernel @empty(%o : memref<?xi64>, %s0 : index) grid (2)
        attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
      tile.for %i = [0] to [s0] step 1 {
        %v = tile.index [%i mod s0] : i64
        tile.store %v, %o[%i floordiv s0] strides () : i64, memref<?xi64>
        tile.yield
      }
    }""")
    out = np.full(1, 7)
    kernel.run(out, 0)
    assert out[0] == 7


# -- lane numbers and broadcasts ---------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "dimension"), [((64,), 0), ((4, 16), 0), ((4, 16), 1), ((2, 3, 8), 1)], ids=str)
def test_iota(shape: tuple[int, ...], dimension: int) -> None:
    type_ = block("i64", shape)
    out = np.zeros(shape, np.int64)
    Kernel(f"""tile.kernel @iota(%o : memref<?xi64>) grid (1) {{
      %v = tile.iota {dimension} : {type_}
      {store_all("%v", type_, "i64", shape)}
    }}""").run(out)
    assert (out == np.indices(shape)[dimension]).all()


@pytest.mark.parametrize(
    ("source", "dims", "target"),
    [
        ((), (), (64,)),
        ((), (), (4, 16)),
        ((16,), (1,), (4, 16)),
        ((4,), (0,), (4, 16)),
        ((4, 16), (1, 2), (2, 4, 16)),
        ((4, 16), (0, 2), (4, 2, 16)),
        ((2, 4), (0, 1), (2, 4, 16)),
        ((4,), (1,), (2, 4, 8)),
    ],
    ids=str,
)
@pytest.mark.parametrize("element", ["f32", "i1", "bf16"])
def test_broadcast(element: str, source: tuple[int, ...], dims: tuple[int, ...], target: tuple[int, ...]) -> None:
    x = samples(element)[: int(np.prod(source))].reshape(source)
    out = np.zeros(target, DTYPES[element])
    strides = row_major(source)
    Kernel(f"""tile.kernel @broadcast(%x : memref<?x{element}>, %o : memref<?x{element}>) grid (1) {{
      %v = tile.load %x[0] strides ({strides}) : memref<?x{element}> -> {block(element, source)}
      %w = tile.broadcast %v dims [{", ".join(map(str, dims))}] : {block(element, source)} -> {block(element, target)}
      {store_all("%w", block(element, target), element, target)}
    }}""").run(np.ascontiguousarray(x), out)
    placed = x.reshape([target[k] if k in dims else 1 for k in range(len(target))])
    assert same(out, np.broadcast_to(placed, target))


# -- transposes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(16, 16), (8, 8), (8, 16), (16, 8), (4, 32), (32, 2), (1, 8), (8, 1), (3, 5)], ids=str
)
@pytest.mark.parametrize("element", ["f32", "i8", "bf16", "f64", "i1"])
def test_transpose(element: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = samples(element, max(rows * columns, 200))[: rows * columns].reshape(shape)
    out = np.zeros((columns, rows), DTYPES[element])
    flipped = block(element, (columns, rows))
    Kernel(f"""tile.kernel @transpose(%x : memref<?x{element}>, %o : memref<?x{element}>) grid (1) {{
      %v = tile.load %x[0] strides ({columns}, 1) : memref<?x{element}> -> {block(element, shape)}
      %t = tile.transpose %v : {block(element, shape)} -> {flipped}
      {store_all("%t", flipped, element, (columns, rows))}
    }}""").run(np.ascontiguousarray(x), out)
    assert same(out, x.T)


def test_a_square_transpose_is_four_stages_of_shuffles() -> None:
    kernel = Kernel("""tile.kernel @transpose(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      %v = tile.load %x[0] strides (16, 1) : memref<?xf32> -> vector<16x16xf32>
      %t = tile.transpose %v : vector<16x16xf32> -> vector<16x16xf32>
      tile.store %t, %o[0] strides (16, 1) : vector<16x16xf32>, memref<?xf32>
    }""")
    assert kernel.llvm.count("= shufflevector") == 4 * 16


def test_a_column_becomes_a_row_without_shuffles() -> None:
    kernel = Kernel("""tile.kernel @transpose(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      %v = tile.load %x[0] strides (1, 1) : memref<?xf32> -> vector<8x1xf32>
      %t = tile.transpose %v : vector<8x1xf32> -> vector<1x8xf32>
      tile.store %t, %o[0] strides (8, 1) : vector<1x8xf32>, memref<?xf32>
    }""")
    assert "shufflevector" not in kernel.llvm


# -- the form of code ----------------------------------------------------------------------------------
# Slower code would be right, too.


@pytest.mark.parametrize(
    ("expr", "expected", "never"),
    [
        ("%i floordiv 8", "ashr i64", "div i64"),
        ("%i mod 8", "and i64", "rem i64"),
        ("%i floordiv 1", "", "ashr"),
        ("(%i + 3) floordiv 7", "sdiv i64", "udiv"),
        ("s0 floordiv 7", "udiv i64", "sdiv"),
        ("s0 mod 7", "urem i64", "srem"),
        ("%i floordiv s0", "llvm.smax.i64", "udiv"),
    ],
)
def test_divisions_take_the_cheapest_instruction(expr: str, expected: str, never: str) -> None:
    kernel = Kernel(f"""
    tile.kernel @index(%x : memref<?xi64>, %o : memref<?xi64>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      %a = tile.load %x[0] strides () : memref<?xi64> -> i64
      %i = arith.index_cast %a : i64 to index
      %v = tile.index [{expr}] : i64
      tile.store %v, %o[0] strides () : i64, memref<?xi64>
    }}""")
    assert expected in kernel.llvm
    assert never not in kernel.llvm


# -- random bits -------------------------------------------------------------------------------------


def philox(seed: int, counter: int, stream: int) -> int:
    """The first word of Philox4x32-10, written from the paper."""
    word = 0xFFFFFFFF
    state = [counter & word, counter >> 32, stream & word, stream >> 32]
    key = [seed & word, seed >> 32]
    for _ in range(10):
        first, second = state[0] * 0xD2511F53, state[2] * 0xCD9E8D57
        state = [second >> 32 ^ state[1] ^ key[0], second & word, first >> 32 ^ state[3] ^ key[1], first & word]
        key = [(key[0] + 0x9E3779B9) & word, (key[1] + 0xBB67AE85) & word]
    return state[0]


def test_the_reference_philox_gives_the_published_values() -> None:
    assert philox(0, 0, 0) == 0x6627E8D5
    assert philox((1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1) == 0x408F276D


@pytest.mark.parametrize("shape", [(), (16,), (64,)], ids=str)
@pytest.mark.parametrize("stream", [0, 3, 5 << 33])
def test_philox(stream: int, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(1)
    seeds = [0, -1, int(generator.integers(-(1 << 63), 1 << 63))]
    counters = generator.integers(-(1 << 63), 1 << 63, 64)
    counters[:3] = [0, -1, 1 << 32]
    lanes = shape[0] if shape else 1
    kernel = Kernel(f"""
    tile.kernel @random(%seed : memref<?xi64>, %x : memref<?xi64>, %o : memref<?xi32>) grid (1) {{
      %s = tile.load %seed[0] strides () : memref<?xi64> -> i64
      tile.for %i = [0] to [64] step {lanes} {{
        %c = tile.load %x[%i] strides ({"1" if shape else ""}) : memref<?xi64> -> {block("i64", shape)}
        %r = tile.philox %s, %c stream {stream} : {block("i64", shape)}
        tile.store %r, %o[%i] strides ({"1" if shape else ""}) : {block("i32", shape)}, memref<?xi32>
        tile.yield
      }}
    }}""")
    unsigned = (1 << 64) - 1
    for seed in seeds:
        out: Array = np.zeros(64, np.int32)
        kernel.run(np.array([seed]), counters, out)
        expected = [philox(seed & unsigned, int(counter) & unsigned, stream) for counter in counters]
        assert out.view(np.uint32).tolist() == expected

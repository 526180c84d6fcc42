"""Loads, stores, gathers and scatters: every stride, mask and element type, and no access outside of a buffer."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepwell.ir.errors import BackendError
from stepwell.tests.cpu.kernels import DTYPES, Array, Kernel, block, row_major, same, samples

ELEMENTS = ("f32", "f64", "bf16", "i1", "i8")


def places(shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The offset of every lane."""
    return sum((np.indices(shape)[k] * stride for k, stride in enumerate(strides)), np.zeros(shape, int))


# -- strides -----------------------------------------------------------------------------------------

STRIDED = (
    ((64,), (1,)),
    ((64,), (3,)),
    ((16,), (0,)),
    ((16,), (-1,)),
    ((16,), (-2,)),
    ((8, 16), (16, 1)),
    ((8, 16), (1, 8)),
    ((16, 16), (1, 40)),
    ((4, 8), (3, 70)),
    ((3, 5), (1, 3)),
    ((4, 16), (0, 1)),
    ((4, 16), (1, 0)),
    ((2, 4, 8), (32, 8, 1)),
)


@pytest.mark.parametrize(("shape", "strides"), STRIDED, ids=str)
@pytest.mark.parametrize("element", ["f32", "i1", "bf16", "f64"])
@pytest.mark.parametrize("known", [True, False])
def test_strided_loads(element: str, shape: tuple[int, ...], strides: tuple[int, ...], known: bool) -> None:
    x = samples(element, 1000)
    start = 500 if min(strides) < 0 else 11
    symbols = [f"s{k}" for k in range(len(shape))]
    texts = strides if known else symbols
    kept = row_major(shape)
    declared = ", ".join(f"#stepwell.symbol<{name}, 0, ?>" for name in symbols)
    kernel = Kernel(f"""
    tile.kernel @load(%x : memref<?x{element}>, %o : memref<?x{element}>, {", ".join(f"%{s} : index" for s in symbols)})
        grid (1) attributes {{stepwell.symbols = [{declared}]}} {{
      %v = tile.load %x[{start}] strides ({", ".join(map(str, texts))}) : memref<?x{element}> -> {block(element, shape)}
      tile.store %v, %o[0] strides ({kept}) : {block(element, shape)}, memref<?x{element}>
    }}""")
    out = np.zeros(shape, x.dtype)
    kernel.run(x, out, *strides)
    assert same(out, x[start + places(shape, strides)])


@pytest.mark.parametrize(("shape", "strides"), [pair for pair in STRIDED if 0 not in pair[1]], ids=str)
@pytest.mark.parametrize("element", ELEMENTS)
def test_strided_stores(element: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    x = samples(element, 600)[: int(np.prod(shape))].reshape(shape)
    start = 500 if min(strides) < 0 else 11
    kept = row_major(shape)
    out = np.zeros(1000, x.dtype)
    Kernel(f"""tile.kernel @store(%x : memref<?x{element}>, %o : memref<?x{element}>) grid (1) {{
      %v = tile.load %x[0] strides ({kept}) : memref<?x{element}> -> {block(element, shape)}
      tile.store %v, %o[{start}] strides ({", ".join(map(str, strides))}) : {block(element, shape)}, memref<?x{element}>
    }}""").run(np.ascontiguousarray(x), out)
    expected = np.zeros(1000, x.dtype)
    expected[start + places(shape, strides)] = x
    assert same(out, expected)


def test_the_last_lane_stays_where_lanes_share_a_place() -> None:
    out = np.zeros(2, np.float32)
    x = np.arange(16, dtype=np.float32)
    Kernel("""tile.kernel @store(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<16xf32>
      tile.store %v, %o[0] strides (0) : vector<16xf32>, memref<?xf32>
      tile.store %v, %o[1] strides (0) add : vector<16xf32>, memref<?xf32>
    }""").run(x, out)
    assert out.tolist() == [15, x.sum()]


# -- masks -------------------------------------------------------------------------------------------

MASKED = (((), ()), ((1,), (1,)), ((64,), (1,)), ((64,), (2,)), ((16,), (0,)), ((8, 16), (16, 1)), ((8, 16), (1, 8)))


@pytest.mark.parametrize(("shape", "strides"), MASKED, ids=str)
@pytest.mark.parametrize("element", ELEMENTS)
def test_masked_accesses(element: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    x = samples(element, 200)
    other = samples(element, 200, seed=2)[: int(np.prod(shape))].reshape(shape)
    kept = row_major(shape)
    type_, taken = block(element, shape), ", ".join(map(str, strides))
    buffers = ", ".join(f"%{name} : memref<?x{element}>" for name in ("x", "y", "o", "z", "s"))
    kernel = Kernel(f"""tile.kernel @masked(%m : memref<?xi1>, {buffers}) grid (1) {{
      %mask = tile.load %m[0] strides ({kept}) : memref<?xi1> -> {block("i1", shape)}
      %other = tile.load %y[0] strides ({kept}) : memref<?x{element}> -> {type_}
      %v = tile.load %x[3] strides ({taken}) mask %mask else %other : memref<?x{element}> -> {type_}
      tile.store %v, %o[0] strides ({kept}) : {type_}, memref<?x{element}>
      %w = tile.load %x[3] strides ({taken}) mask %mask : memref<?x{element}> -> {type_}
      tile.store %w, %z[0] strides ({kept}) : {type_}, memref<?x{element}>
      tile.store %other, %s[3] strides ({taken}) mask %mask : {type_}, memref<?x{element}>
    }}""")
    at = 3 + places(shape, strides)
    for included in (0.0, 0.5, 1.0):
        mask = np.asarray(np.random.default_rng(1).random(shape) < included)
        out, zeros, stored = np.zeros(shape, x.dtype), np.ones(shape, x.dtype), np.zeros(200, x.dtype)
        kernel.run(mask, x, np.ascontiguousarray(other), out, zeros, stored)
        assert same(out, np.where(mask, x[at], other))
        assert same(zeros, np.where(mask, x[at], np.zeros((), x.dtype)))
        expected = np.zeros(200, x.dtype)
        for place, lane, value in zip(at.flat, mask.flat, other.flat, strict=True):
            expected[place] = value if lane else expected[place]
        assert same(stored, expected)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("mask", ["", " mask %m"])
def test_dense_lanes_are_stored_together(element: str, mask: str) -> None:
    type_, buffer = block(element, (16,)), f"memref<?x{element}>"
    kernel = Kernel(f"""tile.kernel @copy(%x : {buffer}, %n : memref<?xi1>, %o : {buffer}) grid (1) {{
      %m = tile.load %n[0] strides (1) : memref<?xi1> -> vector<16xi1>
      %v = tile.load %x[0] strides (1) : {buffer} -> {type_}
      tile.store %v, %o[0] strides (1){mask} : {type_}, {buffer}
    }}""")
    stores = [line for line in kernel.llvm.splitlines() if "store" in line and not line.startswith("declare")]
    assert len(stores) == 1
    assert "<16 x " in stores[0]


class Fenced:
    """An array that ends where an inaccessible page begins."""

    def __init__(self, count: int, dtype: np.dtype[Any]) -> None:
        self.pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        size = count * dtype.itemsize
        self.array = np.frombuffer(self.pages, dtype, count, mmap.PAGESIZE - size)
        end = self.array.ctypes.data + size
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0


@pytest.mark.parametrize("element", ["f32", "i1", "bf16", "f64"])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_tail_touches_nothing_behind_the_buffer(element: str, stride: int) -> None:
    kernel = Kernel(f"""
    tile.kernel @tail(%x : memref<?x{element}>, %o : memref<?x{element}>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      tile.for %i, %mask = [0] to [s0] step 64 {{
        %v = tile.load %x[%i * {stride}] strides ({stride}) mask %mask : memref<?x{element}> -> vector<64x{element}>
        tile.store %v, %o[%i * {stride}] strides ({stride}) mask %mask : vector<64x{element}>, memref<?x{element}>
        tile.yield
      }}
    }}""")
    for count in (1, 63, 64, 65, 100):
        x, out = (Fenced((count - 1) * stride + 1, DTYPES[element]).array for _ in range(2))
        x[:] = np.resize(samples(element), len(x))
        kernel.run(x, out, count)
        assert same(out[::stride], x[::stride])


# -- combining stores, gathers, scatters -------------------------------------------------------------


@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "i64"])
@pytest.mark.parametrize(("name", "compute"), [("add", np.add), ("max", np.maximum), ("mul", np.multiply)])
@pytest.mark.parametrize("shape", [(), (64,), (4, 16)], ids=str)
def test_stores_combine(element: str, name: str, compute: Any, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    x, before = (generator.integers(-4, 5, shape).astype(DTYPES[element]) for _ in range(2))
    mask = generator.random(shape) < 0.7
    strides = row_major(shape)
    out = before.copy()
    Kernel(f"""tile.kernel @combine(%m : memref<?xi1>, %x : memref<?x{element}>, %o : memref<?x{element}>) grid (1) {{
      %mask = tile.load %m[0] strides ({strides}) : memref<?xi1> -> {block("i1", shape)}
      %v = tile.load %x[0] strides ({strides}) : memref<?x{element}> -> {block(element, shape)}
      tile.store %v, %o[0] strides ({strides}) mask %mask {name} : {block(element, shape)}, memref<?x{element}>
    }}""").run(np.asarray(mask), x, out)
    assert same(out, np.where(mask, compute(before, x), before))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (16,), (64,), (4, 16)], ids=str)
def test_gather(element: str, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    x, offsets = samples(element), generator.integers(0, 400, shape)
    mask = generator.random(shape) < 0.7
    offsets[~mask] = 1 << 60  # excluded lanes are not accessed
    strides = row_major(shape)
    out = np.ones(shape, x.dtype)
    Kernel(f"""
    tile.kernel @gather(%m : memref<?xi1>, %i : memref<?xi64>, %x : memref<?x{element}>, %o : memref<?x{element}>)
        grid (1) {{
      %mask = tile.load %m[0] strides ({strides}) : memref<?xi1> -> {block("i1", shape)}
      %at = tile.load %i[0] strides ({strides}) : memref<?xi64> -> {block("i64", shape)}
      %v = tile.gather %x[%at] mask %mask : memref<?x{element}>, {block("i64", shape)}
      tile.store %v, %o[0] strides ({strides}) : {block(element, shape)}, memref<?x{element}>
    }}""").run(np.asarray(mask), np.asarray(offsets), x, out)
    assert same(out, np.where(mask, x[np.where(mask, offsets, 0)], np.zeros((), x.dtype)))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shape", [(), (16,), (64,), (4, 16)], ids=str)
@pytest.mark.parametrize(("masked", "combiner"), [(True, "add"), (True, ""), (False, "")])
def test_scatter_acts_in_the_order_of_lanes(element: str, shape: tuple[int, ...], masked: bool, combiner: str) -> None:
    generator = np.random.default_rng(0)
    x, offsets = generator.integers(0, 2, shape).astype(DTYPES[element]), generator.integers(0, 8, shape)
    mask = generator.random(shape) < 0.7 if masked else np.ones(shape, np.bool_)
    strides = row_major(shape)
    out = np.zeros(8, x.dtype)
    Kernel(f"""
    tile.kernel @scatter(%m : memref<?xi1>, %i : memref<?xi64>, %x : memref<?x{element}>, %o : memref<?x{element}>)
        grid (1) {{
      %mask = tile.load %m[0] strides ({strides}) : memref<?xi1> -> {block("i1", shape)}
      %at = tile.load %i[0] strides ({strides}) : memref<?xi64> -> {block("i64", shape)}
      %v = tile.load %x[0] strides ({strides}) : memref<?x{element}> -> {block(element, shape)}
      tile.scatter %v, %o[%at] {"mask %mask" if masked else ""} {combiner}
        : {block(element, shape)}, memref<?x{element}>, {block("i64", shape)}
    }}""").run(np.asarray(mask), np.asarray(offsets), x, out)
    expected = np.zeros(8, x.dtype)
    for lane, at, value in zip(mask.flat, offsets.flat, x.flat, strict=True):
        if lane:
            expected[at] = expected[at] + value if combiner else value
    assert same(out, expected)


# -- scratch -----------------------------------------------------------------------------------------


def test_scratch_holds_what_is_stored() -> None:
    x = samples("f32", 448)
    out = np.zeros_like(x)
    Kernel("""tile.kernel @reverse(%x : memref<?xf32>, %o : memref<?xf32>) grid (7) {
      %p = tile.program_id : index
      %row = tile.scratch 64 : memref<?xf32>
      %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
      tile.store %v, %row[0] strides (1) : vector<64xf32>, memref<?xf32>
      %w = tile.load %row[63] strides (-1) : memref<?xf32> -> vector<64xf32>
      tile.store %w, %o[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
    }""").run(x, out)
    assert same(out.reshape(7, 64), x.reshape(7, 64)[:, ::-1])


def test_two_scratch_buffers_are_apart() -> None:
    out = np.zeros(2, np.float32)
    Kernel("""tile.kernel @two(%o : memref<?xf32>) grid (1) {
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %a = tile.scratch 1 : memref<?xf32>
      %b = tile.scratch 1 : memref<?xf32>
      tile.store %one, %a[0] strides () : f32, memref<?xf32>
      tile.store %two, %b[0] strides () : f32, memref<?xf32>
      %v = tile.load %a[0] strides () : memref<?xf32> -> f32
      %w = tile.load %b[0] strides () : memref<?xf32> -> f32
      tile.store %v, %o[0] strides () : f32, memref<?xf32>
      tile.store %w, %o[1] strides () : f32, memref<?xf32>
    }""").run(out)
    assert out.tolist() == [1, 2]


def test_scratch_that_a_stack_cannot_hold_is_refused() -> None:
    with pytest.raises(BackendError, match=r"tile.scratch: expected at most 262144 bytes, got 1048576 bytes"):
        Kernel("tile.kernel @large() grid (1) { %a = tile.scratch 262144 : memref<?xf32> }")


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (16,), (64,), (100,), (4, 16)], ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_the_first_failing_lane_is_recorded(shape: tuple[int, ...], masked: bool) -> None:
    strides = row_major(shape)
    kernel = Kernel(f"""
    tile.kernel @check(%m : memref<?xi1>, %i : memref<?xi64>, %o : memref<?xi64>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} errors ["IndexError", "a", "IndexError", "b"] {{
      %mask = tile.load %m[0] strides ({strides}) : memref<?xi1> -> {block("i1", shape)}
      %at = tile.load %i[0] strides ({strides}) : memref<?xi64> -> {block("i64", shape)}
      %n = tile.index [s0] : i64
      %size = tile.broadcast %n dims [] : i64 -> {block("i64", shape)}
      %ok = tile.compare ult %at, %size : {block("i64", shape)}
      tile.assert %ok, %at {"mask %mask" if masked else ""} code 2 : {block("i64", shape)}
      tile.store %at, %o[0] strides ({strides}) : {block("i64", shape)}, memref<?xi64>
    }}""")
    offsets = np.zeros(shape, np.int64)
    out = np.ones(shape, np.int64)
    mask = np.ones(shape, np.bool_)
    kernel.run(mask, offsets, out, 10)
    assert kernel.slot.tolist() == [0, 0]
    assert not out.any()
    bad = [0] if not shape else [5, 9]
    offsets.flat[bad] = [-7, 12][: len(bad)]
    if masked and shape:
        mask.flat[5] = False
    kernel.run(mask, offsets, out, 10)
    assert kernel.slot.tolist() == [2, 12 if masked and shape else -7]
    assert (out == offsets).all()
    kernel.run(mask, np.full(shape, 99), out, 10)
    assert kernel.slot[1] == (12 if masked and shape else -7)


# -- prefetch ----------------------------------------------------------------------------------------


def test_prefetch_is_one_hint_per_line_and_harmless_beyond_the_buffer() -> None:
    kernel = Kernel("""
    tile.kernel @fetch(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      tile.for %i, %m = [0] to [100] step 64 {
        tile.prefetch %x[%i + 1000000] lanes 64 mask %m : memref<?xf32>
        tile.prefetch %o[%i + 1000000] lanes 64 mask %m write : memref<?xf32>
        %v = tile.load %x[%i] strides (1) mask %m : memref<?xf32> -> vector<64xf32>
        tile.store %v, %o[%i] strides (1) mask %m : vector<64xf32>, memref<?xf32>
        tile.yield
      }
    }""")
    x, out = samples("f32", 100), np.zeros(100, np.float32)
    kernel.run(x, out)
    assert same(out, x)
    assert kernel.llvm.count("call void @llvm.prefetch.p0") == 8  # none for the incomplete block


@pytest.mark.parametrize("size", ["100", "s0"])
def test_descending_lanes_of_an_incomplete_block(size: str) -> None:
    """The mask of a known rest is a constant, which is reversed like any other."""
    kernel = Kernel(f"""
    tile.kernel @flip(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      tile.for %i, %m = [0] to [{size}] step 64 {{
        %v = tile.load %x[{size} - %i - 1] strides (-1) mask %m : memref<?xf32> -> vector<64xf32>
        tile.store %v, %o[%i] strides (1) mask %m : vector<64xf32>, memref<?xf32>
        tile.store %v, %o[{size} * 2 - %i - 1] strides (-1) mask %m : vector<64xf32>, memref<?xf32>
        tile.yield
      }}
    }}""")
    x, out = samples("f32", 100), np.zeros(200, np.float32)
    kernel.run(x, out, 100)
    assert same(out, np.concatenate([x[::-1], x]))

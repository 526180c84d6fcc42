"""Loops and grids: every kind of trip count, masks, carried values, ranges of programs, finish regions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stepwell.backends.native.jit import compile_module
from stepwell.tests.cpu.kernels import Kernel

SYMBOLS = "attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>, #stepwell.symbol<s1, 0, ?>]}"


def marking(low: str, high: str, step: int, masked: bool) -> Kernel:
    """Adds 1 at every index that the loop visits, and stores the sum of the indices at the end."""
    mask, pieces = (", %mask", "mask %mask") if masked else ("", "")
    one = "%one = tile.broadcast %unit dims [] : f32 -> " + f"vector<{step}xf32>"
    return Kernel(f"""
    tile.kernel @mark(%o : memref<?xf32>, %sum : memref<?xi64>, %s0 : index, %s1 : index) grid (1) {SYMBOLS} {{
      %unit = arith.constant 1.0 : f32
      {one}
      %zero = arith.constant 0 : i64
      %total = tile.for %i{mask} = [{low}] to [{high}] step {step} carry (%acc = %zero : i64) {{
        tile.store %one, %o[%i] strides (1) {pieces} add : vector<{step}xf32>, memref<?xf32>
        %v = tile.index [%i] : i64
        %next = arith.addi %acc, %v : i64
        tile.yield %next : i64
      }}
      tile.store %total, %sum[0] strides () : i64, memref<?xi64>
    }}""")


def check_visits(kernel: Kernel, low: int, high: int, step: int) -> None:
    out, total = np.zeros(400, np.float32), np.zeros(1, np.int64)
    kernel.run(out, total, low, high)
    expected = np.zeros(400, np.float32)
    expected[low : max(high, low)] = 1
    assert (out == expected).all()
    assert total[0] == sum(range(low, high, step))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("blocks", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [1, 16, 64])
def test_whole_blocks(step: int, blocks: int, masked: bool) -> None:
    low, high = 3, 3 + blocks * step
    check_visits(marking("3", str(high), step, masked), low, high, step)
    check_visits(marking("s0", "s1", step, masked), low, high, step)


@pytest.mark.parametrize("step", [7, 16, 64, 150])
@pytest.mark.parametrize("extent", [-5, 0, 1, 6, 15, 63, 65, 100, 200])
def test_incomplete_blocks_are_masked(step: int, extent: int) -> None:
    check_visits(marking("7", str(7 + extent), step, True), 7, 7 + extent, step)
    check_visits(marking("s0", "s1", step, True), 7, 7 + extent, step)


def test_a_loop_over_whole_blocks_has_no_masked_code() -> None:
    assert "masked" not in marking("0", "128", 64, True).llvm
    assert "masked" not in marking("0", "s0 * 64", 64, True).llvm
    assert "masked" in marking("0", "s0", 64, True).llvm


def test_one_block_is_no_loop() -> None:
    assert marking("0", "64", 64, True).llvm.count("phi") == 1  # the program's


def test_carried_blocks_of_every_rank() -> None:
    kernel = Kernel(f"""
    tile.kernel @carry(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index, %s1 : index) grid (1) {SYMBOLS} {{
      %z = arith.constant 0.0 : f32
      %zv = tile.broadcast %z dims [] : f32 -> vector<16xf32>
      %zm = tile.broadcast %z dims [] : f32 -> vector<4x16xf32>
      %a, %b, %c = tile.for %i = [0] to [s0] step 1
          carry (%p = %z : f32, %q = %zv : vector<16xf32>, %r = %zm : vector<4x16xf32>) {{
        %s = tile.load %x[%i * 64] strides () : memref<?xf32> -> f32
        %v = tile.load %x[%i * 64] strides (1) : memref<?xf32> -> vector<16xf32>
        %m = tile.load %x[%i * 64] strides (16, 1) : memref<?xf32> -> vector<4x16xf32>
        %p1 = arith.addf %p, %s : f32
        %q1 = arith.addf %q, %v : vector<16xf32>
        %r1 = arith.addf %r, %m : vector<4x16xf32>
        tile.yield %p1, %q1, %r1 : f32, vector<16xf32>, vector<4x16xf32>
      }}
      tile.store %a, %o[0] strides () : f32, memref<?xf32>
      tile.store %b, %o[16] strides (1) : vector<16xf32>, memref<?xf32>
      tile.store %c, %o[32] strides (16, 1) : vector<4x16xf32>, memref<?xf32>
    }}""")
    for trips in (0, 1, 3):
        x = np.arange(64 * 3, dtype=np.float32).reshape(3, 64)[:trips]
        out = np.zeros(96, np.float32)
        kernel.run(np.ascontiguousarray(x), out, trips, 0)
        total = x.sum(0)
        assert out[0] == (total[0] if trips else 0)
        assert (out[16:32] == total[:16]).all()
        assert (out[32:] == total).all()


def test_masked_loops_nest() -> None:
    kernel = Kernel(f"""
    tile.kernel @outer(%o : memref<?xf32>, %s0 : index, %s1 : index) grid (1) {SYMBOLS} {{
      %z = arith.constant 1.0 : f32
      %one = tile.broadcast %z dims [] : f32 -> vector<4x16xf32>
      tile.for %i, %rows = [0] to [s0] step 4 {{
        tile.for %j, %columns = [0] to [s1] step 16 {{
          %r = tile.broadcast %rows dims [0] : vector<4xi1> -> vector<4x16xi1>
          %c = tile.broadcast %columns dims [1] : vector<16xi1> -> vector<4x16xi1>
          %mask = arith.andi %r, %c : vector<4x16xi1>
          tile.store %one, %o[%i * s1 + %j] strides (s1, 1) mask %mask add : vector<4x16xf32>, memref<?xf32>
          tile.yield
        }}
        tile.yield
      }}
    }}""")
    for rows, columns in ((4, 16), (5, 17), (3, 40), (1, 1), (9, 64)):
        out = np.zeros(rows * columns + 8, np.float32)
        kernel.run(out, rows, columns)
        assert (out[:-8] == 1).all()
        assert not out[-8:].any()


def test_a_swapped_pair_is_carried() -> None:
    kernel = Kernel(f"""
    tile.kernel @swap(%o : memref<?xi64>, %s0 : index, %s1 : index) grid (1) {SYMBOLS} {{
      %a = arith.constant 1 : i64
      %b = arith.constant 2 : i64
      %c, %d = tile.for %i = [0] to [s0] step 1 carry (%p = %a : i64, %q = %b : i64) {{
        tile.yield %q, %p : i64, i64
      }}
      tile.store %c, %o[0] strides () : i64, memref<?xi64>
      tile.store %d, %o[1] strides () : i64, memref<?xi64>
    }}""")
    out = np.zeros(2, np.int64)
    for trips, expected in ((0, [1, 2]), (1, [2, 1]), (2, [1, 2]), (7, [2, 1])):
        kernel.run(out, trips, 0)
        assert out.tolist() == expected


PROGRAMS = f"""
tile.kernel @programs(%o : memref<?xi64>, %s0 : index, %s1 : index) grid (s0 * s1 ceildiv 4) {SYMBOLS} {{
  %p = tile.program_id : index
  %n = tile.grid_size : index
  %v = tile.index [%p + %n * 1000] : i64
  tile.store %v, %o[%p] strides () : i64, memref<?xi64>
}} finish {{
^bb0(%o1 : memref<?xi64>, %t0 : index, %t1 : index):
  %m = tile.grid_size : index
  %w = tile.index [%m + s1] : i64
  tile.store %w, %o1[%m] strides () : i64, memref<?xi64>
}}"""


def test_a_grid_runs_all_programs_and_then_the_finish_region() -> None:
    out = np.zeros(20, np.int64)
    Kernel(PROGRAMS).run(out, 5, 6)
    assert out[:8].tolist() == [8000 + k for k in range(8)]
    assert out[8] == 8 + 6
    assert not out[9:].any()


def test_a_range_of_programs_runs_alone() -> None:
    out = np.zeros(20, np.int64)
    kernel = Kernel(PROGRAMS)
    kernel.run(out, 5, 6, programs=(2, 5))
    assert np.flatnonzero(out).tolist() == [2, 3, 4]
    kernel.run(out, 5, 6, programs=(3, 3))
    assert np.flatnonzero(out).tolist() == [2, 3, 4]


def test_invariant_addresses_are_computed_outside_of_loops() -> None:
    kernel = Kernel(f"""
    tile.kernel @rows(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index, %s1 : index) grid (s0) {SYMBOLS} {{
      %p = tile.program_id : index
      tile.for %j = [0] to [s1] step 1 {{
        %v = tile.load %x[%p * s1 + %j + 3] strides () : memref<?xf32> -> f32
        tile.store %v, %o[%p * s1 + %j + 3] strides () : f32, memref<?xf32>
        tile.yield
      }}
    }}""")
    inner = kernel.llvm.split("\nloop")[2].split("\ndone")[0]
    assert "mul" not in inner
    assert kernel.llvm.count("mul nsw") == 1


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 64, 256])
@pytest.mark.parametrize("opt_level", [0, 2])
def test_masked_bytes_end_where_they_should(lanes: int, opt_level: int) -> None:
    """Masks are compared in 128 bits at least: LLVM takes for off the lanes that it adds to shorter comparisons."""
    kernel = Kernel(f"""
    tile.kernel @small(%x : memref<?xi64>, %o : memref<?xi1>, %p : memref<?xf32>, %s0 : index) grid (1)
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}} {{
      %limit = arith.constant 5 : i64
      %limits = tile.broadcast %limit dims [] : i64 -> vector<{lanes}xi64>
      tile.for %r = [0] to [3] step 1 {{
        tile.for %i, %m = [0] to [s0] step {lanes} {{
          %v = tile.load %x[%i] strides (1) mask %m : memref<?xi64> -> vector<{lanes}xi64>
          %c = tile.compare slt %v, %limits : vector<{lanes}xi64>
          tile.store %c, %o[%r * s0 + %i] strides (1) mask %m : vector<{lanes}xi1>, memref<?xi1>
          %g = tile.gather %p[%v] mask %m : memref<?xf32>, vector<{lanes}xi64>
          tile.scatter %g, %p[%v] mask %m : vector<{lanes}xf32>, memref<?xf32>, vector<{lanes}xi64>
          tile.yield
        }}
        tile.yield
      }}
    }}""")
    bits = re.findall(rf"icmp ult <{lanes} x i(\d+)>", kernel.llvm)
    assert bits
    assert all(int(number) * lanes >= 128 for number in bits)
    kernel.module = compile_module(kernel.llvm, opt_level=opt_level)
    for count in {1, lanes - 1, lanes + 1}:
        x = np.arange(count)
        out = np.full(3 * count + 512, 1, np.int8)
        kernel.run(x, out.view(np.bool_), np.zeros(count, np.float32), count)
        assert (out[: 3 * count].reshape(3, count) == (x < 5)).all()
        assert (out[3 * count :] == 1).all()

"""Whole kernels: a softmax against NumPy, source lines and errors."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from stepwell.backends.cpu.emit import emit_kernel
from stepwell.backends.cpu.target import host_target
from stepwell.backends.cpu.targets import kernel_texts
from stepwell.ir.errors import BackendError
from stepwell.ir.locations import file_line
from stepwell.tests.cpu.kernels import Kernel, parse_kernel

SOFTMAX = """
tile.kernel @softmax(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index, %s1 : index) grid (s0)
    attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>, #stepwell.symbol<s1, 0, ?>]} {
  %p = tile.program_id : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %lows = tile.broadcast %low dims [] : f32 -> vector<64xf32>
  %zeros = tile.broadcast %zero dims [] : f32 -> vector<64xf32>
  %maxima = tile.for %i, %mask = [0] to [s1] step 64 carry (%acc = %lows : vector<64xf32>) {
    %v = tile.load %x[%p * s1 + %i] strides (1) mask %mask else %lows : memref<?xf32> -> vector<64xf32>
    %next = arith.maximumf %acc, %v : vector<64xf32>
    tile.yield %next : vector<64xf32>
  }
  %maximum = tile.reduce max %maxima dim 0 : vector<64xf32>
  %m = tile.broadcast %maximum dims [] : f32 -> vector<64xf32>
  %sums = tile.for %i, %mask = [0] to [s1] step 64 carry (%acc = %zeros : vector<64xf32>) {
    %v = tile.load %x[%p * s1 + %i] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
    %d = arith.subf %v, %m : vector<64xf32>
    %e = math.exp %d : vector<64xf32>
    %kept = tile.select %mask, %e, %zeros : vector<64xi1>, vector<64xf32>
    tile.store %e, %o[%p * s1 + %i] strides (1) mask %mask : vector<64xf32>, memref<?xf32>
    %next = arith.addf %acc, %kept : vector<64xf32>
    tile.yield %next : vector<64xf32>
  }
  %sum = tile.reduce add %sums dim 0 : vector<64xf32>
  %s = tile.broadcast %sum dims [] : f32 -> vector<64xf32>
  tile.for %i, %mask = [0] to [s1] step 64 {
    %e = tile.load %o[%p * s1 + %i] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
    %r = arith.divf %e, %s : vector<64xf32>
    tile.store %r, %o[%p * s1 + %i] strides (1) mask %mask : vector<64xf32>, memref<?xf32>
    tile.yield
  }
}"""


@pytest.fixture(scope="module")
def softmax() -> Kernel:
    return Kernel(SOFTMAX)


@pytest.mark.parametrize("shape", [(3, 64), (5, 1), (7, 100), (2, 1000), (0, 10), (4, 0)], ids=str)
def test_softmax(softmax: Kernel, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 10
    out = np.zeros_like(x)
    softmax.run(x, out, *shape)
    wide = np.exp((x - x.max(1, keepdims=True, initial=-np.inf)).astype(np.float64))
    np.testing.assert_allclose(out, wide / wide.sum(1, keepdims=True), rtol=5e-7, atol=1e-30)


def test_a_row_with_nan_becomes_nan(softmax: Kernel) -> None:
    x = np.zeros((2, 100), np.float32)
    x[0, 70] = np.nan
    out = np.zeros_like(x)
    softmax.run(x, out, 2, 100)
    assert np.isnan(out[0]).all()
    assert np.allclose(out[1], 0.01)


def test_softmax_keeps_everything_in_whole_registers(softmax: Kernel) -> None:
    register = {512: "zmm", 256: "ymm", 128: "xmm"}[host_target().vector_bits]
    instructions = [line.strip() for line in softmax.assembly.splitlines() if line.startswith("\t")]
    assert sum(register in line for line in instructions) > 100
    assert not [line for line in instructions if line.startswith("call")]


def test_the_same_kernel_gives_the_same_text() -> None:
    first, second = (emit_kernel(parse_kernel(SOFTMAX), host_target()) for _ in range(2))
    assert first == second


def test_source_lines_stand_where_they_change() -> None:
    kernel = parse_kernel("""tile.kernel @k(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
      %v = tile.load %x[0] strides () : memref<?xf32> -> f32
      %w = arith.addf %v, %v : f32
      %u = arith.mulf %w, %v : f32
      tile.store %u, %o[0] strides () : f32, memref<?xf32>
    }""")
    for op, line in zip(kernel.block.ops, (3, 3, 4, 4), strict=True):
        op.location = file_line("model.py", line)
    lines = emit_kernel(kernel, host_target()).splitlines()
    noted = [at for at, line in enumerate(lines) if "; model.py" in line]
    assert [lines[at].strip() for at in noted] == ["; model.py:3", "; model.py:4"]
    assert " = load" in lines[noted[0] + 1]
    assert " = fmul" in lines[noted[1] + 1]


def test_an_operation_without_emitter_names_itself_and_its_source() -> None:
    kernel = parse_kernel("""tile.kernel @k(%o : memref<?xf32>) grid (1) {
      %v = tile.load %o[0] strides () : memref<?xf32> -> f32
      %w = math.cbrt %v : f32
    }""")
    for op in kernel.block.ops:
        op.location = file_line("model.py", 12)
    message = r"math.cbrt: expected an operation that the CPU has an emitter for, got .* f32, f32\n.*model.py:12"
    with pytest.raises(BackendError, match=message):
        emit_kernel(kernel, host_target())


def test_a_number_is_not_reduced() -> None:
    kernel = parse_kernel("""tile.kernel @k(%o : memref<?xf32>) grid (1) {
      %number = tile.load %o[0] strides () : memref<?xf32> -> f32
      %row = tile.load %o[0] strides (1) : memref<?xf32> -> vector<4xf32>
      %sum = tile.reduce add %row dim 0 : vector<4xf32>
    }""")
    number, _, total = kernel.block.ops
    total.operands = number.results
    with pytest.raises(BackendError, match=r"tile\.reduce: expected a block of rank 1 or more"):
        emit_kernel(kernel, host_target())


def test_an_element_type_without_machine_type_is_refused() -> None:
    kernel = parse_kernel("""tile.kernel @k(%o : memref<?xf8E4M3FN>) grid (1) {
      %v = tile.load %o[0] strides () : memref<?xf8E4M3FN> -> f8E4M3FN
    }""")
    with pytest.raises(BackendError, match="expected an element type that machine code computes with, got f8E4M3FN"):
        emit_kernel(kernel, host_target())


def test_a_value_that_fails_an_assertion_is_an_integer() -> None:
    kernel = parse_kernel("""tile.kernel @k(%c : memref<?xi1>, %o : memref<?xf32>) grid (1) {
      %good = tile.load %c[0] strides () : memref<?xi1> -> i1
      %v = tile.load %o[0] strides () : memref<?xf32> -> f32
      tile.assert %good, %v code 1 : f32
    }""")
    with pytest.raises(BackendError, match=r"tile\.assert: expected an integer value, got .* f32"):
        emit_kernel(kernel, host_target())


def test_a_module_without_kernels_has_no_machine_code() -> None:
    with pytest.raises(BackendError, match=r"target llvm-ir: expected a module with tile.kernel ops, got none; lower"):
        list(kernel_texts(ModuleOp([]), "llvm-ir"))


def test_no_source_line_is_noted_where_none_is_known() -> None:
    kernel = parse_kernel("""tile.kernel @k(%o : memref<?xf32>) grid (1) {
      %v = tile.load %o[0] strides () : memref<?xf32> -> f32
      %w = arith.addf %v, %v : f32
      tile.store %w, %o[0] strides () : f32, memref<?xf32>
    }""")
    first, _, _ = kernel.block.ops
    first.location = file_line("model.py", 12)
    lines = emit_kernel(kernel, host_target()).splitlines()
    assert [line.strip() for line in lines if "model.py" in line or "None" in line] == ["; model.py:12"]

"""Sums of what is written besides, and of one element: the same values before and after, down to what a GPU runs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from stepwell.ir import loop
from stepwell.tests.interpreters.lowered_triton import TO_TILE, TO_TRITON, lower, lowered
from stepwell.tests.interpreters.support import parse, run, to_tensor

ROWS = """
func.func @main(%x: tensor<70x1000xf32>) -> (tensor<70x1000xf32>, tensor<f32>) {
  %y, %t = loop.kernel "loss" outs(%o : memref<70x1000xf32>, %r : memref<f32>) -> tensor<70x1000xf32>, tensor<f32> {
    %total = loop.reduce (%i) to (70) [add] -> f32 {
      %m = loop.reduce (%j) to (1000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<70x1000xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (1000) {
        %v = loop.read %x[%i, %j] : tensor<70x1000xf32>
        %d = arith.subf %v, %m : f32
        loop.write %d, %o[%i, %j] : memref<70x1000xf32>
      }
      %n = arith.negf %m : f32
      loop.yield %n : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<70x1000xf32>, tensor<f32>
}
"""

ELEMENTS = """
func.func @main(%x: tensor<{size}xf32>) -> (tensor<{size}xf32>, tensor<f32>) {{
  %y, %t = loop.kernel "sum" outs(%o : memref<{size}xf32>, %r : memref<f32>) -> tensor<{size}xf32>, tensor<f32> {{
    %total = loop.reduce (%i) to ({size}) [add] -> f32 {{
      %v = loop.read %x[%i] : tensor<{size}xf32>
      %e = arith.mulf %v, %v : f32
      loop.write %e, %o[%i] : memref<{size}xf32>
      loop.yield %e : f32
    }}
    loop.write %total, %r[] : memref<f32>
  }}
  func.return %y, %t : tensor<{size}xf32>, tensor<f32>
}}
"""


def check(text: str, x: Tensor, written: Tensor, total: Tensor, kernels: int) -> None:
    """The values of the text as it stands, of the kernels it becomes, and of their functions in Triton's dialect."""
    module = lowered(text, *TO_TILE[:-1])
    assert len([op for op in module.walk() if isinstance(op, loop.KernelOp)]) == kernels
    found = [run(parse(text), x), run(module, x)]
    lower(module, *TO_TRITON[len(TO_TILE) - 1 :])
    for values in (*found, run(module, x)):
        y, t = map(to_tensor, values)
        assert torch.equal(y, written)
        torch.testing.assert_close(t, total, rtol=1e-5, atol=0.0)


def test_rows_are_freed_from_their_sum() -> None:
    x = torch.randn(70, 1000)
    most = x.max(1, keepdim=True).values
    check(ROWS, x, x - most, -most.sum(), kernels=2)


@pytest.mark.parametrize(("size", "kernels"), [(1 << 17, 2), ((1 << 17) - 1, 3), (1000, 1)])
def test_written_elements_are_summed_up(size: int, kernels: int) -> None:
    x = torch.randn(size)
    check(ELEMENTS.format(size=size), x, x * x, (x * x).sum(), kernels)


ONE = """
func.func @main(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (10) [add] -> f32 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
"""


@pytest.mark.parametrize("x", [1.5, -0.0, math.inf, math.nan])
@pytest.mark.parametrize("k", [-(1 << 63), -1, 0, 9, 10, (1 << 63) - 1])
def test_a_row_with_one_element_needs_no_sum(k: int, x: float) -> None:
    simplified = lowered(ONE, "loop-simplify")
    assert not [op for op in simplified.walk() if isinstance(op, loop.ReduceOp)]
    expected = torch.tensor(x if 0 <= k < 10 and x else 0.0)
    for module in (parse(ONE), simplified):
        (found,) = (to_tensor(value) for value in run(module, torch.tensor(k), torch.tensor(x)))
        torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0, equal_nan=True)
        assert torch.equal(found.signbit(), expected.signbit()) or math.isnan(x)

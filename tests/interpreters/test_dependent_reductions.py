"""Long rows, reduced in parts about the parts' own mean or maximum: values of what a GPU runs, against float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from stepwell.ir import loop
from stepwell.tests.interpreters.lowered_triton import TO_TILE, TO_TRITON, lower, lowered
from stepwell.tests.interpreters.support import run, to_tensor

SPLIT = "loop-split-dependent-reductions"

VARIANCE = """
func.func @main(%x: tensor<{shape}xf32>) -> (tensor<3xf32>, tensor<3xf32>) {{
  %y, %z = loop.kernel "var" outs(%o : memref<3xf32>, %p : memref<3xf32>) -> tensor<3xf32>, tensor<3xf32> {{
    %n = arith.constant {count} : f32
    loop.parallel (%i) to (3) {{
      %s = loop.reduce (%a, %b) to {sizes} [add] -> f32 {{
        %v = loop.read %x[{place}] : tensor<{shape}xf32>
        loop.yield %v : f32
      }}
      %m = arith.divf %s, %n : f32
      loop.write %m, %o[%i] : memref<3xf32>
      %q = loop.reduce (%a, %b) to {sizes} [add] -> f32 {{
        %v = loop.read %x[{place}] : tensor<{shape}xf32>
        %d = arith.subf %v, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }}
      %r = arith.divf %q, %n : f32
      loop.write %r, %p[%i] : memref<3xf32>
    }}
  }}
  func.return %y, %z : tensor<3xf32>, tensor<3xf32>
}}
"""

LAYOUTS = {
    "channels first": ((7, 3, 2500), "(7, 2500)", "%a, %i, %b"),
    "long channels": ((3, 3, 6000), "(3, 6000)", "%a, %i, %b"),
    "channels last": ((7, 2560, 3), "(7, 2560)", "%a, %b, %i"),
}

MAXIMUM = """
func.func @main(%x: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "lse" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %m = loop.reduce (%j) to (20000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        loop.yield %e : f32
      }
      loop.write %s, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
"""


def split(text: str, *inputs: Tensor) -> list[Tensor]:
    """The results after the split, which must fire, at the loop level and as functions of Triton."""
    module = lowered(text, *TO_TILE[:2], SPLIT)
    assert sum(isinstance(op, loop.KernelOp) for op in module.walk()) == 2
    results = [to_tensor(value) for value in run(module, *inputs)]
    lower(module, *TO_TRITON[2:])
    for found, again in zip(run(module, *inputs), results, strict=True):
        torch.testing.assert_close(to_tensor(found), again, rtol=1e-6, atol=0, equal_nan=True)
    return results


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_variance_of_a_long_row(name: str, offset: float) -> None:
    """As precise where the mean is a thousand deviations from 0, and where one number is far from all others."""
    shape, sizes, place = LAYOUTS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + offset
    x.view(-1)[0] = 0
    count, axis = x.numel() // 3, place.split(", ").index("%i")
    text = VARIANCE.format(shape="x".join(map(str, shape)), sizes=sizes, place=place, count=float(count))
    mean, variance = split(text, x)
    exact = x.double().movedim(axis, 0).flatten(1)
    torch.testing.assert_close(mean.double(), exact.mean(1), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(variance.double(), exact.var(1, correction=0), rtol=2e-6, atol=0)


def test_exponentials_of_a_long_row() -> None:
    x = torch.randn(4, 20000, generator=torch.Generator().manual_seed(0)) * 10
    x[1, :9000] = -torch.inf  # parts of nothing else
    x[2] = -torch.inf
    x[3, 17] = torch.nan
    (found,) = split(MAXIMUM, x)
    exact = (x.double() - x.double().amax(1, keepdim=True)).exp().sum(1)
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0, equal_nan=True)

"""Norms of groups are one kernel on a GPU, whose values are those of float64, if a group fits in registers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from stepwell.ir import tt
from stepwell.lowering.pipelines import GPU
from stepwell.tests.interpreters.lowered_triton import lowered
from stepwell.tests.interpreters.support import run, to_tensor

PASSES = tuple(name for stage, names in GPU if stage != "host" for name in names if name.startswith(("loop", "conv")))

PROGRAM = """
func.func @main(%x: tensor<{batch}x{channels}x{points}xf32>, %w: tensor<{channels}xf32>)
    -> (tensor<{batch}x{channels}x{points}xf32>, tensor<{batch}x{groups}xf32>) {{
  %m, %s = loop.kernel "moments" outs(%a : memref<{batch}x{groups}xf32>, %b : memref<{batch}x{groups}xf32>)
      -> tensor<{batch}x{groups}xf32>, tensor<{batch}x{groups}xf32> {{
    %n = arith.constant {count}.0 : f32
    loop.parallel (%i, %g) to ({batch}, {groups}) {{
      %t = loop.reduce (%j) to ({count}) [add] -> f32 {{
        %v = loop.read %x[%i, %g * {members} + %j floordiv {points}, %j mod {points}]
            : tensor<{batch}x{channels}x{points}xf32>
        loop.yield %v : f32
      }}
      %mean = arith.divf %t, %n : f32
      loop.write %mean, %a[%i, %g] : memref<{batch}x{groups}xf32>
      %q = loop.reduce (%j) to ({count}) [add] -> f32 {{
        %v = loop.read %x[%i, %g * {members} + %j floordiv {points}, %j mod {points}]
            : tensor<{batch}x{channels}x{points}xf32>
        %d = arith.subf %v, %mean : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }}
      %var = arith.divf %q, %n : f32
      %r = math.rsqrt %var : f32
      loop.write %r, %b[%i, %g] : memref<{batch}x{groups}xf32>
    }}
  }}
  %y = loop.kernel "scale" outs(%o : memref<{batch}x{channels}x{points}xf32>)
      -> tensor<{batch}x{channels}x{points}xf32> {{
    loop.parallel (%i, %c, %p) to ({batch}, {channels}, {points}) {{
      %v = loop.read %x[%i, %c, %p] : tensor<{batch}x{channels}x{points}xf32>
      %k = loop.read %m[%i, %c floordiv {members}] : tensor<{batch}x{groups}xf32>
      %d = arith.subf %v, %k : f32
      %r = loop.read %s[%i, %c floordiv {members}] : tensor<{batch}x{groups}xf32>
      %e = arith.mulf %d, %r : f32
      %u = loop.read %w[%c] : tensor<{channels}xf32>
      %f = arith.mulf %e, %u : f32
      loop.write %f, %o[%i, %c, %p] : memref<{batch}x{channels}x{points}xf32>
    }}
  }}
  func.return %y, %s : tensor<{batch}x{channels}x{points}xf32>, tensor<{batch}x{groups}xf32>
}}
"""


def expected(x: Tensor, w: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    exact = x.double().view(len(x), groups, -1)
    scale = exact.var(2, correction=0).rsqrt()
    centred = (exact - exact.mean(2, keepdim=True)) * scale[..., None]
    return centred.view(x.shape) * w.double()[:, None], scale


@pytest.mark.parametrize(
    ("groups", "members", "points", "at_once"),
    [
        (140, 3, 7, True),
        (140, 2, 2600, True),  # two blocks, the last one beyond the end
        (2, 3, 7, True),  # few programs with little to do
        (2, 4, 9000, False),  # a group outgrows the registers
    ],
)
def test_a_norm_of_groups(groups: int, members: int, points: int, at_once: bool) -> None:
    sizes = {"batch": 1, "groups": groups, "members": members, "points": points}
    text = PROGRAM.format(**sizes, channels=groups * members, count=members * points)
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(1, groups * members, points, generator=generator) + 3, torch.randn(groups * members)
    module = lowered(text, *PASSES)
    assert (sum(isinstance(op, tt.FuncOp) for op in module.walk()) == 1) == at_once
    for found, wanted in zip(run(module, x, w), expected(x, w, groups), strict=True):
        torch.testing.assert_close(to_tensor(found).double(), wanted, rtol=2e-5, atol=2e-5)

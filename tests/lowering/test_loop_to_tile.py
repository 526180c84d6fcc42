"""`convert-loop-to-tile` on kernels that no graph gives, but that say something all the same."""

from __future__ import annotations

import torch
from torch import Tensor

from stepwell.tests.lowering.compiled import Compiled


def run(text: str, *inputs: Tensor) -> Tensor:
    (result,), error = Compiled(text).run(inputs)
    assert error == (0, 0)
    return result


def test_an_index_is_a_number_in_each_lane() -> None:
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    found = run(
        """
func.func @f(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = loop.kernel "take" outs(%o : memref<1000xf32>) -> tensor<1000xf32> {
    loop.parallel (%i) to (1000) {
      %c = arith.constant 300 : index
      %n = arith.remui %i, %c : index
      %low = arith.cmpi ult, %i, %c : index
      %at = arith.select %low, %i, %n : index
      %v = loop.read %x[%at] : tensor<1000xf32>
      loop.write %v, %o[%i] : memref<1000xf32>
    }
  }
  func.return %y : tensor<1000xf32>
}""",
        x,
    )
    assert torch.equal(found, x[torch.arange(1000) % 300])


def test_an_index_is_carried_in_each_lane() -> None:
    x = torch.randint(-9, 9, (64, 8, 100), generator=torch.Generator().manual_seed(0)).float()
    found = run(
        """
func.func @f(%x: tensor<64x8x100xf32>) -> tensor<64x100xf32> {
  %y = loop.kernel "walk" outs(%o : memref<64x100xf32>) -> tensor<64x100xf32> {
    loop.parallel (%i, %j) to (64, 100) {
      %z = arith.constant 0.0 : f32
      %at, %sum = loop.for (%k) to (8) carry (%c = %i : index, %s = %z : f32) {
        %v = loop.read %x[%c, %k, %j] : tensor<64x8x100xf32>
        %t = arith.addf %s, %v : f32
        %n = loop.index [(%c + 1) mod 64] : index
        loop.yield %n, %t : index, f32
      }
      loop.write %sum, %o[%i, %j] : memref<64x100xf32>
    }
  }
  func.return %y : tensor<64x100xf32>
}""",
        x,
    )
    rows = (torch.arange(64)[:, None] + torch.arange(8)) % 64
    assert torch.equal(found, x[rows, torch.arange(8)].sum(1))

"""Products of matrices compile to wgmma for an H100, without spilling, whoever brings their factors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.parser import Parser

from stepwell.backends.triton.compiler import Job, compile_kernels, ptx
from stepwell.ir import loop, tt
from stepwell.ir.product_schedule import PRODUCT, ProductAttr, ProductSchedule
from stepwell.tests.interpreters.lowered_triton import TO_TRITON, context, lower
from stepwell.tests.triton.test_compile import SHARED_LIMIT, inspected

PROGRAM = """
func.func @main(%x: tensor<4096x1024xbf16>, %y: tensor<1024x4096xbf16>, %b: tensor<4096xbf16>, %r: tensor<4096x4096xbf16>)
    -> tensor<4096x4096xbf16> {
  %m = graph.matmul %x, %y, %b : (tensor<4096x1024xbf16>, tensor<1024x4096xbf16>, tensor<4096xbf16>) -> tensor<4096x4096xbf16>
  %s = graph.relu %m : tensor<4096x4096xbf16>
  %z = graph.add %s, %r : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  func.return %z : tensor<4096x4096xbf16>
}
"""  # noqa: E501

FUSED = ("convert-graph-to-loop", "loop-fuse-producers", "loop-fuse-nests", "loop-shrink-locals", "loop-simplify")

DEPTH_OF_INSTRUCTION = 16

SCHEDULES = {
    "descriptors": ProductSchedule(128, 256, 64, warps=8, stages=3, descriptors=True),
    "copies": ProductSchedule(128, 128, 64, warps=8, stages=4),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_product_and_what_follows_it(name: str, tmp_path: Path) -> None:
    module = Parser(context(), PROGRAM).parse_module()
    lower(module, *FUSED)
    (kernel,) = [op for op in module.walk() if isinstance(op, loop.KernelOp)]
    kernel.attributes[PRODUCT] = ProductAttr(SCHEDULES[name])
    lower(module, *TO_TRITON)
    function = next(op for op in module.body.block.ops if isinstance(op, tt.FuncOp))
    (cubin,) = compile_kernels([Job.of(function, 90)])
    assert cubin.shared <= SHARED_LIMIT
    usage = re.search(r"STACK:(\d+).*LOCAL:(\d+)", inspected(cubin, "-res-usage", tmp_path))
    assert usage is not None
    assert usage.groups() == ("0", "0")
    code = inspected(cubin, "-sass", tmp_path)
    assert len(re.findall(r"\bHGMMA\b", code)) == SCHEDULES[name].depth // DEPTH_OF_INSTRUCTION, "a sum stays a loop"
    assert not re.findall(r"\bHMMA\b", code)
    assert not re.findall(r"\bF2F\b", code), "the product is rounded before it is added to"
    assert bool(re.findall(r"\bUTMALDG\b", code)) == SCHEDULES[name].descriptors
    assert bool(re.findall(r"\bLDGSTS\b", code)) != SCHEDULES[name].descriptors


EXACT = """
func.func @main(%x: tensor<100x256xf32>, %y: tensor<256x72xf32>) -> tensor<100x72xf32> {
  %m = graph.matmul %x, %y : (tensor<100x256xf32>, tensor<256x72xf32>) -> tensor<100x72xf32>
  func.return %m : tensor<100x72xf32>
}
"""


def test_each_step_of_a_product_of_f32_is_summed_up_apart() -> None:
    """Triton would have the additions of steps become one chain, which rounds more often."""
    module = Parser(context(), EXACT).parse_module()
    lower(module, *FUSED)
    (kernel,) = [op for op in module.walk() if isinstance(op, loop.KernelOp)]
    kernel.attributes[PRODUCT] = ProductAttr(ProductSchedule(32, 32, 32, warps=4, stages=3))
    lower(module, *TO_TRITON)
    (function,) = [op for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
    code = ptx(Job.of(function, 90))
    results = 32 * 32 // (32 * 4)
    assert len(re.findall(r"\bfma\.rn\.f32\b", code)) == 32 * results
    assert len(re.findall(r"\badd\.rn\.f32\b", code)) == results

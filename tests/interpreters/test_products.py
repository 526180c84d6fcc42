"""Products of matrices, laid out for a GPU under every schedule and on every layout of their factors, against torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser

from stepwell.ir import loop, tile, tt
from stepwell.ir.product_schedule import LIBRARY, PRODUCT, ProductAttr, ProductSchedule
from stepwell.ir.tt.ops import UNALIGNED
from stepwell.lowering.schedule.product_costs import WIDE_EFFICIENCY
from stepwell.tests.interpreters.lowered_triton import TO_TRITON, context, lower
from stepwell.tests.interpreters.support import eager_extern, run, to_tensor

SCHEDULES = [
    ProductSchedule(32, 32, 32, warps=4, stages=2),
    ProductSchedule(16, 64, 16, warps=1, stages=3, descriptors=True),
]

IEEE = 2
"""Of `tt.dot`: f32 is multiplied as it is."""

LAYOUTS = {"rows": "({1}, 1)", "columns": "(1, {0})"}
"""Name → the strides of a matrix of {0} × {1}."""


def matrix(rows: int, columns: int, layout: str, element: str = "bf16") -> str:
    strides = LAYOUTS[layout].format(rows, columns)
    return f"tensor<{rows}x{columns}x{element}, #stepwell.layout<({rows}, {columns}), {strides}>>"


def program(left: str, right: str) -> str:
    """relu(x @ y + b), of sizes that no tile divides, and the product before it."""
    x, y = matrix(40, 24, left), matrix(24, 72, right)
    out = "tensor<40x72xbf16>"
    return f"""
func.func @main(%x: {x}, %y: {y}, %b: tensor<72xbf16>) -> ({out}, {out}) {{
  %m = graph.matmul %x, %y, %b : ({x}, {y}, tensor<72xbf16>) -> {out}
  %r = graph.relu %m : {out}
  func.return %r, %m : {out}, {out}
}}
"""


def lowered(text: str, choice: ProductAttr | StringAttr | None = None) -> ModuleOp:
    module = Parser(context(), text).parse_module()
    lower(module, "convert-graph-to-loop", "loop-fuse-nests", "loop-shrink-locals", "loop-simplify")
    kernels = [op for op in module.walk() if isinstance(op, loop.KernelOp)]
    assert len(kernels) == 1
    if choice is not None:
        kernels[0].attributes[PRODUCT] = choice
    lower(module, "loop-call-products", "loop-schedule-products", *TO_TRITON)
    assert not any(isinstance(op, tile.KernelOp) for op in module.walk())
    return module


def inputs() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).bfloat16() for shape in ((40, 24), (24, 72), (72,))]


def check(module: ModuleOp) -> None:
    x, y, b = inputs()
    found = run(module, x, y, b, extern=eager_extern)
    product = (x.float() @ y.float() + b.float()).bfloat16()
    for one, wanted in zip(found, (product.relu(), product), strict=True):
        torch.testing.assert_close(to_tensor(one), wanted, rtol=2**-7, atol=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_a_product_and_what_follows_it(left: str, right: str, schedule: ProductSchedule) -> None:
    module = lowered(program(left, right), ProductAttr(schedule))
    loads = [op for op in module.walk() if isinstance(op, tt.DescriptorLoadOp)]
    assert len(loads) == (2 if schedule.descriptors else 0)
    check(module)


@pytest.mark.parametrize("schedule", WIDE_EFFICIENCY, ids=str)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_a_product_of_f32_is_as_exact_as_a_library(left: str, right: str, schedule: ProductSchedule) -> None:
    x, y = matrix(40, 24, left, "f32"), matrix(24, 72, right, "f32")
    text = f"""
func.func @main(%x: {x}, %y: {y}, %b: tensor<72xf32>) -> tensor<40x72xf32> {{
  %m = graph.matmul %x, %y, %b : ({x}, {y}, tensor<72xf32>) -> tensor<40x72xf32>
  %r = graph.relu %m : tensor<40x72xf32>
  func.return %r : tensor<40x72xf32>
}}
"""
    module = lowered(text, ProductAttr(schedule))
    (dot,) = {op.input_precision.value.data for op in module.walk() if isinstance(op, tt.DotOp)}
    assert dot == IEEE
    left_factor, right_factor, bias = (value.float() for value in inputs())
    (found,) = run(module, left_factor, right_factor, bias, extern=eager_extern)
    exact = (left_factor.double() @ right_factor.double() + bias.double()).relu()
    torch.testing.assert_close(to_tensor(found).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_masks_that_follow_a_product(schedule: ProductSchedule) -> None:
    """One is read, one is written: bytes in memory, bits in registers."""
    x, y, out = matrix(40, 24, "rows"), matrix(24, 72, "rows"), "tensor<40x72xbf16>"
    module = lowered(
        f"""
func.func @main(%x: {x}, %y: {y}, %c: tensor<40x72xi1>) -> ({out}, tensor<40x72xi1>) {{
  %m = graph.matmul %x, %y : ({x}, {y}) -> {out}
  %z = graph.full bf16<0.0> : {out}
  %s = graph.select %c, %m, %z : (tensor<40x72xi1>, {out}, {out}) -> {out}
  %p = graph.compare %m, %z is le : ({out}, {out}) -> tensor<40x72xi1>
  func.return %s, %p : {out}, tensor<40x72xi1>
}}
""",
        ProductAttr(schedule),
    )
    module.verify()
    left, right, _ = inputs()
    mask = torch.randn(40, 72, generator=torch.Generator().manual_seed(1)) > 0
    found, negative = (to_tensor(one) for one in run(module, left, right, mask, extern=eager_extern))
    product = (left.float() @ right.float()).bfloat16()
    torch.testing.assert_close(found, product.where(mask, 0), rtol=2**-7, atol=1e-3)
    assert torch.equal(negative, product <= 0)


def test_the_function_for_unaligned_addresses_computes_the_same() -> None:
    module = lowered(program("rows", "columns"), ProductAttr(SCHEDULES[1]))
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tt.FuncOp)}
    (aligned,) = [op for op in functions.values() if UNALIGNED in op.attributes]
    name = aligned.attributes[UNALIGNED]
    assert isinstance(name, StringAttr)
    plain = functions[name.data]
    assert plain.arg_attrs is not None
    assert not any(known.data for known in plain.arg_attrs)
    plain.properties["sym_name"] = aligned.sym_name
    aligned.detach()
    check(module)


def test_a_product_that_the_library_computes() -> None:
    module = lowered(program("rows", "rows"), StringAttr(LIBRARY))
    assert not any(isinstance(op, tt.DotOp) for op in module.walk())
    check(module)


HALVED = {
    "afterwards": "%t = arith.addf %e, %one : f32\n%f = arith.mulf %t, %half : f32",
    "in the sum": "%f = math.fma %e, %half, %half : f32",
}


GELU = """
func.func @main(%x: tensor<128x16xbf16>, %y: tensor<16x16xbf16>) -> tensor<128x16xbf16> {
  %z = loop.kernel "gelu" outs(%o : memref<128x16xbf16>) -> tensor<128x16xbf16> attributes {stepwell.product = #stepwell.product<64, 16, 16, warps = 4, stages = 2>} {
    loop.parallel (%i, %j) to (128, 16) {
      %s = loop.reduce (%k) to (16) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<128x16xbf16>
        %b = loop.read %y[%k, %j] : tensor<16x16xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %one = arith.constant 1.0 : f32
      %half = arith.constant 0.5 : f32
      %root = arith.constant 0.70710678 : f32
      %u = arith.mulf %s, %root : f32
      %e = math.erf %u : f32
      HALVED
      %g = arith.mulf %s, %f : f32
      %r = arith.truncf %g : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<128x16xbf16>
    }
  }
  func.return %z : tensor<128x16xbf16>
}
"""  # noqa: E501


@pytest.mark.parametrize("when", HALVED)
def test_gelu_behind_a_product_is_as_exact_as_its_rounding(when: str) -> None:
    """Of numbers between -8 and 8, times 1."""
    module = Parser(context(), GELU.replace("HALVED", HALVED[when])).parse_module()
    lower(module, *TO_TRITON)
    assert not any(isinstance(op, tt.ExternElementwiseOp) for op in module.walk())
    x = torch.linspace(-8, 8, 2048).bfloat16().view(128, 16)
    (found,) = run(module, x, torch.eye(16).bfloat16())
    exact = torch.nn.functional.gelu(x.double())
    error, eager = (value.double().sub(exact).abs() for value in (to_tensor(found), torch.nn.functional.gelu(x)))
    assert (error <= eager + 0.01 * exact.abs() + 1e-9).all()
    assert error.norm() <= 1.01 * eager.norm()


@pytest.mark.parametrize(("compared", "exact"), [("%g", True), ("%n", False)], ids=["f32", "rounded"])
def test_a_mask_is_decided_by_the_exact_function_unless_it_is_rounded(compared: str, exact: bool) -> None:
    stored = f"""
      %n = arith.extf %r : bf16 to f32
      %m = arith.cmpf olt, {compared}, %half : f32
      loop.write %m, %mask[%i, %j] : memref<128x16xi1>"""
    text = GELU.replace("HALVED", HALVED["in the sum"])
    for old, new in (
        ("%z = loop", "%z, %masked = loop"),
        ("outs(%o : memref<128x16xbf16>)", "outs(%o : memref<128x16xbf16>, %mask : memref<128x16xi1>)"),
        ("-> tensor<128x16xbf16> attributes", "-> tensor<128x16xbf16>, tensor<128x16xi1> attributes"),
        ("%o[%i, %j] : memref<128x16xbf16>", f"%o[%i, %j] : memref<128x16xbf16>{stored}"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    module = Parser(context(), text).parse_module()
    lower(module, *TO_TRITON)
    assert any(isinstance(op, tt.ExternElementwiseOp) for op in module.walk()) == exact

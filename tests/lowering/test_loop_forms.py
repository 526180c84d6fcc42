"""Which kernels and loops analyses recognise, each with one thing about it changed that makes it another."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from stepwell.ir import loop
from stepwell.lowering.analysis import costs
from stepwell.lowering.analysis.accumulation import accumulation_of
from stepwell.lowering.analysis.contractions import contraction_of
from stepwell.lowering.analysis.kernels import Kernel, Order
from stepwell.lowering.analysis.scans import scan_of
from stepwell.lowering.applications import limited
from stepwell.lowering.loop.fuse_columns import LoopFuseColumns
from stepwell.lowering.loop.fuse_nests import LoopFuseNests, refusals
from stepwell.lowering.loop.fuse_producers import Fuser, LoopFuseProducers
from stepwell.lowering.loop.fuse_siblings import LoopFuseSiblings
from stepwell.tests.lowering.loop_text import context, function_of, parse

TEXTS = Path(__file__).parents[1] / "filecheck" / "loop"


def kernel_of(text: str) -> loop.KernelOp:
    return next(op for op in parse(text).walk() if isinstance(op, loop.KernelOp))


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# -- accumulations -----------------------------------------------------------------------------------

COLUMN_SUMS = """
func.func @f(%x: tensor<64x8xf32>, %z: tensor<f32>, %before: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel "sums" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %l = loop.local (8) : memref<8xf32>
    %zero = arith.constant 0.0 : f32
    loop.parallel (%c) to (8) {
      loop.write %zero, %l[%c] : memref<8xf32>
    }  // clear
    loop.parallel (%i, %j) to (64, 8) {
      %v = loop.read %x[%i, %j] : tensor<64x8xf32>
      loop.write %v, %l[%j] add : memref<8xf32>
    }  // rows
    loop.parallel (%k) to (8) {
      %t = loop.read %l[%k] : memref<8xf32>
      loop.write %t, %o[%k] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
"""
ADD_MORE = """
    loop.parallel (%q) to (8) {
      %w = loop.read %x[0, %q] : tensor<64x8xf32>
      loop.write %w, %l[%q] add : memref<8xf32>
    }
"""
CLEAR_AGAIN = """
    loop.parallel (%q) to (8) {
      loop.write %zero, %l[%q] : memref<8xf32>
    }
"""
SECOND_LOCAL = """
    %m = loop.local (8) : memref<8xf32>
    loop.parallel (%q) to (8) {
      loop.write %zero, %m[%q] : memref<8xf32>
    }
"""


def test_column_sums_are_an_accumulation() -> None:
    found = accumulation_of(kernel_of(COLUMN_SUMS))
    assert found is not None
    assert [combiner.name for combiner in found.collected.values()] == ["add"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("%o : memref<8xf32>)", "%o : memref<8xf32> = %before)", id="the result has an initial value"),
        pytest.param("}  // clear", "loop.write %zero, %o[%c] : memref<8xf32>\n}", id="a result is cleared"),
        pytest.param("}  // rows", "loop.write %v, %l[%j] : memref<8xf32>\n}", id="rows replace"),
        pytest.param("}  // rows", "%r = loop.read %l[%j] : memref<8xf32>\n}", id="rows read"),
        pytest.param("}  // rows", "loop.write %v, %l[%j] max : memref<8xf32>\n}", id="two combiners"),
        pytest.param("}  // clear", "}" + ADD_MORE, id="another nest adds before"),
        pytest.param("}  // rows", "}" + ADD_MORE, id="another nest adds behind"),
        pytest.param("}  // rows", "}" + CLEAR_AGAIN, id="cleared behind"),
        pytest.param("}  // clear", "}" + SECOND_LOCAL, id="a local collects nothing"),
        pytest.param("arith.constant 0.0 : f32", "loop.read %z[] : tensor<f32>", id="cleared to an unknown value"),
        pytest.param("arith.constant 0.0 : f32", "arith.constant 1.0 : f32", id="cleared to another value"),
    ],
)
def test_no_accumulation_when(old: str, new: str) -> None:
    assert accumulation_of(kernel_of(changed(COLUMN_SUMS, old, new))) is None


# -- products ----------------------------------------------------------------------------------------

PRODUCT = """
func.func @f(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %h: tensor<4x8xf16>) -> tensor<6x8xf32> {
  %y = loop.kernel "product" outs(%o : memref<6x8xf32>) -> tensor<6x8xf32> {
    loop.parallel (%i, %j) to (6, 8) {
      %yes = arith.constant true
      %none = arith.constant 0.0 : bf16
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %b = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i, %j] : memref<6x8xf32>
    }
  }
  func.return %y : tensor<6x8xf32>
}
"""
WIDENED = """
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
"""


def test_products_know_their_rows_and_columns() -> None:
    found = contraction_of(kernel_of(PRODUCT))
    assert found is not None
    assert [list(found.nest.indices).index(index) for index in (*found.rows, *found.columns)] == [0, 1]


def test_indices_of_neither_factor_are_no_rows() -> None:
    text = PRODUCT.replace("(%i, %j) to (6, 8)", "(%i, %j, %n) to (6, 8, 3)")
    text = text.replace("%o[%i, %j] : memref<6x8xf32>", "%o[%i, %j, %n] : memref<6x8x3xf32>")
    found = contraction_of(kernel_of(text.replace("<6x8xf32>", "<6x8x3xf32>")))
    assert found is not None
    assert (len(found.rows), len(found.columns)) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("%w[%k, %j] : tensor<4x8xbf16>", "%h[%k, %j] : tensor<4x8xf16>", id="factors have two types"),
        pytest.param(
            "%w[%k, %j] : tensor", "%w[%k, %j] if %yes else %none : tensor", id="a factor is read under a guard"
        ),
        pytest.param("%x[%i, %k] : tensor", "%x[%i, 0] : tensor", id="the left factor is not summed along"),
        pytest.param("%w[%k, %j] : tensor", "%w[0, %j] : tensor", id="the right factor is not summed along"),
    ],
)
def test_no_product_when(old: str, new: str) -> None:
    text = changed(PRODUCT, old, new)
    assert contraction_of(kernel_of(text.replace("%b : bf16", "%b : f16") if "%h[" in text else text)) is None


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_wide_products_are_of_f32_and_have_rows_and_columns(element: str) -> None:
    text = PRODUCT.replace(WIDENED, "\n").replace("arith.mulf %c, %d", "arith.mulf %a, %b").replace("bf16", element)
    text = text.replace("f32", element)
    assert (contraction_of(kernel_of(text)) is None) == (element == "f64")
    for old, new in (("%x[%i, %k]", "%x[0, %k]"), ("%w[%k, %j]", "%w[%k, 0]")):
        assert contraction_of(kernel_of(changed(text, old, new))) is None


def test_sums_in_f64_are_no_products_of_narrow_factors() -> None:
    assert contraction_of(kernel_of(PRODUCT.replace("f32", "f64"))) is None


# -- scans -------------------------------------------------------------------------------------------

SCAN = """
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = loop.kernel "scan" outs(%o : memref<16xf32>) -> tensor<16xf32> {
    %zero = arith.constant 0.0 : f32
    %last = loop.for (%j) to (16) carry (%sum = %zero : f32) {
      %v = loop.read %x[%j] : tensor<16xf32>
      %next = arith.addf %sum, %v : f32
      loop.write %next, %o[%j] : memref<16xf32>
      loop.yield %next : f32
    }
  }
  func.return %y : tensor<16xf32>
}
"""
INSIDE = """
      loop.parallel (%n) to (1) {
        %next = arith.addf %sum, %v : f32
        loop.write %next, %o[%j] : memref<16xf32>
      }
"""


def loop_of(text: str) -> loop.ForOp:
    return next(op for op in parse(text).walk() if isinstance(op, loop.ForOp))


def test_running_sums_are_a_scan() -> None:
    found = scan_of(loop_of(SCAN))
    assert found is not None
    assert found.combiner == "add"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("arith.addf %sum, %v", "arith.addf %sum, %sum", id="the step takes the carried value twice"),
        pytest.param("arith.addf", "arith.divf", id="the step combines nothing"),
        pytest.param("yield %next", "yield %v", id="something else is carried on"),
        pytest.param("loop.write %next", "loop.write %sum", id="the carried value has another use"),
    ],
)
def test_no_scan_when(old: str, new: str) -> None:
    assert scan_of(loop_of(changed(SCAN, old, new))) is None


def test_no_scan_when_the_step_stands_in_a_nest() -> None:
    *_, step, write = [line for line in SCAN.splitlines() if "%next" in line and "yield" not in line]
    text = changed(SCAN, f"{step}\n{write}\n", INSIDE)
    assert scan_of(loop_of(changed(text, "yield %next", "yield %v"))) is None


# -- order -------------------------------------------------------------------------------------------

AROUND_A_CALL = """
func.func private @anything()
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.call @anything() : () -> ()
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}
"""


CALL, DECLARATION = "func.call @anything() : () -> ()", "func.func private @anything()\n"


def one_behind_the_other() -> FuncOp:
    """Two kernels, of which the second reads what the first gives."""
    return function_of(parse(changed(changed(AROUND_A_CALL, CALL, ""), DECLARATION, "")))


@pytest.mark.parametrize("call", [True, False])
def test_kernels_stay_on_their_side_of_what_may_do_anything(call: bool) -> None:
    module = parse(AROUND_A_CALL if call else changed(AROUND_A_CALL, CALL, ""))
    LoopFuseNests().apply(context(), module)
    assert str(module).count("loop.kernel") == (2 if call else 1)


def test_an_op_depends_on_another_whichever_is_asked_for_first() -> None:
    function = one_behind_the_other()
    kernels: dict[Operation, Kernel] = {
        op: Kernel(op) for op in function.body.block.ops if isinstance(op, loop.KernelOp)
    }
    order = Order(function.body.block, kernels)
    first, second = kernels
    assert not order.independent(first, second)
    assert not order.independent(second, first)


def test_fusion_knows_how_large_a_kernel_has_become() -> None:
    function = one_behind_the_other()
    fuser = Fuser([op for op in function.body.block.ops if isinstance(op, loop.KernelOp)])
    fuser.run()
    ((op, kernel),) = fuser.kernels.items()
    assert kernel.size == Kernel(op).size


# -- limits of fusion --------------------------------------------------------------------------------

FUSIONS = [LoopFuseColumns, LoopFuseProducers, LoopFuseSiblings]


def kernels_after(fusion: type[ModulePass]) -> tuple[int, int]:
    """How many kernels the text of a pass has, and how many the pass leaves."""
    module = parse((TEXTS / f"{fusion.name}.mlir").read_text())
    before = str(module).count("loop.kernel")
    fusion().apply(context(), module)
    return before, str(module).count("loop.kernel")


@pytest.mark.parametrize("fusion", FUSIONS)
def test_fusion_asks_for_permission(fusion: type[ModulePass]) -> None:
    with limited(0):
        before, after = kernels_after(fusion)
    assert before == after
    before, after = kernels_after(fusion)
    assert before > after


@pytest.mark.parametrize("limit", ["MAX_OPS", "MAX_TENSORS"])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_fusion_stops_at_the_size_of_a_kernel(
    fusion: type[ModulePass], limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, limit, 0)
    before, after = kernels_after(fusion)
    assert before == after


# -- refusals ----------------------------------------------------------------------------------------


def test_refusals_of_a_function_without_kernels() -> None:
    assert refusals(function_of(parse("func.func @f(%x: tensor<8xf32>) { func.return }"))) == []


def test_refusals_change_nothing() -> None:
    for text in (TEXTS / "loop-fuse-nests.mlir").read_text().split("// -----"):
        module = parse(text)
        before = str(module)
        for function in module.ops:
            assert isinstance(function, FuncOp)
            refusals(function)
        assert str(module) == before

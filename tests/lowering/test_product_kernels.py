"""Kernels of products that differ from a plain one in a line: what is stored as a box, what takes masks, what a
library can be called for, what is refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from stepwell.ir import graph, loop, tile
from stepwell.ir.errors import LoweringError
from stepwell.lowering.analysis.contractions import contraction_of
from stepwell.lowering.convert.loop_to_tile import ConvertLoopToTile
from stepwell.lowering.loop.call_products import LoopCallProducts
from stepwell.lowering.schedule.model import KernelModel
from stepwell.lowering.schedule.product_plan import epilogue_of
from stepwell.tests.golden.builder import context
from stepwell.tests.interpreters.support import parse

SCHEDULE = "#stepwell.product<64, 64, 64, warps = 4, stages = 3>"

PRODUCT = f"""
module attributes {{stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>}} {{
func.func @main(%s0: index, %x: tensor<512x512xbf16>, %y: tensor<512x512xbf16>, %at: tensor<512xi64>, %z: tensor<512x512xbf16>, %w: tensor<512xf32>) -> tensor<512x512xbf16> attributes {{stepwell.symbols = [#stepwell.symbol<s0, 1, 4>]}} {{
  %m = loop.kernel "product" outs(%o : memref<512x512xbf16>) -> tensor<512x512xbf16> attributes {{stepwell.product = {SCHEDULE}}} {{
    loop.parallel (%i, %j) to (512, 512) {{
      %r = loop.read %at[%i] : tensor<512xi64>
      %q = arith.index_cast %r : i64 to index
      %s = loop.reduce (%k) to (512) [add] -> f32 {{
        %a = loop.read %x[%i, %k] : tensor<512x512xbf16>
        %b = loop.read %y[%k, %j] : tensor<512x512xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }}
      %t = arith.truncf %s : f32 to bf16
      loop.write %t, %o[%i, %j] : memref<512x512xbf16>
    }}
  }}
  func.return %m : tensor<512x512xbf16>
}}
}}"""  # noqa: E501


def text(*changes: tuple[str, str]) -> str:
    """The product with parts of its text replaced, wherever they occur."""
    changed = PRODUCT
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new)
    return changed


def converted(*changes: tuple[str, str]) -> ModuleOp:
    module = parse(text(*changes))
    ConvertLoopToTile().apply(context(), module)
    module.verify()
    return module


def stores_box(module: ModuleOp) -> bool:
    return any(isinstance(op, tile.StoreBoxOp) for op in module.walk())


def test_a_product_is_stored_as_a_box() -> None:
    assert stores_box(converted())


def test_what_is_kept_in_registers_takes_no_box() -> None:
    kept = "%l = loop.local () : memref<f32> loop.write %s, %l[] : memref<f32> %u = loop.read %l[] : memref<f32>"
    module = converted(("%t = arith.truncf %s", f"{kept} %t = arith.truncf %u"))
    assert [op.name for op in module.walk() if isinstance(op, tile.StoreOp | tile.StoreBoxOp)] == ["tile.store_box"]


APART = "tensor<512x512xbf16, #stepwell.layout<(512, 512), (1024, 2)>>"

RESULTS = {
    "columns are the nearest in memory": (("%o[%i, %j]", "%o[%j, %i]"),),
    "elements lie apart": (("-> tensor<512x512xbf16>", f"-> {APART}"), ("%m : tensor<512x512xbf16>", f"%m : {APART}")),
    "they are added": (
        ("outs(%o : memref<512x512xbf16>)", "outs(%o : memref<512x512xbf16> = %z)"),
        (", %o[%i, %j] :", ", %o[%i, %j] add :"),
    ),
}
"""Why a result is stored element by element → what is changed."""


@pytest.mark.parametrize("why", RESULTS)
def test_no_box_is_stored_where(why: str) -> None:
    assert not stores_box(converted(*RESULTS[why]))


def test_a_result_without_rows_is_refused() -> None:
    changes = (
        ("%m = loop.kernel", "%n = loop.kernel"),
        ("outs(%o : memref<512x512xbf16>) -> tensor<512x512xbf16>", "outs(%o : memref<bf16>) -> tensor<bf16>"),
        ("%o[%i, %j] : memref<512x512xbf16>", "%o[] : memref<bf16>"),
        ("func.return %m", "func.return %z"),
    )
    with pytest.raises(LoweringError, match=r"loop\.write: expected a place for each lane, got one place"):
        converted(*changes)


@pytest.mark.parametrize(("rows", "masked"), [("512", False), ("500", True), ("s0 * 128", True)])
def test_rows_are_masked_unless_they_are_known_to_fill_their_tiles(rows: str, masked: bool) -> None:
    added = "%e = loop.read %w[%i] : tensor<512xf32> %u = arith.addf %s, %e : f32 %t = arith.truncf %u"
    module = converted(("to (512, 512)", f"to ({rows}, 512)"), ("%t = arith.truncf %s", added))
    assert any(isinstance(op, tile.CompareOp) for op in module.walk()) == masked


@pytest.mark.parametrize(
    ("rows", "ragged"), [("320", False), ("512", False), ("576", True), ("1024", False), ("s0 * 128", True)]
)
def test_the_last_tiles_of_a_column_may_be_fewer_than_a_group(rows: str, ragged: bool) -> None:
    module = converted(("to (512, 512)", f"to ({rows}, 512)"))
    places = [str(op.access) for op in module.walk() if isinstance(op, tile.IndexOp)]
    assert any("min(" in place for place in places) == ragged


FACTORS = {
    "two rows are one": ("%x[%i, %k]", "%x[%i floordiv 2, %k]"),
    "how far elements lie apart depends on the row": ("%x[%i, %k]", "%x[%i * %k, %k]"),
    "rows are computed": ("%x[%i, %k]", "%x[%q + %i, %k]"),
}
"""Why a factor is no array → what is changed."""


@pytest.mark.parametrize("why", FACTORS)
def test_no_library_is_called_for_a_factor_of_which(why: str) -> None:
    called = parse(text((SCHEDULE, '"library"')))
    LoopCallProducts().apply(context(), called)
    assert any(isinstance(op, graph.MatmulOp) for op in called.walk())
    kept = parse(text((SCHEDULE, '"library"'), FACTORS[why]))
    LoopCallProducts().apply(context(), kept)
    assert not any(isinstance(op, graph.MatmulOp) for op in kept.walk())


@pytest.mark.parametrize("why", FACTORS)
def test_no_tiles_are_loaded_of_a_factor_of_which(why: str) -> None:
    with pytest.raises(LoweringError, match=r"loop\.read: expected a factor of a product that is an array"):
        converted(FACTORS[why])


def test_what_follows_a_product_moves_the_elements_of_each_row_and_column() -> None:
    module = parse(text(("%t = arith.truncf %s", "%e = loop.read %w[%i] : tensor<512xf32> %t = arith.truncf %s")))
    (kernel,) = (op for op in module.walk() if isinstance(op, loop.KernelOp))
    contraction = contraction_of(kernel)
    assert contraction is not None
    assert epilogue_of(KernelModel(kernel), contraction).bytes == 2


def test_a_schedule_of_what_is_no_product_is_left_alone() -> None:
    assert not any(isinstance(op, tile.DotOp) for op in converted(("arith.mulf", "arith.addf")).walk())

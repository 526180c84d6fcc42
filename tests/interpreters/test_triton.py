"""Every graph op and every kind of kernel, lowered to Triton's dialect and run by its interpreter, against eager."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from stepwell.ir import graph, tile, tt
from stepwell.ir.errors import LoweringError
from stepwell.ir.tt.ops import shape_of
from stepwell.lowering.pipelines import GPU
from stepwell.tests.interpreters.cases import Case as OpCase
from stepwell.tests.interpreters.cases import all_cases
from stepwell.tests.interpreters.lowered_triton import TO_TILE, TO_TRITON, lowered
from stepwell.tests.interpreters.support import assert_same, eager_extern, run, to_tensor
from stepwell.tests.interpreters.test_levels import ERRORS
from stepwell.tests.interpreters.test_schedules import MAKERS, arguments
from stepwell.tests.lowering import schedule_cases as cases
from stepwell.tests.lowering.schedule_cases import Case

WITHOUT_ATOMICS = ("scatter-mul-i64", "scatter-max-f32", "scatter-max-ui8", "scatter-min-ui8", "scatter-max-i8")
"""Scatters with combiners that GPUs have no atomic operation for."""

CASES = [*all_cases()]

ON_GPUS = [maker for maker in MAKERS if maker is not cases.rows_and_columns]
"""Columns are collected by rows on CPUs alone, and its greatest elements by a combiner of WITHOUT_ATOMICS."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op(case: OpCase) -> None:
    module = lowered(case.text, "convert-graph-to-loop", *TO_TRITON)
    assert not any(isinstance(op, tile.KernelOp) for op in module.walk())
    (found,) = run(module, *case.inputs, extern=eager_extern)
    assert_same(found, case.expected, case.rtol, signed_zeros=case.signed_zeros)


@pytest.mark.parametrize("name", WITHOUT_ATOMICS)
def test_a_scatter_without_an_atomic_operation_is_left_to_the_operator(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    module = lowered(case.text, "convert-graph-to-loop")
    (call,) = [op for op in module.walk() if isinstance(op, graph.ExternOp)]
    assert call.target.data == "aten.scatter_reduce.two"


SHAPES = ((32, (4, 8)), (24, (4, 3, 2)))
PUTS = ("tensor<4x8xi8>, tensor<4x3x2xi8>, tensor<3x2xi64>", "tensor<4x8xf32>, tensor<4x3x2xf32>, tensor<3x2xi64>")


@pytest.mark.parametrize(("types", "is_left"), [*zip(PUTS, (True, False), strict=True)])
def test_a_sum_at_places_is_left_to_the_operator_where_it_needs_to_be(types: str, is_left: bool) -> None:
    whole, value, _ = (f"tensor{part}" for part in types.replace(", ", "").split("tensor")[1:])
    text = f"""
func.func @main(%x: {whole}, %v: {value}, %i: tensor<3x2xi64>) -> {whole} {{
  %y = graph.index_put %x, %v, %i dims [1] bounds index with add : ({types}) -> {whole}
  func.return %y : {whole}
}}
"""
    module = lowered(text, "convert-graph-to-loop", *TO_TRITON)
    assert [op.target.data for op in module.walk() if isinstance(op, graph.ExternOp)] == (
        ["aten.index_put.default"] if is_left else []
    )
    x, v = (torch.arange(n).view(shape).to(torch.int8 if is_left else torch.float32) for n, shape in SHAPES)
    i = torch.tensor([[0, 7], [7, 7], [2, 0]])
    (found,) = run(module, x, v, i, extern=eager_extern)
    assert_same(found, x.index_put((torch.arange(4)[:, None, None], i), v, accumulate=True))


def test_a_combiner_without_an_atomic_operation_is_refused() -> None:
    text = """
func.func @main(%x: tensor<8xi64>, %i: tensor<4xi64>) -> tensor<8xi64> {
  %y = loop.kernel "scatter" outs(%o : memref<8xi64> = %x) -> tensor<8xi64> {
    loop.parallel (%k) to (4) {
      %n = loop.read %i[%k] : tensor<4xi64>
      %p = arith.index_cast %n : i64 to index
      loop.write %n, %o[%p] mul : memref<8xi64>
    }
  }
  func.return %y : tensor<8xi64>
}
"""
    with pytest.raises(LoweringError, match="expected a combiner that GPUs have"):
        lowered(text, *TO_TRITON)


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.name)
def test_a_bad_index_raises_what_the_graph_level_raises(case: OpCase) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        run(case.text, *case.inputs)
    with pytest.raises(expected.type) as found:
        run(lowered(case.text, "convert-graph-to-loop", *TO_TRITON), *case.inputs)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("sizes", [(3, 37), (20, 5)], ids=str)
@pytest.mark.parametrize("maker", ON_GPUS, ids=lambda maker: maker.__name__)
def test_kernels_on_blocks_of_several_axes(maker: Callable[..., Case], sizes: tuple[int, int], dynamic: bool) -> None:
    case = maker(*sizes, dynamic=dynamic)
    for passes in (TO_TILE, TO_TRITON):
        results = run(lowered(case.text, *passes), *arguments(case))
        case.check([to_tensor(value) for value in results])


LARGE: list[tuple[Callable[..., Case], tuple[int, int]]] = [
    (cases.softmax, (2, 40000)),  # longer than the registers: in pieces
    (cases.softmax, (2, 5000)),  # in blocks of several lengths, the last one beyond the end
    (cases.layer_norm, (2, 20000)),
    (cases.layer_norm, (2, 12800)),  # in blocks that fit
    (cases.cross_entropy, (40, 4097)),  # a part for each row
    (cases.sums, (3, 70001)),  # cut into parts, of which the last one is shorter
    (cases.affine_gradients, (1200, 96)),  # down columns, in parts
    (cases.argmax, (2, 70001)),
    (cases.transpose_add, (130, 70)),
    (cases.cumsum, (2, 40000)),
    (cases.embedding_backward, (300, 64)),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("maker", "sizes"), LARGE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_kernels_that_outgrow_a_program(maker: Callable[..., Case], sizes: tuple[int, int], dynamic: bool) -> None:
    case = maker(*sizes, dynamic=dynamic)
    results = run(lowered(case.text, *TO_TRITON), *arguments(case))
    case.check([to_tensor(value) for value in results])


SQUARE = """
func.func @main(%x: tensor<16xf32>) -> tensor<16x16xf32> {
  %y = loop.kernel "square" outs(%o : memref<16x16xf32>) -> tensor<16x16xf32> {
    loop.parallel (%i, %j) to (16, 16) {
      %a = loop.read %x[%i] : tensor<16xf32>
      %b = loop.read %x[%j] : tensor<16xf32>
      %n = loop.index [%i] : i64
      %m = loop.index [%j] : i64
      %d = arith.subi %n, %m : i64
      %f = arith.sitofp %d : i64 to f32
      %p = arith.subf %a, %b : f32
      %q = arith.mulf %p, %f : f32
      loop.write %q, %o[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}
"""


def test_axes_of_equal_width_stay_apart() -> None:
    x, n = torch.randn(16, generator=torch.Generator().manual_seed(0)), torch.arange(16.0)
    (found,) = run(lowered(SQUARE, *TO_TRITON), x)
    assert_same(found, (x[:, None] - x) * (n[:, None] - n))


COMPUTED_PLACES = """
func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x4x4xf32>, tensor<8x16xf32>) {
  %y, %z = loop.kernel "places" outs(%a : memref<8x4x4xf32>, %b : memref<8x16xf32>) -> tensor<8x4x4xf32>, tensor<8x16xf32> {
    loop.parallel (%i) to (8) {
      %s = loop.reduce (%j) to (16) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<8x16xf32>
        %w = arith.addf %v, %v : f32
        loop.write %w, %a[%i, %j floordiv 4, %j mod 4] : memref<8x4x4xf32>
        loop.yield %w : f32
      }
      loop.parallel (%k) to (16) {
        %u = loop.read %a[%i, %k floordiv 4, %k mod 4] : memref<8x4x4xf32>
        %d = arith.subf %u, %s : f32
        loop.write %d, %b[%i, %k] : memref<8x16xf32>
      }
    }
  }
  func.return %y, %z : tensor<8x4x4xf32>, tensor<8x16xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("other_place", [False, True])
def test_what_was_written_at_a_computed_place_is_found_there(other_place: bool) -> None:
    text = COMPUTED_PLACES
    if other_place:
        text = text.replace("%k floordiv 4, %k mod 4", "%k mod 4, %k floordiv 4")
    x = torch.randint(0, 9, (8, 16), generator=torch.Generator().manual_seed(0)).float()
    doubled = 2 * x
    read = doubled.view(8, 4, 4).mT.reshape(8, 16) if other_place else doubled
    written, found = run(lowered(text, *TO_TRITON), x)
    assert_same(written, doubled.view(8, 4, 4))
    assert_same(found, read - doubled.sum(1, keepdim=True))


TWICE = """
func.func @main(%x: tensor<4x96xf32>, %y: tensor<4x96xf32>) -> (tensor<4x96xf32>, tensor<4x96xf32>) {
  %e = graph.exp %x : tensor<4x96xf32>
  %f = graph.exp %y : tensor<4x96xf32>
  func.return %e, %f : tensor<4x96xf32>, tensor<4x96xf32>
}
"""
BATCH = """
func.func @main(%x: tensor<4x96xf32>, %y: tensor<4x96xf32>) -> (tensor<4x96xf32>, tensor<4x96xf32>) {
  %e, %f = host.launch @exp_0_batch_0 ins(%x : tensor<4x96xf32>, %y : tensor<4x96xf32>)
    outs(tensor<4x96xf32>, tensor<4x96xf32>)
  func.return %e, %f : tensor<4x96xf32>, tensor<4x96xf32>
}
"""


def test_a_batch_computes_what_its_runs_do() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(4, 96, generator=generator), torch.randn(4, 96, generator=generator)
    module = lowered(TWICE, "convert-graph-to-loop", *TO_TILE, *dict(GPU)["host"])
    (kernel,) = (op for op in module.walk() if isinstance(op, tile.KernelOp))
    for passes in ((), ("convert-tile-to-tt",)):
        results = run(lowered(BATCH + str(kernel), *passes), x, y)
        for found, expected in zip(results, (x.exp(), y.exp()), strict=True):
            assert_same(found, expected, rtol=1e-6)


GUARDED = """
func.func @main(%x: tensor<4x16xf32>, %n: tensor<4xi64>) -> tensor<4x24xf32> {
  %y = loop.kernel "shifted" outs(%o : memref<4x24xf32>) -> tensor<4x24xf32> {
    %two = arith.constant 2.0 : f32
    %none = arith.constant -1.0 : f32
    %zero = arith.constant 0 : i64
    loop.parallel (%i) to (4) {
      %row = loop.local (16) : memref<16xf32>
      %k = loop.read %n[%i] : tensor<4xi64>
      %at = arith.index_cast %k : i64 to index
      loop.parallel (%j) to (16) {
        %v = loop.read %x[%at, %j] : tensor<4x16xf32>
        %w = arith.mulf %v, %two : f32
        loop.write %w, %row[%j] : memref<16xf32>
      }
      loop.parallel (%l) to (24) {
        %place = loop.index [%l - 8] : i64
        %inside = arith.cmpi sge, %place, %zero : i64
        %u = loop.read %row[%l - 8] if %inside else %none : memref<16xf32>
        loop.write %u, %o[%i, %l] : memref<4x24xf32>
      }
    }
  }
  func.return %y : tensor<4x24xf32>
}
"""


def test_what_a_guard_keeps_from_being_read_is_not_made_again() -> None:
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    n = torch.tensor([3, 0, 2, 1])
    expected = torch.cat([torch.full((4, 8), -1.0), 2 * x[n]], 1)
    for passes in (TO_TILE, TO_TRITON):
        (found,) = run(lowered(GUARDED, *passes), x, n)
        assert_same(found, expected)


NUMBERS = """
func.func @main(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %y = loop.kernel "scaled" outs(%o : memref<4x40xf32>) -> tensor<4x40xf32> {
    %zero = arith.constant 0.0 : f32
    loop.parallel (%i) to (4) {
      %sums = loop.local (40) : memref<40xf32>
      %start = loop.local (1) : memref<1xf32>
      %first = loop.read %x[%i, 0] : tensor<4x40xf32>
      loop.write %first, %start[0] : memref<1xf32>
      %last = loop.for (%j) to (40) carry (%sum = %zero : f32) {
        %v = loop.read %x[%i, %j] : tensor<4x40xf32>
        %next = arith.addf %sum, %v : f32
        loop.write %next, %sums[%j] : memref<40xf32>
        loop.yield %next : f32
      }
      loop.parallel (%k) to (40) {
        %s = loop.read %sums[39 - %k] : memref<40xf32>
        %f = loop.read %start[0] : memref<1xf32>
        %p = arith.mulf %s, %f : f32
        loop.write %p, %o[%i, %k] : memref<4x40xf32>
      }
    }
  }
  func.return %y : tensor<4x40xf32>
}
"""


def test_numbers_that_are_kept_beside_nests_go_through_memory() -> None:
    x = torch.randint(-3, 4, (4, 40), generator=torch.Generator().manual_seed(0)).float()
    (found,) = run(lowered(NUMBERS, *TO_TRITON), x)
    assert_same(found, x.cumsum(1).flip(1) * x[:, :1])


LOGISTIC = """
func.func @main(%x: tensor<512xf32>) -> tensor<512xf32> {
  %y = loop.kernel "logistic" outs(%o : memref<512xf32>) -> tensor<512xf32> {
    %half = arith.constant 0.5 : f32
    loop.parallel (%i) to (512) {
      %a = loop.read %x[%i] : tensor<512xf32>
      %t = math.tanh %a : f32
      %s = math.fma %t, %half, %half : f32
      loop.write %s, %o[%i] : memref<512xf32>
    }
  }
  func.return %y : tensor<512xf32>
}
"""


def test_half_of_one_more_than_tanh_loses_nothing_by_cancellation() -> None:
    module = lowered(LOGISTIC, *TO_TRITON)
    assert not any(isinstance(op, tt.ExternElementwiseOp) for op in module.walk())
    x = torch.linspace(-20, 20, 512)
    x[:4] = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30])
    (found,) = run(module, x)
    assert_same(found, torch.sigmoid(2 * x.double()).float(), rtol=1e-5)


GELU = """
func.func @main(%x: tensor<65536x{type}>) -> tensor<65536x{type}> {{
  %y = loop.kernel "gelu" outs(%o : memref<65536x{type}>) -> tensor<65536x{type}> {{
    %half = arith.constant 0.5 : f32
    %root = arith.constant 0.70710678 : f32
    loop.parallel (%i) to (65536) {{
      %v = loop.read %x[%i] : tensor<65536x{type}>
      %a = arith.extf %v : {type} to f32
      %u = arith.mulf %a, %root : f32
      %e = math.erf %u : f32
      %f = math.fma %e, %half, %half : f32
      %g = arith.mulf %a, %f : f32
      %r = arith.truncf %g : f32 to {type}
      loop.write %r, %o[%i] : memref<65536x{type}>
    }}
  }}
  func.return %y : tensor<65536x{type}>
}}
"""


@pytest.mark.parametrize(("type_", "dtype"), [("bf16", torch.bfloat16), ("f16", torch.float16)])
def test_gelu_of_every_narrow_number_is_near_its_rounding(type_: str, dtype: torch.dtype) -> None:
    """A tenth of a unit more than rounding loses, at most."""
    module = lowered(GELU.format(type=type_), *TO_TRITON)
    assert not any(isinstance(op, tt.ExternElementwiseOp) for op in module.walk())
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype)
    (found,) = map(to_tensor, run(module, x))
    exact = 0.5 * x.double() * torch.special.erfc(-x.double() * 0.5**0.5)
    unit = torch.finfo(dtype).eps * exact.abs().log2().floor().exp2().clamp_min(torch.finfo(dtype).tiny)
    error = (found.double() - exact).abs() / unit
    least = torch.nextafter(exact.to(dtype), torch.zeros_like(x)).double()
    assert (error[exact.isfinite() & (least != 0)] <= 0.6).all()
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found[exact.isinf()].double(), exact[exact.isinf()])


@pytest.mark.parametrize("above", ["%one", "%a"], ids=["logistic", "silu"])
def test_a_division_by_one_more_than_an_exponential_does_not_branch(above: str) -> None:
    """From where the exponential overflows to where it is nothing, also where a reciprocal is not normal: half a unit
    in the last place, as by a division."""
    text = f"""
func.func @main(%x: tensor<512xf32>) -> tensor<512xf32> {{
  %y = loop.kernel "quotient" outs(%o : memref<512xf32>) -> tensor<512xf32> {{
    %one = arith.constant 1.0 : f32
    loop.parallel (%i) to (512) {{
      %a = loop.read %x[%i] : tensor<512xf32>
      %n = arith.negf %a : f32
      %e = math.exp %n : f32
      %d = arith.addf %e, %one : f32
      %q = arith.divf {above}, %d : f32
      loop.write %q, %o[%i] : memref<512xf32>
    }}
  }}
  func.return %y : tensor<512xf32>
}}
"""
    module = lowered(text, "convert-graph-to-loop", *TO_TRITON)
    assert not any(isinstance(op, tt.PreciseDivFOp) for op in module.walk())
    x = torch.linspace(-88.5, 20, 512)
    x[:4] = torch.tensor([torch.nan, torch.inf, -torch.inf, -200.0])
    (found,) = run(module, x)
    below = 1 + torch.exp(-x.double()).float()
    exact = (torch.ones_like(x) if above == "%one" else x).double() / below.double()
    known = exact.isfinite()
    unit = torch.from_numpy(np.spacing(exact.float().abs().numpy())).double()
    assert ((to_tensor(found).double() - exact).abs() <= 0.501 * unit)[known].all()
    assert_same(to_tensor(found)[~known], exact[~known].float())


def test_narrow_quotients_of_rows_are_those_of_a_division() -> None:
    """Divisors near both ends of the range, zeros, infinities and others, against all such dividends."""
    text = """
func.func @main(%x: tensor<32xf32>, %d: tensor<32xf32>) -> tensor<32x32xbf16> {
  %y = loop.kernel "quotient" outs(%o : memref<32x32xbf16>) -> tensor<32x32xbf16> {
    loop.parallel (%i, %j) to (32, 32) {
      %a = loop.read %x[%j] : tensor<32xf32>
      %b = loop.read %d[%i] : tensor<32xf32>
      %q = arith.divf %a, %b : f32
      %n = arith.truncf %q : f32 to bf16
      loop.write %n, %o[%i, %j] : memref<32x32xbf16>
    }
  }
  func.return %y : tensor<32x32xbf16>
}
"""
    module = lowered(text, "convert-graph-to-loop", *TO_TRITON)
    (division,) = (op for op in module.walk() if isinstance(op, tt.PreciseDivFOp))
    assert len(shape_of(division.results[0].type)) == 1
    ends = [0.0, 1e-45, 1e-40, 2.0**-128, 2.0**-126, 5.3e-20, 5.5e-20, 1e-9, 1.0, 3.0, 1.8e19, 1.9e19, 2.0**127, 3.4e38]
    numbers = torch.tensor([*ends, torch.inf, torch.nan])
    numbers = torch.cat([numbers, -numbers])
    (found,) = run(module, numbers, numbers)
    assert_same(found, (numbers[None] / numbers[:, None]).bfloat16())


def test_a_result_whose_layout_repeats_elements() -> None:
    """As attention wants its mask: the lanes along the repeated dim store one value in one place."""
    layout = "tensor<2x3x7x7xf32, #stepwell.layout<(2, 3, 7, 7), (56, 0, 8, 1)>>"
    text = f"""
func.func @main(%x: tensor<2x1x7x7xf32>) -> {layout} {{
  %b = graph.broadcast %x : (tensor<2x1x7x7xf32>) -> tensor<2x3x7x7xf32, #stepwell.layout<(2, 3, 7, 7), (49, 0, 7, 1)>>
  %y = graph.copy %b : (tensor<2x3x7x7xf32, #stepwell.layout<(2, 3, 7, 7), (49, 0, 7, 1)>>) -> {layout}
  func.return %y : {layout}
}}
"""
    x = torch.randn(2, 1, 7, 7)
    (found,) = run(lowered(text, "convert-graph-to-loop", *TO_TRITON), x, extern=eager_extern)
    assert_same(found, x.expand(2, 3, 7, 7))


def test_a_store_of_several_values_in_one_place_is_refused() -> None:
    text = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %y = loop.kernel "last" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i, %j) to (64, 64) {
      %v = loop.read %x[%i, %j] : tensor<64x64xf32>
      loop.write %v, %o[%i] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}
"""
    with pytest.raises(LoweringError, match=r"loop.write: expected a place for each lane"):
        lowered(text, *TO_TRITON)

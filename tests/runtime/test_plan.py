"""Plans: the Python text of a host function, and what it does when called."""

from __future__ import annotations

import gc
import linecache
import weakref
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch import Tensor

from stepwell.frontend.symbols import SizeSource
from stepwell.tests.runtime.plans import planned

CHAIN = """
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = host.launch @double ins(%x : tensor<8xf32>) outs(tensor<8xf32>)
  %b = host.launch @add_one ins(%a : tensor<8xf32>) outs(tensor<8xf32>) symbols (8)
  %c = graph.extern "aten.sin.default"(%b) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %b, %c : tensor<8xf32>, tensor<8xf32>
}
"""


def test_the_source_reads_as_what_happens() -> None:
    plan = planned(CHAIN)
    assert plan.source == dedent(
        """\
        def inference(args):
            profiling = profiler_enabled()
            x, = args
            args.clear()
            a = empty_strided_cpu((8,), (1,), float32)
            (profiled_0 if profiling else stretch_0)(0, 2, x, a)
            del x
            c = aten_sin_default(a)
            return [a, c]
        """
    )


def test_a_call_computes_and_empties_its_arguments() -> None:
    x = torch.arange(8.0)
    arguments = [x]
    doubled, sine = planned(CHAIN).function(arguments)
    assert arguments == []
    torch.testing.assert_close(doubled, 2 * x + 1)
    torch.testing.assert_close(sine, torch.sin(2 * x + 1))


def test_inputs_are_dropped_at_their_last_use() -> None:
    plan = planned(
        """
        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
          %a = graph.extern "aten.sin.default"(%x) : (tensor<8xf32>) -> tensor<8xf32>
          %b = graph.extern "stepwell_test.spy.default"(%a) : (tensor<8xf32>) -> tensor<8xf32>
          %c = graph.extern "aten.sin.default"(%b) : (tensor<8xf32>) -> tensor<8xf32>
          func.return %c : tensor<8xf32>
        }
        """
    )
    alive: list[bool] = []
    arguments = [torch.ones(8)]
    reference = weakref.ref(arguments[0])
    with spying(lambda: alive.append(reference() is not None)):
        plan.function(arguments)
    assert alive == [False]


def test_a_tensor_may_be_named_as_another_input_is_by_default() -> None:
    plan = planned(
        """
        func.func @main(%s0: index, %input_1: tensor<?xf32, #stepwell.layout<(s0), (1)>>)
            -> tensor<?xf32, #stepwell.layout<(s0), (1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
          %y = host.launch @add_one ins(%input_1 : tensor<?xf32, #stepwell.layout<(s0), (1)>>)
            outs(tensor<?xf32, #stepwell.layout<(s0), (1)>>) symbols (s0)
          func.return %y : tensor<?xf32, #stepwell.layout<(s0), (1)>>
        }
        """,
        sizes=[SizeSource(1, None)],
    )
    (result,) = plan.function([torch.ones(3), 3])
    torch.testing.assert_close(result, torch.full((3,), 2.0))


class spying:
    """An operator `stepwell_test::spy` that copies its argument and runs an action."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def __enter__(self) -> None:
        spy_actions.append(self.action)

    def __exit__(self, *error: object) -> None:
        spy_actions.pop()


spy_actions: list[Callable[[], None]] = []


@torch.library.custom_op("stepwell_test::spy", mutates_args=())
def spy(x: Tensor) -> Tensor:
    for action in spy_actions:
        action()
    return x.clone()


DYNAMIC = """
func.func @main(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0), (1)>>) -> (tensor<?xf32, #stepwell.layout<(s0), (1)>>, index) attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>]} {
  %a = host.launch @add_one ins(%x : tensor<?xf32, #stepwell.layout<(s0), (1)>>) outs(tensor<?xf32, #stepwell.layout<(s0), (1)>>) symbols (s0)
  %b = host.launch @add_one ins(%a : tensor<?xf32, #stepwell.layout<(s0), (1)>>) outs(tensor<?xf32, #stepwell.layout<(s0), (1)>>) symbols (s0)
  %v = host.view %a[(0)] : tensor<?xf32, #stepwell.layout<(s0), (1)>> -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %c = host.launch @add_one ins(%b : tensor<?xf32, #stepwell.layout<(s0), (1)>>) outs(tensor<?xf32, #stepwell.layout<(s0), (1)>>) symbols (s0)
  %n = graph.size (s0 * 2 + 1) : index
  func.return %c, %n : tensor<?xf32, #stepwell.layout<(s0), (1)>>, index
}
"""  # noqa: E501


@pytest.mark.parametrize("size", [1, 7, 8, 1000])
def test_one_plan_serves_all_sizes(size: int) -> None:
    function = planned(DYNAMIC, sizes=(SizeSource(0, 0),)).function
    x = torch.randn(size)
    result, number = function([x])
    torch.testing.assert_close(result, x + 1 + 1 + 1, rtol=0, atol=0)
    assert number == 2 * size + 1


TWO_CHECKS = """
func.func @main(%x: tensor<8xi64>, %y: tensor<8xi64>) -> (tensor<8xi64>, tensor<8xi64>) {
  %a = host.launch @check ins(%x : tensor<8xi64>) outs(tensor<8xi64>)
  %b = host.launch @check ins(%y : tensor<8xi64>) outs(tensor<8xi64>)
  func.return %a, %b : tensor<8xi64>, tensor<8xi64>
}
"""


@pytest.mark.parametrize("bad", [0, 1])
def test_a_failed_assertion_raises_eagers_exception(bad: int) -> None:
    arguments = [torch.zeros(8, dtype=torch.int64), torch.zeros(8, dtype=torch.int64)]
    arguments[bad][3] = 9
    with pytest.raises(IndexError, match="index 9 is out of range"):
        planned(TWO_CHECKS).function(arguments)


def test_kernels_with_assertions_are_called_one_by_one() -> None:
    (stretch,) = planned(TWO_CHECKS).stretches
    assert stretch.parts == [(0, 1), (1, 2)]


def test_the_profiler_sees_one_range_per_kernel() -> None:
    function = planned(CHAIN).function
    with torch.profiler.profile() as profile:
        function([torch.ones(8)])
    names = [event.name for event in profile.events() if event.name.startswith("stepwell::")]
    assert names == ["stepwell::double", "stepwell::add_one"]


def test_held_tensors_are_globals() -> None:
    function = planned(
        """
        func.func @main(%x: tensor<2xi64>) -> (tensor<8xf32>, tensor<2xi64>) {
          %w = graph.weight "layer.table" : tensor<8xf32>
          %a = host.launch @double ins(%w : tensor<8xf32>) outs(tensor<8xf32>)
          %c = graph.constant i64<1, -2> : tensor<2xi64>
          %d = graph.extern "aten.add.Tensor"(%x, %c), {alpha = 2} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
          func.return %a, %d : tensor<8xf32>, tensor<2xi64>
        }
        """,
        objects={"layer.table": torch.arange(8.0)},
    ).function
    doubled, added = function([torch.tensor([10, 20])])
    assert doubled.tolist() == [2.0 * k for k in range(8)]
    assert added.tolist() == [12, 16]


def test_a_returned_view_shares_memory_and_version_with_its_base() -> None:
    function = planned(
        """
        func.func @main(%x: tensor<2x4xf32>) -> tensor<3xf32, #stepwell.layout<(3), (2)>> {
          %v = host.view %x[(1)] : tensor<2x4xf32> -> tensor<3xf32, #stepwell.layout<(3), (2)>>
          func.return %v : tensor<3xf32, #stepwell.layout<(3), (2)>>
        }
        """
    ).function
    whole = torch.arange(10.0)
    x = whole[2:].reshape(2, 4)
    (view,) = function([x])
    assert view.tolist() == [3.0, 5.0, 7.0]
    before = view._version
    x.add_(1)
    assert view.tolist() == [4.0, 6.0, 8.0]
    assert view._version > before


def test_a_product_reads_transposed_operands_in_place() -> None:
    plan = planned(
        """
        func.func @main(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x3xf32> {
          %t = host.view %w[(0)] : tensor<3x4xf32> -> tensor<4x3xf32, #stepwell.layout<(4, 3), (1, 4)>>
          %y = graph.matmul %x, %t : (tensor<2x4xf32>, tensor<4x3xf32, #stepwell.layout<(4, 3), (1, 4)>>) -> tensor<2x3xf32>
          func.return %y : tensor<2x3xf32>
        }
        """  # noqa: E501
    )
    x, w = torch.randn(2, 4), torch.randn(3, 4)
    torch.testing.assert_close(plan.function([x, w])[0], x @ w.T)
    assert "reinterpret(w, (4, 3), (1, 4), 0)" in plan.source


MUTATION = """
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %a = host.launch @double ins(%x : tensor<8xf32>) outs(tensor<8xf32>)
  %b = host.launch @add_one ins(%y : tensor<8xf32>) outs(tensor<8xf32>) symbols (8)
  graph.copy_into %a, %x : (tensor<8xf32>, tensor<8xf32>) -> ()
  func.return %b : tensor<8xf32>
}
"""


def test_a_mutated_argument_is_written_without_a_copy() -> None:
    plan = planned(MUTATION)
    assert "copy_" not in plan.source
    (call,) = [line for line in plan.source.splitlines() if "stretch_0" in line]
    assert call.count("_at") == 2, "tensors are asked for addresses that are known"
    x, y = torch.arange(8.0), torch.ones(8)
    (result,) = plan.function([x, y])
    assert x.tolist() == [2.0 * k for k in range(8)]
    assert result.tolist() == [2.0] * 8


@pytest.mark.parametrize("shift", [-7, -1, 0, 1, 7])
def test_arguments_that_overlap_keep_their_old_values(shift: int) -> None:
    memory = torch.arange(24.0)
    x, y = memory[8:16], memory[8 + shift : 16 + shift]
    expected = y + 1
    (result,) = planned(MUTATION).function([x, y])
    assert torch.equal(result, expected)
    assert x.tolist() == [2.0 * k for k in range(8, 16)]


def test_broken_promises_about_strides_are_repaired_where_something_relies_on_them() -> None:
    function = planned(
        """
        func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>, tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>) {
          %y = graph.extern "aten.sin.default"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
          %w = graph.extern "aten.cos.default"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
          %z = graph.extern "_operator.neg"(%y) : (tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>) -> tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
          func.return %z, %w : tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>, tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
        }
        """  # noqa: E501
    ).function
    x = torch.randn(2, 4)
    z, w = function([x])
    assert z.stride() == (1, 2)
    assert w.stride() == (4, 1)  # as eager's operator gives it
    torch.testing.assert_close(z, -x.sin(), rtol=0, atol=0)
    torch.testing.assert_close(w, x.cos(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("call", "types", "expected"),
    [
        ('"aten.topk.default"(%x, 2, -1, true, true)', ("tensor<2xf32>", "tensor<2xi64>"), lambda x: x.topk(2)),
        ('"aten.split.Tensor"(%x, 4)', ("tensor<4xf32>", "tensor<4xf32>"), lambda x: x.split(4)),
        ('"aten.split.Tensor"(%x, 8)', ("tensor<8xf32>",), lambda x: x.split(8)),
        ('"aten.clamp.default"(%x, none, 0.5)', ("tensor<8xf32>",), lambda x: [x.clamp(None, 0.5)]),
        ('"aten.add.Scalar"(%x, -inf)', ("tensor<8xf32>",), lambda x: [x - float("inf")]),
        (
            '"aten.sum.dim_IntList"(%x, [0], true), {dtype = dtype<"float32">}',
            ("tensor<1xf32>",),
            lambda x: [x.sum(0, True)],
        ),
    ],
)
def test_externs_get_their_arguments_and_give_their_results(
    call: str, types: tuple[str, ...], expected: Callable[[Tensor], Any]
) -> None:
    names = ", ".join(f"%r{k}" for k in range(len(types)))
    joined = ", ".join(types)
    function = planned(
        f"""
        func.func @main(%x: tensor<8xf32>) -> ({joined}) {{
          {names} = graph.extern {call} : (tensor<8xf32>) -> ({joined})
          func.return {names} : {joined}
        }}
        """
    ).function
    x = torch.randn(8)
    for found, wanted in zip(function([x]), expected(x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_a_plan_dies_with_its_function() -> None:
    plan = planned(CHAIN)
    filename = plan.function.__code__.co_filename
    assert filename in linecache.cache
    owner = weakref.ref(plan.stretches[0].codes[0].owner)
    gc.disable()
    try:
        del plan
        assert owner() is None, "held by a cycle"
        assert filename not in linecache.cache
    finally:
        gc.enable()

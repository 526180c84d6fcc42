"""The graph interpreter against eager, op by op."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stepwell.ir.errors import InterpreterError
from stepwell.tests.interpreters.cases import Case, all_cases, box
from stepwell.tests.interpreters.support import assert_same, eager_extern, parse, run, to_array

LAYOUT = "#stepwell.layout"


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_op(case: Case) -> None:
    inputs = [value.clone() for value in case.inputs]
    (found,) = run(case.text, *inputs)
    assert_same(found, case.expected, case.rtol, signed_zeros=case.signed_zeros)
    for value, original in zip(inputs, case.inputs, strict=True):
        assert_same(to_array(value), original)


def unary(op: str, source: str, result: str) -> str:
    return (
        f"func.func @main(%x: {source}) -> {result} {{\n  %y = {op} : ({source}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )


def test_as_strided_reads_memory_as_the_layouts_say() -> None:
    x = box("f32", 6, 4)
    transposed = f"tensor<4x6xf32, {LAYOUT}<(4, 6), (1, 4)>>"
    window = f"tensor<3x2xf32, {LAYOUT}<(3, 2), (2, 7)>>"
    (found,) = run(unary("graph.as_strided %x offset (3)", transposed, window), x.t())
    assert_same(found, x.as_strided((3, 2), (2, 7), 3))


def test_as_strided_refuses_memory_that_the_operand_does_not_fill() -> None:
    apart = f"tensor<4xf32, {LAYOUT}<(4), (2)>>"
    with pytest.raises(InterpreterError, match="expected an element that was written before, got element 1"):
        run(unary("graph.as_strided %x offset (0)", apart, "tensor<4xf32>"), torch.arange(4.0))


def test_creation() -> None:
    text = f"""
    func.func @main(%s0: index, %seed: tensor<i64>)
        -> (tensor<?xbf16, {LAYOUT}<(s0), (1)>>, tensor<2x2xi8>, tensor<?xi32, {LAYOUT}<(s0 * 2), (1)>>, index,
            tensor<i64>, tensor<2x3xi32>, tensor<2xf32>) {{
      %full = graph.full bf16<-0.0> : tensor<?xbf16, {LAYOUT}<(s0), (1)>>
      %constant = graph.constant i8<1, -128, 3, 4> : tensor<2x2xi8>
      %iota = graph.iota from (s0) step (-2) : tensor<?xi32, {LAYOUT}<(s0 * 2), (1)>>
      %index = graph.size (s0 * 5 + 1) : index
      %size = graph.size (s0 floordiv 2) : tensor<i64>
      %random = graph.random %seed stream 3 : (tensor<i64>) -> tensor<2x3xi32>
      %weight = graph.weight "w" : tensor<2xf32>
      func.return %full, %constant, %iota, %index, %size, %random, %weight
        : tensor<?xbf16, {LAYOUT}<(s0), (1)>>, tensor<2x2xi8>, tensor<?xi32, {LAYOUT}<(s0 * 2), (1)>>, index,
          tensor<i64>, tensor<2x3xi32>, tensor<2xf32>
    }}"""
    weights = {"w": np.array([1, 2], "f4")}
    full, constant, iota, index, size, random, weight = run(text, 3, torch.tensor(7), weights=weights)
    assert_same(full, torch.full((3,), -0.0, dtype=torch.bfloat16))
    assert constant.tolist() == [[1, -128], [3, 4]]
    assert_same(iota, torch.arange(3, -9, -2, dtype=torch.int32))
    assert (int(index), int(size)) == (16, 1)
    assert random.dtype == np.int32
    assert len(set(random.flat)) == 6
    assert weight is weights["w"]


def test_a_weight_that_is_not_given_is_named() -> None:
    text = """
    func.func @main() -> tensor<2xf32> {
      %w = graph.weight "w" : tensor<2xf32>
      func.return %w : tensor<2xf32>
    }"""
    with pytest.raises(InterpreterError, match="weight w: expected a weight given by the caller, got none"):
        run(text)


EXTERN = """
func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>) {
  %v, %i = graph.extern "aten.topk.default"(%x, 2) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  func.return %v, %i : tensor<2xf32>, tensor<2xi64>
}"""


def test_an_extern_runs_where_eager_is_given() -> None:
    x = torch.tensor([1.0, 3.0, 2.0, 0.0])
    values, indices = run(EXTERN, x, extern=eager_extern)
    assert values.tolist() == [3.0, 2.0]
    assert indices.tolist() == [1, 2]


def test_an_extern_is_refused_without_eager() -> None:
    with pytest.raises(InterpreterError, match=r"extern aten\.topk\.default: expected a way to call eager ops"):
        run(EXTERN, torch.zeros(4))


def test_copy_into_writes_the_argument_but_no_value_taken_from_it_before() -> None:
    text = """
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %old = graph.flip %x [0] : tensor<3xf32>
      %new = graph.neg %x : tensor<3xf32>
      graph.copy_into %new, %x : (tensor<3xf32>, tensor<3xf32>) -> ()
      func.return %old : tensor<3xf32>
    }"""
    x = torch.tensor([1.0, 2.0, 3.0])
    (old,) = run(text, x)
    assert old.tolist() == [3.0, 2.0, 1.0]
    assert x.tolist() == [-1.0, -2.0, -3.0]


BEYOND = "index {} is out of bounds for dimension 0 with size 4"


@pytest.mark.parametrize(
    ("op", "index", "exception", "message"),
    [
        ("graph.index %x, %i dims [0] bounds index", -5, IndexError, BEYOND.format(-5)),
        ("graph.index %x, %i dims [0] bounds select", -1, IndexError, "index out of range in self"),
        ("graph.gather %x, %i dim 0 bounds gather", 4, RuntimeError, BEYOND.format(4)),
        ("graph.gather %x, %i dim 0 bounds target", 9, IndexError, "Target 9 is out of bounds."),
    ],
)
def test_a_bad_index_raises_what_eager_raises(op: str, index: int, exception: type[Exception], message: str) -> None:
    text = (
        f"func.func @main(%x: tensor<4xf32>, %i: tensor<1xi64>) -> tensor<1xf32> {{\n"
        f"  %y = {op} : (tensor<4xf32>, tensor<1xi64>) -> tensor<1xf32>\n  func.return %y : tensor<1xf32>\n}}"
    )
    with pytest.raises(exception) as caught:
        run(text, torch.zeros(4), torch.tensor([index]))
    assert str(caught.value) == message


@pytest.mark.parametrize("number", [-0.25, 1.5, float("nan")])
def test_no_probability_raises_what_eager_raises(number: float) -> None:
    text = (
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %y = graph.probability %x : tensor<2xf32>\n  func.return %y : tensor<2xf32>\n}"
    )
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        run(text, torch.tensor([0.5, number]))


@pytest.mark.parametrize("op", ["floordiv", "truncdiv", "remainder", "fmod"])
def test_an_integer_division_by_0_raises_what_eager_raises(op: str) -> None:
    text = (
        f"func.func @main(%x: tensor<2xi64>, %y: tensor<2xi64>) -> tensor<2xi64> {{\n"
        f"  %z = graph.{op} %x, %y : tensor<2xi64>\n  func.return %z : tensor<2xi64>\n}}"
    )
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(text, torch.tensor([1, 2]), torch.tensor([1, 0]))


@pytest.mark.parametrize(("op", "wrapped"), [("floordiv", -128), ("truncdiv", -128), ("remainder", 0), ("fmod", 0)])
def test_the_least_integer_divided_by_minus_one_wraps(op: str, wrapped: int) -> None:
    text = (
        f"func.func @main(%x: tensor<1xi8>, %y: tensor<1xi8>) -> tensor<1xi8> {{\n"
        f"  %z = graph.{op} %x, %y : tensor<1xi8>\n  func.return %z : tensor<1xi8>\n}}"
    )
    (found,) = run(text, torch.tensor([-128], dtype=torch.int8), torch.tensor([-1], dtype=torch.int8))
    assert found.tolist() == [wrapped]


def test_a_sum_of_many_floats_is_rounded_once() -> None:
    x = torch.full((1 << 14,), 0.1)
    (found,) = run(unary("graph.sum %x [0]", "tensor<16384xf32>", "tensor<f32>"), x)
    assert float(found) == np.float32(np.float64(np.float32(0.1)) * (1 << 14))


def test_arguments_must_be_as_their_types_say() -> None:
    module = parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }")
    with pytest.raises(InterpreterError, match=r"argument 0 of @main: expected float32 of shape \(4,\), got .*\(5,\)"):
        run(module, torch.zeros(5))
    with pytest.raises(InterpreterError, match="got int64"):
        run(module, torch.zeros(4, dtype=torch.int64))


def test_an_extern_defines_the_sizes_of_what_follows() -> None:
    text = f"""
    func.func @main(%s0: index, %x: tensor<?xf32, {LAYOUT}<(s0), (1)>>, %count: tensor<i64>)
        -> (tensor<?xf32, {LAYOUT}<(s1 * 2), (1)>>, index)
        attributes {{stepwell.symbols = [
          #stepwell.symbol<s0, 0, ?>, #stepwell.symbol<s1, 0, ?>, #stepwell.symbol<s2, 0, ?>]}} {{
      %n = graph.extern "aten.nonzero.default"(%x) defines (s1 = size(0, 0))
        : (tensor<?xf32, {LAYOUT}<(s0), (1)>>) -> tensor<?x1xi64, {LAYOUT}<(s1, 1), (1, s1)>>
      %k = graph.extern "aten._local_scalar_dense.default"(%count) defines (s2 = value(0)) : (tensor<i64>) -> index
      %y = graph.full f32<3.0> : tensor<?xf32, {LAYOUT}<(s1 * 2), (1)>>
      %size = graph.size (s0 * 100 + s1 * 10 + s2) : index
      func.return %y, %size : tensor<?xf32, {LAYOUT}<(s1 * 2), (1)>>, index
    }}"""
    x = torch.tensor([0.0, 1.0, 2.0, 0.0])
    y, size = run(text, 4, x, torch.tensor(7), extern=eager_extern)
    assert y.tolist() == [3.0] * 4
    assert size == 427

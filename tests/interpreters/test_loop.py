"""Each op of the loop level by what it documents, and the rules of the level as errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepwell.ir.errors import InterpreterError
from stepwell.ir.interpret import interpret
from stepwell.tests.interpreters.support import parse

X = np.arange(12, dtype="f4").reshape(3, 4)


def call(text: str, *arguments: Any) -> list[Any]:
    return list(interpret(parse(text), arguments))


def kernel(body: str, result: str = "3x4xf32", arguments: str = "%x: tensor<3x4xf32>", init: str = "") -> str:
    """A function of one kernel with destination %o."""
    start = f" = {init}" if init else ""
    return (
        f"func.func @main({arguments}) -> tensor<{result}> {{\n"
        f'  %y = loop.kernel "k" outs(%o : memref<{result}>{start}) -> tensor<{result}> {{\n{body}\n  }}\n'
        f"  func.return %y : tensor<{result}>\n}}"
    )


# -- nests -------------------------------------------------------------------------------------------


def test_a_parallel_nest_runs_for_every_index() -> None:
    text = kernel(
        """loop.parallel (%i, %j) to (4, 3) {
             %v = loop.read %x[%j, %i] : tensor<3x4xf32>
             loop.write %v, %o[%i, %j] : memref<4x3xf32>
           }""",
        "4x3xf32",
    )
    np.testing.assert_array_equal(call(text, X)[0], X.T)


def test_nests_within_nests_see_the_scalars_around() -> None:
    text = kernel(
        """loop.parallel (%i) to (3) {
             %s = loop.reduce (%j) to (4) [add] -> f32 {
               %v = loop.read %x[%i, %j] : tensor<3x4xf32>
               loop.yield %v : f32
             }
             loop.parallel (%j) to (4) {
               %v = loop.read %x[%i, %j] : tensor<3x4xf32>
               %q = arith.divf %v, %s : f32
               loop.write %q, %o[%i, %j] : memref<3x4xf32>
             }
           }"""
    )
    np.testing.assert_array_equal(call(text, X)[0], X / X.sum(1, keepdims=True))


COMBINERS: dict[str, dict[str, np.ufunc]] = {
    "f32": {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum},
    "i8": {
        "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    },
    "i1": {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "max": np.logical_or},
}  # fmt: skip
DTYPES = {"f32": "f4", "i8": "i1", "i1": "?"}


def reduction(combiner: str, type_: str, columns: int) -> str:
    return kernel(
        f"""loop.parallel (%i) to (3) {{
             %s = loop.reduce (%j) to ({columns}) [{combiner}] -> {type_} {{
               %v = loop.read %x[%i, %j] : tensor<3x{columns}x{type_}>
               loop.yield %v : {type_}
             }}
             loop.write %s, %o[%i] : memref<3x{type_}>
           }}""",
        f"3x{type_}",
        f"%x: tensor<3x{columns}x{type_}>",
    )


@pytest.mark.parametrize(("type_", "combiner"), [(t, c) for t, table in COMBINERS.items() for c in table])
def test_a_reduction_combines(type_: str, combiner: str) -> None:
    x = np.random.default_rng(1).integers(-128 if type_ == "i8" else -2, 128 if type_ == "i8" else 3, (3, 7))
    x = x.astype(DTYPES[type_])
    ufunc = COMBINERS[type_][combiner]
    (found,) = call(reduction(combiner, type_, 7), x)
    np.testing.assert_array_equal(found, ufunc.reduce(x, axis=1, dtype=x.dtype))


@pytest.mark.parametrize(("combiner", "expected"), [("maxu", 0x80), ("minu", 1)])
def test_unsigned_combiners_compare_bits(combiner: str, expected: int) -> None:
    x = np.array([[1, -128, 127]] * 3, "i1")
    assert call(reduction(combiner, "i8", 3), x)[0].view("u1").tolist() == [expected] * 3


@pytest.mark.parametrize(
    ("combiner", "type_", "identity"),
    [
        ("add", "f32", 0), ("mul", "f32", 1), ("max", "f32", -np.inf), ("min", "f32", np.inf), ("max", "i8", -128),
        ("min", "i8", 127), ("and", "i8", -1), ("or", "i8", 0), ("minu", "i8", -1), ("and", "i1", True),
        ("or", "i1", False),
    ],
)  # fmt: skip
def test_a_reduction_of_nothing_is_the_identity(combiner: str, type_: str, identity: Any) -> None:
    (found,) = call(reduction(combiner, type_, 0), np.zeros((3, 0), DTYPES[type_]))
    assert found.tolist() == [identity] * 3


@pytest.mark.parametrize(
    ("row", "maximum", "minimum"),
    [
        ([1.0, 3.0, 3.0, -1.0], 1, 3),
        ([2.0, np.nan, 5.0, np.nan], 1, 1),
        ([0.0, -0.0, 0.0, -0.0], 0, 0),
        ([np.inf, -np.inf, np.inf, -np.inf], 0, 1),
    ],
)
def test_argmax_and_argmin_take_the_first_extremum_or_nan(row: list[float], maximum: int, minimum: int) -> None:
    for combiner, expected in (("argmax", maximum), ("argmin", minimum)):
        text = kernel(
            f"""%m, %k = loop.reduce (%j) to (4) [{combiner}] -> f32, i64 {{
                 %v = loop.read %x[%j] : tensor<4xf32>
                 %n = loop.index [%j] : i64
                 loop.yield %v, %n : f32, i64
               }}
               loop.write %k, %o[] : memref<i64>""",
            "i64",
            "%x: tensor<4xf32>",
        )
        assert int(call(text, np.array(row, "f4"))[0]) == expected


def test_several_combiners_and_dims_at_once() -> None:
    text = """
    func.func @main(%x: tensor<3x4xf32>) -> (tensor<f32>, tensor<f32>) {
      %a, %b = loop.kernel "k" outs(%p : memref<f32>, %q : memref<f32>) -> tensor<f32>, tensor<f32> {
        %m, %s = loop.reduce (%i, %j) to (3, 4) [max, add] -> f32, f32 {
          %v = loop.read %x[%i, %j] : tensor<3x4xf32>
          loop.yield %v, %v : f32, f32
        }
        loop.write %m, %p[] : memref<f32>
        loop.write %s, %q[] : memref<f32>
      }
      func.return %a, %b : tensor<f32>, tensor<f32>
    }"""
    assert [float(value) for value in call(text, X)] == [11.0, 66.0]


def test_what_a_body_yields_for_every_index_alike_counts_for_every_index() -> None:
    text = kernel(
        """%one = arith.constant 1.0 : f32
           %s = loop.reduce (%i, %j) to (3, 4) [add] -> f32 { loop.yield %one : f32 }
           loop.write %s, %o[] : memref<f32>""",
        "f32",
    )
    assert float(call(text, X)[0]) == 12.0


def test_for_runs_in_order_and_carries() -> None:
    text = kernel(
        """%zero = arith.constant 0.0 : f32
           loop.parallel (%i) to (3) {
             %last = loop.for (%j) to (4) carry (%sum = %zero : f32) {
               %v = loop.read %x[%i, %j] : tensor<3x4xf32>
               %half = arith.addf %sum, %sum : f32
               %next = arith.addf %half, %v : f32
               loop.write %next, %o[%i, %j] : memref<3x4xf32>
               loop.yield %next : f32
             }
           }"""
    )
    expected = np.zeros_like(X)
    for j in range(4):
        expected[:, j] = (2 * expected[:, j - 1] if j else 0) + X[:, j]
    np.testing.assert_array_equal(call(text, X)[0], expected)


def test_an_empty_nest_does_nothing() -> None:
    text = kernel(
        """%zero = arith.constant 0 : i64
           %never = arith.constant false
           loop.parallel (%i, %j) to (0, 4) {
             %v = loop.read %x[7, 7] : tensor<3x4xf32>
             loop.assert %never, %zero, "IndexError", "{}"
             loop.write %v, %o[9, %j] : memref<3x4xf32>
           }""",
        init="%x",
    )
    np.testing.assert_array_equal(call(text, X)[0], X)


# -- accesses ----------------------------------------------------------------------------------------


def test_maps_with_symbols_divisions_and_computed_indices() -> None:
    layout = "#stepwell.layout<(s0), (1)>"
    text = f"""
    func.func @main(%s0: index, %x: tensor<?xf32, {layout}>, %at: tensor<2xi64>) -> tensor<?xf32, {layout}> {{
      %y = loop.kernel "k" outs(%o : memref<?xf32>) -> tensor<?xf32, {layout}> {{
        loop.parallel (%i) to (s0) {{
          %n = loop.read %at[%i mod 2] : tensor<2xi64>
          %k = arith.index_cast %n : i64 to index
          %v = loop.read %x[(%i floordiv 2 + %k) mod s0] : tensor<?xf32, {layout}>
          loop.write %v, %o[s0 - 1 - %i] : memref<?xf32>
        }}
      }}
      func.return %y : tensor<?xf32, {layout}>
    }}"""
    x, at = np.arange(5, dtype="f4"), np.array([1, 3])
    expected = [x[(i // 2 + at[i % 2]) % 5] for i in range(5)]
    assert call(text, 5, x, at)[0].tolist() == expected[::-1]


def test_a_guarded_read_touches_nothing_where_the_guard_fails() -> None:
    text = kernel(
        """%other = arith.constant -1.0 : f32
           %three = arith.constant 3 : i64
           loop.parallel (%i, %j) to (3, 4) {
             %n = loop.index [%j + 1] : i64
             %inside = arith.cmpi sle, %n, %three : i64
             %v = loop.read %x[%i, %j + 1] if %inside else %other : tensor<3x4xf32>
             loop.write %v, %o[%i, %j] : memref<3x4xf32>
           }"""
    )
    expected = np.concatenate([X[:, 1:], np.full((3, 1), -1, "f4")], 1)
    np.testing.assert_array_equal(call(text, X)[0], expected)


def test_a_local_is_private_to_one_iteration() -> None:
    text = kernel(
        """loop.parallel (%i) to (3) {
             %row = loop.local (4) : memref<4xf32>
             loop.parallel (%j) to (4) {
               %v = loop.read %x[%i, %j] : tensor<3x4xf32>
               loop.write %v, %row[3 - %j] : memref<4xf32>
             }
             loop.parallel (%j) to (4) {
               %v = loop.read %row[%j] : memref<4xf32>
               loop.write %v, %o[%i, %j] : memref<3x4xf32>
             }
           }"""
    )
    np.testing.assert_array_equal(call(text, X)[0], X[:, ::-1])


@pytest.mark.parametrize(("combiner", "expected"), [("add", [1 + 6, 9, 1]), ("max", [4, 5, 1]), ("mul", [6, 20, 1])])
def test_writes_that_combine_meet_in_one_element(combiner: str, expected: list[int]) -> None:
    text = kernel(
        f"""loop.parallel (%i) to (5) {{
             %v = loop.read %x[%i] : tensor<5xi64>
             %n = loop.read %at[%i] : tensor<5xi64>
             %k = arith.index_cast %n : i64 to index
             loop.write %v, %o[%k] {combiner} : memref<3xi64>
           }}""",
        "3xi64",
        "%x: tensor<5xi64>, %at: tensor<5xi64>, %start: tensor<3xi64>",
        "%start",
    )
    x, at = np.array([2, 4, 3, 5, 1]), np.array([0, 1, 0, 1, 0])
    start = np.array([{"add": 1, "max": 4, "mul": 1}[combiner], {"add": 0, "max": 0, "mul": 1}[combiner], 1])
    assert call(text, x, at, start)[0].tolist() == expected


def test_unsigned_elements_are_scalars_without_sign() -> None:
    text = kernel(
        """loop.parallel (%i) to (3) {
             %v = loop.read %x[%i] : tensor<3xui8>
             %w = arith.extui %v : i8 to i32
             %n = arith.addi %w, %w : i32
             %t = arith.trunci %n : i32 to i8
             loop.write %t, %o[%i] : memref<3xui8>
           }""",
        "3xui8",
        "%x: tensor<3xui8>",
    )
    (found,) = call(text, np.array([1, 100, 200], "u1"))
    assert found.dtype == np.uint8
    assert found.tolist() == [2, 200, 144]


def test_philox_gives_the_words_of_the_published_vectors() -> None:
    text = """
    func.func @main(%seed: tensor<i64>, %counter: tensor<2xi64>) -> tensor<2xi32> {
      %y = loop.kernel "k" outs(%o : memref<2xi32>) -> tensor<2xi32> {
        loop.parallel (%i) to (2) {
          %s = loop.read %seed[] : tensor<i64>
          %c = loop.read %counter[%i] : tensor<2xi64>
          %b = loop.philox %s, %c stream 0 : i32
          loop.write %b, %o[%i] : memref<2xi32>
        }
      }
      func.return %y : tensor<2xi32>
    }"""
    (found,) = call(text, np.array(0), np.array([0, 1]))
    assert found.view("u4")[0] == 0x6627E8D5
    assert found[0] != found[1]


# -- errors ------------------------------------------------------------------------------------------


def test_an_assertion_raises_the_named_exception_once_the_kernel_has_ended() -> None:
    text = kernel(
        """%limit = arith.constant 2 : i64
           loop.parallel (%i) to (4) {
             %n = loop.index [%i] : i64
             %ok = arith.cmpi slt, %n, %limit : i64
             loop.assert %ok, %n, "IndexError", "index {} is bad"
             loop.write %n, %o[%i] : memref<4xi64>
           }""",
        "4xi64",
    )
    with pytest.raises(IndexError) as caught:
        call(text, X)
    assert str(caught.value) == "index 2 is bad"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "loop.parallel (%i, %j) to (3, 4) { %v = loop.read %x[%i + 1, %j] : tensor<3x4xf32>\n"
            "loop.write %v, %o[%i, %j] : memref<3x4xf32> }",
            "expected an index below 3 along dim 0, got 3",
        ),
        (
            "loop.parallel (%i, %j) to (3, 4) { %v = loop.read %x[%i, %j] : tensor<3x4xf32>\n"
            "loop.write %v, %o[%i, %j - 1] : memref<3x4xf32> }",
            "expected an index below 4 along dim 1, got -1",
        ),
        (
            "loop.parallel (%i, %j) to (3, 3) { %v = loop.read %x[%i, %j] : tensor<3x4xf32>\n"
            "loop.write %v, %o[%i, %j] : memref<3x4xf32> }",
            r"kernel k: expected a write of every element of result 0, got none of \(0, 3\)",
        ),
        (
            "loop.parallel (%i, %j) to (3, 4) { %v = loop.read %x[%i, %j] : tensor<3x4xf32>\n"
            "loop.write %v, %o[0, %j] : memref<3x4xf32> }",
            "expected one write of each element, got a second one",
        ),
        (
            "loop.parallel (%i, %j) to (3, 4) { %v = loop.read %o[%i, %j] : memref<3x4xf32>\n"
            "loop.write %v, %o[%i, %j] : memref<3x4xf32> }",
            "expected an element that was written before",
        ),
    ],
)
def test_what_the_level_forbids_is_an_error(body: str, message: str) -> None:
    with pytest.raises(InterpreterError, match=message):
        call(kernel(body), X)

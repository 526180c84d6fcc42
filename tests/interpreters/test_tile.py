"""Each op of the tile level by what it documents, and the rules of the level as errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepwell.ir.arithmetic import Array
from stepwell.ir.errors import InterpreterError
from stepwell.ir.interpret import Interpretation
from stepwell.ir.tile.interpreter import Traffic
from stepwell.tests.interpreters.support import parse


def launch(
    body: str, *inputs: Any, result: str = "8xf32", grid: str = "1", finish: str = "", errors: str = "", init: str = "",
    symbols: str = "",
) -> tuple[Array, Traffic]:  # fmt: skip
    """Runs a kernel `@k(%a, %b, …, %o)` on arrays: the result `%o`, and what it moved."""
    names = [f"%{chr(ord('a') + k)}" for k in range(len(inputs))]
    types = [_tensor(value) for value in inputs]
    element = result.split("x")[-1]
    arguments = [*(f"{n} : memref<?x{t.split('x')[-1][:-1]}>" for n, t in zip(names, types, strict=True))]
    arguments += [f"%o : memref<?x{element}>", *([f"%{symbols} : index"] if symbols else [])]
    attributes = f" attributes {{stepwell.symbols = [#stepwell.symbol<{symbols}, 0, ?>]}}" if symbols else ""
    ending = f" finish {{\n^bb0({', '.join(arguments)}):\n{finish}\n}}" if finish else ""
    out = f"{init} : {types[names.index(init)]} -> tensor<{result}>" if init else f"tensor<{result}>"
    text = (
        f"func.func @main({', '.join(f'{n}: {t}' for n, t in zip(names, types, strict=True))}) -> tensor<{result}> {{\n"
        f"  %y = host.launch @k ins({', '.join(f'{n} : {t}' for n, t in zip(names, types, strict=True))}) outs({out})"
        f"{' symbols (5)' if symbols else ''}\n  func.return %y : tensor<{result}>\n}}\n"
        f"tile.kernel @k({', '.join(arguments)}) grid ({grid}){attributes} {errors} {{\n{body}\n}}{ending}"
    )
    run = Interpretation(parse(text))
    (found,) = run.call(inputs)
    return found, run.traffic[0]


ELEMENTS = {"f4": "f32", "i8": "i64", "i1": "i8", "i4": "i32", "b1": "i1"}


def _tensor(value: Any) -> str:
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{ELEMENTS[value.dtype.str[1:]]}>"


def call(*arguments: Any, **options: Any) -> Any:
    return launch(*arguments, **options)[0]


X = np.arange(8, dtype="f4")
UNWRITTEN = "expected an element that was written before, got element 1"

# -- programs and loops ------------------------------------------------------------------------------


def test_programs_know_their_number_and_their_count() -> None:
    body = """%p = tile.program_id : index
              %n = tile.grid_size : index
              %k = tile.index [%p * 10 + %n] : i64
              tile.store %k, %o[%p] strides () : i64, memref<?xi64>"""
    assert call(body, result="4xi64", grid="4").tolist() == [4, 14, 24, 34]


def test_symbols_are_the_trailing_arguments() -> None:
    body = """%p = tile.program_id : index
              %k = tile.index [s0 * 2 + %p] : i64
              tile.store %k, %o[s0 - 1 - %p] strides () : i64, memref<?xi64>"""
    assert call(body, result="5xi64", grid="s0", symbols="s0").tolist() == [14, 13, 12, 11, 10]


def test_the_finish_region_runs_once_after_all_programs() -> None:
    body = """%p = tile.program_id : index
              %v = tile.load %a[%p] strides () : memref<?xf32> -> f32
              tile.store %v, %o[%p] strides () : f32, memref<?xf32>"""
    finish = """%v = tile.load %o[0] strides (1) : memref<?xf32> -> vector<8xf32>
                %s = tile.reduce add %v dim 0 : vector<8xf32>
                tile.store %s, %o[0] strides () : f32, memref<?xf32>"""
    assert call(body, X, grid="8", finish=finish).tolist() == [28, *range(1, 8)]


def test_a_loop_masks_the_lanes_beyond_its_bound_and_carries() -> None:
    body = """%z = arith.constant 0.0 : f32
              %zero = tile.broadcast %z dims [] : f32 -> vector<4xf32>
              %sum = tile.for %j, %mask = [1] to [7] step 4 carry (%acc = %zero : vector<4xf32>) {
                %v = tile.load %a[%j] strides (1) mask %mask : memref<?xf32> -> vector<4xf32>
                %next = arith.addf %acc, %v : vector<4xf32>
                tile.yield %next : vector<4xf32>
              }
              tile.store %sum, %o[0] strides (1) : vector<4xf32>, memref<?xf32>"""
    assert call(body, X, result="4xf32").tolist() == [1 + 5, 2 + 6, 3, 4]


def test_a_loop_without_mask_steps_up_to_its_bound() -> None:
    body = """tile.for %j = [0] to [8] step 3 {
                %v = tile.load %a[%j] strides () : memref<?xf32> -> f32
                tile.store %v, %o[%j floordiv 3] strides () : f32, memref<?xf32>
                tile.yield
              }"""
    assert call(body, X, result="3xf32").tolist() == [0, 3, 6]


# -- memory ------------------------------------------------------------------------------------------


def test_strided_blocks_of_two_dims() -> None:
    body = """%v = tile.load %a[1] strides (4, 2) : memref<?xf32> -> vector<2x2xf32>
              %t = tile.transpose %v : vector<2x2xf32> -> vector<2x2xf32>
              tile.store %t, %o[0] strides (2, 1) : vector<2x2xf32>, memref<?xf32>"""
    assert call(body, X, result="4xf32").tolist() == [1, 5, 3, 7]


LANES = """%lane = tile.iota 0 : vector<4xi64>
           %two = arith.constant 2 : i64
           %limit = tile.broadcast %two dims [] : i64 -> vector<4xi64>
           %mask = tile.compare slt %lane, %limit : vector<4xi64>
           %other = arith.constant -1.0 : f32
           %others = tile.broadcast %other dims [] : f32 -> vector<4xf32>"""


def test_lanes_that_a_mask_excludes_touch_nothing_and_hold_the_other_value() -> None:
    body = f"""{LANES}
              %v = tile.load %a[6] strides (1) mask %mask else %others : memref<?xf32> -> vector<4xf32>
              %w = tile.load %a[6] strides (1) mask %mask : memref<?xf32> -> vector<4xf32>
              tile.store %v, %o[0] strides (1) : vector<4xf32>, memref<?xf32>
              tile.store %w, %o[4] strides (1) : vector<4xf32>, memref<?xf32>
              tile.store %others, %o[6] strides (1) mask %mask : vector<4xf32>, memref<?xf32>"""
    assert call(body, X).tolist() == [6, 7, -1, -1, 6, 7, -1, -1]


def test_gather_and_scatter() -> None:
    body = f"""{LANES}
              %at = tile.load %b[0] strides (1) : memref<?xi64> -> vector<4xi64>
              %v = tile.gather %a[%at] : memref<?xf32>, vector<4xi64>
              %w = tile.gather %a[%at] mask %mask else %others : memref<?xf32>, vector<4xi64>
              tile.scatter %v, %o[%lane] : vector<4xf32>, memref<?xf32>, vector<4xi64>
              %four = tile.index [4] : i64
              %fours = tile.broadcast %four dims [] : i64 -> vector<4xi64>
              %next = arith.addi %lane, %fours : vector<4xi64>
              tile.scatter %w, %o[%next] : vector<4xf32>, memref<?xf32>, vector<4xi64>"""
    assert call(body, X, np.array([7, 0, 3, 3])).tolist() == [7, 0, 3, 3, 7, 0, -1, -1]


@pytest.mark.parametrize(("combiner", "expected"), [("", 3.0), ("add", 7.0), ("max", 3.0), ("mul", 6.0), ("min", 1.0)])
def test_lanes_of_a_scatter_act_in_ascending_order(combiner: str, expected: float) -> None:
    body = f"""{LANES}
              %v = tile.load %b[0] strides (1) : memref<?xf32> -> vector<4xf32>
              %zero = tile.index [0] : i64
              %same = tile.broadcast %zero dims [] : i64 -> vector<4xi64>
              %three = arith.constant 3 : i64
              %bound = tile.broadcast %three dims [] : i64 -> vector<4xi64>
              %most = tile.compare slt %lane, %bound : vector<4xi64>
              tile.scatter %v, %o[%same] mask %most {combiner} : vector<4xf32>, memref<?xf32>, vector<4xi64>"""
    found = call(body, np.array([1], "f4"), np.array([1, 2, 3, 9], "f4"), result="1xf32", init="%a")
    assert found.tolist() == [expected]


def test_a_store_combines() -> None:
    body = """%v = tile.load %a[0] strides (1) : memref<?xf32> -> vector<8xf32>
              tile.store %v, %o[0] strides (1) add : vector<8xf32>, memref<?xf32>"""
    assert call(body, X, init="%a").tolist() == (2 * X).tolist()


def test_scratch_belongs_to_one_program() -> None:
    body = """%p = tile.program_id : index
              %row = tile.scratch 2 : memref<?xf32>
              %v = tile.load %a[%p] strides () : memref<?xf32> -> f32
              tile.store %v, %row[1] strides () : f32, memref<?xf32>
              %w = tile.load %row[1] strides () : memref<?xf32> -> f32
              tile.store %w, %o[%p] strides () : f32, memref<?xf32>"""
    assert call(body, X, grid="8").tolist() == X.tolist()
    unset = body.replace("tile.store %v, %row[1]", "tile.store %v, %row[0]")
    with pytest.raises(InterpreterError, match=rf"tile\.load: {UNWRITTEN}"):
        call(unset, X, grid="8")


@pytest.mark.parametrize(
    ("access", "who"),
    [
        ("%v = tile.load %a[5] strides (1) : memref<?xf32> -> vector<4xf32>", "load"),
        ("%v = tile.load %a[-1] strides () : memref<?xf32> -> f32", "load"),
        ("%e = tile.index [8] : i64\n%v = tile.gather %a[%e] : memref<?xf32>, i64", "gather"),
        ("%e = tile.index [8] : i64\n%s = arith.constant 1.0 : f32\n"
         "tile.scatter %s, %o[%e] : f32, memref<?xf32>, i64", "scatter"),
        ("%s = arith.constant 1.0 : f32\ntile.store %s, %o[8] strides () : f32, memref<?xf32>", "store"),
    ],
)  # fmt: skip
def test_an_access_outside_of_a_buffer_is_an_error(access: str, who: str) -> None:
    with pytest.raises(InterpreterError, match=rf"tile\.{who}: expected elements below 8, got element (8|-1)"):
        call(access, X)


def test_a_result_that_is_not_written_is_an_error() -> None:
    body = "%s = arith.constant 1.0 : f32\ntile.store %s, %o[0] strides () : f32, memref<?xf32>"
    with pytest.raises(InterpreterError, match=rf"host\.launch: {UNWRITTEN}"):
        call(body)


# -- blocks ------------------------------------------------------------------------------------------


def test_iota_and_broadcast_along_either_dim() -> None:
    body = """%r = tile.iota 0 : vector<2x4xi64>
              %c = tile.iota 1 : vector<2x4xi64>
              %row = tile.load %a[0] strides (1) : memref<?xi64> -> vector<4xi64>
              %column = tile.load %a[0] strides (1) : memref<?xi64> -> vector<2xi64>
              %x = tile.broadcast %row dims [1] : vector<4xi64> -> vector<2x4xi64>
              %y = tile.broadcast %column dims [0] : vector<2xi64> -> vector<2x4xi64>
              %t0 = arith.addi %r, %c : vector<2x4xi64>
              %t1 = arith.addi %x, %y : vector<2x4xi64>
              %t2 = arith.addi %t0, %t1 : vector<2x4xi64>
              tile.store %t2, %o[0] strides (4, 1) : vector<2x4xi64>, memref<?xi64>"""
    a = np.array([10, 20, 30, 40])
    expected = np.indices((2, 4)).sum(0) + a + a[:2, None]
    assert call(body, a, result="2x4xi64").tolist() == expected.tolist()


@pytest.mark.parametrize("combiner", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_reduction_combines_lanes_of_one_dim(combiner: str, dim: int) -> None:
    size = 4 if dim == 0 else 2
    body = f"""%v = tile.load %a[0] strides (4, 1) : memref<?xf32> -> vector<2x4xf32>
               %s = tile.reduce {combiner} %v dim {dim} : vector<2x4xf32>
               tile.store %s, %o[0] strides (1) : vector<{size}xf32>, memref<?xf32>"""
    ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[combiner]
    np.testing.assert_array_equal(call(body, X, result=f"{size}xf32"), ufunc.reduce(X.reshape(2, 4), dim))


def test_argmax_of_lanes() -> None:
    body = """%v = tile.load %a[0] strides (1) : memref<?xf32> -> vector<4xf32>
              %i = tile.load %b[0] strides (1) : memref<?xi64> -> vector<4xi64>
              %m, %n = tile.reduce argmax %v, %i dim 0 : vector<4xf32>, vector<4xi64>
              tile.store %n, %o[0] strides () : i64, memref<?xi64>"""
    index = np.array([9, 8, 3, 7])
    for values, expected in (([1, 5, 5, 2], 3), ([1, np.nan, 5, np.nan], 7), ([4, 4, 4, 4], 3)):
        assert call(body, np.array(values, "f4"), index, result="1xi64").tolist() == [expected]


def test_select_by_lanes_and_by_one_condition() -> None:
    body = f"""{LANES}
              %v = tile.load %a[0] strides (1) : memref<?xf32> -> vector<4xf32>
              %no = arith.constant false
              %s = tile.select %mask, %v, %others : vector<4xi1>, vector<4xf32>
              %t = tile.select %no, %v, %others : i1, vector<4xf32>
              tile.store %s, %o[0] strides (1) : vector<4xf32>, memref<?xf32>
              tile.store %t, %o[4] strides (1) : vector<4xf32>, memref<?xf32>"""
    assert call(body, X).tolist() == [0, 1, -1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("kind", "source", "target", "values", "expected"),
    [
        ("extsi", "i8", "i32", [-1, 100], [-1, 100]),
        ("extui", "i8", "i32", [-1, 100], [255, 100]),
        ("extsi", "i1", "i32", [True, False], [-1, 0]),
        ("trunci", "i32", "i8", [257, -129], [1, 127]),
        ("sitofp", "i8", "f32", [-1, 3], [-1.0, 3.0]),
        ("uitofp", "i8", "f32", [-1, 3], [255.0, 3.0]),
        ("fptosi", "f32", "i8", [-3.9, 300.5], [-3, 44]),
        ("fptosi", "f32", "i32", [np.nan, 3e9], [-(1 << 31), -(1 << 31)]),
        ("fptoui", "f32", "i32", [3e9, 1.9], [3_000_000_000 - (1 << 32), 1]),
    ],
)
def test_convert(kind: str, source: str, target: str, values: list[Any], expected: list[Any]) -> None:
    body = f"""%v = tile.load %a[0] strides (1) : memref<?x{source}> -> vector<2x{source}>
               %w = tile.convert {kind} %v : vector<2x{source}> -> vector<2x{target}>
               tile.store %w, %o[0] strides (1) : vector<2x{target}>, memref<?x{target}>"""
    dtype = {name: code for code, name in ELEMENTS.items()}[source]
    array = np.array(values, "?" if dtype == "b1" else dtype)
    assert call(body, array, result=f"2x{target}").tolist() == expected


def test_philox_of_a_block() -> None:
    body = """%seed = arith.constant 0 : i64
              %lane = tile.iota 0 : vector<2xi64>
              %b = tile.philox %seed, %lane stream 0 : vector<2xi64>
              tile.store %b, %o[0] strides (1) : vector<2xi32>, memref<?xi32>"""
    assert call(body, result="2xi32").view("u4")[0] == 0x6627E8D5


# -- errors and traffic ------------------------------------------------------------------------------


def test_the_first_failed_assertion_raises_after_all_programs() -> None:
    body = f"""{LANES}
              %p = tile.program_id : index
              %n = tile.index [%p] : i64
              %at = tile.broadcast %n dims [] : i64 -> vector<4xi64>
              %ok = tile.compare eq %lane, %at : vector<4xi64>
              tile.assert %ok, %lane mask %mask code 2 : vector<4xi64>
              tile.store %n, %o[%p] strides () : i64, memref<?xi64>"""
    with pytest.raises(RuntimeError) as caught:
        call(body, result="3xi64", grid="3", errors='errors ["IndexError", "first {}", "RuntimeError", "second {}"]')
    assert str(caught.value) == "second 1"


def test_traffic_counts_active_lanes_and_distinct_elements() -> None:
    body = f"""{LANES}
              %v = tile.load %a[0] strides (1) mask %mask : memref<?xf32> -> vector<4xf32>
              %w = tile.load %a[1] strides (1) mask %mask : memref<?xf32> -> vector<4xf32>
              %s = tile.scratch 4 : memref<?xf32>
              tile.store %v, %s[0] strides (1) : vector<4xf32>, memref<?xf32>
              tile.store %w, %o[0] strides (1) : vector<4xf32>, memref<?xf32>"""
    _, traffic = launch(body, X, result="4xf32")
    assert (traffic.loaded, traffic.stored) == (16, 32)
    assert traffic.read == (12, 0)
    assert traffic.written == (0, 16)

"""When a kernel may write over its input: a kernel that may, and kernels that differ from it in one respect."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from stepwell.ir import host, tile
from stepwell.ir.shapes import tensor_type
from stepwell.ir.tile.ops import WARPS
from stepwell.lowering.host.in_place import overwrites_safely, run_overwrites_safely
from stepwell.tests.interpreters.support import parse

LOAD = "%v = tile.load %x[%p * 8] strides (1) mask %m : memref<?xf32> -> vector<8xf32>"
STORE = "tile.store %v, %o[%p * 8] strides (1) mask %m : vector<8xf32>, memref<?xf32>"
AGAIN = LOAD.replace("%v", "%w")
MORE = "%w = tile.load %x[%p * 8] strides (1) : memref<?xf32> -> vector<16xf32>"
NEW_LINE = "\n"


def kernel(*body: str, output: str = "f32", attributes: str = "", finish: str | None = None) -> tile.KernelOp:
    """A kernel of a body behind a few values: programs, other places, masks."""
    arguments = f"memref<?xf32>, %y : memref<?xf32>, %o : memref<?x{output}>"
    end = "" if finish is None else f"finish {{ ^bb0(%xf : {arguments.replace(' :', 'f :')}): {finish} }}"
    text = f"""
    tile.kernel @k(%x : {arguments}) grid (4) {attributes} {{
      %p = tile.program_id : index
      %q = tile.index [%p * 3] : index
      %m = arith.constant dense<true> : vector<8xi1>
      %n = arith.constant dense<false> : vector<8xi1>
      %at = tile.iota 0 : vector<8xi64>
      {NEW_LINE.join(body)}
    }} {end}"""
    made = parse(text).body.block.first_op
    assert isinstance(made, tile.KernelOp)
    return made


def is_safe(made: tile.KernelOp) -> bool:
    source, _, target = made.block.args
    return overwrites_safely(made, source, target)


def test_an_element_that_is_read_where_it_is_written_may_be_overwritten() -> None:
    assert is_safe(kernel(LOAD, STORE))
    assert is_safe(kernel(LOAD, AGAIN, STORE))
    assert is_safe(kernel(LOAD, "%w = arith.negf %v : vector<8xf32>", STORE.replace("%v", "%w")))


def loop(body: str) -> str:
    return f"tile.for %j = [0] to [2] step 1 {{\n{body}\ntile.yield\n}}"


ZERO = "%v = arith.constant dense<0.0> : vector<8xf32>"

UNSAFE = {
    "another place is read": (LOAD.replace("8]", "8 + 1]"), STORE),
    "a place by another value is read": (LOAD.replace("%p * 8", "%q * 8"), STORE),
    "a place by no value is read": (LOAD.replace("%p * 8", "8"), STORE),
    "other strides are read": (LOAD.replace("(1)", "(2)"), STORE),
    "other lanes are read": (LOAD.replace("%m", "%n"), STORE),
    "all lanes are read": (LOAD.replace("mask %m", ""), STORE),
    "more lanes are read": (ZERO, MORE, STORE.replace("mask %m", "")),
    "it is read again behind that": (LOAD, STORE, AGAIN),
    "it is read in several steps": (loop(LOAD), ZERO.replace("%v", "%w"), STORE.replace("%v", "%w")),
    "it is written in several steps": (LOAD, loop(STORE)),
    "places are computed to read": (ZERO, "%w = tile.gather %x[%at] : memref<?xf32>, vector<8xi64>", STORE),
    "places are computed to write": (LOAD, "tile.scatter %v, %o[%at] : vector<8xf32>, memref<?xf32>, vector<8xi64>"),
    "results are combined": (LOAD, STORE.replace(" :", " add :")),
    "results are written twice": (LOAD, STORE, STORE),
    "nothing is written": (LOAD,),
}
"""Why a kernel may not write over what it reads → its body."""


@pytest.mark.parametrize("why", UNSAFE)
def test_nothing_is_overwritten_when(why: str) -> None:
    assert not is_safe(kernel(*UNSAFE[why]))


def test_nothing_is_overwritten_by_elements_of_another_type() -> None:
    cast = "%w = tile.convert fptosi %v : vector<8xf32> -> vector<8xi32>"
    store = STORE.replace("%v", "%w").replace("f32", "i32")
    assert not is_safe(kernel(LOAD, cast, store, output="i32"))


@pytest.mark.parametrize(("used", "safe"), [("%xf", False), ("%of", False), ("%yf", True)])
def test_nothing_is_overwritten_that_is_read_when_all_programs_are_done(used: str, safe: bool) -> None:
    assert is_safe(kernel(LOAD, STORE, finish=f"%a = tile.load {used}[0] strides () : memref<?xf32> -> f32")) is safe


@pytest.mark.parametrize(("lanes", "warps", "safe"), [(32, 2, False), (64, 2, True), (8, 1, True), (31, 1, True)])
def test_nothing_is_overwritten_of_which_several_threads_hold_copies(lanes: int, warps: int, safe: bool) -> None:
    body = (text.replace("8x", f"{lanes}x").replace("mask %m", "") for text in (LOAD, STORE))
    assert is_safe(kernel(*body, attributes=f"attributes {{{WARPS} = {warps} : i32}}")) is safe


def test_a_buffer_may_be_given_away_that_is_passed_twice_if_each_of_its_reads_is_safe() -> None:
    buffer = host.BufferType.of(tensor_type(f32, [32]))
    source, other, target = (host.AllocOp.make(buffer).buffer for _ in range(3))
    shifted = "%w = tile.load %y[%p * 8 + 1] strides (1) : memref<?xf32> -> vector<8xf32>"

    def may_give(made: tile.KernelOp, *inputs: SSAValue) -> bool:
        return run_overwrites_safely(made, host.RunOp.make("k", inputs, [target]), source, target)

    plain, shifting = kernel(LOAD, STORE), kernel(LOAD, shifted, STORE)
    assert may_give(plain, source, other)
    assert may_give(plain, source, source)
    assert may_give(shifting, source, other)
    assert not may_give(shifting, other, source)
    assert not may_give(shifting, source, source)

"""Programs that random search once found to change their meaning, as small as they could be made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stepwell.ir.arithmetic import Array
from stepwell.ir.interpret import interpret
from stepwell.tests.interpreters.support import assert_same, parse
from stepwell.tests.property.test_programs import FUSION, after


@dataclass(frozen=True)
class Counterexample:
    """A function's signature, ops and result, and what it is called with."""

    name: str
    signature: str
    ops: str
    arguments: tuple[Array, ...]

    @property
    def text(self) -> str:
        types = self.signature.split("->")[1].strip(" ()")
        names = "%r" if types.count("tensor") == 1 else "%r, %g"
        return f"func.func @main{self.signature} {{\n{self.ops}\nfunc.return {names} : {types}\n}}"


COUNTEREXAMPLES = (
    Counterexample(
        "index_put_of_nothing",  # the loop over the indices ended in the nest that is skipped
        "(%x: tensor<0x2xf32>, %i: tensor<0xi64>) -> tensor<0x2xf32>",
        """%r = graph.index_put %x, %x, %i dims [0] bounds index
             : (tensor<0x2xf32>, tensor<0x2xf32>, tensor<0xi64>) -> tensor<0x2xf32>""",
        (np.zeros((0, 2), "f4"), np.zeros(0, "i8")),
    ),
    Counterexample(
        "insert_slice_of_nothing_by_steps",  # the extent (0 - 1) * 2 + 1 was compared as an unsigned number
        "(%x: tensor<2xf32>, %v: tensor<0xf32>) -> tensor<2xf32>",
        "%r = graph.insert_slice %x, %v from (1) step (2) : (tensor<2xf32>, tensor<0xf32>) -> tensor<2xf32>",
        (np.array([1, 2], "f4"), np.zeros(0, "f4")),
    ),
    Counterexample(
        "guarded_scalar_else_block",  # only the other value of the read varied along lanes
        "(%x: tensor<1x8xf32>, %v: tensor<0x8xf32>) -> tensor<1x8xf32>",
        """%r = graph.insert_slice %x, %v from (1, 0) step (1, 1)
             : (tensor<1x8xf32>, tensor<0x8xf32>) -> tensor<1x8xf32>""",
        (np.arange(8, dtype="f4").reshape(1, 8), np.zeros((0, 8), "f4")),
    ),
    Counterexample(
        "guarded_read_hoisted_from_an_empty_nest",  # the guard held, but the tensor has no element
        "(%x: tensor<2x0xi64>, %i: tensor<2x0xi64>) -> (tensor<2x0xi64>, tensor<2x0xi64>)",
        """%a = graph.add %x, %x : tensor<2x0xi64>
           %s = graph.slice %a from (1, 0) step (1, 1) : (tensor<2x0xi64>) -> tensor<1x0xi64>
           %r = graph.insert_slice %a, %s from (1, 0) step (1, 1)
             : (tensor<2x0xi64>, tensor<1x0xi64>) -> tensor<2x0xi64>
           %g = graph.gather %a, %i dim 1 bounds gather : tensor<2x0xi64>""",
        (np.zeros((2, 0), "i8"), np.zeros((2, 0), "i8")),
    ),
    Counterexample(
        "local_of_unsigned_bytes",  # scratch had an element type that no block has
        "(%x: tensor<1x5x3xui8>, %i: tensor<i64>) -> tensor<5x1xui8>",
        """%a = graph.and %x, %x : tensor<1x5x3xui8>
           %p = graph.permute %a [1, 0, 2]
             : (tensor<1x5x3xui8>) -> tensor<5x1x3xui8, #stepwell.layout<(5, 1, 3), (3, 15, 1)>>
           %r = graph.index %p, %i dims [2] bounds index
             : (tensor<5x1x3xui8, #stepwell.layout<(5, 1, 3), (3, 15, 1)>>, tensor<i64>) -> tensor<5x1xui8>""",
        (np.arange(15, dtype="u1").reshape(1, 5, 3) + 200, np.array(2)),
    ),
    Counterexample(
        "random_numbers_in_a_slice",  # the guard made a seed of each lane's own
        "(%s: tensor<i64>) -> tensor<8xi32>",
        """%z = graph.full i32<0> : tensor<8xi32>
           %a = graph.random %s stream 1 : (tensor<i64>) -> tensor<8xi32>
           %v = graph.slice %a from (2) step (1) : (tensor<8xi32>) -> tensor<6xi32>
           %r = graph.insert_slice %z, %v from (2) step (1) : (tensor<8xi32>, tensor<6xi32>) -> tensor<8xi32>""",
        (np.array(7),),
    ),
)

STAGES = (
    ("convert-graph-to-loop",),
    ("convert-graph-to-loop", "convert-loop-to-tile"),
    ("convert-graph-to-loop", *FUSION, "convert-loop-to-tile"),
)


@pytest.mark.parametrize("stage", STAGES, ids=["loop", "tile", "fused"])
@pytest.mark.parametrize("example", COUNTEREXAMPLES, ids=lambda example: example.name)
def test_the_meaning_stays(example: Counterexample, stage: tuple[str, ...]) -> None:
    module = parse(example.text)
    expected = interpret(module, example.arguments)
    for found, value in zip(interpret(after(module, *stage), example.arguments), expected, strict=True):
        assert_same(found, value)

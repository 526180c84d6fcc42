"""Scalar code on lanes: what index expressions come to, and what has no place for each lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stepwell.ir.arithmetic import Array
from stepwell.ir.errors import LoweringError
from stepwell.tests.interpreters.support import lowered, run, to_tensor

COUNT = 37

PLACES: dict[str, Callable[[int], int]] = {
    "%i ceildiv 3": lambda i: -(-i // 3),
    "(%i + 5) ceildiv s0": lambda i: -(-(i + 5) // 4),
    "%i floordiv 3 * 2": lambda i: i // 3 * 2,
    "%i mod 5": lambda i: i % 5,
    "(%i * 7) mod s0": lambda i: i * 7 % 4,
    "min(%i, 7)": lambda i: min(i, 7),
    "max(%i - 9, s0)": lambda i: max(i - 9, 4),
    "min(%i, 7) * s0 + %i mod 3": lambda i: min(i, 7) * 4 + i % 3,
    "40 - %i": lambda i: 40 - i,
    "s0 * 2": lambda i: 8,
}
"""An index expression → what it comes to where s0 is 4."""


def kernel(body: str, start: str = "") -> str:
    return f"""
    func.func @main(%x: tensor<64xi64>, %z: tensor<{COUNT}xi64>, %s0: index) -> tensor<{COUNT}xi64>
        attributes {{stepwell.symbols = [#stepwell.symbol<s0, 1, 8>]}} {{
      %y = loop.kernel "places" outs(%o : memref<{COUNT}xi64>{start}) -> tensor<{COUNT}xi64> {{
        loop.parallel (%i) to ({COUNT}) {{
          {body}
        }}
      }}
      func.return %y : tensor<{COUNT}xi64>
    }}"""


def results(text: str, numbers: Array) -> list[int]:
    zeros = np.zeros(COUNT, np.int64)
    (result,) = run(lowered(text, "convert-loop-to-tile"), to_tensor(numbers), to_tensor(zeros), 4)
    found: list[int] = result.tolist()
    return found


@pytest.mark.parametrize("place", PLACES)
def test_an_index_expression_along_lanes_is_what_it_is_for_each(place: str) -> None:
    numbers = np.arange(64)[::-1].copy()
    expected = [PLACES[place](i) for i in range(COUNT)]
    for value, wanted in (
        (f"%v = loop.index [{place}] : i64", expected),
        (f"%v = loop.read %x[{place}] : tensor<64xi64>", numbers[expected].tolist()),
    ):
        text = kernel(f"{value}\n          loop.write %v, %o[%i] : memref<{COUNT}xi64>")
        assert results(text, numbers) == wanted


def test_lanes_may_add_to_one_place() -> None:
    body = f"""
          %v = loop.read %x[%i] : tensor<64xi64>
          loop.write %v, %o[3] add : memref<{COUNT}xi64>"""
    found = results(kernel(body, " = %z"), np.arange(64))
    assert found == [0, 0, 0, sum(range(COUNT)), *[0] * (COUNT - 4)]


def test_lanes_may_not_differ_in_one_place() -> None:
    text = kernel(f"""
          %v = loop.read %x[%i] : tensor<64xi64>
          loop.write %v, %o[3] : memref<{COUNT}xi64>""")
    with pytest.raises(LoweringError, match="a place for each lane"):
        lowered(text, "convert-loop-to-tile")

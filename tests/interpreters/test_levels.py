"""Every graph op, lowered to the loop and to the tile level, against eager."""

from __future__ import annotations

import pytest

from stepwell.ir import loop
from stepwell.tests.interpreters.cases import Case, all_cases
from stepwell.tests.interpreters.support import assert_same, eager_extern, lowered, run

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op_at_the_loop_level(case: Case) -> None:
    module = lowered(case.text, "convert-graph-to-loop")
    (found,) = run(module, *case.inputs, extern=eager_extern)
    assert_same(found, case.expected, case.rtol, signed_zeros=case.signed_zeros)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op_at_the_tile_level(case: Case) -> None:
    module = lowered(case.text, "convert-graph-to-loop", "convert-loop-to-tile")
    assert not any(isinstance(op, loop.KernelOp) for op in module.walk())
    (found,) = run(module, *case.inputs, extern=eager_extern)
    assert_same(found, case.expected, case.rtol, signed_zeros=case.signed_zeros)

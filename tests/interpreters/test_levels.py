"""Every graph op, lowered to the loop and to the tile level, against eager."""

from __future__ import annotations

import pytest
import torch

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


ERRORS = (
    Case("index", "graph.index {0}, {1} dims [0] bounds index", (torch.zeros(4), torch.tensor([-5])), torch.zeros(1)),
    Case("gather", "graph.gather {0}, {1} dim 0 bounds gather", (torch.zeros(4), torch.tensor([0, 4])), torch.zeros(2)),
    Case("target", "graph.gather {0}, {1} dim 0 bounds target", (torch.zeros(4), torch.tensor([9])), torch.zeros(1)),
    Case(
        "scatter",
        "graph.scatter {0}, {1}, {2} dim 0 bounds gather with add",
        (torch.zeros(4), torch.tensor([0, 7]), torch.ones(2)),
        torch.zeros(4),
    ),
    Case("division", "graph.floordiv {0}, {1}", (torch.tensor([1, 2]), torch.tensor([1, 0])), torch.tensor([0, 0])),
)


@pytest.mark.parametrize("passes", [("convert-graph-to-loop",), ("convert-graph-to-loop", "convert-loop-to-tile")])
@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.name)
def test_every_level_raises_what_the_graph_level_raises(case: Case, passes: tuple[str, ...]) -> None:
    with pytest.raises((IndexError, RuntimeError)) as expected:
        run(case.text, *case.inputs)
    with pytest.raises(expected.type) as found:
        run(lowered(case.text, *passes), *case.inputs)
    assert str(found.value) == str(expected.value)

"""The sweep's other ways of calling operators: they find what plain calls do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from stepwell.benchmarks.coverage.cases import Call, Extent, operators, plain_case, samples_of
from stepwell.benchmarks.coverage.running import by_dynamo
from stepwell.benchmarks.coverage.sweep import tried
from stepwell.benchmarks.coverage.ways import WAYS

TRIED = {
    "dynamic": "slice",
    "unbacked": "flip",
    "vmap": "nn.functional.softsign",
    "jvp": "__rmatmul__",
    "grad": "nn.functional.silu",
    "autocast": "nn.functional.linear",
    "types": "sub",
}
"""Way → an operator that went wrong by it, or nearly."""


def operator_of(name: str) -> Any:
    return next(op for op in operators() if op.full_name == name)


@pytest.mark.parametrize("way", WAYS)
def test_an_operator_equals_eager_in_every_way(way: str) -> None:
    result = tried(operator_of(TRIED[way]), torch.float32, Extent(samples=4, ways=(way,)))
    assert result.wrong == {}
    assert result.passed


@pytest.mark.parametrize("sizes", ["dynamic", "unbacked"])
def test_one_graph_serves_other_sizes(sizes: str) -> None:
    call = Call.of(lambda x, start: x[start:] * 2, (torch.randn(5), -3), {})
    counter: Any = CompileCounter()
    compiled = by_dynamo(counter, sizes)(call, call.tensors)
    for size in (5, 7):
        x = torch.randn(size)
        (found,) = compiled(x)
        assert torch.equal(found, x[-3:] * 2)
    assert counter.frame_count == 1


def test_types_are_tried_one_operand_at_a_time() -> None:
    op, extent = operator_of("sub"), Extent(samples=1)
    ((number, sample),) = samples_of(op, torch.float32, extent)
    cases = [*WAYS["types"](op, sample, plain_case(op, torch.float32, extent, number, sample))]
    types = {case.name: [tensor.dtype for tensor in case.call.tensors] for case in cases}
    assert types["0 in bool"] == [torch.bool, torch.bool]
    assert types["0 operand 1 in bool"] == [torch.float32, torch.bool]

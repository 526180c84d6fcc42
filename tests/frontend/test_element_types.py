"""Element types that torch's fake tensors promise and eager's kernels do not give."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from stepwell.frontend.fakes import correct_fakes

aten = torch.ops.aten

X, WEIGHT, MEANS = torch.randn(2, 8, 4, 4), torch.randn(8), torch.zeros(2, 2)
RUNNING = (torch.zeros(8), torch.ones(8))
ROW = torch.randn(4)

CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "batch": (aten._native_batch_norm_legit.no_stats, (WEIGHT, WEIGHT, True, 0.1, 1e-5)),
    "batch_running": (aten._native_batch_norm_legit_functional, (WEIGHT, WEIGHT, *RUNNING, True, 0.1, 1e-5)),
    "batch_plain": (aten._native_batch_norm_legit_functional, (None, None, *RUNNING, True, 0.1, 1e-5)),
    "batch_alone": (aten._native_batch_norm_legit.no_stats, (None, None, True, 0.1, 1e-5)),
    "batch_inference": (aten._native_batch_norm_legit_no_training, (WEIGHT, WEIGHT, *RUNNING, 0.1, 1e-5)),
    "batch_update": (aten._batch_norm_with_update_functional, (WEIGHT, WEIGHT, *RUNNING, 0.1, 1e-5)),
    "layer": (aten.native_layer_norm, ([4], ROW, ROW, 1e-5)),
    "layer_plain": (aten.native_layer_norm, ([4], None, None, 1e-5)),
    "group": (aten.native_group_norm, (WEIGHT, WEIGHT, 2, 8, 16, 2, 1e-5)),
    "group_gradient": (
        aten.native_group_norm_backward,
        (X, MEANS, MEANS, WEIGHT, 2, 8, 16, 2, [True, True, True]),
    ),
}


def types_of(results: Any) -> list[torch.dtype]:
    return [value.dtype for value in results]


def corrected(target: Any, arguments: list[Any]) -> list[torch.dtype]:
    """The types of an op's results in a graph whose fakes were mended."""
    graph, mode = fx.Graph(), FakeTensorMode()
    operands: list[Any] = []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            operands.append(graph.placeholder(f"x{len(operands)}"))
            operands[-1].meta["val"] = mode.from_tensor(value)
        else:
            operands.append(value)
    node = graph.call_function(getattr(target, "default", target), tuple(operands))
    with mode:
        node.meta["val"] = target(*fx.map_arg(tuple(operands), lambda operand: operand.meta["val"]))
    graph.output(node)
    correct_fakes(fx.GraphModule({}, graph))
    return types_of(node.meta["val"])


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("low", ["input", "all"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_norms_give_the_types_of_eager(name: str, low: str, dtype: torch.dtype) -> None:
    target, rest = CALLS[name]
    arguments: list[Any] = [X, *rest]
    for position, value in enumerate(arguments):
        if isinstance(value, torch.Tensor) and (low == "all" or value is X):  # a gradient is of the data's type
            arguments[position] = value.to(dtype)
    assert corrected(target, arguments) == types_of(target(*arguments))

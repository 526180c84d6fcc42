"""Strides that torch's fake tensors promise and eager's kernels do not give."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from stepwell.frontend.strides import correct_strides

Strides: TypeAlias = list[tuple[int, ...]]


def gradients_of_attention(*, shared: bool) -> tuple[Strides, Strides]:
    """Strides of the results of attention's backward op, as fake and as corrected, where heads lie before rows."""
    target = torch.ops.aten._efficient_attention_backward.default
    graph = fx.Graph()
    with FakeTensorMode():
        heads = [torch.empty(2, 4, 16, 8).transpose(1, 2) for _ in range(4)]
        sums, seed = torch.empty(2, 4, 32), torch.empty((), dtype=torch.int64)
        values: list[Any] = [*heads, None, heads[0], None, None, 16, 16, sums, 0.0, seed, seed, 0, False]
        # the op's order: gradient, query, key, value, bias, result, lengths, …
    operands: list[Any] = []
    for number, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            node = graph.placeholder(f"x{number}")
            node.meta["val"] = value
            operands.append(node)
        else:
            operands.append(value)
    node = graph.call_function(target, tuple(operands), {"shared_storage_dqdkdv": shared})
    with heads[0].fake_mode:  # type: ignore[attr-defined]
        node.meta["val"] = target(*values, shared_storage_dqdkdv=shared)
    before = [value.stride() for value in node.meta["val"][:3]]
    graph.output(node)
    correct_strides(fx.GraphModule({}, graph))
    return before, [value.stride() for value in node.meta["val"][:3]]


def test_gradients_of_attention_are_row_major() -> None:
    promised, corrected = gradients_of_attention(shared=False)
    assert promised == [(512, 8, 128, 1)] * 3
    assert corrected == [(512, 32, 8, 1)] * 3


def test_gradients_of_attention_may_share_memory() -> None:
    promised, corrected = gradients_of_attention(shared=True)
    assert corrected == promised

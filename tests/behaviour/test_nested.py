"""Nested tensors with a ragged dim: what AOTAutograd takes apart and puts together again, by the offsets' identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stepwell.tests.behaviour.comparison import compiled, same

PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: x.sin() * 2 + x,
    "layer norm": lambda x: functional.layer_norm(x, (4,)),
    "linear": lambda x: functional.gelu(functional.linear(x, torch.ones(5, 4))),
    "softmax": lambda x: functional.softmax(x, -1),
    "padded": lambda x: torch.nested.to_padded_tensor(x, 0.0),
}


def ragged(*lengths: int) -> Tensor:
    rows = [torch.randn(length, 4) for length in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)


def dense(x: Any) -> list[Tensor]:
    return [x.values(), x.offsets()] if x.is_nested else [x]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    function = PROGRAMS[name]
    fast = compiled(function)
    for lengths in ((2, 3, 5), (1, 4, 2, 2)):
        x = ragged(*lengths)
        found, expected = fast(x), function(x)
        same(dense(found), dense(expected))
        gradients = [torch.autograd.grad(dense(value)[0].sum(), x)[0] for value in (found, expected)]
        same(*map(dense, gradients))

"""What models are compared with: a truth that no cast rounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from stepwell.tests.models.accuracy import in_double

CASTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "float": lambda x: x.float(),
    "to": lambda x: x.to(torch.float32),
    "type": lambda x: x.type(torch.float32),
    "softmax": lambda x: torch.softmax(x, -1, dtype=torch.float32),
    "sum": lambda x: x.sum(-1, dtype=torch.float32),
    "zeros": lambda x: torch.zeros(3, dtype=torch.float32) + x,
}


class Casting(nn.Module):
    def __init__(self, cast: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.cast = cast

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cast(x / 3)


@pytest.mark.parametrize("name", CASTS)
def test_no_cast_rounds_the_truth(name: str) -> None:
    x = torch.tensor([1.0, 2.0, 5.0])
    found = in_double(Casting(CASTS[name]))(x=x)
    assert found.dtype == torch.float64
    third = x.double() / 3
    exact = {"softmax": lambda: third.softmax(-1), "sum": lambda: third.sum(-1)}.get(name, lambda: third)()
    assert torch.equal(found, exact)


def test_a_cast_to_a_narrow_type_is_one() -> None:
    found = in_double(Casting(lambda x: x.to(torch.bfloat16)))(x=torch.ones(2))
    assert found.dtype == torch.bfloat16

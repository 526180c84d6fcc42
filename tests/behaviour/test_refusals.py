"""What eager refuses, the compiled function refuses with the same type of exception."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from stepwell.tests.behaviour.comparison import compiled

REFUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "a probability above 1": lambda x: torch.bernoulli(x, 1.5),
    "a probability below 0, in place": lambda x: x.clone().bernoulli_(-0.1),
    "a probability that is no number": lambda x: torch.bernoulli(x, float("nan")),
    "probabilities above 1": lambda x: torch.bernoulli(x + 0.5),
    "a dim that is not there": lambda x: x.softmax(5),
    "a dim that is not there, from the end": lambda x: x.log_softmax(-2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    function = REFUSED[name]
    with pytest.raises((RuntimeError, IndexError)) as expected:
        function(torch.ones(4))
    with pytest.raises(expected.type):
        compiled(function)(torch.ones(4))

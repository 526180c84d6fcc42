"""What further processes run: a function compiled there, and outputs that come from here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

LARGE = 600 * 1024
"""Elements of a float32 tensor whose storage the pool keeps."""


def function(x: Tensor) -> Tensor:
    return torch.softmax(x, -1) * 2 + x.sum()


compiled = torch.compile(function, backend="stepwell")


def compute(inputs: Any, outputs: Any) -> None:
    """Answers each tensor of the first queue by what the function compiled here makes of it; None ends it."""
    while (x := inputs.get()) is not None:
        outputs.put(compiled(x))
    inputs.get()  # stays until its tensors are taken


class Computed(Dataset[Tensor]):
    """Samples that a compiled function makes, in whichever process asks for them."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, position: int) -> Tensor:
        return compiled(torch.arange(8.0) + position)

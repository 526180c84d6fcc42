"""Group norms of every arrangement: moments by channel or by group, channels that are neighbours or apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

SHAPES = {
    "places": (3, 12, 7, 9),
    "few places": (3, 12, 5, 5),
    "one place": (5, 12),
    "a row": (3, 12, 70),
    "one group of lines": (2, 32, 6, 7),
    "volumes": (2, 12, 3, 4, 5),
}
GROUPS = (2, 4)
EAGER_IN_DOUBLE = 100
"""Units in the last place by which eager may be wrong where nothing is more exact."""

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def inputs(shape: Sequence[int], dtype: torch.dtype, *, channels_last: bool) -> list[Tensor]:
    """What is normalised about 3, a weight, a bias, and what is multiplied by the result."""
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(size, generator=generator) for size in (shape, shape[1:2], shape[1:2], shape)]
    x, weight, bias, grad = ((value + 3 * (k == 0)).to(dtype) for k, value in enumerate(made))
    if channels_last:
        x, grad = (value.to(memory_format=LAST[len(shape)]) for value in (x, grad))
    return [*(value.requires_grad_() for value in (x, weight, bias)), grad]


def results(norm: Callable[..., Tensor], x: Tensor, weight: Tensor, bias: Tensor, grad: Tensor) -> list[Tensor]:
    output = norm(x, weight, bias)
    return [output, *torch.autograd.grad(output, [x, weight, bias], grad)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_layouts(name: str, channels_last: bool, dtype: torch.dtype) -> None:
    shape = SHAPES[name]
    if channels_last and len(shape) not in LAST:
        pytest.skip("torch has no channels-last layout of that many dims")
    given = inputs(shape, dtype, channels_last=channels_last)
    for groups in (count for count in GROUPS if shape[1] % count == 0 and shape[1] > count):

        def norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int = groups) -> Tensor:
            return F.silu(F.group_norm(x, groups, weight, bias))

        torch._dynamo.reset()
        found = results(torch.compile(norm, backend="stepwell", options={"strict": True}), *given)
        eager = results(norm, *given)
        exact = results(norm, *(value.detach().double().requires_grad_() for value in given))
        for one, reference, truth in zip(found, eager, exact, strict=True):
            assert (one.dtype, one.shape, one.stride()) == (reference.dtype, reference.shape, reference.stride())
            unit = torch.finfo(dtype).eps * truth.abs().max()
            allowed = 2 * (reference - truth).abs().max() + 2 * unit
            assert (one - truth).abs().max() <= (allowed if dtype != torch.float64 else EAGER_IN_DOUBLE * unit)


def test_channels_that_differ_by_far() -> None:
    """Each has another mean, beside which it hardly varies: what they vary by is not lost."""
    x = torch.randn(2, 8, 40, 40, generator=torch.Generator().manual_seed(0)) * 1e-2
    x += torch.arange(8.0).reshape(8, 1, 1) * 100
    for layout in (torch.contiguous_format, torch.channels_last):
        laid = x.contiguous(memory_format=layout)
        found = torch.compile(F.group_norm, backend="stepwell")(laid, 2)
        exact = F.group_norm(laid.double(), 2)
        assert (found - exact).abs().max() <= 2 * (F.group_norm(laid, 2) - exact).abs().max() + 1e-6

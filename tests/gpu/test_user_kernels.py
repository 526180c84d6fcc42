"""Triton kernels of the user's own, in compiled functions on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="a user of Triton has it")

import triton
from triton import language as tl

from stepwell.tests.behaviour.comparison import check, compiled, same
from stepwell.tests.behaviour.user_kernels import BLOCK, PROGRAMS, as_an_operator, between_kernels

SIZE = 3 * BLOCK + 5


def _arguments(gpu: torch.device, size: int = SIZE) -> list[Tensor]:
    return [torch.randn(size, device=gpu), torch.randn(size, device=gpu)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_eager(gpu: torch.device, name: str) -> None:
    check(PROGRAMS[name], lambda: _arguments(gpu))


def test_any_size(gpu: torch.device) -> None:
    fast = compiled(between_kernels)
    for size in (5, 200, 1000):
        x, y = _arguments(gpu, size)
        same(fast(x, y), between_kernels(x, y))


def test_gradients_of_an_operator(gpu: torch.device) -> None:
    x, y = (tensor.requires_grad_() for tensor in _arguments(gpu))
    found, expected = compiled(as_an_operator)(x, y), as_an_operator(x, y)
    same(found, expected)
    same(torch.autograd.grad(found.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y)))


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["count"])
@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def doubled(x_pointer, out_pointer, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    tl.store(out_pointer + places, tl.load(x_pointer + places, mask=inside) * 2, mask=inside)


def test_a_kernel_that_is_tuned(gpu: torch.device) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        out = torch.empty_like(x)
        doubled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out.sin() + y

    check(function, lambda: _arguments(gpu))

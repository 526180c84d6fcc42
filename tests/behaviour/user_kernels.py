"""Triton kernels as a user writes them, programs that launch them, and what each computes in plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor
from torch.library import triton_op, wrap_triton
from triton import language as tl

BLOCK = 128


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def weighted_sum(x_pointer, y_pointer, out_pointer, count, weight, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    x = tl.load(x_pointer + places, mask=inside)
    y = tl.load(y_pointer + places, mask=inside)
    tl.store(out_pointer + places, x + y * weight, mask=inside)


def _launch(kernel: Any, x: Tensor, y: Tensor, out: Tensor, weight: float) -> None:
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, out, x.numel(), weight, BLOCK=BLOCK)


def between_kernels(x: Tensor, y: Tensor) -> Tensor:
    """What goes in is computed, and so is what comes out."""
    first = x.sin() * 2
    out = torch.empty_like(first)
    _launch(weighted_sum, first, y, out, 3.0)
    return out.exp() + x


def with_a_grid_function(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    weighted_sum[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), 2.0, BLOCK=BLOCK)
    return out * 2


def into_an_argument(x: Tensor, y: Tensor) -> Tensor:
    """The kernel writes into y itself; what was computed of it before stays as it was."""
    before = y * 2
    _launch(weighted_sum, x, y, y, 3.0)
    return before + y


def in_turn(x: Tensor, y: Tensor) -> Tensor:
    """The second launch reads and overwrites what the first wrote."""
    out = torch.zeros_like(x)
    _launch(weighted_sum, x, y, out, 1.0)
    _launch(weighted_sum, out, x, out, 2.0)
    return out


@triton_op("stepwell_tests::weighted", mutates_args={})
def weighted(x: Tensor, y: Tensor, weight: float) -> Tensor:
    out = torch.empty_like(x)
    _launch(wrap_triton(weighted_sum), x, y, out, weight)
    return out


weighted.register_autograd(
    lambda ctx, gradient: (gradient, gradient * ctx.weight, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "weight", inputs[2]),
)


def as_an_operator(x: Tensor, y: Tensor) -> Tensor:
    result: Tensor = weighted(x.cos(), y, 3.0).tanh()
    return result


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    program.__name__: program
    for program in (between_kernels, with_a_grid_function, into_an_argument, in_turn, as_an_operator)
}

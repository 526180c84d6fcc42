"""Results have eager's strides, also where torch's fake tensors promise others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

CHANNELS_LAST = torch.channels_last


def x(*sizes: int, format: torch.memory_format = torch.contiguous_format) -> Tensor:
    return torch.randn(*sizes).to(memory_format=format)


def batch_norm(x: Tensor) -> Tensor:
    return functional.batch_norm(x, None, None, training=True) * 2


def batch_norm_reshaped(x: Tensor) -> Tensor:
    """Eager copies in `reshape`; with the strides of the fake it would not have to."""
    return batch_norm(x.transpose(1, 2)).transpose(1, 2).reshape(-1, x.shape[-1])


def unpool(x: Tensor) -> Tensor:
    pooled, indices = functional.max_pool2d(x, 2, return_indices=True)
    return functional.max_unpool2d(pooled, indices, (2, 2))


CASES: dict[str, tuple[Callable[[Tensor], Any], Callable[[], Tensor]]] = {
    "roll along a dim": (lambda x: x.roll(2, 1), lambda: x(2, 3, 4, 5, format=CHANNELS_LAST)),
    "roll of all elements": (lambda x: x.roll(2), lambda: x(2, 3, 4, 5, format=CHANNELS_LAST)),
    "batch norm of a transposed tensor": (batch_norm, lambda: x(4, 5, 6).transpose(0, 2)),
    "batch norm, reshaped": (batch_norm_reshaped, lambda: x(3, 5, 16)),
    "max_unpool2d": (unpool, lambda: x(1, 2, 4, 6, format=CHANNELS_LAST)),
    "replication pad": (
        lambda x: functional.pad(x, (1, 2, -1, 0), "replicate"),
        lambda: x(2, 3, 4, 5, format=CHANNELS_LAST),
    ),
    "zeros_like along a dim of size 1": (torch.zeros_like, lambda: x(3)[1::2]),
    "a sum's gradient": (lambda x: x.sum(), lambda: x(3, 2, 1, 2)),
    "an expanded bf16 operand": (lambda x: (x * x).sum(), lambda: x(2, 3, 4).transpose(0, 2).bfloat16()),
    "channel shuffle": (lambda x: functional.channel_shuffle(x, 2), lambda: x(2, 4, 3, 3, format=CHANNELS_LAST)),
}


UNITS: dict[str, Callable[[Tensor], Any]] = {
    "an operand beside a number": lambda x: [x + 1, x / 2, x > 0, x % 3, 2 - x, x**2],
    "operands that broadcast": lambda x: [x * torch.ones(x.shape[-1]), x.logical_and(x[:, :1]), x // torch.tensor(2.0)],
    "operands of one layout": lambda x: [x + x, x * x.sin(), x - x.contiguous()],
    "copies that keep a layout": lambda x: [x.flip(0), x.clone(), functional.relu6(x), x.nan_to_num()],
    "functions that torch takes apart": lambda x: [x.sinc(), x.isposinf(), x.isneginf(), x.deg2rad(), x.rad2deg()],
    "the logarithm of a sigmoid": lambda x: [functional.logsigmoid(x), functional.logsigmoid(x * 2) + x],
    "views": lambda x: [(x + 1).reshape(-1, 1, x.shape[-1]), x.reshape(x.shape), (x * 2).unsqueeze(1).flatten(0, 1)],
    "a product of three subscripts": lambda x: torch.einsum("...i,j->j...i", x, torch.ones(1)),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("sizes", [(1, 3), (1, 3, 1), (3, 1, 4)], ids=str)
@pytest.mark.parametrize("name", UNITS)
def test_dims_of_size_1_have_eagers_strides(name: str, sizes: tuple[int, ...], dynamic: bool) -> None:
    """They address nothing, but `stride()` shows them."""
    torch._dynamo.reset()
    argument = torch.randn(*sizes).transpose(0, 1)
    compiled = torch.compile(UNITS[name], backend="stepwell", dynamic=dynamic, options={"strict": True})
    assert [value.stride() for value in compiled(argument)] == [value.stride() for value in UNITS[name](argument)]


def test_a_size_that_is_checked_to_be_1_broadcasts() -> None:
    def function(x: Tensor) -> list[Tensor]:
        found = x.nonzero()
        torch._check(found.shape[0] == 1)
        return [found, found + 1, found.expand(3, -1), found.squeeze(0)]

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(function, backend="stepwell", fullgraph=True, options={"strict": True})
        x = torch.tensor([[0.0, 1.0, 0.0]])
        found, expected = compiled(x), function(x)
        assert [value.tolist() for value in found] == [value.tolist() for value in expected]
        assert [value.stride() for value in found] == [value.stride() for value in expected]
        with pytest.raises(RuntimeError):
            compiled(torch.ones(1, 3))


ROWS, COLUMNS = torch.tensor([0, 2, 1, 0, 1, 2]).view(3, 2), torch.tensor([0, 2, 1, 0, 1, 2]).view(2, 3).t()
INDEXED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "the first dim": lambda x, i, j: x[i],
    "a later dim": lambda x, i, j: x[..., i],
    "by int32": lambda x, i, j: x[:, i.int()],
    "of a transposed tensor": lambda x, i, j: x.transpose(0, 2)[:, i],
    "of an expanded tensor": lambda x, i, j: x[:1].expand(4, -1, -1, -1)[i],
    "adjacent dims": lambda x, i, j: x[:, i, j],
    "adjacent dims, the other index before": lambda x, i, j: x[:, j, i],
    "dims that are apart": lambda x, i, j: x[i, :, i],
    "by indices that broadcast": lambda x, i, j: x[i, j[0]],
    "by dims that broadcast": lambda x, i, j: x[j[0], :, i[:, :1]],
    "by a dim of size 1": lambda x, i, j: x[i[:, :1]],
    "by a mask": lambda x, i, j: x[x[:, :, 0, 0] > 0],
    "by places": lambda x, i, j: x[:, (x[0, :, 0] > 0).nonzero()],
    "by the places of one dim": lambda x, i, j: x[(x[:, 0, 0, 0] > 0).nonzero()],
    "what is computed of that": lambda x, i, j: x[i].sin() + 1,
    "a copy that is written": lambda x, i, j: x.transpose(0, 1).index_put((i,), torch.ones(())),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", INDEXED)
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_indices_order_the_dims_as_in_eager(name: str, dynamic: bool) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    arguments = torch.randn(3, 4, 5, 3), COLUMNS, ROWS
    compiled = torch.compile(INDEXED[name], backend="stepwell", dynamic=dynamic, options={"strict": True})
    found, expected = compiled(*arguments), INDEXED[name](*arguments)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)


def with_gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    """Result and gradient, for a leaf of the same strides."""
    leaf = x.detach().requires_grad_()
    result = function(leaf)
    if not result.requires_grad:
        return [result]
    generator = torch.Generator().manual_seed(2)
    seed = torch.randn(result.shape, generator=generator, dtype=result.dtype)
    return [result, *torch.autograd.grad(result, [leaf], seed)]


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_have_eagers_strides(name: str) -> None:
    torch.manual_seed(0)
    function, make = CASES[name]
    argument = make()
    compiled = torch.compile(function, backend="stepwell", options={"strict": True})
    for expected, found in zip(with_gradient(function, argument), with_gradient(compiled, argument), strict=True):
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found, expected)
    assert compiled(argument).stride() == function(argument).stride()


def test_memory_is_read_in_eagers_order() -> None:
    """The second element in memory is another one in another order of dims."""

    def function(x: Tensor) -> Tensor:
        return torch.roll(x, 1, 2).as_strided((6,), (1,))

    argument = x(2, 3, 4, 5, format=CHANNELS_LAST)
    compiled = torch.compile(function, backend="stepwell", options={"strict": True})
    assert torch.equal(compiled(argument), function(argument))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.roll(1, 0),
        lambda x: x * 2 + 1,
        lambda x: torch.stack([x, x], -1),
        lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:]),
    ],
)
@pytest.mark.parametrize("sizes", [(0, 3, 2), (2, 0, 3), (0, 0, 0), (3, 1, 0)], ids=str)
def test_what_has_no_elements_lies_as_eager_has_it(function: Callable[..., Tensor], sizes: tuple[int, ...]) -> None:
    x = torch.zeros(*sizes[:-1], 2 * sizes[-1] + 1)[..., 1::2]
    assert torch.compile(function, backend="stepwell")(x).stride() == function(x).stride()


def test_what_is_written_into_a_repeated_tensor_spreads_it() -> None:
    x, part = torch.zeros(1, 4, 3).expand(5, 4, 3), torch.ones(5, 2, 3)
    for function in (
        lambda x: x.slice_scatter(part, 1, 1, 3),
        lambda x: x.select_scatter(part[:, 0], 1, 2),
        lambda x: x.diagonal_scatter(torch.ones(5, 3), 0, 1, 2),
    ):
        expected, found = function(x), torch.compile(function, backend="stepwell")(x)
        assert torch.equal(found, expected)
        assert found.stride() == expected.stride()


def test_a_saved_result_of_a_transform_is_what_the_gradient_reads() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.fft.rfft(x, dim=0)
        return y, torch.view_as_real(y).square().sum()

    x = torch.randn(4, 3, 6, requires_grad=True)
    y, total = torch.compile(function, backend="stepwell")(x)
    expected, sums = function(x)
    assert y.stride() == expected.stride()
    torch.testing.assert_close(torch.autograd.grad(total, x), torch.autograd.grad(sums, x))


TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "of rows": lambda x: torch.fft.rfft(x),
    "of columns": lambda x: torch.fft.rfft(x, dim=0),
    "back from columns": lambda x: torch.fft.irfft(x.to(torch.complex64), dim=0),
    "of both": lambda x: torch.fft.rfft2(x, dim=(0, 1)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_symbolic_sizes_have_eagers_strides(name: str) -> None:
    function = TRANSFORMS[name]
    compiled = torch.compile(function, backend="stepwell", dynamic=True, options={"strict": True})
    for argument in (x(5, 6), x(4, 8), x(6, 5).t()):
        for expected, found in zip(with_gradient(function, argument), with_gradient(compiled, argument), strict=True):
            assert found.stride() == expected.stride()
            torch.testing.assert_close(found, expected)

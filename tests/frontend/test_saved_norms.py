"""What a backward needs of a norm's result it makes from the norm's input and statistics, where that spares memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from stepwell.frontend.autograd import GraphRole, stepwell_backend
from stepwell.tests.frontend.test_autograd import Recorder

SHAPE = (4, 8, 6, 5)


def parameters(count: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(count, generator=generator).to(dtype).requires_grad_() for _ in range(2)]


def group(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.group_norm(x, 2, w, b)


def batch(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w, b, training=True)


def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w, b)


NORMS: dict[str, tuple[Callable[..., Tensor], int]] = {"group": (group, 8), "batch": (batch, 8), "layer": (layer, 5)}


def saved_elements(function: Callable[..., Any], x: Tensor, others: Sequence[Tensor]) -> int:
    """Elements that a forward returns for its backward, the function's inputs aside; gradients are found right."""
    recorder, found = Recorder(), []

    def compile_graph(gm: Any, inputs: Sequence[Any], role: GraphRole) -> Any:
        if role is GraphRole.FORWARD:
            gm.graph.lint()
            results = gm.graph.output_node().args[0][1:]
            found.append(sum(node.meta["val"].numel() for node in results if node.op != "placeholder"))
        return recorder.compile(gm, inputs, role)

    compiled = torch.compile(function, backend=lambda gm, inputs: stepwell_backend(gm, inputs, compile_graph))
    wanted = [x, *others]
    gradients = [torch.autograd.grad(run(x, *others).float().square().sum(), wanted) for run in (compiled, function)]
    for one, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=3e-2 if x.dtype == torch.bfloat16 else 1e-3)
    (count,) = found
    return int(count)


def input_like(dtype: torch.dtype = torch.float32, *, channels_last: bool = False) -> Tensor:
    x = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0)).to(dtype)
    return (x.to(memory_format=torch.channels_last) if channels_last else x).requires_grad_()


@pytest.mark.parametrize(
    ("name", "channels_last"),
    [("group", False), ("group", True), ("batch", False), ("batch", True), ("layer", False)],
)
def test_only_statistics_are_saved(name: str, channels_last: bool) -> None:
    norm, size = NORMS[name]
    x = input_like(channels_last=channels_last)
    assert saved_elements(lambda *args: F.silu(norm(*args)), x, parameters(size)) < x.numel()


def test_of_a_norm_without_parameters() -> None:
    x = input_like()
    assert saved_elements(lambda x: F.silu(F.group_norm(x, 4)), x, ()) < x.numel()


@pytest.mark.parametrize("name", NORMS)
def test_what_a_product_reads_is_saved(name: str) -> None:
    """It is in memory anyway."""
    norm, size = NORMS[name]
    x, weight = input_like(), torch.randn(5, 3, requires_grad=True)
    found = saved_elements(lambda x, w, b, v: norm(x, w, b) @ v, x, [*parameters(size), weight])
    assert found >= x.numel()


def test_statistics_that_were_rounded_do_not_serve() -> None:
    """Eager's mean is bf16 where all is; the norm was computed by a better one."""
    x = input_like(torch.bfloat16)
    found = saved_elements(lambda *args: F.silu(group(*args)), x, parameters(8, torch.bfloat16))
    assert found >= x.numel()


def test_of_running_statistics_nothing_is_made_anew() -> None:
    mean, variance = torch.zeros(8), torch.ones(8)
    x = input_like()
    saved_elements(lambda x, w, b: F.silu(F.batch_norm(x, mean, variance, w, b)), x, parameters(8))


@pytest.mark.parametrize("policy", [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.MUST_RECOMPUTE])
def test_a_checkpoint_decides_itself(policy: CheckpointPolicy) -> None:
    contexts = partial(create_selective_checkpoint_contexts, lambda context, target, *args, **kwargs: policy)

    def function(x: Tensor, w: Tensor, b: Tensor) -> Any:
        inner = lambda *args: F.silu(group(*args))  # noqa: E731
        return checkpoint(inner, x, w, b, use_reentrant=False, context_fn=contexts)

    x = input_like()
    found = saved_elements(function, x, parameters(8))
    assert (found >= x.numel()) == (policy is CheckpointPolicy.MUST_SAVE)


def test_a_relu_needs_neither_mask_nor_result() -> None:
    x = input_like()
    assert saved_elements(lambda *args: F.relu(batch(*args)) * 2, x, parameters(8)) < x.numel()


def test_a_relu_before_a_product_needs_no_more_than_that() -> None:
    x, weight = input_like(), torch.randn(5, 3, requires_grad=True)
    found = saved_elements(lambda x, w, b, v: F.relu(batch(x, w, b)) @ v, x, [*parameters(8), weight])
    assert x.numel() <= found < 2 * x.numel()


@pytest.mark.parametrize("name", NORMS)
def test_a_result_that_is_made_anew_has_the_same_bits(name: str) -> None:
    """Where the forward gives 0, nothing of the gradient goes through, however close a result is to it."""
    norm, size = NORMS[name]
    shape = (16, 8, 6, 5)
    x = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    weight = torch.rand(size, generator=torch.Generator().manual_seed(1)) + 0.3
    plain = torch.compile(norm, backend="stepwell")(x, weight, torch.zeros(size))
    dim = 3 if name == "layer" else 1
    bias = -torch.stack([part.unique()[0] for part in plain.unbind(dim)]).requires_grad_()
    bias.retain_grad()

    def function(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return F.relu(norm(x, w, b))

    output = torch.compile(function, backend="stepwell")(x, weight, bias)
    (gradient,) = torch.autograd.grad(output.sum(), bias)
    assert (output == 0).any()
    others = [other for other in range(4) if other != dim]
    assert torch.equal(gradient, (output > 0).sum(others).float())


def test_for_any_batch() -> None:
    x, (w, b) = input_like(), parameters(8)
    compiled = torch.compile(lambda *args: F.silu(group(*args)), backend=Recorder().backend, dynamic=True)
    for rows in (2, 3, 4):
        part = x[:rows].detach().requires_grad_()
        gradients = [
            torch.autograd.grad(run(part, w, b).square().sum(), [part, w, b])
            for run in (compiled, lambda *args: F.silu(group(*args)))
        ]
        for one, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-4)

"""Long sums of floats lose no more than eager's, which adds in short runs: no chain of additions is long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from stepwell.frontend.builder import GraphBuilder

Sums = Callable[[Tensor], list[Tensor]]

FACTOR = 1.4
"""Of root mean squares over `SEEDS` inputs. One chain of 64 additions down columns is at 2.5, 32 partial sums that are
added one after the other at 1.6."""

SEEDS = 24


def rows(x: Tensor) -> list[Tensor]:
    return [x.sum(1)]


def columns(x: Tensor) -> list[Tensor]:
    return [x.sum(0)]


def everything(x: Tensor) -> list[Tensor]:
    return [x.sum()]


def norms(x: Tensor) -> list[Tensor]:
    """Of data five deviations from 0: variances as differences of two means are at 2 and 5 times eager's error."""
    return [F.layer_norm(x, x.shape[1:]), F.batch_norm(x, None, None, training=True)]


def variances(x: Tensor) -> list[Tensor]:
    """Which eager forms in f64: two passes in f32 are at 2 to 3 times its error."""
    return [x.var(0), x.std(1), torch.var_mean(x, 1)[0]]


def columns_of_rows(x: Tensor) -> list[Tensor]:
    """What rows add to columns as they pass by."""
    centred = x - x.mean(1, keepdim=True)
    return [x.sum(0), (x * centred).sum(0)]


def error(found: list[list[Tensor]], exact: list[list[Tensor]]) -> list[float]:
    """By result, the root mean square over all inputs."""
    pairs = zip(zip(*found, strict=True), zip(*exact, strict=True), strict=True)
    return [
        (torch.stack(values).double() - torch.stack(truths)).square().mean().sqrt().item() for values, truths in pairs
    ]


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (columns, (64, 512)),
        (columns, (2048, 64)),
        (rows, (16, 20_000)),
        (norms, (64, 512)),
        (variances, (64, 512)),
        (variances, (2048, 64)),
        (everything, (2048, 64)),
        (everything, (64, 512)),
        (columns_of_rows, (2048, 64)),
    ],
)
def test_sums_are_as_exact_as_those_of_eager(function: Sums, shape: tuple[int, int]) -> None:
    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    inputs = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 5 for seed in range(SEEDS)]
    exact = [function(x.double()) for x in inputs]
    ours, eager = (error([run(x) for x in inputs], exact) for run in (compiled, function))
    for own, allowed in zip(ours, eager, strict=True):
        assert own <= FACTOR * allowed


def over_channels(x: Tensor, weight: Tensor) -> list[Tensor]:
    return [F.batch_norm(x, None, None, weight, training=True), F.group_norm(x, 2, weight)]


def test_what_norms_of_bf16_save_for_gradients_is_f32() -> None:
    """Under autocast parameters are f32. Mean and deviation in bf16 would be at hundreds of times eager's error."""
    weight = torch.ones(8, requires_grad=True)

    def gradients(run: Callable[..., list[Tensor]], x: Tensor, weight: Tensor) -> list[Tensor]:
        results = run(x, weight)
        seeds = (torch.cos(torch.arange(x.numel()) * (1 + position)) for position in range(len(results)))
        return [
            torch.autograd.grad(result, weight, seed.to(x).reshape(x.shape), retain_graph=True)[0]
            for result, seed in zip(results, seeds, strict=True)
        ]

    compiled = torch.compile(over_channels, backend="stepwell", fullgraph=True)
    inputs = [torch.randn(16, 8, 4, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in range(SEEDS)]
    exact = [gradients(over_channels, x.double(), weight.double()) for x in inputs]
    found, expected = ([gradients(run, x, weight) for x in inputs] for run in (compiled, over_channels))
    for own, allowed in zip(error(found, exact), error(expected, exact), strict=True):
        assert own <= FACTOR * allowed


def test_a_batch_norm_on_a_gpu_keeps_what_rounding_the_mean_would_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two elements: a few units of each term, 60 and 30 of them where the mean is only subtracted once."""
    monkeypatch.setattr(GraphBuilder, "is_on_cpu", False)

    def norm(x: Tensor) -> Tensor:
        return F.batch_norm(x, None, None, training=True, eps=1e-3)

    generator = torch.Generator().manual_seed(0)
    x, weights = torch.randn(2, 4096, generator=generator) + 3, torch.randn(2, 4096, generator=generator)
    found: list[Tensor] = []
    expected: list[Tensor] = []
    for function, data, results in ((torch.compile(norm, backend="stepwell"), x, found), (norm, x.double(), expected)):
        data = data.requires_grad_()
        output = function(data)
        results += [output.detach(), *torch.autograd.grad((output * weights).sum(), data)]
    scale = (x.double().var(0, unbiased=False) + 1e-3).rsqrt()
    unit = torch.finfo(torch.float32).eps
    assert (found[0] - expected[0]).abs().max() <= 4 * unit
    assert ((found[1] - expected[1]).abs() <= 6 * unit * scale * weights.abs().amax(0)).all()


def test_the_gradient_of_a_batch_norm_is_about_any_mean_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphBuilder, "is_on_cpu", False)

    def gradient(grad: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
        wanted = [True, False, False]
        result: Tensor
        result, *_ = torch.ops.aten.native_batch_norm_backward(
            grad, x, None, None, None, mean, scale, True, 1e-5, wanted
        )
        return result

    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 16, 8, generator=generator)
    mean, scale = torch.rand(2, 8, generator=generator) + 1
    found, expected = (run(grad, x, mean, scale) for run in (torch.compile(gradient, backend="stepwell"), gradient))
    torch.testing.assert_close(found, expected)

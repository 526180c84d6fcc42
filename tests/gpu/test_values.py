"""Values, types and layouts of compiled functions on a GPU, forward and backward, next to eager's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from stepwell.tests.gpu.cases import CASES, Case
from stepwell.tests.gpu.training import losses
from stepwell.tests.models.accuracy import Results, assert_as_accurate_as_eager, outputs_of, to_double


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="stepwell", fullgraph=True, **options)


def gradients(function: Callable[..., Any], inputs: Sequence[Tensor]) -> Results:
    """Of all floating inputs, for a weighted sum of all floating results."""
    arguments = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    leaves = [x for x in arguments if x.requires_grad]
    results = [value for value in outputs_of(function(*arguments)).values() if value.requires_grad]
    weights = [torch.linspace(-1, 1, value.numel(), device=value.device).reshape(value.shape) for value in results]
    found = torch.autograd.grad(results, leaves, [w.to(r) for w, r in zip(weights, results, strict=True)])
    return {f"gradient {position}": value for position, value in enumerate(found)}


@pytest.mark.parametrize("name", CASES)
def test_forward(name: str, gpu: torch.device) -> None:
    case: Case = CASES[name]
    inputs = [x.to(gpu) for x in case.inputs()]
    eager, exact = (outputs_of(case.function(*values)) for values in (inputs, map(to_double, inputs)))
    assert_as_accurate_as_eager([outputs_of(compiled(case.function)(*inputs))], [eager], [exact])


BACKWARD = [
    "pointwise",
    "broadcast",
    "gelu",
    "gelu bf16",
    "functions",
    "written and summed",
    "written and summed, of prime sizes",
    "rows written and summed",
    "entropy",
    "softmax of pairs of rows",
    "labels",
    "softmax",
    "softmax bf16",
    "layer norm",
    "layer norm bf16",
    "rms norm",
    "batch norm",
    "group norm",
    "row sum",
    "column sum",
    "variance",
    "extrema",
    "cumsum",
    "transpose",
    "cat",
    "embedding",
    "gather",
    "index",
    "cross entropy",
    "product of matrices",
    "linear gelu bf16",
    "attention",
    "convolution",
    "pooling",
]


@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str, gpu: torch.device) -> None:
    case: Case = CASES[name]
    inputs = [x.to(gpu) for x in case.inputs()]
    eager, exact = (gradients(case.function, values) for values in (inputs, [*map(to_double, inputs)]))
    assert_as_accurate_as_eager([gradients(compiled(case.function), inputs)], [eager], [exact])


@pytest.mark.parametrize("name", ["pointwise", "softmax", "layer norm", "column sum", "sum", "transpose", "gelu bf16"])
def test_sizes_that_change(name: str, gpu: torch.device) -> None:
    case: Case = CASES[name]
    function = compiled(case.function, dynamic=True)
    first = [x.to(gpu) for x in case.inputs()]
    for keep in (slice(None), slice(2, None)):
        inputs = [x[keep] if x.ndim == 2 and name != "transpose" else x for x in first]
        eager, exact = (outputs_of(case.function(*values)) for values in (inputs, map(to_double, inputs)))
        assert_as_accurate_as_eager([outputs_of(function(*inputs))], [eager], [exact])


def test_training(gpu: torch.device) -> None:
    eager, found = losses(gpu, 5, lambda f: f, compiled)
    assert found == pytest.approx(eager, rel=1e-4)
    assert found[-1] < found[0]


@pytest.mark.parametrize("capturable", [False, True])
def test_an_optimizer_step(capturable: bool, gpu: torch.device) -> None:
    """Equal kernels for several tensors, and single numbers that change in place."""
    torch.manual_seed(2)
    shapes = [(64, 32)] * 3 + [(64,)] * 2 + [(7, 5)]
    first = [torch.randn(shape, device=gpu) for shape in shapes]
    grads = [torch.randn_like(value) for value in first]
    results = []
    for wrap in (lambda f: f, torch.compile(backend="stepwell")):
        values = [value.clone().requires_grad_() for value in first]
        optimizer = torch.optim.Adam(values, lr=1e-2, foreach=True, capturable=capturable)
        step = wrap(optimizer.step)
        for _ in range(4):
            for value, grad in zip(values, grads, strict=True):
                value.grad = grad * value.detach()
            step()
        results.append(values)
    for found, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_dropout_repeats_its_mask_in_the_backward(gpu: torch.device) -> None:
    x = torch.ones(100, 100, device=gpu, requires_grad=True)
    function = compiled(lambda x: nn.functional.dropout(x, 0.25))
    result = function(x)
    result.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, result.detach())
    kept = (result != 0).float().mean().item()
    assert 0.7 < kept < 0.8
    assert not torch.equal(function(x), result)


def test_autocast(gpu: torch.device) -> None:
    layer, x = nn.Linear(64, 32, device=gpu), torch.randn(16, 64, device=gpu)

    def function(x: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return nn.functional.gelu(layer(x))

    result = compiled(function)(x)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, function(x), rtol=1e-2, atol=1e-2)

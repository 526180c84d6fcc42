"""Random numbers: repeatable, forked, the same in forward and recomputed backward, of the right distribution; with
`fallback_random` eager's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from stepwell.tests.behaviour.comparison import compiled, same

COUNT = 40_000


def ones() -> Tensor:
    return torch.ones(COUNT)


DRAWS: dict[str, Callable[[], Tensor]] = {
    "rand": lambda: torch.rand(COUNT),
    "rand_like": lambda: torch.rand_like(ones()),
    "randn": lambda: torch.randn(COUNT),
    "randn in f64": lambda: torch.randn(COUNT, dtype=torch.float64),
    "randint": lambda: torch.randint(3, 11, (COUNT,)),
    "bernoulli": lambda: torch.bernoulli(torch.full((COUNT,), 0.3)),
    "dropout": lambda: functional.dropout(ones(), 0.25),
    "alpha dropout": lambda: functional.alpha_dropout(ones(), 0.25, True),
    "uniform": lambda: torch.empty(COUNT).uniform_(-2, 4),
    "normal": lambda: torch.normal(torch.zeros(COUNT), 2.0),
    "exponential": lambda: torch.empty(COUNT).exponential_(2.0),
    "multinomial": lambda: torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), COUNT, replacement=True),
    "randperm": lambda: torch.randperm(COUNT),
    "rrelu": lambda: functional.rrelu(-ones(), training=True),
    "poisson": lambda: torch.poisson(3 * ones()),
}

MOMENTS = {
    "rand": (0.5, 1 / 12), "rand_like": (0.5, 1 / 12), "randn": (0.0, 1.0), "randn in f64": (0.0, 1.0),
    "randint": (6.5, 63 / 12), "bernoulli": (0.3, 0.21), "dropout": (1.0, 1 / 3), "uniform": (1.0, 3.0),
    "normal": (0.0, 4.0), "exponential": (0.5, 0.25), "multinomial": (4 / 3, 5 / 9), "poisson": (3.0, 3.0),
}  # fmt: skip
"""Mean and variance."""


def seeded(function: Callable[..., Any], *arguments: Any, seed: int = 7) -> Any:
    torch.manual_seed(seed)
    return function(*arguments)


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_again(name: str) -> None:
    fast = compiled(DRAWS[name])
    first, second = seeded(fast), fast()
    assert torch.equal(seeded(fast), first)
    assert torch.equal(fast(), second)
    assert not torch.equal(first, second)
    assert not torch.equal(seeded(fast, seed=8), first)


@pytest.mark.parametrize("name", DRAWS)
def test_fallback_random_gives_eagers_numbers(name: str) -> None:
    fast = compiled(DRAWS[name], fallback_random=True)
    expected = [seeded(DRAWS[name]), DRAWS[name]()]
    assert all(map(torch.equal, [seeded(fast), fast()], expected))


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    """Within five standard errors; the seed is fixed."""
    mean, variance = MOMENTS[name]
    numbers = seeded(compiled(DRAWS[name])).double()
    assert abs(float(numbers.mean()) - mean) < 5 * math.sqrt(variance / COUNT)
    assert abs(float(numbers.var()) / variance - 1) < 0.08


def test_two_draws_of_a_call_differ() -> None:
    def function() -> tuple[Tensor, Tensor, Tensor]:
        return torch.rand(100), torch.rand(100), torch.randn(100)

    first, second, _ = seeded(compiled(function))
    assert not torch.equal(first, second)
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.4


def test_fork_rng_leaves_the_stream_as_it_was() -> None:
    fast = compiled(lambda: torch.rand(10))
    torch.manual_seed(3)
    expected = [fast(), fast()]
    torch.manual_seed(3)
    first = fast()
    with torch.random.fork_rng(devices=[]):
        fast()
    assert torch.equal(first, expected[0])
    assert torch.equal(fast(), expected[1])


@pytest.mark.parametrize("fallback", [False, True])
def test_backward_uses_the_mask_of_forward(fallback: bool) -> None:
    x = torch.ones(1000, requires_grad=True)
    result = compiled(lambda x: functional.dropout(torch.sin(x), 0.5), fallback_random=fallback)(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(gradient, torch.where(result == 0, 0.0, 2 * torch.cos(x)).detach())


@pytest.mark.parametrize("fallback", [False, True])
def test_a_recomputed_mask_is_the_same(fallback: bool) -> None:
    drop = nn.Dropout(0.5)

    def function(x: Tensor) -> Tensor:
        result: Tensor = torch.utils.checkpoint.checkpoint(lambda x: drop(torch.sin(x)) * x, x, use_reentrant=False)
        return result

    x = torch.ones(1000, requires_grad=True)
    result = compiled(function, fallback_random=fallback)(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    kept = 2 * (torch.sin(x) + torch.cos(x) * x)
    torch.testing.assert_close(gradient, torch.where(result == 0, 0.0, kept).detach())


def test_a_generator_of_ones_own() -> None:
    """Its numbers are eager's, since its state is no part of the graph."""

    def function(x: Tensor) -> Tensor:
        return x + torch.rand(5, generator=torch.Generator().manual_seed(4))

    same(torch.compile(function, backend="stepwell")(torch.zeros(5)), function(torch.zeros(5)))

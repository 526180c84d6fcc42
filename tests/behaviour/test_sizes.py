"""Sizes and numbers that Python computes from sizes and from the numbers in tensors: one graph serves all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from stepwell.tests.behaviour.comparison import same


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    """Dynamo keeps numbers that tensors hold in the graph."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        yield


SIZES: dict[str, Callable[[Tensor], Any]] = {
    "root": lambda x: torch.ones(int(x.shape[0] ** 0.5)) + x.sum(),
    "ceil of a part": lambda x: x[: math.ceil(x.shape[0] * 0.53)].exp(),
    "round of a quotient": lambda x: x[: round(x.shape[0] / 3 + 0.2)].exp(),
    "size of an operator's result": lambda x: functional.interpolate(x[None], scale_factor=1.7) * 2,
    "both as size and as number": lambda x: torch.arange(int(x.shape[0] * 0.7)) * int(x.shape[0] * 0.7) + x[0, 0],
    "length of a range of floats": lambda x: torch.arange(0, x.shape[0] * 0.3, 0.1) * x.mean(),
    "one size twice": lambda x: torch.cat([x, x[: int(x.shape[0] * 0.4)]]).exp() + 1,
    "powers and rounded floats": lambda x: x * x.shape[0] ** 1.5 + round(x.shape[0] * 0.37, 1) + math.sqrt(x.shape[0]),
    "chosen by a condition": lambda x: x.topk(max(1, min(int(x.shape[0] * 0.3), 5)), 0).values,
    "bits": lambda x: x * (x.shape[0] & 3) + (x.shape[0] | 1) + (x.shape[0] >> 1) - (x.shape[0] ^ 2),
    "number in a tensor": lambda x: x * math.sin(x.shape[0] * x.detach()[0, 0].item()) + x.detach()[0, 1].item(),
}


@pytest.mark.parametrize("name", SIZES)
def test_one_graph_serves_all_sizes(name: str) -> None:
    function = SIZES[name]
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, backend="stepwell", fullgraph=True, dynamic=True)
    for rows in (17, 10, 35):
        x = torch.randn(rows, 6, requires_grad=True)
        found, expected = compiled(x), function(x)
        same(found, expected)
        gradients = [torch.autograd.grad(value.sum(), x)[0] for value in (found, expected)]
        same(*gradients)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


BOUNDS: dict[str, Callable[[Tensor, int], Any]] = {
    "first rows": lambda x, bound: x[:bound] * 2,
    "last rows": lambda x, bound: x[bound:],
    "every other row": lambda x, bound: x[bound::2].exp(),
    "one row": lambda x, bound: x.select(0, bound) + 1,
    "rows from there": lambda x, bound: x.narrow(0, bound, 1) * 2,
    "a row that is written": lambda x, bound: torch.select_scatter(x, x[0] * 0, 0, bound),
    "rows that are written": lambda x, bound: torch.slice_scatter(x, x[bound:] * 3, 0, bound),
    "rows that are added to": lambda x, bound: x.clone().index_put((torch.tensor([bound]),), x[0], accumulate=True),
    "columns moved": lambda x, bound: x.roll(bound, 1) * 2,
    "diagonals": lambda x, bound: x.triu(bound) + x.diagonal(bound).sum(),
    "quotients": lambda x, bound: x * (bound // 3) + bound % 5 - (x.shape[0] * bound) // 4,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_and_other_integers_of_either_sign(name: str) -> None:
    """Their sign is a guard of the graph, or known at run time only; unlike sizes they may be negative."""
    function = BOUNDS[name]
    fast = torch.compile(function, backend="stepwell", fullgraph=True, dynamic=True, options={"strict": True})
    for rows, bound in ((7, -3), (7, 3), (9, -2), (5, 4), (8, -8), (6, 0)):
        x = torch.randn(rows, 6)
        same(fast(x, bound), function(x, bound))


UNKNOWN: dict[str, Callable[[Tensor], Any]] = {
    "flip": lambda x: x.flip(1),
    "flip all": lambda x: x.flip(0, 1).sum(0),
    "hardtanh": functional.hardtanh,
    "numbers for NaN": lambda x: x.nan_to_num(1.0),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.exp()),
    "normalized": functional.normalize,
    "what is among others": lambda x: torch.isin(x, x[0]),
    "signs of infinity": lambda x: (torch.isneginf(x), torch.isposinf(x), torch.isfinite(x)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_sizes_of_which_nothing_is_known(name: str) -> None:
    function = UNKNOWN[name]
    fast = torch.compile(function, backend="stepwell", fullgraph=True, options={"strict": True})
    for sizes in ((5, 3), (2, 7)):
        x = torch.randn(sizes)
        for dim in range(2):
            torch._dynamo.decorators.mark_unbacked(x, dim)
        same(fast(x), function(x))


def compared(x: Tensor, number: Tensor) -> Any:
    """Two sizes, of which the first is known to be the smaller one before the second is computed."""
    first, last = number.item(), (number + 1).item()
    torch._check(first < last)
    torch._check(last <= x.shape[0])
    return x[:first].exp(), x[first:last] * 2


OF_NUMBERS: dict[str, Callable[[Tensor, Any], Any]] = {
    "first rows": lambda x, number: x[: number.item()] * 2,
    "columns by rows": lambda x, number: (x[: number.item(), :1] * x[None, : (number + 1).item(), 1]).flatten() * 2,
    "a factory": lambda x, number: torch.ones(number.item()) * x.sum(),
    "copies": lambda x, number: x[:1].expand(number.item(), 3) * 2,
    "greatest": lambda x, number: x.topk(number.item(), 0).values * 2,
    "joined": lambda x, number: torch.cat([x, x[: number.item()]]) * 2,
    "padded": lambda x, number: functional.pad(x, (0, number.item())) * 2,
    "softmax": lambda x, number: x[: number.item()].softmax(0) * 2,
    "norm": lambda x, number: functional.layer_norm(x[: number.item()].exp(), (3,), eps=1.0) * 2,
    "product of matrices": lambda x, number: x[: number.item()] @ x.t(),
    "parts": lambda x, number: [part.exp() for part in x.split([number.item(), x.shape[0] - number.item()])],
    "embedding": lambda x, number: functional.embedding(torch.arange(number.item()), x) * 2,
    "compared": compared,
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_sizes_in_tensors_under_autograd(name: str) -> None:
    """Gradients that come in have sizes of their own, which are checked against those of results."""
    torch.manual_seed(0)
    function = OF_NUMBERS[name]
    fast = torch.compile(function, backend="stepwell", fullgraph=True, options={"strict": True, "verify": True})
    for number in (4, 2, 3):
        x = torch.randn(6, 3, requires_grad=True)
        found, expected = (tree_leaves(each(x, torch.tensor(number))) for each in (fast, function))
        same(found, expected)
        incoming = [torch.randn_like(value) for value in expected]
        same(*(torch.autograd.grad(values, x, incoming) for values in (found, expected)))


SHOWN: dict[str, Callable[[Tensor, Any], Any]] = {
    "copies of a row": lambda x, number: x[:1].expand(number.item(), 6),
    "columns of copies": lambda x, number: (x[:1] * 2).expand(number.item(), 6).t(),
    "a view of what is found": lambda x, number: (x > number).nonzero().reshape(-1, 2, 1),
    "a view that a kernel reads": lambda x, number: [(y := (x > number).nonzero().reshape(-1, 2, 1)), y.sum(0) * 2],
    "what is found, viewed": lambda x, number: ((x > number).nonzero() + 1).view(-1, 2, 1),
}


@pytest.mark.parametrize("name", SHOWN)
def test_strides_of_views_to_sizes_of_which_nothing_is_known(name: str) -> None:
    """They hang on whether a size is 0, 1 or more."""
    function = SHOWN[name]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        fast = torch.compile(function, backend="stepwell", fullgraph=True, options={"strict": True})
        x = torch.arange(6.0).expand(3, 6).contiguous()
        for number in (1, 4, 5):
            arguments = x, torch.tensor(number)
            same(fast(*arguments), function(*arguments))


ORDERED: dict[str, Callable[[Tensor, Any], Any]] = {
    "windows": lambda x, number: x[: number.item()].unfold(0, 2, 1) * 2,
    "windows and a tensor": lambda x, number: x[: number.item()].unfold(0, 2, 1) + x[0, 0],
    "what is found": lambda x, number: (x < number).nonzero().reshape(-1, 2, 1) * 2,
    "what is found and numbers": lambda x, number: (x < number).nonzero()[:, None] + torch.tensor([1, 2]),
}


@pytest.mark.parametrize("name", ORDERED)
def test_results_are_ordered_like_operands_of_which_sizes_are_unknown(name: str) -> None:
    function = ORDERED[name]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        fast = torch.compile(function, backend="stepwell", fullgraph=True, options={"strict": True})
        x = torch.arange(6.0).expand(6, 6).contiguous()
        for number in (5, 3, 4):
            arguments = x, torch.tensor(number)
            same(fast(*arguments), function(*arguments))


def test_random_integers_of_sizes_in_tensors() -> None:
    compiled = torch.compile(lambda count: torch.randint(3, 5, (count.item(),)), backend="stepwell", fullgraph=True)
    for count in (4, 7):
        drawn = compiled(torch.tensor(count))
        assert drawn.shape == (count,)
        assert ((drawn == 3) | (drawn == 4)).all()


def test_sizes_from_floats_in_tensors() -> None:
    def function(x: Tensor, part: Tensor) -> Tensor:
        return x[: int(part.item() * 10)] * 2

    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    x = torch.randn(17, 3)
    for part in (0.55, 0.1, 0.0):
        same(compiled(x, torch.tensor(part)), function(x, torch.tensor(part)))


def test_divisors_below_zero() -> None:
    def function(x: Tensor, step: int, number: Tensor) -> Any:
        divisor = int(number.item())
        return torch.arange(8, -8, step), x[: x.shape[0] % step + 3], x.shape[0] // step, x + x.shape[0] // divisor

    compiled = torch.compile(function, backend="stepwell", fullgraph=True, dynamic=True)
    for step, number in ((-3, -4), (-5, 3)):
        arguments = torch.randn(6, 4), step, torch.tensor(number)
        same(compiled(*arguments), function(*arguments))


def test_a_number_of_the_graph_may_come_out_as_a_tensor() -> None:
    def function(x: Tensor) -> Any:
        return x.sum().item(), float(x.shape[0]) / 3, torch.ops.aten.div(x.shape[0], 3), x + 1

    same(torch.compile(function, backend="stepwell", dynamic=True)(torch.ones(4, 2)), function(torch.ones(4, 2)))


UNIQUE: dict[str, Callable[..., Any]] = {
    "all elements": lambda x, **what: x.unique(**what),
    "neighbours": lambda x, **what: x.unique_consecutive(**what),
    "rows": lambda x, **what: x.unique(dim=0, **what),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_what_is_unique_is_counted_in_integers(name: str) -> None:
    def counted(x: Tensor) -> tuple[Tensor, ...]:
        values, places, counts = UNIQUE[name](x, return_inverse=True, return_counts=True)
        return values * 2, places + 1, counts * 3

    x = torch.tensor([[3.0, 1.0], [2.0, 2.0], [3.0, 1.0], [9.0, 1.0]])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        same(torch.compile(counted, backend="stepwell", fullgraph=True)(x), counted(x))

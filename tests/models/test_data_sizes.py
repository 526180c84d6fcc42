"""Sizes and numbers that depend on data: one graph without breaks, values as eager's, and the same refusals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import while_loop

Function = Callable[[Tensor, Tensor], Any]


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    """Dynamo keeps such ops in the graph; no warning is ours to give."""
    options = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(options), warnings.catch_warnings():
        warnings.filterwarnings("error", message="stepwell")
        yield


# -- programs ----------------------------------------------------------------------------------------


def nonzero(x: Tensor, n: Tensor) -> Any:
    return torch.nonzero(x > 0).sum(0) + 1


def mask(x: Tensor, n: Tensor) -> Any:
    return x[x > 0] * 2, x[x[:, 0] > 0].softmax(-1)


def mask_that_finds_nothing(x: Tensor, n: Tensor) -> Any:
    found = x[x > 100]
    return found * 2, found.sum(), torch.cat([found, x[0]])


def masked_select(x: Tensor, n: Tensor) -> Any:
    return torch.masked_select(x, x > 0).sort().values, (x > 0).sum()


def unique(x: Tensor, n: Tensor) -> Any:
    values, inverse, counts = torch.unique(n, return_inverse=True, return_counts=True)
    return values * 2, inverse + 1, counts.float().softmax(0)


def repeat_interleave(x: Tensor, n: Tensor) -> Any:
    return torch.repeat_interleave(x[:2], n, dim=0).cumsum(0)


def two_masks(x: Tensor, n: Tensor) -> Any:
    first, second = torch.nonzero(x[:, 0] > 0).squeeze(1), torch.nonzero(x[:, 1] > 0).squeeze(1)
    return torch.cat([first, second]).float().exp().sum(), x[first].sum(0), (x[second] * 2).relu()


def masks_in_turn(x: Tensor, n: Tensor) -> Any:
    for _ in range(2):
        x = x[x[:, 0] > -1] * 2
    return x.sum(0), x.shape[0]


def mask_assignment(x: Tensor, n: Tensor) -> Any:
    x = x.clone()
    x[x > 0] = 5.0
    return x


def size_from_item(x: Tensor, n: Tensor) -> Any:
    count: Any = n.max().item()
    return torch.zeros(count) + count, torch.arange(count) / 2, torch.ones(count, count).tril().sum(0)


def slice_by_item(x: Tensor, n: Tensor) -> Any:
    count = n.max().item()
    torch._check(count <= x.shape[0])
    return x[:count] * 2 + count, x[count:] * 2


def sum_of_items(x: Tensor, n: Tensor) -> Any:
    first, second = n.tolist()
    torch._check(first >= 0)
    torch._check(second >= 0)
    torch._check(first + second == x.shape[0])
    above, below = torch.split(x, [first, second])
    return above.sum(0), below * 2


def divisor_from_item(x: Tensor, n: Tensor) -> Any:
    count: Any = n.max().item()
    torch._check(count > 0)
    torch._check(x.numel() % count == 0)
    return x.reshape(-1)[: (x.numel() // count) * count].reshape(count, -1).sum(1)


def float_item(x: Tensor, n: Tensor) -> Any:
    return x * x.sum().item() + x.max().item() * 2, torch.full((3,), x.sum().item()), x.max().item()


def bool_item(x: Tensor, n: Tensor) -> Any:
    return x * 2, (x.sum() > 0).item()


def branch(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n.max().item() > 2, lambda x: x * 2, lambda x: x - 1, (x,))


def loop_over_a_number(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))


PROGRAMS: dict[str, Function] = {
    function.__name__: function
    for function in (
        nonzero, mask, mask_that_finds_nothing, masked_select, unique, repeat_interleave, two_masks, masks_in_turn,
        mask_assignment, size_from_item, slice_by_item, sum_of_items, divisor_from_item, float_item, bool_item,
        branch, loop_over_a_number,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_eager(name: str) -> None:
    function = PROGRAMS[name]
    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    for seed, numbers in enumerate(([6, 2], [4, 4], [0, 8], [2, 6], [0, 0])):
        torch.manual_seed(seed)
        x, n = torch.randn(8, 3), torch.tensor(numbers)
        if function is divisor_from_item:
            n = n.clamp(1, 4)
        if function is sum_of_items:
            n[1] = 8 - n[0]
        torch.testing.assert_close(compiled(x, n), function(x, n), check_stride=True)


# -- refusals ----------------------------------------------------------------------------------------


def equal_to_a_size(x: Tensor, n: Tensor) -> Any:
    count: Any = n.max().item()
    return torch.zeros(count) + x[0]


def extremum_of_nothing(x: Tensor, n: Tensor) -> Any:
    return x[x > n.max()].max()


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (slice_by_item, [8, 2], [9, 2]),
        (sum_of_items, [3, 5], [3, 6]),
        (sum_of_items, [3, 5], [9, -1]),
        (divisor_from_item, [4, 4], [5, 5]),
        (size_from_item, [4, 2], [-4, -2]),
        (equal_to_a_size, [3, 2], [2, 1]),
        (extremum_of_nothing, [-9, -9], [9, 9]),
    ],
)
def test_refusals_are_those_of_aot_eager(function: Function, good: list[int], bad: list[int]) -> None:
    """Exception and message, after a call that succeeds."""
    x = torch.randn(8, 3)
    messages = []
    for backend in ("aot_eager", "stepwell"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(x, torch.tensor(good)), function(x, torch.tensor(good)))
        with pytest.raises(RuntimeError) as raised:
            compiled(x, torch.tensor(bad))
        messages.append(str(raised.value))
        torch.testing.assert_close(compiled(x, torch.tensor(good)), function(x, torch.tensor(good)))
    assert messages[0] == messages[1]


# -- gradients ---------------------------------------------------------------------------------------


def gradient_of_mask(x: Tensor, n: Tensor) -> Tensor:
    return (x[x.detach() > 0] ** 2).sum()


def gradient_of_rows(x: Tensor, n: Tensor) -> Tensor:
    rows = torch.nonzero(x.detach()[:, 0] > 0).squeeze(1)
    return (torch.softmax(x[rows], -1) * x[rows].mean()).sum() + x.sum()


def gradient_of_slice(x: Tensor, n: Tensor) -> Tensor:
    count = n.max().item()
    torch._check(count <= x.shape[0])
    return (torch.nn.functional.gelu(x[:count]) * count).sum()


@pytest.mark.parametrize("function", [gradient_of_mask, gradient_of_rows, gradient_of_slice])
def test_gradients_are_those_of_eager(function: Function) -> None:
    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        x, n = torch.randn(8, 3, requires_grad=True), torch.tensor([seed, seed + 2])
        found, expected = (torch.autograd.grad(run(x, n), x)[0] for run in (compiled, function))
        torch.testing.assert_close(found, expected)


# -- inputs of sizes that are not to be known --------------------------------------------------------


def test_mark_unbacked_serves_every_size_with_one_graph() -> None:
    def function(x: Tensor, weight: Tensor) -> Any:
        return torch.softmax(x @ weight, -1).sum(0), x.relu() * 2

    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, backend="stepwell", fullgraph=True)
    weight = torch.randn(3, 4)
    for rows in (5, 1, 0, 2, 40):
        x = torch.randn(rows, 3)
        torch._dynamo.decorators.mark_unbacked(x, 0)
        torch.testing.assert_close(compiled(x, weight), function(x, weight))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1

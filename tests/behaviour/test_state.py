"""Mutation, aliasing and modes: what a compiled function does to tensors that others hold is what eager does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from stepwell.tests.behaviour.comparison import check, compiled, copied, same

Make = Callable[[], Sequence[Any]]


def tensors(*sizes: Sequence[int]) -> Make:
    return lambda: [torch.randn(*size) for size in sizes]


# -- functions of tensors ----------------------------------------------------------------------------


def in_place(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y).mul_(2)
    return x.sum()


def in_place_on_views(x: Tensor, y: Tensor) -> Tensor:
    x[1:3].mul_(y[0])
    x.t()[0].fill_(7)
    x.view(-1)[-1:].copy_(y.flatten()[:1])
    return x + 1


def returns_mutated(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x.relu_()
    return x, x[0], x.clone()


def aliases_of_results(x: Tensor) -> tuple[Tensor, ...]:
    y = torch.sin(x)
    return y, y[1:], y.t(), y.view(-1), x.t(), x[0]


def same_result_twice(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = x + 1
    return y, y, x


def out_variants(x: Tensor, y: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    torch.add(x, y, out=out)
    total = torch.empty(())
    torch.sum(out, dim=None, out=total)
    return torch.mul(out, 2, out=torch.empty_like(out)), total


def read_then_written(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The old value is needed after the new one is known."""
    before = x * 2
    x.copy_(y + x)
    return before, x - y


def swapped(x: Tensor, y: Tensor) -> None:
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)


def indexed_writes(x: Tensor, y: Tensor) -> Tensor:
    x[torch.tensor([0, 2])] = y[:2]
    x[x > 0.5] = 0.25
    x.index_add_(0, torch.tensor([1, 1]), y[:2])
    x.masked_fill_(x < -1, -1.0)
    return x.cumsum(1)


def written_through_strides(x: Tensor) -> Tensor:
    x.view(1, -1).fill_diagonal_(3)
    x.view(2, 2, 2, 3)[..., 1:].fill_diagonal_(5)
    y = x * 2
    y[1:].view(-1, 1).fill_diagonal_(4, wrap=True)
    y.split(2)[1].view(-1)[1:].as_strided((3,), (2,)).mul_(3)
    torch.as_strided(y.t()[2:], (2,), (9,), 1).zero_()
    return y


FUNCTIONS: dict[str, tuple[Callable[..., Any], Make]] = {
    "in place": (in_place, tensors((4, 6), (4, 6))),
    "in place on views": (in_place_on_views, tensors((4, 6), (4, 6))),
    "in place on an argument that is a view": (in_place, lambda: [torch.randn(8, 6)[2:6], torch.randn(4, 6)]),
    "in place on a transposed argument": (in_place, lambda: [torch.randn(6, 4).t(), torch.randn(4, 6)]),
    "mutated and returned": (returns_mutated, tensors((4, 6))),
    "results that alias": (aliases_of_results, tensors((4, 6))),
    "one result twice": (same_result_twice, tensors((4, 6))),
    "out=": (out_variants, tensors((4, 6), (4, 6), (4, 6))),
    "read and then written": (read_then_written, tensors((4, 6), (4, 6))),
    "swapped": (swapped, tensors((4, 6), (4, 6))),
    "indexed writes": (indexed_writes, tensors((4, 6), (4, 6))),
    "written through strides of views": (written_through_strides, tensors((4, 6))),
    "an expanded argument": (lambda x: x * 2 + x.sum(), lambda: [torch.randn(1, 6).expand(4, 6)]),
    "an argument that overlaps itself": (
        lambda x: (x + 1, x.sum()),
        lambda: [torch.randn(12).as_strided((4, 5), (2, 1))],
    ),
    "no elements": (lambda x: (x + 1, x.sum(), x.t()), lambda: [torch.randn(0, 3)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_tensors(name: str) -> None:
    check(*FUNCTIONS[name])


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_gradients_of_what_is_written_through_strides_of_a_view(dynamic: bool) -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        y.view(1, -1).fill_diagonal_(3)
        y.t()[1:].as_strided((2,), (7,)).mul_(x[0, :2])
        return y * y

    def with_gradient(function: Callable[[Tensor], Tensor]) -> list[Tensor]:
        leaf = torch.linspace(-1, 1, 24).view(4, 6).requires_grad_()
        result = function(leaf)
        return [result, *torch.autograd.grad(result.sum(), [leaf])]

    torch._dynamo.reset()
    same(with_gradient(torch.compile(function, backend="stepwell", dynamic=dynamic)), with_gradient(function))


def test_gradients_of_what_is_read_through_strides_beyond_a_view() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        return y[:2].as_strided((5,), (1,), 0) * torch.arange(5.0)

    torch._dynamo.reset()
    leaf = torch.ones(6, requires_grad=True)
    result = torch.compile(function, backend="stepwell")(leaf)
    result.sum().backward()
    assert result.tolist() == [0, 2, 4, 6, 8]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [0, 2, 0, 0, 0, 0]  # of the two elements that the view has


def shared_rows(first: slice, second: slice) -> Make:
    def make() -> Sequence[Any]:
        base = torch.randn(8, 6)
        return [base[first], base[second]]

    return make


@pytest.mark.parametrize("second", [slice(0, 4), slice(4, 8)], ids=["same", "apart"])
def test_arguments_that_share_memory(second: slice) -> None:
    check(in_place, shared_rows(slice(0, 4), second))
    check(lambda x, y: (x + y, x * y), shared_rows(slice(0, 4), second))


def test_arguments_that_overlap() -> None:
    def write_one(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    check(write_one, shared_rows(slice(0, 4), slice(2, 6)))


def test_one_compile_serves_arguments_that_share_and_that_do_not() -> None:
    fast = compiled(in_place)
    for second in (slice(4, 8), slice(0, 4), slice(4, 8)):
        torch.manual_seed(3)
        expected = shared_rows(slice(0, 4), second)()
        torch.manual_seed(3)
        found = shared_rows(slice(0, 4), second)()
        same(fast(*found), in_place(*expected))
        same(found, expected)


# -- modules -----------------------------------------------------------------------------------------


class Counter(nn.Module):
    """Buffers that a call changes, one of them by assignment."""

    calls: Tensor
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        result: Tensor = self.norm(x) - self.mean
        return result


def test_buffers() -> None:
    model = Counter()
    twin = copied(model)
    fast = compiled(twin)
    for _ in range(3):
        x = torch.randn(4, 6)
        same(fast(x), model(x))
        same(twin.state_dict(), model.state_dict())
    model.eval()
    twin.eval()
    same(fast(x), model(x))


class Tied(nn.Module):
    """One weight in two places."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.head(self.embedding(tokens))
        return result


def train(model: Callable[..., Tensor], parameters: Sequence[Tensor], *arguments: Tensor, steps: int = 3) -> list[Any]:
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(*arguments).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [losses, [parameter.detach() for parameter in parameters]]


def test_tied_weights_take_both_gradients() -> None:
    model, tokens = Tied(), torch.tensor([[1, 2, 3], [4, 5, 1]])
    twin = copied(model)
    same(
        train(compiled(twin), [*twin.parameters()], tokens),
        train(model, [*model.parameters()], tokens),
    )
    assert twin.get_parameter("head.weight") is twin.get_parameter("embedding.weight")


def test_parameters_that_change_between_calls() -> None:
    model, other, x = nn.Linear(6, 3), nn.Linear(6, 3), torch.randn(4, 6)
    fast = compiled(model)
    same(fast(x), model(x))
    model.load_state_dict(other.state_dict())
    same(fast(x), other(x))
    with torch.no_grad():
        model.weight.mul_(2)
        model.bias = nn.Parameter(torch.zeros(3))
    same(fast(x), model(x))


BEHIND_AUTOGRAD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a factor": lambda x, w: [y := x * w, w.data.mul_(2), y * w][-1],
    "what an exponential is taken of": lambda x, w: (x * w).exp() + x.data.mul_(2),
}


@pytest.mark.parametrize("name", BEHIND_AUTOGRAD)
def test_what_is_written_behind_autograds_back(name: str) -> None:
    """Gradients are by what eager's graph holds then."""
    outcomes = []
    for run in (BEHIND_AUTOGRAD[name], compiled(BEHIND_AUTOGRAD[name])):
        x, w = (torch.linspace(first, 2, 5, requires_grad=True) for first in (-1, 1))
        result = run(x, w)
        outcomes.append([result, *torch.autograd.grad(result.sum(), (x, w)), x, w])
    same(*outcomes)


def test_requires_grad_can_be_toggled() -> None:
    model, x = nn.Linear(6, 3), torch.randn(4, 6)
    fast = compiled(model)
    for wanted in (True, False, True):
        model.weight.requires_grad_(wanted)
        result, expected = fast(x), model(x)
        same(result, expected)
        found, wished = (torch.autograd.grad(value.sum(), [model.bias])[0] for value in (result, expected))
        same(found, wished)
        for argument in (x, x.clone().requires_grad_()):
            same(fast(argument), model(argument))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_gradient_modes(mode: Callable[[], Any]) -> None:
    model, x = nn.Sequential(nn.Linear(6, 3), nn.GELU()), torch.randn(4, 6)
    fast = compiled(model)
    for enter in (mode, torch.enable_grad, mode):
        with enter():
            result, expected = fast(x), model(x)
        same(result, expected)
        assert result.is_inference() == expected.is_inference()


def test_modes_inside_of_a_function() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            fixed = x * 2
        return fixed, (x * fixed).sum()

    x = torch.randn(4, requires_grad=True)
    result, expected = compiled(function)(x), function(x)
    same(result, expected)
    same(torch.autograd.grad(result[1], x), torch.autograd.grad(expected[1], x))


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
def test_autocast(inside: bool) -> None:
    model, x = nn.Sequential(nn.Linear(16, 16), nn.Softmax(-1), nn.LayerNorm(16)), torch.randn(4, 16)

    def autocast(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            result: Tensor = model(x)
            return result

    expected = autocast(x)
    if inside:
        found = compiled(autocast)(x)
    else:
        with torch.autocast("cpu", torch.bfloat16):
            found = compiled(model)(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    same(compiled(model)(x), model(x))


def test_hooks() -> None:
    seen: list[Tensor] = []

    def double(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        return gradient * 2

    model = nn.Linear(6, 3)
    model.register_forward_hook(lambda module, arguments, result: result + 1)
    model.weight.register_hook(double)
    x = torch.randn(4, 6)
    fast = compiled(model)
    results, gradients = [], []
    for run in (model, fast):
        result = run(x)
        results.append(result.detach())
        gradients.append(torch.autograd.grad(result.sum(), [model.weight, model.bias]))
    same(*results)
    same(*gradients)
    assert len(seen) == 2


def test_checkpointing_recomputes_the_same_values() -> None:
    model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Dropout(0.5), nn.Linear(12, 6))
    x = torch.randn(4, 6, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        result: Tensor = checkpoint(model, x, use_reentrant=False).square().sum()
        return result

    fast = compiled(function, fallback_random=True)
    values = []
    for run in (function, fast):
        torch.manual_seed(5)
        value = run(x)
        values.append([value.detach(), *torch.autograd.grad(value, [x, *model.parameters()])])
    same(*values)


def test_a_call_within_a_call() -> None:
    inner = compiled(lambda x: torch.sin(x) + 1)
    outer = torch.compile(lambda x: inner(x) * 2, backend="stepwell", options={"strict": True})
    x = torch.randn(4)
    same(outer(x), (torch.sin(x) + 1) * 2)
    same(inner(x), torch.sin(x) + 1)


def test_results_outlive_later_calls() -> None:
    """Pooled memory is not handed out while anyone holds a part of it."""
    fast = compiled(lambda x: x * 2)
    x = torch.ones(1 << 19)
    kept = [fast(x * step)[::1000] for step in range(1, 6)]
    assert [float(part[3]) for part in kept] == [2.0, 4.0, 6.0, 8.0, 10.0]

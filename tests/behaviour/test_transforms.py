"""`torch.func`, higher-order operators, custom operators, autograd functions, subclasses: as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.invoke_subgraph import mark_compile_region
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

from stepwell.tests.behaviour.comparison import check, compiled, same

Function = Callable[..., Any]


def total(x: Tensor) -> Tensor:
    return (x.sin() * x).sum()


def pulled_back(x: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    value, pull = vjp(torch.tanh, x)[:2]
    return value, pull(cotangent)[0]


def gradients_per_sample(weight: Tensor, x: Tensor) -> Tensor:
    model = nn.Linear(4, 3, bias=False)

    def loss(weight: Tensor, row: Tensor) -> Tensor:
        result: Tensor = functional_call(model, {"weight": weight}, (row,)).square().mean()
        return result

    result: Tensor = vmap(grad(loss), in_dims=(None, 0))(weight, x)
    return result


def sum_of_sines(x: Tensor) -> Tensor:
    return x.sin().sum()


def gradient_of_gradient(x: Tensor) -> Any:
    def gradient_sum(x: Tensor) -> Tensor:
        result: Tensor = grad(total)(x).sum()
        return result

    return grad(gradient_sum)(x)


def sine_times_sum(x: Tensor) -> Tensor:
    return x.sin() * x.sum()


FUNCTIONS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "vmap": (vmap(sum_of_sines), ((3, 4),)),
    "vmap of a product": (vmap(torch.matmul, in_dims=(0, None)), ((3, 4, 5), (5, 2))),
    "vmap of grad": (vmap(grad(total)), ((3, 4),)),
    "grad of grad": (gradient_of_gradient, ((4,),)),
    "jvp": (lambda x, tangent: jvp(torch.exp, (x,), (tangent,)), ((4,), (4,))),
    "jvp of a product with what has no tangent": (
        lambda x, tangent, y: jvp(lambda z: torch.matmul(y, z), (x,), (tangent,)),
        ((4,), (4,), (4,)),
    ),
    "jvp of a product without elements": (
        lambda x, tangent, y: jvp(lambda z: torch.linalg.vecdot(z, y), (x,), (tangent,)),
        ((0,), (0,), (0,)),
    ),
    "vmap converts numbers": (vmap(nn.functional.softsign), ((3,),)),
    "vjp": (pulled_back, ((4,), (4,))),
    "jacrev": (jacrev(sine_times_sum), ((4,),)),
    "jacfwd": (jacfwd(sine_times_sum), ((4,),)),
    "hessian": (hessian(total), ((4,),)),
    "gradients per sample": (gradients_per_sample, ((3, 4), (5, 4))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(name: str) -> None:
    function, sizes = FUNCTIONS[name]
    arguments = [torch.randn(size) for size in sizes]
    same(compiled(lambda *tensors: function(*tensors))(*arguments), function(*arguments))


# -- higher-order operators --------------------------------------------------------------------------


@mark_compile_region
def region(x: Tensor) -> Tensor:
    return x.sin() * 2


def chosen(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,))


def recomputed(x: Tensor) -> Any:
    return checkpoint(lambda x: torch.sin(x @ x), x, use_reentrant=False)


def biased_attention(x: Tensor) -> Any:
    return flex_attention(x, x.cos(), x + 1, score_mod=lambda score, batch, head, row, column: score + (row - column))


def chosen_twice(x: Tensor) -> Any:
    """A branch within a branch; both close over what was computed before."""
    y = x.exp()

    def inner(x: Tensor) -> Any:
        return torch.cond(x.max() > 0.5, lambda x: x * y, lambda x: x - y, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x.cos() + y, (x,))


def repeated(x: Tensor) -> Any:
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x * 1.1).sin()), (torch.tensor(0), x))[1]


def running(x: Tensor) -> Any:
    carry, rows = scan(lambda carry, row: (carry * 0.5 + row.sin(), carry * row), torch.zeros(3), x)
    return carry.sum() + rows


def recurrence(x: Tensor) -> Any:
    """x[i] + a[i] * (x[i - 1] + …) as an associative scan over pairs."""

    def joined(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return associative_scan(joined, (x.sigmoid(), x), dim=0, combine_mode="generic")[1]


def masked_attention(x: Tensor) -> Any:
    mask = create_block_mask(lambda b, h, row, column: row >= column, None, None, 32, 32, device="cpu", BLOCK_SIZE=16)
    return flex_attention(x, x.cos(), x + 1, block_mask=mask)


DIFFERENTIABLE: dict[str, tuple[Function, tuple[int, ...]]] = {
    "cond": (chosen, (4,)),
    "cond in cond": (chosen_twice, (4,)),
    "while_loop of floats": (repeated, (4,)),
    "map": (lambda x: map_rows(lambda row, other: (row @ other).sin(), x, x.T @ x), (5, 3)),
    "scan of floats": (running, (5, 3)),
    "associative_scan of pairs": (recurrence, (8, 3)),
    "checkpoint": (recomputed, (4, 4)),
    "invoke_subgraph": (lambda x: region(x) + region(x + 1), (4,)),
}

HIGHER_ORDER: dict[str, tuple[Function, tuple[int, ...]]] = {
    **DIFFERENTIABLE,
    "while_loop": (
        lambda x: while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.1), (torch.tensor(0), x)),
        (4,),
    ),
    "scan": (lambda x: scan(lambda carry, x: (carry + x, carry * x), torch.zeros(3), x), (5, 3)),
    "associative_scan": (lambda x: associative_scan(torch.add, x, dim=0, combine_mode="generic"), (8, 3)),
    "flex_attention with a bias": (biased_attention, (1, 2, 16, 16)),
    "flex_attention with a mask": (masked_attention, (1, 2, 32, 16)),
    "flex_attention": (lambda x: flex_attention(x, x.cos(), x + 1), (1, 2, 16, 16)),
}


@pytest.mark.parametrize("name", HIGHER_ORDER)
def test_higher_order_operators(name: str) -> None:
    function, sizes = HIGHER_ORDER[name]
    fast = compiled(lambda x: function(x))
    for sign in (1, -1):
        x = sign * torch.rand(sizes)
        same(fast(x), function(x))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_higher_order_operators(name: str) -> None:
    function, sizes = DIFFERENTIABLE[name]
    x = torch.rand(sizes, requires_grad=True)
    found, expected = compiled(lambda x: function(x))(x), function(x)
    same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


# -- custom operators --------------------------------------------------------------------------------


@torch.library.custom_op("stepwell_tests::sine", mutates_args=())
def sine(x: Tensor) -> Tensor:
    return x.sin()


@torch.library.custom_op("stepwell_tests::add_to", mutates_args=("out",))
def add_to(x: Tensor, out: Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("stepwell_tests::scaled", mutates_args=())
def scaled(tensors: list[Tensor], factor: int) -> list[Tensor]:
    return [tensor * factor for tensor in tensors]


sine.register_fake(torch.empty_like)
scaled.register_fake(lambda tensors, factor: [torch.empty_like(tensor) for tensor in tensors])
sine.register_autograd(
    lambda context, gradient: gradient * context.saved_tensors[0].cos() * 3,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


def test_a_custom_operator_and_its_own_gradient() -> None:
    x = torch.randn(4, requires_grad=True)
    found, expected = (run(x) for run in (compiled(lambda x: sine(x * 2) + 1), lambda x: sine(x * 2) + 1))
    same(found, expected)
    same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_custom_operators_that_write_and_that_give_lists() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Any, ...]:
        copy = y.clone()
        add_to(x, copy)
        add_to(x, y)
        return copy * 2, y + 1, *scaled([x + 1, y], 3)

    x, y = torch.randn(4), torch.randn(4)
    mine = y.clone()
    same(compiled(function)(x, mine), function(x, y))
    same(mine, y)


@torch.library.custom_op("stepwell_tests::scale_all", mutates_args=("tensors",))
def scale_all(tensors: list[Tensor], factor: float) -> None:
    for tensor in tensors:
        tensor.mul_(factor)


@torch.library.custom_op("stepwell_tests::noted", mutates_args=("note",))
def noted(x: Tensor, note: Tensor | None = None, factor: int = 3) -> Tensor:
    if note is not None:
        note.add_(x)
    return x * factor


@torch.library.custom_op("stepwell_tests::moved", mutates_args=("x",))
def moved(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x.add_(y)
    return x * 2, y.clone()


@torch.library.custom_op("stepwell_tests::positive_rows", mutates_args=())
def positive_rows(x: Tensor) -> Tensor:
    return x[x[:, 0] > 0].clone()


noted.register_fake(lambda x, note=None, factor=3: torch.empty_like(x))
moved.register_fake(lambda x, y: (torch.empty_like(x), torch.empty_like(y)))
positive_rows.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1]))


def writes_a_list(x: Tensor, y: Tensor) -> Any:
    copy = x.clone()
    scale_all([copy, y], 3.0)
    return copy + y, copy * 2


def writes_views(x: Tensor, y: Tensor) -> Any:
    columns = y.t()
    scale_all([columns[0], columns[2]], 2.0)
    return y + 1


def writes_if_given(x: Tensor, y: Tensor) -> Any:
    return noted(x, y) + noted(x + 1) + y


def writes_and_returns(x: Tensor, y: Tensor) -> Any:
    first, second = moved(y[1:3], x[:2])
    return first + second, y * 2


def gives_as_many_rows_as_it_finds(x: Tensor, y: Tensor) -> Any:
    return positive_rows(x) * 2, y.sum()


FORGETS_OPTIONAL = pytest.mark.skipif(
    torch.__version__ < "2.12", reason="eager of torch 2.11 raises IndexError for an operand to write that is not given"
)


@pytest.mark.parametrize(
    "function",
    [
        writes_a_list,
        writes_views,
        pytest.param(writes_if_given, marks=FORGETS_OPTIONAL),
        writes_and_returns,
        gives_as_many_rows_as_it_finds,
    ],
)
def test_what_custom_operators_write_and_give(function: Function) -> None:
    check(function, lambda: [torch.randn(4, 3), torch.randn(4, 3)])


class StraightThrough(torch.autograd.Function):
    """A step whose gradient is another function's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (x > 0).float()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * 3


def test_autograd_functions() -> None:
    def function(x: Tensor) -> Any:
        return StraightThrough.apply(x * 2) * x

    x = torch.randn(4, requires_grad=True)
    found, expected = compiled(function)(x), function(x)
    same(found, expected)
    same(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


# -- subclasses --------------------------------------------------------------------------------------


class Marked(Tensor):
    """A tensor that only has another class."""


def test_subclasses_keep_their_class() -> None:
    pair = TwoTensor(torch.ones(3), torch.arange(3.0))
    found = compiled(lambda x: x * 2 + 1)(pair)
    assert type(found) is TwoTensor
    same([found.a, found.b], [pair.a * 2 + 1, pair.b * 2 + 1])
    marked = torch.randn(3).as_subclass(Marked)
    assert type(compiled(torch.sin)(marked)) is Marked
    same(compiled(torch.sin)(marked).as_subclass(Tensor), torch.sin(marked.as_subclass(Tensor)))


# -- modes and hooks ---------------------------------------------------------------------------------


def test_hooks_inside_of_a_function() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        y.register_hook(lambda gradient: gradient * 10)
        return y.sum()

    x = torch.randn(4, requires_grad=True)
    same(torch.autograd.grad(compiled(function)(x), x), torch.autograd.grad(function(x), x))


def test_inference_mode_inside_of_a_function() -> None:
    def function(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return x * 2

    x = torch.randn(4)
    same(compiled(function)(x), function(x))


def test_quantized_tensors_stay_eager() -> None:
    def function(x: Tensor) -> Any:
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize() + 1

    x = torch.randn(8)
    same(compiled(function)(x), function(x))

"""Values at the edges of what operators define: as in eager, with eager's errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stepwell.tests.behaviour.comparison import check, compiled, same

NAN, INF = math.nan, math.inf


def some_nan() -> Tensor:
    """An image with a NaN, and with two in one window."""
    x = torch.arange(162.0).sin().reshape(1, 2, 9, 9)
    x[0, 0, 3, 3] = x[0, 1, 4, 4] = x[0, 1, 4, 5] = NAN
    return x


VALUES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]]]] = {
    "pooling finds the last NaN of a window": (
        lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True),
        lambda: [some_nan()],
    ),
    "softmax of nothing but -inf": (
        lambda x: torch.ops.aten._safe_softmax(x, -1),
        lambda: [torch.tensor([[-INF, -INF], [0.0, -INF], [NAN, 1.0]])],
    ),
    "powers": (
        lambda x: [x**0.5, x**-0.5, x**2, x**3, x**-1, x**0, x**1.0, 2.0**x, 0.0**x, 1.0**x, (-1.0) ** x],
        lambda: [torch.tensor([-INF, INF, 0.0, -0.0, NAN, -1.0, 2.5, -2.5, 1e-40])],
    ),
    "hardtanh by default": (lambda x: torch.ops.aten.hardtanh(x + 1), lambda: [torch.linspace(-9, 9, 30)]),
    "integers between bounds that are none": (
        lambda x: [torch.linspace(4.3, -3, 50, dtype=torch.int64) + x, torch.linspace(x, 0.7, 9, dtype=torch.int32)],
        lambda: [torch.tensor(4)],
    ),
    "a soft margin loss that overflows in f16": (
        lambda x, y: functional.soft_margin_loss(x, y, reduction="none"),
        lambda: [torch.tensor([-12.0, -9.0, 0.0, NAN, 5.0]).half(), torch.ones(5).half()],
    ),
    "equal tensors of numbers that no kernel reads": (
        lambda x: [
            torch.zeros(3, dtype=torch.complex64),
            torch.zeros(3, dtype=torch.complex64),
            torch.cat([x, x]),
            torch.cat([x, x]),
        ],
        lambda: [torch.zeros(0, dtype=torch.complex64)],
    ),
    "operators of numbers alone": (
        lambda: [
            torch.ops.aten.add(4, 3.5),
            torch.ops.aten.div(7, 2),
            torch.ops.aten.div(-7, 2, rounding_mode="floor"),
        ],
        list,
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    check(*VALUES[name])


def gradient_of(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return torch.autograd.grad(function(x).sum(), x)[0]


def test_a_sixth_is_of_f32_in_gradients_of_f64() -> None:
    x = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
    found = gradient_of(compiled(functional.hardsigmoid), x)
    assert torch.equal(found, gradient_of(functional.hardsigmoid, x))
    assert found[4] == torch.tensor(1 / 6).double() != 1 / 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_the_gradient_of_a_soft_margin_loss_is_rounded_step_by_step(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    x = (torch.randn(999, generator=generator) * 2).to(dtype).requires_grad_()
    y = torch.randn(999, generator=generator).to(dtype)

    def loss(x: Tensor) -> Tensor:
        return functional.soft_margin_loss(x, y)

    found, expected = (gradient_of(function, x) for function in (compiled(loss), loss))
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_statistics_are_added_up_in_f64() -> None:
    """In f32 the terms of a mean near 0 leave their own rounding."""
    x = torch.randn(4096, 3, generator=torch.Generator().manual_seed(4)) * 1e3
    exact = x.double().mean(0).float()
    _, mean, _ = compiled(lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5))(x)
    assert torch.equal(mean, exact)
    assert torch.equal(compiled(lambda x: torch.var_mean(x, 0))(x)[1], exact)


# -- operands of several types -----------------------------------------------------------------------

LOSSES = (functional.huber_loss, functional.soft_margin_loss, functional.mse_loss, functional.smooth_l1_loss)


def of_two_types(loss: Callable[[Tensor, Tensor], Tensor], other: torch.dtype, *, wide_first: bool) -> list[Tensor]:
    """The loss of f32 and another type, and both gradients."""
    pair = [torch.linspace(-2, 2, 9), torch.linspace(3, -1, 9).to(other)]
    first, second = (value.requires_grad_() for value in (pair if wide_first else pair[::-1]))
    result = loss(first, second)
    return [result, *torch.autograd.grad(result, [first, second])]


@pytest.mark.parametrize("wide_first", [False, True])
@pytest.mark.parametrize("other", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: str(loss.__name__))
def test_losses_of_two_types(loss: Callable[[Tensor, Tensor], Tensor], other: torch.dtype, wide_first: bool) -> None:
    """Some give the type of the first operand, some the wider one, some no gradient."""
    try:
        expected = of_two_types(loss, other, wide_first=wide_first)
    except RuntimeError as refusal:
        with pytest.raises(type(refusal)):
            of_two_types(compiled(loss), other, wide_first=wide_first)
        return
    found = of_two_types(compiled(loss), other, wide_first=wide_first)
    for one, value in zip(found, expected, strict=True):
        unit = torch.finfo(torch.float16 if other is torch.float16 else value.dtype).eps
        torch.testing.assert_close(one, value, rtol=2 * unit, atol=2 * unit)


PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "addmv": lambda addend, matrix: torch.addmv(addend, matrix, matrix[0]),
    "addmm": lambda addend, matrix: torch.addmm(addend, matrix, matrix),
    "baddbmm": lambda addend, matrix: torch.baddbmm(addend, matrix[None], matrix[None]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_and_an_addend_of_another_type(name: str) -> None:
    """Eager refuses it, or gives the matrix's type, which torch's fake tensors do not say."""
    function, operands = PRODUCTS[name], (torch.ones(3, dtype=torch.float64), torch.eye(3))
    try:
        expected = function(*operands)
    except RuntimeError as refusal:
        with pytest.raises(type(refusal)):
            compiled(function)(*operands)
        return
    same(compiled(function)(*operands), expected)


def test_the_gradient_of_attention_in_f64() -> None:
    operands = [torch.randn(1, 2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    attention: Callable[..., Tensor] = functional.scaled_dot_product_attention
    found, expected = (
        torch.autograd.grad(function(*operands).sum(), operands) for function in (compiled(attention), attention)
    )
    torch.testing.assert_close(found, expected)


CROSSWISE: dict[str, Callable[..., Any]] = {
    "two": lambda x, a, b: ((x[0].cos() @ a) * x[0].sin(), (x[0].sin() @ b) * x[0].cos()),
    "three": lambda x, a, b: ((x.cos() @ a) * x.sin(), (x.sin() @ b) * x.tan(), (x.tan() @ a) * x.cos()),
}


@pytest.mark.parametrize("name", CROSSWISE)
def test_products_that_share_what_stands_beside_the_others(name: str) -> None:
    """A kernel made of two needs what either needed, and so does all that needs it."""
    check(CROSSWISE[name], lambda: [torch.randn(4, 4) for _ in range(3)])


# -- tensors that do not lie in memory as they are -----------------------------------------------------


def negated() -> list[Tensor]:
    """The imaginary part of a conjugate, which lies in memory with the other sign."""
    part = torch.complex(torch.ones(4), torch.arange(4.0)).conj().imag
    assert part.is_neg()
    return [part]


NEGATED: dict[str, Callable[[Tensor], Any]] = {
    "read": lambda x: x * 2 + 1,
    "reduced": lambda x: (x.sum(), x[1:].exp().max()),
    "written": lambda x: x.add_(1),
    "overwritten in part": lambda x: x[1:].copy_(torch.ones(3)) + x[1:],
    "returned": lambda x: (x[1:], x.clone()),
}


@pytest.mark.parametrize("name", NEGATED)
def test_a_tensor_that_lies_there_with_the_other_sign(name: str) -> None:
    function, (expected,), (found,) = NEGATED[name], negated(), negated()
    same(compiled(function)(found), function(expected))
    same(found, expected)


def test_an_imaginary_part_inside_of_a_graph() -> None:
    check(lambda z: z.conj().imag * 2 + z.conj().real, lambda: [torch.complex(torch.ones(4), torch.arange(4.0))])


def test_zeros_that_have_no_memory() -> None:
    for function in (lambda x: x * 2, lambda x: (x + 1).sum(), torch.relu):
        zeros = torch._efficientzerotensor((3,))
        same(compiled(function)(zeros), function(zeros))


# -- memory that results share -----------------------------------------------------------------------


def constant_and_views() -> tuple[Tensor, ...]:
    zeros, numbers = torch.zeros(2, 3), torch.arange(6)
    return zeros, zeros[1], zeros.t(), numbers, numbers[2:], numbers.view(3, 2)


def write_into_views_of_a_constant(x: Tensor) -> Tensor:
    zeros = torch.zeros(4)
    part = zeros[1:]
    torch._dynamo.graph_break()
    part.add_(x)
    return zeros


def test_constants_share_memory_with_their_views() -> None:
    check(constant_and_views, list)
    x = torch.ones(3)
    same(compiled(write_into_views_of_a_constant)(x), write_into_views_of_a_constant(x))


RENAMED: dict[str, Callable[[Tensor], Any]] = {
    "both": lambda x: ((y := x + 1), y.view(torch.int32)),
    "a part": lambda x: ((y := x + 1)[1:].view(torch.int32), y),
    "twice": lambda x: ((y := x + 1), y.view(torch.int32).view(torch.float32)),
    "an argument": lambda x: (x.view(torch.int32), x * 2),
    "neither": lambda x: (x + 1).view(torch.int32) & 7,
}


@pytest.mark.parametrize("name", RENAMED)
def test_a_view_of_another_type_shares_memory(name: str) -> None:
    check(RENAMED[name], lambda: [torch.arange(4.0)])


def test_equal_tensors_seen_through_views_are_two() -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        pairs = x.to(torch.complex64)
        return torch.view_as_real(pairs), x.to(torch.complex64).t(), torch.view_as_complex(x * 2), (x * 2).t()

    check(function, lambda: [torch.randn(4, 2)])


# -- numbers that a narrow type does not hold ----------------------------------------------------------

LIMITED: dict[str, Callable[[Tensor, float], Tensor]] = {
    "threshold": lambda x, limit: functional.threshold(x, limit, 5.0),
    "hardshrink": functional.hardshrink,
    "hardtanh": lambda x, limit: functional.hardtanh(x, -limit, limit),
    "clamp": lambda x, limit: x.clamp(-limit, limit),
    "where": lambda x, limit: torch.where(x <= limit, x, 0),
    "elu": functional.elu,
    "leaky relu": functional.leaky_relu,
    "huber loss": lambda x, limit: functional.huber_loss(x, torch.zeros_like(x), delta=limit),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", LIMITED)
def test_limits_that_are_rounded(name: str, dtype: torch.dtype) -> None:
    """Eager compares bf16 with a number of f32, in some functions: the nearest number of bf16 may be above 0.1."""
    function, step = LIMITED[name], torch.finfo(dtype).eps
    for limit in (0.1, 0.3, 0.7):
        near = torch.tensor([limit, -limit]).to(dtype).double()
        x = torch.cat([near, near * (1 + step), near * (1 - step), 0 * near]).to(dtype).repeat(5)
        results = []
        for one in (function, compiled(function)):
            operand = x.clone().requires_grad_()
            result = one(operand, limit)
            result.sum().backward()
            results.append((result.detach(), operand.grad))
        (expected, gradient), (found, found_gradient) = results
        torch.testing.assert_close(found, expected, rtol=step, atol=0)
        torch.testing.assert_close(found_gradient, gradient, rtol=step, atol=0)


# -- numbers outside of a type's range ---------------------------------------------------------------


def written(write: Callable[[Tensor, Any], Any]) -> Callable[[Tensor, Any], Tensor]:
    """What a tensor is after a write in place."""

    def function(x: Tensor, number: Any) -> Tensor:
        x = x.clone()
        write(x, number)
        return x

    return function


PLACES = torch.tensor([0, 1])
CONVERTED: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "full": lambda x, number: torch.full((3,), number, dtype=x.dtype),
    "full like": torch.full_like,
    "new full": lambda x, number: x.new_full((3,), number),
    "fill": written(lambda x, number: x.fill_(number)),
    "masked fill": lambda x, number: x.masked_fill(x > 1, number),
    "masked fill by a tensor": lambda x, number: x.masked_fill(x > 1, torch.tensor(number)),
    "where": lambda x, number: torch.where(x > 1, x, number),
    "an element": written(lambda x, number: x.__setitem__(0, number)),
    "where a mask holds": written(lambda x, number: x.__setitem__(x > 1, number)),
    "index fill": lambda x, number: x.index_fill(0, PLACES, number),
    "scatter": lambda x, number: x.scatter(0, PLACES, number),
    "padding": lambda x, number: functional.pad(x, (1, 2), value=number),
    "lower bound": lambda x, number: x.clamp(min=number),
    "upper bound": lambda x, number: x.clamp(max=number),
    "bounds": lambda x, number: x.clamp(0, number),
    "upper bounds of lists": lambda x, number: torch._foreach_clamp_max([x], number)[0],
    "hardtanh": lambda x, number: functional.hardtanh(x, 0, number),
    "threshold": lambda x, number: functional.threshold(x, 1, number),
    "factor of a sum": lambda x, number: torch.add(x, x, alpha=number),
    "factor of a difference": lambda x, number: torch.sub(x, x, alpha=number),
    "factor of what is added by index": lambda x, number: x.index_add(0, PLACES, x[:2], alpha=number),
    "factor of a product": lambda x, number: torch.addcmul(x, x, x, value=number),
    "factor of an outer product": lambda x, number: torch.addr(x[None], x[:1], x, alpha=number),
    "factor of a product of matrices": lambda x, number: torch.addmm(x, x[:, None], x[None], alpha=number),
    "power": torch.pow,
    "powers of lists": lambda x, number: torch._foreach_pow([x], number)[0],
}
CONVERTED_STATICALLY: dict[str, Callable[[Tensor, Any], Tensor]] = {
    **CONVERTED,
    "celu": lambda x, number: functional.celu(x, max(number, -1e39)),
    "linspace": lambda x, number: torch.linspace(0, number, 4, dtype=x.dtype),
    "logit": torch.logit,
}
STATIC = (
    (torch.int8, 5),
    (torch.int8, 300.5),
    (torch.uint8, -300),
    (torch.uint8, -200),
    (torch.float16, 10**6),
    (torch.bfloat16, 1e39),
)
DYNAMIC = ((torch.int8, 5), (torch.int8, 300), (torch.uint8, -200), (torch.float16, 10**6))
REFUSAL = "eager refuses"


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What it gives, or that it raises."""
    try:
        return function(*arguments)
    except (RuntimeError, ValueError):
        return REFUSAL


@pytest.mark.parametrize("name", CONVERTED_STATICALLY)
def test_numbers_outside_of_a_range_are_refused(name: str) -> None:
    function = CONVERTED_STATICALLY[name]
    for dtype, number in (*STATIC, (torch.float16, -INF), (torch.float32, -1e39)):
        x = torch.arange(4).to(dtype)
        same([outcome(compiled(function), x, number)], [outcome(function, x, number)])


@pytest.mark.parametrize("name", CONVERTED)
def test_symbolic_numbers_outside_of_a_range_are_refused(name: str) -> None:
    function = CONVERTED[name]
    for dtype, number in DYNAMIC:
        x = torch.arange(4).to(dtype)
        torch._dynamo.reset()
        found = outcome(torch.compile(function, backend="stepwell", dynamic=True), x, number)
        same([found], [outcome(function, x, number)])


NEGATIVE: dict[str, Callable[[Tensor, int], Any]] = {
    "of an argument": lambda x, number: x**number,
    "of a size": lambda x, number: x ** (x.shape[0] - 4 + number),
    "of an element": lambda x, number: x ** (x[0].item() + number),
    "of lists": lambda x, number: torch._foreach_pow([x, x], number),
}


@pytest.mark.parametrize("number", [-2, 2])
@pytest.mark.parametrize("name", NEGATIVE)
@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_negative_powers_of_integers_are_refused(name: str, number: int) -> None:
    function, x = NEGATIVE[name], torch.arange(4)
    torch._dynamo.reset()
    found = outcome(torch.compile(function, backend="stepwell", dynamic=True), x, number)
    expected = outcome(function, x, number)
    assert (expected is REFUSAL) == (number < 0)
    same(found, expected)


# -- what eager refuses ------------------------------------------------------------------------------

OUTSIDE = torch.tensor([7])
MASK, WHOLE, PAIR = torch.tensor([True, False]), torch.tensor([1, 2]), torch.tensor([1.5, 2.0])
REFUSED: dict[str, Callable[[], Any]] = {
    "argmax of bools": lambda: torch.tensor([True, False]).argmax(),
    "floor of bools": lambda: torch.tensor([True, False]).floor(),
    "lerp of integers": lambda: torch.lerp(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64), 2),
    "index_add along the only dim": lambda: torch.zeros(3).index_add(0, OUTSIDE, torch.ones(1)),
    "index_add": lambda: torch.zeros(3, 2).index_add(0, OUTSIDE, torch.ones(1, 2)),
    "index_copy": lambda: torch.zeros(3, 2).index_copy(0, OUTSIDE, torch.ones(1, 2)),
    "index_select": lambda: torch.zeros(3, 2).index_select(0, OUTSIDE),
    "bernoulli of more than 1": lambda: torch.bernoulli(torch.ones(4), 1.5),
    "bernoulli of less than 0": lambda: torch.ones(4).bernoulli_(-0.1),
    "bernoulli of no number": lambda: torch.bernoulli(torch.ones(4), NAN),
    "bernoulli of tensors": lambda: torch.bernoulli(torch.ones(4) + 0.5),
    "binary cross entropy of more than 1": lambda: functional.binary_cross_entropy(torch.ones(9) + 1, torch.ones(9)),
    "binary cross entropy of less than 0": lambda: functional.binary_cross_entropy(-torch.ones(9), torch.ones(9)),
    "binary cross entropy of no number": lambda: functional.binary_cross_entropy(torch.ones(9) * NAN, torch.ones(9)),
    "dropout by no number": lambda: torch.dropout(torch.ones(9), NAN, True),
    "dropout by less than 0": lambda: torch.dropout(torch.ones(9), -0.1, True),
    "bools that are subtracted": lambda: PAIR - MASK,
    "a bool that is subtracted": lambda: PAIR - True,
    "a bool from which numbers are subtracted": lambda: True - PAIR,
    "a sum by a bool": lambda: torch.add(PAIR, PAIR, alpha=True),
    "a negative power of integers": lambda: WHOLE**-1,
    "bools from which numbers are subtracted": lambda: torch.rsub(PAIR, MASK),
    "bools that shrink": lambda: functional.tanhshrink(MASK),
    "distance of bools": lambda: torch.dist(PAIR, MASK),
    "numbers of lists that are bools": lambda: torch._foreach_sub([PAIR], True),
    "numbers of lists that are complex": lambda: torch._foreach_addcmul([PAIR], [PAIR], [PAIR], value=1j),
    "lerp of lists of integers": lambda: torch._foreach_lerp([WHOLE], [WHOLE], 0.5),
    "running sums of bools": lambda: MASK.cumsum(0, dtype=torch.bool),
    "trace of bools": lambda: torch.trace(MASK[None]),
    "reflected bools": lambda: functional.pad(MASK[None], (1, 1), mode="reflect"),
    "celu of integers": lambda: functional.celu(WHOLE),
    "glu of integers": lambda: functional.glu(WHOLE),
    "huber loss of integers": lambda: functional.huber_loss(WHOLE, WHOLE),
    "logaddexp2 of integers": lambda: torch.logaddexp2(WHOLE, WHOLE),
    "negative log likelihood of integers": lambda: functional.nll_loss(WHOLE[None], WHOLE[:1]),
    "negative log likelihood of bools": lambda: functional.nll_loss(PAIR[None], MASK[:1]),
    "bessel function of f16": lambda: torch.special.bessel_j0(PAIR.half()),
    "logarithm of a distribution in bf16": lambda: torch.special.log_ndtr(PAIR.bfloat16()),
    "xlog1py of complex numbers": lambda: torch.special.xlog1py(PAIR, PAIR * 1j),
    "numbers between complex bounds": lambda: torch.linspace(PAIR[0] * 1j, 2.0, 5, dtype=torch.float32),
    "mean squared error of integers": lambda: functional.mse_loss(WHOLE, WHOLE, reduction="none"),
    "windows of integers": lambda: functional.unfold(WHOLE.reshape(1, 1, 1, 2), (1, 1)),
    "shifted bools": lambda: torch.bitwise_left_shift(MASK, MASK),
    "embedding by floats": lambda: functional.embedding(PAIR, torch.ones(1, 2)),
    "embedding by bytes": lambda: functional.embedding(OUTSIDE.byte() * 0, torch.ones(1, 2)),
    "index_select by bytes": lambda: PAIR.index_select(0, OUTSIDE.byte() * 0),
    "index_select by floats": lambda: PAIR.index_select(0, PAIR),
    "index_fill by int32": lambda: PAIR.index_fill(0, OUTSIDE.int() * 0, 1.0),
    "index_fill of bytes by 300": lambda: WHOLE.byte().index_fill(0, OUTSIDE * 0, 300),
    "index_copy by int32": lambda: PAIR.index_copy(0, OUTSIDE.int() * 0, PAIR[:1]),
    "binary cross entropy of integers": lambda: functional.binary_cross_entropy_with_logits(PAIR, WHOLE),
    "softmax along a dim that is not there": lambda: torch.ones(4).softmax(5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        REFUSED[name]()
    with pytest.raises(expected.type):
        compiled(REFUSED[name])()

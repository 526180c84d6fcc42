"""What a compiled function returns: tensors that share memory just where eager's do."""

from __future__ import annotations

import torch
from torch import Tensor


def test_equal_results_are_tensors_of_their_own() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2, x * 2, x.sum() + 1, x.sum() + 1

    results = torch.compile(function, backend="stepwell")(torch.randn(4, 6))
    assert len({result.data_ptr() for result in results}) == 4


def test_a_detached_result_keeps_the_gradient_of_its_sibling() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.sin(x) * 2
        return y[0:3], y[3:], y.detach(), y.mean()

    x = torch.randn(6, requires_grad=True)
    first, second, detached, mean = torch.compile(function, backend="stepwell")(x)
    assert not detached.requires_grad
    (gradient,) = torch.autograd.grad(first.sum() + second.sum() + mean, x)
    torch.testing.assert_close(gradient, torch.cos(x) * 2 * (1 + 1 / 6))


def test_a_temporary_of_an_expanded_tensor_has_memory_of_its_own() -> None:
    """`cumsum` accumulates f32 in a temporary of f64, whose rows must not overlap as those of its operand do."""
    x = torch.arange(4.0).expand(3, 4)
    result = torch.compile(lambda x: x.cumsum(0), backend="stepwell")(x)
    torch.testing.assert_close(result, torch.tensor([[0.0, 1, 2, 3], [0, 2, 4, 6], [0, 3, 6, 9]]))


def test_a_sum_of_bools_takes_its_factor() -> None:
    x, y = torch.tensor([True, False, False]), torch.tensor([True, True, False])
    for factor, expected in ((False, [True, False, False]), (True, [True, True, False])):
        result = torch.compile(lambda x, y, f=factor: torch.add(x, y, alpha=f), backend="stepwell")(x, y)
        assert result.tolist() == expected


def test_attention_that_the_library_does_not_take() -> None:
    """Keys that do not lie row by row: the pattern matches, and its trial leaves nothing behind."""

    def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (x.permute(0, 2, 1, 3) for x in (query, key, value))
        return (query @ key.transpose(-2, -1)).div(8.0).softmax(-1) @ value

    heads = [torch.randn(2, 4, 5, 8) for _ in range(3)]
    compiled = torch.compile(attention, backend="stepwell", options={"strict": True})
    torch.testing.assert_close(compiled(*heads), attention(*heads))


@torch.library.custom_op("stepwell_test::halves", mutates_args=(), schema="(Tensor x) -> (Tensor[], int, Tensor)")
def halves(x: Tensor) -> tuple[list[Tensor], int, Tensor]:
    middle = len(x) // 2
    return [x[:middle].clone(), x[middle:].clone()], middle, -x


@halves.register_fake
def _(x: Tensor) -> tuple[list[Tensor], int, Tensor]:
    middle = len(x) // 2
    return [x.new_empty(middle), x.new_empty(len(x) - middle)], middle, torch.empty_like(x)


def test_an_operator_that_gives_a_list_beside_other_results() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor, int, Tensor]:
        (low, high), middle, negative = halves(x + 1)
        return low * 2, high * 3, middle, negative + 1

    compiled = torch.compile(function, backend="stepwell", options={"strict": True})
    low, high, middle, negative = compiled(torch.arange(5.0))
    assert (low.tolist(), high.tolist(), middle) == ([2.0, 4.0], [9.0, 12.0, 15.0], 2)
    assert negative.tolist() == [0.0, -1.0, -2.0, -3.0, -4.0]

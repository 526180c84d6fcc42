"""What eager refuses, compiled code refuses: it neither computes something nor reads outside of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

REFUSED: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Tensor, ...]]]] = {
    "as_strided beyond the storage": (
        lambda x: torch.as_strided_copy(x, (4,), (3,), 0),
        lambda: (torch.ones(9),),
    ),
    "as_strided of nothing": (lambda x: torch.as_strided_copy(x, (1,), (1,)), lambda: (torch.ones(0),)),
    "index_add of fewer dims": (
        lambda x, index, source: x.index_add(0, index, source),
        lambda: (torch.ones(3, 2), torch.tensor([0, 1]), torch.ones(2)),
    ),
    "embedding in an empty table": (
        torch.nn.functional.embedding,
        lambda: (torch.tensor([0]), torch.ones(0, 3)),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses_is_refused(name: str) -> None:
    function, make = REFUSED[name]
    with pytest.raises(Exception) as eager:  # noqa: PT011
        function(*make())
    with pytest.raises(eager.type):
        torch.compile(function, backend="stepwell", options={"strict": True})(*make())


def test_group_norm_of_a_transposed_tensor() -> None:
    """Eager refuses it before torch 2.15."""

    def function(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.native_group_norm(x, None, None, 2, 4, 6, 2, 1e-5)[0]
        return result

    compiled = torch.compile(function, backend="stepwell", options={"strict": True})
    x = torch.randn(2, 6, 4).transpose(1, 2)
    if torch.__version__ >= "2.15":
        torch.testing.assert_close(compiled(x), function(x))
        return
    with pytest.raises(RuntimeError):
        function(x)
    with pytest.raises(RuntimeError):
        compiled(x)


def test_a_gather_without_indices_may_have_another_rank() -> None:
    """Also its gradient, for which there is nothing to scatter."""
    x, index = torch.ones(5, requires_grad=True), torch.ones(2, 0, dtype=torch.uint8)
    result = torch.compile(torch.gather, backend="stepwell", options={"strict": True})(x, 0, index)
    assert result.shape == (2, 0)
    assert torch.equal(torch.autograd.grad(result.sum(), x)[0], torch.zeros(5))


def test_a_part_of_all_elements_is_a_view() -> None:
    x = torch.arange(4.0)
    (part,) = torch.compile(lambda x: torch.unsafe_split(x, 4), backend="stepwell")(x)
    assert part.data_ptr() == x.data_ptr()


def test_the_gradient_of_the_soft_margin_loss_is_precise_where_it_is_small() -> None:
    """1 - sigmoid loses all digits there."""
    x, y = torch.tensor([15.0], requires_grad=True), torch.ones(1)
    loss = torch.compile(torch.nn.functional.soft_margin_loss, backend="stepwell")(x, y)
    (gradient,) = torch.autograd.grad(loss, x)
    torch.testing.assert_close(gradient, torch.tensor([-3.0590222692562e-07]), rtol=1e-6, atol=0.0)

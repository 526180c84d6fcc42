"""Where eager rounds a scalar to bf16 or f16 before it computes, and where it does not."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch

SCALARS: dict[str, torch.Tensor | float] = {
    "number": -0.1,
    "f64": torch.tensor(-0.1, dtype=torch.float64),
    "f32": torch.tensor(-0.1),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
@pytest.mark.parametrize("first", [True, False], ids=["scalar first", "scalar second"])
@pytest.mark.parametrize("scalar", SCALARS)
def test_bits_are_those_of_eager(scalar: str, first: bool, name: str, dtype: torch.dtype) -> None:
    op: Callable[..., torch.Tensor] = getattr(operator, name)

    def function(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
        return op(y, x) if first else op(x, y)

    x = torch.randn(200).to(dtype)
    found = torch.compile(function, backend="stepwell")(x, SCALARS[scalar])
    assert torch.equal(found, function(x, SCALARS[scalar]))


POWERS: dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "exponent": lambda x, number: x**number,
    "base": lambda x, number: number**x,
    "exponent of rank 0": lambda x, number: x ** torch.tensor(number),
    "exponent of lists": lambda x, number: torch._foreach_pow([x], number)[0],
    "exponent by size": lambda x, number: x ** (x.shape[0] / 80 + 0 * number),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", POWERS)
def test_numbers_of_powers_are_rounded(name: str, dtype: torch.dtype, dynamic: bool) -> None:
    """Not so the factor of a sum, with which eager's vectors, the rest of a row and strided rows round differently."""
    x, number = torch.linspace(0.1, 3, 201).to(dtype), 2.51234
    torch._dynamo.reset()
    found = torch.compile(POWERS[name], backend="stepwell", dynamic=dynamic)(x, number)
    assert torch.equal(found, POWERS[name](x, number))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_number_that_is_divided_is_rounded(dtype: torch.dtype, dynamic: bool) -> None:
    x, numbers = torch.linspace(0.1, 3, 201).to(dtype), (2.51234, -1.0012)
    for number in numbers:
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, number: number // x, backend="stepwell", dynamic=dynamic)
        assert torch.equal(compiled(x, number), number // x)


LOGARITHMS: dict[str, Callable[[torch.Tensor, torch.Tensor | float], torch.Tensor]] = {
    "first": lambda x, number: torch.xlogy(number, x),
    "second": lambda x, number: torch.xlogy(x, number),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_number_beside_a_logarithm_is_rounded(name: str, dtype: torch.dtype) -> None:
    """Eager also rounds the logarithm: the product is that of f32, rounded once."""
    function, number = LOGARITHMS[name], 2.51234
    x = torch.linspace(0.1, 3, 201).to(dtype)
    torch._dynamo.reset()
    found = torch.compile(function, backend="stepwell", dynamic=False)(x, number)
    assert torch.equal(found, function(x.float(), torch.tensor(number, dtype=dtype).float()).to(dtype))

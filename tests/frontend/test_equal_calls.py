"""Which calls of a joint graph become one."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from stepwell.frontend.equal_calls import merge_equal_calls

aten = torch.ops.aten


def calls_after(function: Callable[..., object], *inputs: Tensor) -> Counter[str]:
    """How often each operator is left, where what it computes before and after is equal."""
    traced = make_fx(function, tracing_mode="fake")(*inputs)
    expected = traced(*(x.clone() for x in inputs))
    merge_equal_calls(traced.graph)
    traced.graph.lint()
    traced.recompile()
    torch.testing.assert_close(traced(*(x.clone() for x in inputs)), expected, rtol=0, atol=0, equal_nan=True)
    return Counter(str(node.target) for node in traced.graph.nodes if node.op == "call_function")


X = torch.linspace(-2, 2, 12).view(3, 4)


def test_equal_calls_become_one_and_those_on_them_too() -> None:
    left = calls_after(lambda x: aten.add.Tensor(x.sin().cos(), x.sin().cos(), alpha=2), X)
    assert left == {"aten.sin.default": 1, "aten.cos.default": 1, "aten.add.Tensor": 1}


def test_results_of_an_operator_with_several() -> None:
    left = calls_after(lambda x: x.max(1)[0] + x.max(1)[0] + x.max(1)[1], X)
    assert left["aten.max.dim"] == 1
    assert left["<built-in function getitem>"] == 2


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: (x + 1) * (x + 1.0), "aten.add.Tensor"),
        (lambda x: (x + 0.0) * (x + -0.0), "aten.add.Tensor"),
        (lambda x: x.sum(0)[:3] + x.sum(1), "aten.sum.dim_IntList"),
        (lambda x: aten.add.Tensor(x, x, alpha=2) * aten.add.Tensor(x, x), "aten.add.Tensor"),
    ],
    ids=["types", "zeros", "dims", "keywords"],
)
def test_calls_that_differ_stay(function: Callable[[Tensor], Tensor], operator: str) -> None:
    assert calls_after(function, X)[operator] == 2


def test_memory_that_nobody_has_written_stays_apart() -> None:
    def function(x: Tensor) -> Tensor:
        first, second = (torch.empty(3, 4) for _ in range(2))
        return first.fill_(1) + second.fill_(2) + x

    assert calls_after(function, X)["aten.empty.memory_format"] == 2


def test_returned_tensors_stay_apart() -> None:
    assert calls_after(lambda x: (x.sin(), x.sin()), X)["aten.sin.default"] == 2
    assert calls_after(lambda x: (x.sin().view(12), x.sin()), X)["aten.sin.default"] == 2


def test_random_numbers_stay_apart() -> None:
    traced = make_fx(lambda x: aten.bernoulli.p(x, 0.5) + aten.bernoulli.p(x, 0.5), tracing_mode="fake")(X)
    merge_equal_calls(traced.graph)
    assert sum(node.target is aten.bernoulli.p for node in traced.graph.nodes) == 2


def test_a_write_in_between_keeps_reads_apart() -> None:
    def function(x: Tensor) -> Tensor:
        before = x.sin()
        x.add_(1)
        return before + x.sin()

    assert calls_after(function, X)["aten.sin.default"] == 2


PROGRAM = """
import sys, torch, stepwell
x = torch.randn(8, 8, requires_grad=True)
torch.compile(lambda x: (x.sin() * x.sin()).sum(), backend="stepwell")(x).backward()
assert torch.allclose(x.grad, (2 * x.sin() * x.cos()).detach())
print("torch._inductor.pattern_matcher" in sys.modules)
"""


def test_training_needs_nothing_of_inductors_passes() -> None:
    """Importing them takes more than a second."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"

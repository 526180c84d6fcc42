"""`stepwell.explain`: the counts, the texts of every level, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stepwell
from stepwell.ir.errors import OptionError


def two_kernels(x: Tensor, w: Tensor) -> Tensor:
    y = torch.exp(x * 2)
    z = y @ w
    return torch.tanh(z + 1)


def test_kernels_and_externs_with_their_lines() -> None:
    explanation = stepwell.explain(two_kernels, torch.randn(8, 4), torch.randn(4, 6))
    (graph,) = explanation.graphs
    assert graph.name == "inference"
    assert sorted(graph.ops) == ["add", "exp", "full", "full", "matmul", "mul", "tanh"]
    (extern,) = explanation.externs
    assert (extern.target, extern.why.split(":")[0]) == ("aten.mm.out", "matrix product")
    (line,) = extern.lines
    assert line.startswith(__file__)
    ops = {op for kernel in explanation.kernels for op in kernel.ops}
    assert {"mul", "exp", "add", "tanh"} <= ops
    assert "matmul" not in ops
    assert all(kernel.lines and kernel.bytes > 0 and kernel.launches == 1 for kernel in explanation.kernels)


def test_a_kernel_reads_at_every_level() -> None:
    kernel = stepwell.explain(lambda x: torch.exp(x), torch.randn(64)).kernels[0]
    assert list(kernel.stages) == ["graph", "loop", "tile", "llvm", "asm"]
    assert "graph.exp" in kernel.stages["graph"]
    assert "loop.parallel" in kernel.stages["loop"]
    assert f"tile.kernel @{kernel.name}" in kernel.stages["tile"]
    assert f"define void @{kernel.name}" in kernel.stages["llvm"]
    assert f"{kernel.name}:" in kernel.stages["asm"]


def test_ops_of_a_kernel_share_their_names() -> None:
    explanation = stepwell.explain(lambda x: torch.exp(x * 2) + torch.tanh(x), torch.randn(8, 4))
    text = explanation.kernels[0].stages["graph"]
    names = [line.partition(" = ")[0] for line in text.splitlines()]
    assert len(set(names)) == len(names) == 4
    assert text.splitlines()[-1].count(names[-2]) == 1


def test_stages_hold_the_whole_graph() -> None:
    (graph,) = stepwell.explain(two_kernels, torch.randn(8, 4), torch.randn(4, 6)).graphs
    assert "graph.matmul" in graph.stages["graph"]
    assert "loop.kernel" in graph.stages["fused"]
    assert "host.launch" in graph.stages["tile"]
    assert "host.stretch" in graph.stages["host"]
    assert graph.source.startswith("def inference(args):")


def test_training_gives_forward_and_backward() -> None:
    module = nn.Linear(4, 2)
    explanation = stepwell.explain(module, torch.randn(3, 4))
    assert [graph.name for graph in explanation.graphs] == ["forward", "backward"]
    assert all(parameter.grad is None for parameter in module.parameters())


def test_the_text_names_graphs_kernels_and_externs() -> None:
    text = str(stepwell.explain(two_kernels, torch.randn(8, 4), torch.randn(4, 6)))
    assert "inference graph: 7 ops" in text
    assert "aten.mm.out" in text
    assert "test_explain.py:" in text


def test_a_kernel_that_is_launched_twice_is_one_kernel() -> None:
    explanation = stepwell.explain(lambda x: torch.topk(torch.topk(x * 2, 8)[0] * 2, 8)[0] * 2, torch.randn(8))
    (kernel,) = explanation.kernels
    assert kernel.launches == 3


def test_it_can_be_asked_often_and_leaves_compiled_functions_alone() -> None:
    compiled = torch.compile(two_kernels, backend="stepwell")
    arguments = torch.randn(8, 4), torch.randn(4, 6)
    compiled(*arguments)
    for _ in range(12):  # more than Dynamo's recompile limit
        assert len(stepwell.explain(two_kernels, *arguments).graphs) == 1
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(*arguments)


def normalised_rows_summed(x: Tensor) -> Tensor:
    return torch.softmax(x, -1).sum(0)


def test_two_kernels_are_two_for_a_reason() -> None:
    explanation = stepwell.explain(normalised_rows_summed, torch.randn(64, 512))
    (graph,) = explanation.graphs
    (split,) = graph.splits
    assert [split.producer, split.consumer] == [kernel.name for kernel in graph.kernels]
    assert split.why == "their index spaces share no leading index"
    assert split.why in str(explanation)


def test_bytes_moved_are_those_of_the_tensors_that_a_kernel_reads_and_writes() -> None:
    (kernel,) = stepwell.explain(lambda x: torch.exp(x[::2]), torch.randn(64)).kernels
    assert kernel.bytes == 2 * 32 * 4


def test_an_extern_says_whether_a_native_form_exists() -> None:
    def function(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return torch.topk(x, 2)[0], torch.exp(z)

    externs = stepwell.explain(function, torch.randn(8), torch.randn(4, dtype=torch.complex64)).externs
    why = {extern.target: extern.why for extern in externs}
    assert why["aten.topk.default"] == "aten.topk.default has no native form; runs as in eager"
    assert "but not for these types" in why["aten.exp.default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r"arguments of product: expected \(x.*, y.*\).*, got missing a required argument: 'x'; .*--shape"),
        (
            (torch.ones(4, 8), torch.ones(4, 8)),
            r"arguments of product: expected sizes and types .*, got RuntimeError\(",
        ),
    ],
)
def test_arguments_that_eager_refuses_are_named(arguments: tuple[Any, ...], message: str) -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    with pytest.raises(OptionError, match=message):
        stepwell.explain(product, *arguments)

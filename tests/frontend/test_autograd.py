"""The way through AOTAutograd: forward, backward and inference graphs, their seams, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, fx, nn

from stepwell.frontend.autograd import GraphRole, stepwell_backend
from stepwell.frontend.import_fx import ImportedGraph, import_graph
from stepwell.frontend.random_ops import philox
from stepwell.tests.frontend.evaluate import evaluate
from stepwell.tests.frontend.tracing import op_names


class Recorder:
    """A `compile_graph` that imports each graph, keeps it by role, and runs the import."""

    def __init__(self, **options: Any) -> None:
        self.graphs: list[tuple[GraphRole, ImportedGraph]] = []
        self.backend = partial(stepwell_backend, compile_graph=self.compile, **options)

    def compile(self, gm: fx.GraphModule, inputs: Sequence[Any], role: GraphRole) -> Callable[[list[Any]], list[Any]]:
        imported = import_graph(gm, inputs)
        imported.module.verify()
        self.graphs.append((role, imported))

        def run(arguments: list[Any]) -> list[Any]:
            given = [*arguments]
            arguments.clear()
            return evaluate(imported, given)

        return run

    def names(self, role: GraphRole) -> list[str]:
        return [name for own, imported in self.graphs if own is role for name in op_names(imported)]


def step(model: Callable[..., Tensor], parameters: Sequence[Tensor], *inputs: Tensor) -> list[Tensor]:
    """The loss and the gradients of one training step."""
    loss = model(*inputs).square().mean()
    return [loss, *torch.autograd.grad(loss, parameters)]


class Block(nn.Module):
    """A bit of everything that trains."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.hidden = nn.Linear(8, 16)
        self.batch_norm = nn.BatchNorm1d(16)
        self.out = nn.Linear(16, 8)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        hidden = nn.functional.gelu(self.hidden(self.norm(x)))
        hidden = self.batch_norm(hidden.transpose(1, 2)).transpose(1, 2)
        return torch.softmax(self.out(hidden) + x, -1)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_a_training_step_equals_eager(dynamic: bool) -> None:
    model, recorder = Block(), Recorder()
    statistics = {name: buffer.clone() for name, buffer in model.named_buffers()}
    tokens = torch.randint(11, (3, 5))
    expected = step(model, [*model.parameters()], tokens)
    updated = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.load_state_dict(statistics, strict=False)
    compiled = torch.compile(model, backend=recorder.backend, dynamic=dynamic)
    found = step(compiled, [*model.parameters()], tokens)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(buffer, updated[name])
    assert [role for role, _ in recorder.graphs] == [GraphRole.FORWARD, GraphRole.BACKWARD]
    assert "extern" not in recorder.names(GraphRole.FORWARD) + recorder.names(GraphRole.BACKWARD)


def test_without_gradients_there_is_one_graph() -> None:
    recorder = Recorder()
    with torch.no_grad():
        torch.compile(Block().eval(), backend=recorder.backend)(torch.randint(11, (3, 5)))
    assert [role for role, _ in recorder.graphs] == [GraphRole.INFERENCE]


def test_composites_stay_whole_and_are_recomputed() -> None:
    """The gelu between product and norm is not saved: the backward graph computes it again."""
    model, recorder = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)), Recorder()
    x = torch.randn(4, 8)
    step(torch.compile(model, backend=recorder.backend), [*model.parameters()], x)
    assert recorder.names(GraphRole.FORWARD).count("erf") == 1
    assert recorder.names(GraphRole.BACKWARD).count("erf") == 2


# -- random numbers ----------------------------------------------------------------------------------


def dropped(x: Tensor) -> Tensor:
    return nn.functional.dropout(x, 0.25)


def test_backward_repeats_the_mask_of_forward() -> None:
    recorder = Recorder()
    x = torch.ones(40, 50, requires_grad=True)
    result = torch.compile(dropped, backend=recorder.backend)(x)
    (grad,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(grad, result.detach())
    assert abs((result == 0).double().mean().item() - 0.25) < 0.04


def test_each_call_draws_a_new_seed_and_manual_seed_repeats_it() -> None:
    compiled = torch.compile(dropped, backend=Recorder().backend)
    x = torch.ones(200)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(3)
    assert torch.equal(compiled(x), first)
    assert not torch.equal(first, second)


def test_each_op_has_a_stream_of_its_own() -> None:
    compiled = torch.compile(lambda x: (torch.rand_like(x), torch.rand_like(x)), backend=Recorder().backend)
    first, second = compiled(torch.empty(100))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_uniform_numbers_lie_below_one(dtype: torch.dtype) -> None:
    recorder = Recorder()
    values = torch.compile(lambda: torch.rand(20_000, dtype=dtype), backend=recorder.backend)()
    assert "random" in recorder.names(GraphRole.INFERENCE)
    assert values.dtype == dtype
    assert values.min() >= 0 and values.max() < 1  # noqa: PT018
    assert abs(values.double().mean().item() - 0.5) < 0.02


def test_normal_numbers_and_integers_are_distributed_as_asked() -> None:
    def function() -> tuple[Tensor, Tensor]:
        return torch.randn(20_000), torch.randint(3, 7, (20_000,))

    recorder = Recorder()
    normal, integers = torch.compile(function, backend=recorder.backend)()
    assert recorder.names(GraphRole.INFERENCE).count("random") == 3
    assert abs(normal.mean().item()) < 0.03
    assert abs(normal.std().item() - 1) < 0.03
    assert integers.unique().tolist() == [3, 4, 5, 6]


def test_fallback_random_gives_the_numbers_of_eager() -> None:
    compiled = torch.compile(dropped, backend=Recorder(fallback_random=True).backend)
    torch.manual_seed(5)
    found = compiled(torch.ones(100))
    torch.manual_seed(5)
    assert torch.equal(found, dropped(torch.ones(100)))


def test_philox_gives_the_published_words() -> None:
    """Known answers of Random123 for Philox4x32-10: counter and key of zeros, and of ones."""
    assert hex(int(philox(0, 1, 0)[0])) == "0x6627e8d5"
    assert philox(7, 4, 2).dtype == np.uint64
    assert len({int(word) for word in philox(7, 1000, 2)}) == 1000


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_loss_saves_logits_on_a_gpu(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log softmax is as large as they are, and computed again there."""
    monkeypatch.setattr("stepwell.frontend.autograd.home_device", lambda graph: torch.device(device))
    recorder = Recorder()
    logits, labels = torch.randn(6, 50, requires_grad=True), torch.arange(6)
    fast = torch.compile(nn.functional.cross_entropy, backend=recorder.backend)
    found, expected = (
        [loss, *torch.autograd.grad(loss, logits)]
        for loss in (fast(logits, labels), nn.functional.cross_entropy(logits, labels))
    )
    torch.testing.assert_close(found, expected)
    again = "graph.max" in {f"graph.{name}" for name in recorder.names(GraphRole.BACKWARD)}
    assert again == (device == "cuda")


def test_a_relu_saves_a_mask() -> None:
    """A byte an element, and not what it gave."""
    recorder = Recorder()
    x = torch.randn(4, 6, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        return torch.relu(x * 2)

    fast = torch.compile(function, backend=recorder.backend)
    torch.testing.assert_close(step(fast, [x], x), step(function, [x], x))
    (backward,) = (graph for role, graph in recorder.graphs if role is GraphRole.BACKWARD)
    elements = [str(argument.type) for argument in backward.function.body.block.args]
    assert "tensor<4x6xi1>" in elements


@pytest.mark.parametrize("grad", [torch.randn(4, 6).t().contiguous().t(), torch.randn(4, 6).double()])
def test_a_mask_needs_one_layout_and_type(grad: Tensor) -> None:
    x = torch.randn(4, 6)
    expected = torch.ops.aten.threshold_backward(grad, x, 0)
    found = torch.compile(torch.ops.aten.threshold_backward, backend=Recorder().backend)(grad, x, 0)
    assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
    assert torch.equal(found, expected)

"""The way from `torch.compile` to results: values, mutation, training, dynamic sizes, options, refusals."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.nn import functional
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import stepwell
from stepwell.ir.errors import BackendError, LoweringError, OptionError
from stepwell.lowering.host.bufferize import HostBufferize
from stepwell.runtime.torch_backend import stepwell as backend


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = torch.compile(function, backend="stepwell", **options)
    return wrapped


# -- values ------------------------------------------------------------------------------------------


def test_a_chain_of_pointwise_ops_equals_eager() -> None:
    def chain(x: Tensor) -> Tensor:
        return (x * 2 + 1).relu()

    x = torch.randn(64)
    assert torch.equal(compiled(chain)(x), chain(x))


def test_strides_are_eagers() -> None:
    def several(x: Tensor) -> tuple[Tensor, ...]:
        return x + 1, x.t() * 2, x[:, ::2] - 1, x[None] * 3

    x = torch.randn(6, 8).t()
    for found, wanted in zip(compiled(several)(x), several(x), strict=True):
        assert torch.equal(found, wanted)
        assert found.stride() == wanted.stride()


def test_views_of_inputs_alias_them() -> None:
    x = torch.randn(4, 6)
    view, transposed = compiled(lambda x: (x[1:, 2], x.t()))(x)
    x.zero_()
    assert not view.any()
    assert not transposed.any()


def test_externs_run_between_kernels() -> None:
    def largest(x: Tensor) -> tuple[Tensor, Tensor]:
        values, indices = torch.topk(x * 2, 3)
        return values + 1, indices

    x = torch.randn(5, 16)
    for found, wanted in zip(compiled(largest)(x), largest(x), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("values", [[1, 2, 3], [0.5, float("nan"), -0.0], [True, False, True], []])
def test_tensors_made_in_the_function_are_constants(values: list[Any]) -> None:
    def constant(x: Tensor) -> Tensor:
        return torch.cat([torch.tensor(values).to(x.dtype), x])

    x = torch.randn(3)
    torch.testing.assert_close(compiled(constant)(x), constant(x), rtol=0, atol=0, equal_nan=True)


def test_no_output_at_all() -> None:
    def store(x: Tensor) -> None:
        x.add_(1)

    x = torch.zeros(8)
    assert compiled(store)(x) is None
    assert x.tolist() == [1.0] * 8


def test_empty_tensors() -> None:
    x = torch.randn(0, 4)
    assert compiled(lambda x: x * 2 + 1)(x).shape == (0, 4)


# -- mutation ----------------------------------------------------------------------------------------


def test_inputs_are_mutated() -> None:
    def update(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2).add_(y)
        y.copy_(x)
        return x + y

    found, wanted = [[torch.arange(6.0), torch.ones(6)] for _ in range(2)]
    assert torch.equal(compiled(update)(*found), update(*wanted))
    assert all(map(torch.equal, found, wanted))


def test_a_buffer_that_is_read_at_other_places_is_mutated_last() -> None:
    def shift(x: Tensor) -> None:
        x.copy_(x.flip(0))

    x = torch.arange(100.0)
    compiled(shift)(x)
    assert torch.equal(x, torch.arange(100.0).flip(0))


def test_batch_norm_updates_its_statistics() -> None:
    eager, ours = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    x = torch.randn(32, 4)
    torch.testing.assert_close(compiled(ours)(x), eager(x))
    torch.testing.assert_close(ours.running_var, eager.running_var)
    torch.testing.assert_close(ours.running_mean, eager.running_mean)
    assert ours.num_batches_tracked == 1


# -- training ----------------------------------------------------------------------------------------


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(8, 16), nn.Linear(16, 4), nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.norm(torch.tanh(self.first(x)))
        result: Tensor = self.second(hidden)
        return result


def gradients(module: nn.Module, x: Tensor, function: Callable[..., Tensor]) -> list[Tensor]:
    module.zero_grad()
    functional.mse_loss(function(x), torch.zeros(x.shape[0], 4)).backward()
    return [parameter.grad.clone() for parameter in module.parameters() if parameter.grad is not None]


def test_gradients_equal_eagers() -> None:
    module, x = Network(), torch.randn(12, 8)
    found, wanted = gradients(module, x, compiled(module)), gradients(module, x, module)
    assert len(found) == len(wanted) == 6
    torch.testing.assert_close(found, wanted)


def test_a_graph_can_be_kept_for_a_second_backward_pass() -> None:
    x = torch.randn(8, requires_grad=True)
    y = compiled(lambda x: (x.exp() * x).sum())(x)
    y.backward(retain_graph=True)
    first = x.grad.clone()  # type: ignore[union-attr]
    y.backward()
    torch.testing.assert_close(x.grad, 2 * first)


def test_in_place_changes_of_what_is_saved_are_noticed() -> None:
    weight = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(4, 4, requires_grad=True)
    y = compiled(lambda x, w: x @ w.t())(x, weight)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# -- dynamic sizes -----------------------------------------------------------------------------------


def test_one_compile_serves_many_sizes() -> None:
    def centre(x: Tensor) -> tuple[Tensor, int]:
        return x - x.sum(0) / x.shape[0], x.shape[0] * 2

    function = compiled(centre, dynamic=True)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for size in range(2, 40):
            x = torch.randn(size, 5)
            found, wanted = function(x), centre(x)
            torch.testing.assert_close(found[0], wanted[0])
            assert found[1] == wanted[1]


def test_training_with_dynamic_sizes() -> None:
    module = Network()
    function = compiled(module, dynamic=True)
    for size in (3, 8, 17):
        x = torch.randn(size, 8)
        torch.testing.assert_close(gradients(module, x, function), gradients(module, x, module))


def test_python_floats_are_inputs() -> None:
    function = compiled(lambda x, f: x * f + f, dynamic=True)
    x = torch.randn(6)
    for number in (1.5, 2.5, 3.5):
        torch.testing.assert_close(function(x, number), x * number + number)


# -- threads -----------------------------------------------------------------------------------------


def test_calls_from_several_threads_do_not_disturb_each_other() -> None:
    def softmax(x: Tensor) -> Tensor:
        return torch.softmax(x * 2, -1) @ x.t()

    function, inputs = compiled(softmax), [torch.randn(64, 64) for _ in range(4)]
    wanted = [softmax(x) for x in inputs]
    function(inputs[0])
    failures: list[int] = []

    def work(position: int) -> None:
        for _ in range(50):
            if not torch.allclose(function(inputs[position]), wanted[position], atol=1e-5):
                failures.append(position)

    threads = [threading.Thread(target=work, args=(position,)) for position in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_inference_mode_gives_inference_tensors() -> None:
    function = compiled(lambda x: x + 1)
    with torch.inference_mode():
        assert function(torch.ones(4)).is_inference()
    assert not function(torch.ones(4)).is_inference()


# -- options -----------------------------------------------------------------------------------------


def test_an_unknown_option_lists_the_known_ones() -> None:
    function = compiled(lambda x: x + 1, options={"stric": True})
    with pytest.raises(BackendCompilerFailed, match=r"expected one of strict, mode, .* got 'stric'"):
        function(torch.ones(2))


class Staged(ModulePass):
    """A pass that runs after a stage of no pipeline."""

    name = "graph-staged"
    stage = "fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


@pytest.mark.parametrize(
    ("item", "message"),
    [("graph-fold-constnts", "expected a known pass"), (Staged(), "expected a stage of graph, loop, fused, tile")],
)
def test_an_unknown_pass_or_stage_is_refused_before_anything_runs(item: str | ModulePass, message: str) -> None:
    function = compiled(lambda x: x + 1, options={"passes": [item], "strict": False})
    with pytest.raises(BackendCompilerFailed, match=message):
        function(torch.ones(2))


def test_stepwell_compile_takes_knobs_and_complains_at_once() -> None:
    @stepwell.compile(mode="max-autotune", opt_level=1)
    def add_one(x: Tensor) -> Tensor:
        return x + 1

    assert add_one(torch.zeros(2)).tolist() == [1.0, 1.0]
    with pytest.raises(OptionError, match="opt_level: expected one of 0, 1, 2, 3"):
        stepwell.compile(add_one, opt_level=7)


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_torchs_modes_are_accepted(mode: str) -> None:
    assert compiled(lambda x: x + 1, mode=mode)(torch.zeros(1)).item() == 1


def test_the_backend_works_by_hand_and_by_name() -> None:
    assert "stepwell" in torch._dynamo.list_backends()
    assert torch.compile(lambda x: x + 1, backend=backend)(torch.zeros(1)).item() == 1


# -- refusals ----------------------------------------------------------------------------------------


def broken(*arguments: object) -> None:
    raise LoweringError("trial", expected="success", got="failure")


def test_a_failing_pass_raises_under_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostBufferize, "apply", broken)
    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(lambda x: x + 1)(torch.zeros(1))
    notes = "\n".join(getattr(caught.value.inner_exception, "__notes__", ()))
    assert "while compiling the inference graph, in step host-bufferize" in notes
    assert "test_torch_backend.py:" in notes
    assert "replay with: xdsl-opt -p host-bufferize" in notes


def test_a_failing_pass_costs_a_warning_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostBufferize, "apply", broken)
    function = compiled(lambda x: x + 1, options={"strict": False})
    with pytest.warns(UserWarning, match="runs a graph eagerly, since its compile failed"):
        assert function(torch.zeros(1)).item() == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(torch.ones(1)).item() == 2


def test_other_devices_run_eagerly_with_a_warning() -> None:
    function = compiled(lambda x: x + 1, options={"strict": False})
    with pytest.warns(UserWarning, match="expected tensors on cpu, cuda, got a graph with tensors on meta"):
        assert function(torch.zeros(2, device="meta")).shape == (2,)
    torch._dynamo.reset()
    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(lambda x: x + 1)(torch.zeros(2, device="meta"))
    assert isinstance(caught.value.inner_exception, BackendError)

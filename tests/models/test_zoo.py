"""Every model of the zoo against eager: inference, training, dynamic batch, autocast, channels-last.

Values may be as far from a float64 run as eager's own are; nothing may warn; externs are those of the reviewed list.
`pytest -m slow tests/models/test_zoo.py` runs what CI leaves out, `-m ""` everything.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("transformers", reason="most models are those of transformers")

from stepwell.tests.models.accuracy import Inputs, Results, assert_as_accurate_as_eager, outputs_of, to_double
from stepwell.tests.models.externs import ExternRecorder
from stepwell.tests.models.zoo import IMAGES, ZOO, build, channels_last, to_channels_last

STEPS = 3

DEVICE = os.environ.get("STEPWELL_TEST_DEVICE", "cpu")
"""Where models run; `python -m stepwell.benchmarks.coverage --models` asks for a GPU."""

FOREIGN = (
    r"Dynamo detected a call to a `functools.lru_cache`-wrapped function",  # mamba
    r"<class 'torch.autograd.function.Function'> should not be instantiated",  # bloom
    r"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",  # Dynamo of torch 2.11 itself
)
"""Warnings about the models themselves."""


def _cases(names: Iterable[str], *in_ci: str) -> Any:
    """A test for each model, those that CI leaves out marked."""
    marked = [pytest.param(name, marks=() if name in in_ci else pytest.mark.slow) for name in names]
    return pytest.mark.parametrize("name", marked)


@pytest.fixture
def recorder() -> Iterator[ExternRecorder]:
    """What the test's compiles are recorded by; it fails at an extern that nobody reviewed."""
    found = ExternRecorder()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield found
    assert found.graphs
    assert DEVICE != "cpu" or not found.unexpected  # libraries of a GPU are no fallback


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Makes warnings errors, but for those that Dynamo gives whatever the backend."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in FOREIGN:
            warnings.filterwarnings("ignore", message)
        yield


def _compiled(module: nn.Module, recorder: ExternRecorder, **options: Any) -> Any:
    return torch.compile(module, backend=recorder.backend, **options)


def _built(name: str) -> tuple[nn.Module, Inputs]:
    module, inputs = build(name)
    moved = {key: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
    return module.to(DEVICE), moved


# -- runs --------------------------------------------------------------------------------------------


def _infer(model: Any, inputs: Inputs) -> Results:
    with torch.no_grad(), _without_warnings():
        return {name: value.clone() for name, value in outputs_of(model(**inputs)).items()}


def _train(model: Any, module: nn.Module, inputs: Inputs, *, autocast: bool = False) -> Results:
    """Loss and gradients by step, and what the module holds after the last step of Adam.

    Its eps is above the rounding of gradients, of which it would else make whole steps: as large for 1e-9 as for 1.
    Autocast holds for one forward at a time: eager keeps the weights in bf16 until its end, and a step changes them.
    """
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, eps=1e-1 if autocast else 1e-3)
    results: Results = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        with _without_warnings():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                outputs = outputs_of(model(**inputs)).values()
            loss = sum(value.float().square().mean() for value in outputs if value.is_floating_point())
            assert isinstance(loss, torch.Tensor)
            loss.backward()
        results[f"loss {step}"] = loss.detach()
        gradients = ((name, parameter.grad) for name, parameter in module.named_parameters())
        results |= {f"grad {step} {name}": value.clone() for name, value in gradients if value is not None}
        optimizer.step()
    return results | {f"state {name}": value.detach().clone() for name, value in module.state_dict().items()}


# -- tests -------------------------------------------------------------------------------------------


@_cases(ZOO, "bert", "convnext", "lstm", "gnn")
def test_inference(name: str, recorder: ExternRecorder) -> None:
    module, inputs = _built(name)
    module.eval()
    exact = _infer(copy.deepcopy(module).double(), to_double(inputs))
    assert_as_accurate_as_eager(_infer(_compiled(module, recorder), inputs), _infer(module, inputs), exact)


@_cases(ZOO, "llama", "t5", "swin", "cnn", "moe")
def test_three_steps_of_adam(name: str, recorder: ExternRecorder) -> None:
    module, inputs = _built(name)
    module.train()
    exact, copied = copy.deepcopy(module).double(), copy.deepcopy(module)
    compiled = _train(_compiled(copied, recorder), copied, inputs)
    assert_as_accurate_as_eager(compiled, _train(module, module, inputs), _train(exact, exact, to_double(inputs)))


@_cases(ZOO, "gpt2", "mixer")
def test_dynamic_batch(name: str, recorder: ExternRecorder) -> None:
    module, _ = build(name)
    module.eval()
    compiled, double = _compiled(module, recorder), copy.deepcopy(module).double()
    graphs = []
    for batch in (2, 3, 5, 8):
        inputs = build(name, batch)[1]
        exact = _infer(double, to_double(inputs))
        assert_as_accurate_as_eager(_infer(compiled, inputs), _infer(module, inputs), exact)
        graphs.append(recorder.graphs)
    assert graphs[-1] == graphs[1]


@_cases(ZOO, "vit", "vae")
def test_autocast(name: str, recorder: ExternRecorder) -> None:
    module, inputs = build(name)
    module.train()
    exact, copied = copy.deepcopy(module).double(), copy.deepcopy(module)
    compiled = _train(_compiled(copied, recorder), copied, inputs, autocast=True)
    eager = _train(module, module, inputs, autocast=True)
    assert_as_accurate_as_eager(compiled, eager, _train(exact, exact, to_double(inputs)))


@_cases(IMAGES, "regnet")
def test_channels_last(name: str, recorder: ExternRecorder) -> None:
    module, inputs = build(name)
    module, inputs = channels_last(module.train()), to_channels_last(inputs)
    exact, copied = copy.deepcopy(module).double(), copy.deepcopy(module)
    compiled = _train(_compiled(copied, recorder), copied, inputs)
    assert_as_accurate_as_eager(compiled, _train(module, module, inputs), _train(exact, exact, to_double(inputs)))

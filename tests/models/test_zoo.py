"""Every model of the zoo against eager: inference, training, dynamic batch, autocast, channels-last.

Values may be as far from a float64 run as eager's own are, over several batches; nothing may warn; externs are those of
the reviewed list.
`pytest -m slow tests/models/test_zoo.py` runs what CI leaves out, `-m ""` everything.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("transformers", reason="most models are those of transformers")

from stepwell.tests.models.accuracy import (
    MIDDLE,
    WORST_AND_MIDDLE,
    Inputs,
    Results,
    Statistic,
    assert_as_accurate_as_eager,
    in_double,
    outputs_of,
)
from stepwell.tests.models.cases import cases
from stepwell.tests.models.externs import ExternRecorder
from stepwell.tests.models.zoo import CORNERED, IMAGES, ZOO, build, channels_last, to_channels_last

TRIALS = 15
"""Batches of different data whose errors are judged together."""

WARM_UP = 10
"""Steps of eager before the first that is judged: fresh weights may make all gradients hang on very few numbers."""

DEVICE = os.environ.get("ZOO_DEVICE", "cpu")
"""Where models run; `python -m stepwell.benchmarks.coverage --models` asks for a GPU."""

FOREIGN = (
    r"Dynamo detected a call to a `functools.lru_cache`-wrapped function",  # mamba
    r"<class 'torch.autograd.function.Function'> should not be instantiated",  # bloom
    r"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",  # Dynamo of torch 2.11 itself
)
"""Warnings about the models themselves."""


@pytest.fixture
def recorder() -> Iterator[ExternRecorder]:
    """What the test's compiles are recorded by; it fails at an extern that nobody reviewed."""
    found = ExternRecorder()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield found
    assert found.graphs
    assert DEVICE != "cpu" or not found.unexpected  # libraries of a GPU are no fallback


@pytest.fixture
def possible(name: str) -> None:
    """Skips what eager cannot do in bf16 on this processor, before anything is recorded."""
    if name == "lstm" and DEVICE == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("on this processor eager has no LSTM in bf16")


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


def built(name: str) -> nn.Module:
    return build(name)[0].to(DEVICE)


def batches_of(name: str, count: int = TRIALS, first: int = 0) -> Iterator[Inputs]:
    """As many as are judged together; others for another number of the first one."""
    for seed in range(first, first + count):
        inputs = build(name, seed=seed)[1]
        yield {key: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}


def training_batches(name: str, first: int = 0) -> Iterator[Inputs]:
    """Those of the warm-up, then those that are judged together."""
    return batches_of(name, WARM_UP + TRIALS, first)


def statistics_of(name: str) -> tuple[Statistic, ...]:
    """By what the batches of a model's training are judged."""
    return MIDDLE if name in CORNERED else WORST_AND_MIDDLE


# -- runs --------------------------------------------------------------------------------------------


def _infer(model: Any, inputs: Inputs) -> Results:
    with torch.no_grad(), _without_warnings():
        return {name: value.clone() for name, value in outputs_of(model(**inputs)).items()}


class Training:
    """A model that Adam trains, step by step.

    Targets are random: many models end in a norm, of whose outputs the mean square is 1 whatever the weights are, and
    its gradients nothing but rounding. Adam's eps is above most gradients, so that what it makes of them is smooth: of
    the sign of a gradient it would else make a whole step, however small the gradient is.
    """

    def __init__(self, module: nn.Module, model: Any = None, *, autocast: bool = False):
        self.module = module
        self.model = module if model is None else model
        self.autocast = autocast
        self.optimizer = torch.optim.Adam(module.parameters(), lr=1e-2, eps=1e-1)

    def follow(self, other: Training) -> None:
        """Goes on from where the other one is, so that a step is judged by itself."""
        self.module.load_state_dict(other.module.state_dict())
        self.optimizer.load_state_dict(copy.deepcopy(other.optimizer.state_dict()))

    def step(self, inputs: Inputs, seed: int) -> Results:
        """Loss, gradients, and what the module holds after the step.

        Autocast holds for one forward: eager keeps the weights in bf16 until its end, and a step changes them.
        """
        self.optimizer.zero_grad()
        with _without_warnings():
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=self.autocast):
                outputs = outputs_of(self.model(**inputs)).values()
            loss = self.loss([value for value in outputs if value.is_floating_point()], seed)
            loss.backward()
        gradients = ((name, parameter.grad) for name, parameter in self.module.named_parameters())
        results = {"loss": loss.detach()}
        results |= {f"grad {name}": value.clone() for name, value in gradients if value is not None}
        self.optimizer.step()
        return results | {f"state {name}": value.clone() for name, value in self.module.state_dict().items()}

    @staticmethod
    def loss(outputs: Iterable[torch.Tensor], seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        terms = []
        for value in outputs:
            target = torch.randn(value.shape, generator=generator, dtype=torch.float32)
            wide = value if value.dtype == torch.float64 else value.float()
            terms.append((wide - target.to(wide)).square().mean())
        return torch.stack(terms).sum()


def _assert_trains(
    name: str, module: nn.Module, batches: Iterable[Inputs], recorder: ExternRecorder, *, autocast: bool = False
) -> None:
    steps = train(module, lambda copied: _compiled(copied, recorder), batches, autocast=autocast)
    found, expected, exact = zip(*steps, strict=True)
    assert_as_accurate_as_eager(found, expected, exact, statistics_of(name))


def train(
    module: nn.Module, compiled: Callable[[nn.Module], Any], batches: Iterable[Inputs], *, autocast: bool = False
) -> list[tuple[Results, Results, Results]]:
    """Steps of Adam, each on a batch of its own, from where eager's last step has led: what the compiled module, eager
    and float64 give after the warm-up."""
    module.train()
    double, copied = copy.deepcopy(module).double(), copy.deepcopy(module)
    exact = Training(double, in_double(double))
    other = Training(copied, compiled(copied), autocast=autocast)
    eager = Training(module, autocast=autocast)
    steps = []
    for seed, inputs in enumerate(batches):
        if seed < WARM_UP:
            eager.step(inputs, seed)
            continue
        other.follow(eager)
        exact.follow(eager)
        steps.append((other.step(inputs, seed), eager.step(inputs, seed), exact.step(inputs, seed)))
    return steps


# -- tests -------------------------------------------------------------------------------------------


@cases(ZOO, "bert", "convnext", "lstm", "gnn")
def test_inference(name: str, recorder: ExternRecorder) -> None:
    module = built(name).eval()
    compiled, double = _compiled(module, recorder), in_double(copy.deepcopy(module).double())
    batches = list(batches_of(name))
    found, expected = ([_infer(model, inputs) for inputs in batches] for model in (compiled, module))
    assert_as_accurate_as_eager(found, expected, [_infer(double, inputs) for inputs in batches])


@cases(ZOO, "llama", "t5", "swin", "cnn", "moe")
def test_steps_of_adam(name: str, recorder: ExternRecorder) -> None:
    _assert_trains(name, built(name), training_batches(name), recorder)


@cases(ZOO, "gpt2", "mixer")
def test_dynamic_batch(name: str, recorder: ExternRecorder) -> None:
    module, _ = build(name)
    module.eval()
    compiled, double = _compiled(module, recorder), in_double(copy.deepcopy(module).double())
    runs, graphs = [], []
    for batch in (2, 3, 5, 8):
        inputs = build(name, batch)[1]
        runs.append((_infer(compiled, inputs), _infer(module, inputs), _infer(double, inputs)))
        graphs.append(recorder.graphs)
    assert_as_accurate_as_eager(*zip(*runs, strict=True))
    assert graphs[-1] == graphs[1]


@pytest.mark.usefixtures("possible")
@cases(ZOO, "vit", "vae")
def test_autocast(name: str, recorder: ExternRecorder) -> None:
    _assert_trains(name, built(name), training_batches(name), recorder, autocast=True)


@cases(IMAGES, "regnet")
def test_channels_last(name: str, recorder: ExternRecorder) -> None:
    batches = (to_channels_last(inputs) for inputs in training_batches(name))
    _assert_trains(name, channels_last(built(name)), batches, recorder)

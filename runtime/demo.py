"""The main job: trains one small network in eager, Inductor and Stepwell, and shows what Stepwell made of it.

A demonstration, not a benchmark: contenders take turns step by step, but nothing else is controlled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from shutil import which
from statistics import median
from time import perf_counter

import torch
from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from ..ir.errors import BackendError
from .explain import Explanation, explain
from .torch_backend import SERVED

BATCH, FEATURES, HIDDEN, TARGETS = 256, 64, 128, 16
WARM_UP_CALLS = 3
CPU = torch.device("cpu")
TOLERANCE = 1e-5
"""Greatest relative difference between final losses."""

LEXERS = {"llvm": "llvm", "asm": "gas"}
Loss = Callable[[Tensor, Tensor], Tensor]


def make_model() -> nn.Module:
    """A multi-layer perceptron with GELU and layer norm."""
    return nn.Sequential(
        nn.Linear(FEATURES, HIDDEN),
        nn.GELU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LayerNorm(HIDDEN),
        nn.Linear(HIDDEN, TARGETS),
    )


def loss_of(model: nn.Module) -> Loss:
    """The mean squared error of a model, as the function that is compiled."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return functional.mse_loss(model(x), y)

    return loss


@dataclass
class Contender:
    """One backend with a model and an optimiser of its own."""

    name: str
    loss: Loss
    optimizer: torch.optim.Optimizer
    first_call: float = 0.0
    steps: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def warm_up(self, x: Tensor, y: Tensor) -> None:
        """Forward and backward without a step; the first call compiles."""
        start = perf_counter()
        for call in range(WARM_UP_CALLS):
            self.loss(x, y).backward()
            finish(x.device)
            if call == 0:
                self.first_call = perf_counter() - start
        self.optimizer.zero_grad()

    def step(self, x: Tensor, y: Tensor) -> None:
        """One training step, timed."""
        start = perf_counter()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        finish(x.device)
        self.steps.append(perf_counter() - start)
        self.losses.append(loss.item())


def finish(device: torch.device) -> None:
    """Waits for what a GPU still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def has_cpp_compiler() -> bool:
    """Whether Inductor can compile here: for a GPU, too, it makes its launchers with one."""
    return any(map(which, (os.environ.get("CXX", "g++"), "clang++")))


def default_backends() -> list[str]:
    return ["eager", *(["inductor"] if has_cpp_compiler() else []), "stepwell"]


def train(backends: Iterable[str], steps: int, place: torch.device = CPU) -> list[Contender]:
    """Train equal copies of the model on equal data, one step of each backend in turn."""
    torch.manual_seed(0)
    model = make_model().to(place)
    x, y = torch.randn(BATCH, FEATURES).to(place), torch.randn(BATCH, TARGETS).to(place)
    contenders = [_contender(name, deepcopy(model)) for name in backends]
    for contender in contenders:
        contender.warm_up(x, y)
    for _ in range(steps):
        for contender in contenders:
            contender.step(x, y)
    return contenders


def _contender(backend: str, model: nn.Module) -> Contender:
    loss = loss_of(model)
    compiled = loss if backend == "eager" else torch.compile(loss, backend=backend)
    return Contender(backend, compiled, torch.optim.Adam(model.parameters(), lr=1e-3))


def disagreement(contenders: list[Contender]) -> float:
    """The greatest relative difference of a final loss from the first contender's."""
    first = contenders[0].losses[-1]
    return max(abs(contender.losses[-1] - first) / abs(first) for contender in contenders)


def results(contenders: list[Contender]) -> Table:
    """One line per backend."""
    table = Table("backend", "final loss", "first call", "per step", title="Training", title_justify="left")
    for contender in contenders:
        milliseconds = 1e3 * contender.first_call, 1e3 * median(contender.steps)
        table.add_row(contender.name, f"{contender.losses[-1]:.7f}", *(f"{ms:.2f} ms" for ms in milliseconds))
    return table


def stages(explanation: Explanation) -> Group:
    """One kernel as it reads at each level."""
    kernel = explanation.kernels[0]
    return Group(
        *(
            Panel(Syntax(text, LEXERS.get(level, "text"), word_wrap=True), title=f"{kernel.name}: {level}")
            for level, text in kernel.stages.items()
        )
    )


def place_for(device: str) -> torch.device:
    """The device of that name; raises BackendError for one on which nothing can be trained."""
    try:
        place = torch.device(device)
    except RuntimeError:
        place = None
    if place is None or place.type not in SERVED:
        raise BackendError("--device", expected=" or ".join(SERVED), got=device)
    if place.type == "cuda" and not torch.cuda.is_available():
        hint = "this torch is built for the CPU, or no driver is installed"
        raise BackendError("--device", expected="a GPU that torch can use", got="none", hint=hint)
    return place


def demo(steps: int = 30, device: str = "cpu", console: Console | None = None) -> None:
    """Print losses and times of each backend, then what Stepwell compiled; raises where losses differ."""
    place = place_for(device)
    console = console or Console()
    contenders = train(default_backends(), steps, place)
    console.print(results(contenders))
    if (difference := disagreement(contenders)) > TOLERANCE:
        raise BackendError("demo", expected=f"final losses within {TOLERANCE:g} of eager's", got=f"{difference:.2g}")
    x, y = torch.randn(BATCH, FEATURES, device=place), torch.randn(BATCH, TARGETS, device=place)
    explanation = explain(loss_of(make_model().to(place)), x, y)
    console.print(explanation)
    console.print(stages(explanation))

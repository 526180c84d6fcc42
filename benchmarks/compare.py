"""Runs one workload on several backends: checks that they agree with eager, then times them beside a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd

from .first_call import first_call
from .harness import Candidate, Timing, call, measure
from .workloads import Inputs, Shape, Workload

Function = Callable[..., Any]

COPY = "copy"
COLD_FLOOR = "cold floor"
MODES = {"dropped": 0, "kept": 8}
"""How many outputs stay alive: without any, storage may be reused; with 8, every call needs fresh storage."""


def _compute_once(graph: torch.fx.GraphModule, _: object) -> Function:
    """Runs the graph in the first call and returns those results ever after."""
    results: list[Any] | None = None

    def boxed(arguments: list[Any]) -> list[Any]:
        nonlocal results
        if results is None:
            results = list(graph(*arguments))
        arguments.clear()
        return results

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _floor(function: Function) -> Function:
    return torch.compile(function, backend=aot_autograd(fw_compiler=_compute_once, keep_inference_input_mutations=True))


BACKENDS: dict[str, Callable[[Function], Function]] = {
    "eager": lambda function: function,
    "inductor": lambda function: torch.compile(function, backend="inductor"),
    "stepwell": lambda function: torch.compile(function, backend="stepwell"),
    "inductor graphs": lambda function: torch.compile(function, backend="inductor", mode="reduce-overhead"),
    "stepwell graphs": lambda function: torch.compile(function, backend="stepwell", mode="reduce-overhead"),
    "floor": _floor,
    COLD_FLOOR: _floor,
}
"""Name → how to compile with it. A floor computes nothing: its time is that of Dynamo and AOTAutograd, the cold one's
after a copy of the row's bytes, which leaves little of their code and data in the caches, as does a kernel. Graphs are
those of CUDA."""


@dataclass(frozen=True)
class Case:
    """Where a measurement was made."""

    workload: str
    shape_name: str
    shape: Shape
    threads: int
    mode: str


@dataclass(frozen=True)
class Row:
    """One line of a report: one backend in one case. Times are seconds, the quartiles beside the median."""

    case: Case
    backend: str
    seconds: float
    low: float
    high: float
    speedup: Mapping[str, float]
    """Over each other backend of the same measurement."""
    copy_share: float | None
    """Bandwidth as a share of a copy's, where the workload is bound by memory."""
    first_call: float | None
    """Seconds of the first call in a fresh process without caches, where that was measured."""

    @property
    def break_even(self) -> float | None:
        """After how many calls the first one is paid back against eager, if it ever is."""
        saved = self.seconds * (self.speedup.get("eager", 0) - 1)
        return self.first_call / saved if self.first_call and saved > 0 else None


def compare(
    workload: Workload, shape_name: str, backends: list[str], *, threads: int, rounds: int, first_calls: bool
) -> Iterator[Row]:
    """The rows of one workload at one shape: one per mode and backend."""
    compiled = [name for name in backends if first_calls and name != "eager"]
    firsts = {name: first_call(name, workload.name, shape_name, threads) for name in compiled}
    candidates = _candidates(workload, workload.shapes[shape_name], backends, threads)
    for mode, kept in MODES.items():
        case = Case(workload.name, shape_name, workload.shapes[shape_name], threads, mode)
        timings = measure(candidates, kept=kept, rounds=rounds)
        yield from (_row(case, name, timings, firsts.get(name)) for name in backends)


def _candidates(workload: Workload, shape: Shape, backends: list[str], threads: int) -> dict[str, Candidate[Any]]:
    torch.manual_seed(0)
    torch._dynamo.reset()  # Inductor writes the number of threads into its kernels
    torch.set_num_threads(threads)
    inputs = workload.inputs(shape)
    candidates = {name: candidate(workload, BACKENDS[name](workload.function), inputs) for name in backends}
    _check(candidates)
    copy = _copy(workload.traffic * inputs[0].nbytes)
    if COLD_FLOOR in candidates:
        candidates[COLD_FLOOR] = _after(copy, candidates[COLD_FLOOR])
    return candidates | ({COPY: copy} if workload.traffic else {})


def candidate(workload: Workload, function: Function, inputs: Inputs) -> Candidate[Any]:
    """One call of the function; for a backward, the forward is prepared and not timed."""
    if not workload.backward:
        return call(lambda: function(*inputs))
    arguments = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    leaves = [x for x in arguments if x.requires_grad]
    gradient = torch.ones_like(workload.function(*inputs))
    return Candidate(lambda output: torch.autograd.grad(output, leaves, gradient), lambda: function(*arguments))


def _copy(moved: int) -> Candidate[None]:
    """A copy that reads and writes as many bytes in all; both buffers have been touched before."""
    source, target = torch.ones(moved // 2, dtype=torch.uint8), torch.ones(moved // 2, dtype=torch.uint8)
    return call(lambda: target.copy_(source))


def _after(first: Candidate[None], then: Candidate[Any]) -> Candidate[Any]:
    """The second candidate, with a run of the first before each of its own."""

    def prepare() -> Any:
        state = then.prepare()
        first.run(None)
        return state

    return Candidate(then.run, prepare)


def _check(candidates: Mapping[str, Candidate[Any]]) -> None:
    """Raise where a backend's result is far from that of the first: a wrong result has no time."""
    first, *others = [one.run(one.prepare()) for one in candidates.values()]
    for other in others:
        torch.testing.assert_close(other, first, rtol=2e-2, atol=2e-2)


def _row(case: Case, name: str, timings: Mapping[str, Timing], first: float | None) -> Row:
    own = timings[name]
    others = {other: timing for other, timing in timings.items() if other not in (name, COPY)}
    speedup = {other: timing.median / own.median for other, timing in others.items()}
    share = timings[COPY].median / own.median if COPY in timings else None
    return Row(case, name, own.median, own.low, own.high, speedup, share, first)

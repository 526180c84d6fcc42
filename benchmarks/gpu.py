"""`python -m stepwell.benchmarks.gpu`: tests and times Stepwell on a GPU, against eager and Inductor, in one process.

Candidates take turns, round after round; device time is that of CUDA events around many calls, host time that of
queueing a few. Bytes and operations are the fewest that a row needs, whatever a backend really moves.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import torch
import typer

from .compare import BACKENDS
from .gpu_rows import ROWS, Row

BASELINES = ["eager", "inductor"]
BACKENDS_OF_DEVICE = [*BASELINES, "stepwell"]
HOST_BACKENDS = [*BACKENDS_OF_DEVICE, "inductor graphs", "stepwell graphs", "floor"]
"""Where kernels are shorter than their launches, graphs of CUDA count, too, and what torch needs around any backend."""

ROUNDS = 5
ROUND_SECONDS = 0.02
WARM_UP_CALLS = 5
HOST_CALLS = 20
"""So few that no launch queue is full."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class Measured:
    """What one candidate took, in seconds per call; the first call includes the compile."""

    device: float
    host: float
    first: float

    @property
    def longer(self) -> float:
        """What bounds a row of short kernels."""
        return max(self.device, self.host)


# -- timing ------------------------------------------------------------------------------------------


def device_seconds(call: Call, calls: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def host_seconds(call: Call) -> float:
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(HOST_CALLS):
        call()
    seconds = (perf_counter() - start) / HOST_CALLS
    torch.cuda.synchronize()
    return seconds


def first_call(call: Call) -> tuple[float, Any]:
    """The seconds of a call that may have to compile, and its result."""
    torch.cuda.synchronize()
    start = perf_counter()
    result = call()
    torch.cuda.synchronize()
    return perf_counter() - start, result


def measure(candidates: Mapping[str, Call]) -> dict[str, tuple[float, float]]:
    """Medians of device and host seconds over rounds in which the candidates take turns."""
    counts = {}
    for name, call in candidates.items():
        device_seconds(call, WARM_UP_CALLS)
        counts[name] = max(3, min(500, int(ROUND_SECONDS / device_seconds(call, 3))))
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            samples[name].append((device_seconds(call, counts[name]), host_seconds(call)))
    gc.enable()
    return {name: (median(d for d, _ in taken), median(h for _, h in taken)) for name, taken in samples.items()}


# -- rows --------------------------------------------------------------------------------------------


def compare(row: Row, backends: list[str]) -> dict[str, Measured]:
    """Times a row on each backend, after checking that all agree with the first."""
    torch._dynamo.reset()
    calls, firsts, results = {}, {}, {}
    for name in backends:
        torch.manual_seed(0)
        calls[name] = row.call(BACKENDS[name])
        firsts[name], results[name] = first_call(calls[name])
        if name != "floor":
            check(row, name, results[name], results[backends[0]])
    results.clear()
    timings = measure(calls)
    return {name: Measured(*timings[name], firsts[name]) for name in backends}


def check(row: Row, name: str, result: Any, expected: Any) -> None:
    """Raises where a result is far from what it should be: a wrong one has no time."""
    found, wanted = ((value[0] if isinstance(value, tuple) else value).double() for value in (result, expected))
    error = ((found - wanted).norm() / wanted.norm()).item()
    if not error <= row.tolerance:
        raise AssertionError(f"{name} is {error:.1e} from the first backend")


def copy_bandwidth() -> float:
    """Bytes per second of a large copy, read and written."""
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / measure({"copy": lambda: target.copy_(source)})["copy"][0]


def product_rate() -> float:
    """Operations per second of a large bf16 product."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / measure({"product": lambda: a @ b})["product"][0]


# -- report ------------------------------------------------------------------------------------------


def share(row: Row, seconds: float, bandwidth: float, rate: float) -> float:
    """How near a row comes to the speed of a copy or of a large product, whichever bounds it."""
    return (row.bytes / bandwidth or row.operations / rate) / seconds


def device_lines(measured: Mapping[str, Mapping[str, Measured]], bandwidth: float, rate: float) -> Iterator[str]:
    """Rows that the GPU bounds, in Markdown: device time with the share of the bound, and the first call."""
    heads = ["device µs (share of the bound)", *BACKENDS_OF_DEVICE, "first calls, s", "best other / stepwell"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    rows = {row.name: row for row in ROWS}
    for name, results in measured.items():
        cells = [
            f"{one.device * 1e6:.1f} ({share(rows[name], one.device, bandwidth, rate):.2f})" for one in results.values()
        ]
        yield f"| {name} | {' | '.join(cells)} | {firsts(results)} | {speedup(results):.2f} |"


def host_lines(measured: Mapping[str, Mapping[str, Measured]]) -> Iterator[str]:
    """Rows that the host bounds: time per call, whichever of device and host takes longer."""
    yield f"| µs per call | {' | '.join(HOST_BACKENDS)} | first calls, s |"
    yield "|---" * (len(HOST_BACKENDS) + 2) + "|"
    for name, results in measured.items():
        cells = [f"{one.longer * 1e6:.1f}" for one in results.values()]
        yield f"| {name} | {' | '.join(cells)} | {firsts(results)} |"


def firsts(results: Mapping[str, Measured]) -> str:
    return " / ".join(f"{results[name].first:.2f}" for name in BACKENDS_OF_DEVICE)


def speedup(results: Mapping[str, Measured]) -> float:
    """Over the better of the others."""
    return min(results[other].device for other in BASELINES) / results["stepwell"].device


def geometric_mean(
    by_device: Mapping[str, Mapping[str, Measured]], by_host: Mapping[str, Mapping[str, Measured]], other: str
) -> float:
    """Of the speedups over another backend in both tables."""
    ratios = [results[other].device / results["stepwell"].device for results in by_device.values()]
    ratios += [results[other].longer / results["stepwell"].longer for results in by_host.values()]
    return exp(sum(map(log, ratios)) / max(len(ratios), 1))


def report(measured: Mapping[str, Mapping[str, Measured]], failed: Mapping[str, str]) -> str:
    """What was measured on what, and what could not be."""
    bandwidth, rate = copy_bandwidth(), product_rate()
    facts = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {version('triton')}"
    parts = [
        f"{facts}: a copy moves {bandwidth / 1e12:.2f} TB/s, a bf16 product runs at {rate / 1e12:.0f} TFLOP/s.",
        "",
    ]
    rows = {row.name: row for row in ROWS}
    by_host = {name: found for name, found in measured.items() if rows[name].is_bound_by_host}
    by_device = {name: found for name, found in measured.items() if name not in by_host}
    parts += [*device_lines(by_device, bandwidth, rate), "", *host_lines(by_host), ""]
    for other in BASELINES:
        parts.append(f"Geometric mean of the speedup over {other}: {geometric_mean(by_device, by_host, other):.2f}.")
    parts += [f"Failed: {name}: {why}" for name, why in failed.items()]
    return "\n".join(parts) + "\n"


def run_tests() -> bool:
    """Whether the tests that need a GPU pass; each is named as it ends, so that one that hangs loses no failure."""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-v", "--tb=short", "-m", "gpu", "-n", "8", "tests/gpu"]
    return subprocess.run(command, cwd=root).returncode == 0


def main(
    rows: Annotated[str, typer.Option(help="Which rows: a pattern such as 'softmax*'.")] = "*",
    tests: Annotated[bool, typer.Option(help="Run the tests that need a GPU first.")] = True,
    output: Annotated[Path, typer.Option(help="The table in Markdown; the numbers are beside it in .json.")] = Path(
        "gpu.md"
    ),
) -> None:
    """Test and time Stepwell on the current GPU."""
    if not torch.cuda.is_available():
        sys.exit("stepwell.benchmarks.gpu: expected a GPU and a torch for it; stepwell.benchmarks times CPUs")
    passed = run_tests() if tests else True
    measured: dict[str, dict[str, Measured]] = {}
    failed: dict[str, str] = {}
    warnings.filterwarnings("ignore")
    for row in (row for row in ROWS if fnmatch(row.name, rows)):
        try:
            measured[row.name] = compare(row, HOST_BACKENDS if row.is_bound_by_host else BACKENDS_OF_DEVICE)
            print(row.name, {name: f"{found.device * 1e6:.1f}" for name, found in measured[row.name].items()})
        except Exception as error:
            failed[row.name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            print(row.name, failed[row.name])
        gc.collect()
        torch.cuda.empty_cache()
    numbers = {name: {backend: asdict(one) for backend, one in found.items()} for name, found in measured.items()}
    output.with_suffix(".json").write_text(json.dumps(numbers, indent=1))
    text = report(measured, failed)
    output.write_text(text)
    print(text)
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    typer.run(main)

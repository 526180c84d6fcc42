"""Nothing grows: neither by calls nor by compiles, and what a user keeps of an output neither leaks nor changes."""

from __future__ import annotations

import ctypes
import gc
import os
import queue
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import stepwell
from stepwell.backends.native.jit import NativeModule

LARGE = (600, 1024)
"""A size of float32 whose storage the pool keeps."""

MIB = 1 << 20


def resident_bytes() -> int:
    """Memory of this process, after what nobody needs has been given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth_of(step: Callable[[int], object], warm: int, steps: int) -> int:
    """Bytes that the process gained by steps, after some that do not count."""
    for k in range(warm):
        step(k)
    before = resident_bytes()
    for k in range(steps):
        step(k)
    return resident_bytes() - before


# -- calls -------------------------------------------------------------------------------------------


def _inference() -> Callable[[int], object]:
    compiled = torch.compile(lambda x: torch.softmax(x, -1) * 2 + x.mean(), backend="stepwell")
    x = torch.randn(64, 64)
    return lambda k: compiled(x)


def _training() -> Callable[[int], object]:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32))
    compiled = torch.compile(model, backend="stepwell")
    x = torch.randn(8, 16)

    def step(k: int) -> None:
        model.zero_grad()
        compiled(x).square().mean().backward()

    return step


def _externs_and_data_sizes() -> Callable[[int], object]:
    compiled = torch.compile(lambda x: torch.sort(x).values[x > 0] * 2, backend="stepwell")
    x = torch.randn(4096)
    return lambda k: compiled(x)


def _errors() -> Callable[[int], object]:
    compiled = torch.compile(lambda x, index: x[index] * 2, backend="stepwell")
    x, bad = torch.randn(4096), torch.full((64,), 5000)

    def step(k: int) -> None:
        with pytest.raises(IndexError):
            compiled(x, bad)

    return step


def _sliced_outputs() -> Callable[[int], object]:
    """The newest eight outputs are kept, each as a slice."""
    compiled = torch.compile(lambda x: torch.tanh(x) + 1, backend="stepwell")
    x, kept = torch.randn(LARGE), list[Tensor]()

    def step(k: int) -> None:
        kept.append(compiled(x)[k % 600])
        del kept[:-8]

    return step


@pytest.mark.parametrize(
    ("program", "calls"),
    [(_inference, 500), (_training, 300), (_externs_and_data_sizes, 300), (_errors, 300), (_sliced_outputs, 100)],
)
def test_calls_do_not_grow(program: Callable[[], Callable[[int], object]], calls: int) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert growth_of(program(), 50, calls) < 2 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("program", [_inference, _training, _externs_and_data_sizes, _errors])
def test_ten_thousand_calls_do_not_grow(program: Callable[[], Callable[[int], object]]) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert growth_of(program(), 500, 10_000) < 2 * MIB


# -- compiles ----------------------------------------------------------------------------------------


def _compile(number: int, backend: str = "stepwell") -> None:
    """A program that was not compiled before, run once forward and backward, and forgotten."""
    torch._dynamo.reset()
    x = torch.randn(8, 16, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        return torch.softmax(x * (number + 0.5), -1).square().sum()

    torch.compile(function, backend=backend)(x).backward()
    torch._dynamo.reset()


def test_forgotten_programs_give_their_code_back(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[NativeModule] = weakref.WeakSet()
    make = NativeModule.__init__

    def counting(self: NativeModule, *arguments: object, **options: object) -> None:
        make(self, *arguments, **options)  # type: ignore[arg-type]
        alive.add(self)

    monkeypatch.setattr(NativeModule, "__init__", counting)
    for number in range(4):
        _compile(number)
    assert alive
    gc.collect()
    assert not alive


@pytest.mark.slow
def test_two_hundred_compiles_do_not_grow() -> None:
    """torch itself keeps some of each compile, as much as without us: 285 KiB with 2.13."""
    torchs = growth_of(lambda number: _compile(number, "aot_eager"), 20, 200)
    assert growth_of(_compile, 20, 200) < torchs + 200 * (32 << 10)


# -- outputs -----------------------------------------------------------------------------------------


def test_what_is_kept_of_outputs_is_never_overwritten() -> None:
    compiled = torch.compile(lambda x: torch.tanh(x) * 2, backend="stepwell")
    inputs = [torch.randn(LARGE) for _ in range(6)]
    expected = [torch.tanh(x) * 2 for x in inputs]
    parts: list[Callable[[Tensor], Tensor]] = [
        lambda y: y, lambda y: y[3:5], lambda y: y.t()[::2], lambda y: y.view(-1)[7:8], lambda y: y.detach()[0],
        lambda y: torch.from_numpy(y.numpy()),
    ]  # fmt: skip
    kept = [part(compiled(x)) for part, x in zip(parts, inputs, strict=True)]
    for _ in range(10):
        compiled(torch.zeros(LARGE))
    for part, value, whole in zip(parts, kept, expected, strict=True):
        torch.testing.assert_close(value, part(whole))


def test_outputs_that_another_thread_takes_are_its_own() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, backend="stepwell")
    compiled(torch.zeros(LARGE))
    handed: queue.Queue[tuple[int, Tensor] | None] = queue.Queue(4)
    wrong: list[int] = []

    def take() -> None:
        while (item := handed.get()) is not None:
            number, value = item
            if not bool((value == number * 2 + 1).all()):
                wrong.append(number)

    taker = threading.Thread(target=take)
    taker.start()
    for number in range(40):
        handed.put((number, compiled(torch.full(LARGE, float(number)))))
    handed.put(None)
    taker.join()
    assert not wrong


def test_dropped_outputs_are_given_back_when_asked() -> None:
    compiled = torch.compile(lambda x: torch.exp(x) + 1, backend="stepwell")
    x = torch.randn(16, *LARGE)
    value = compiled(x)
    del value
    before = resident_bytes()
    stepwell.empty_cache()
    assert before - resident_bytes() > 30 * MIB

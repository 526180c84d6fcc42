"""Memory, streams, devices and failures of compiled functions on a GPU."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import stepwell


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, backend="stepwell", fullgraph=True)


def chain(x: Tensor) -> Tensor:
    return torch.sin(x) * 2 + x


@pytest.mark.parametrize("offset", [1, 2, 3, 4])
def test_an_input_may_lie_anywhere(gpu: torch.device, offset: int) -> None:
    function = compiled(chain)
    whole = torch.randn(4096 + 4, device=gpu)
    for start in (0, offset, 0):
        part = whole[start : start + 4096]
        torch.testing.assert_close(function(part), chain(part))


def test_an_input_is_changed_in_place(gpu: torch.device) -> None:
    def update(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2).add_(y)
        return x + 1

    x, y = torch.randn(100, 33, device=gpu), torch.randn(100, 33, device=gpu)
    expected = x * 2 + y
    result = compiled(update)(x, y)
    torch.testing.assert_close(x, expected)
    torch.testing.assert_close(result, expected + 1)


def test_no_elements_at_all(gpu: torch.device) -> None:
    x = torch.randn(0, 7, device=gpu)
    assert compiled(chain)(x).shape == (0, 7)
    assert torch.equal(compiled(lambda x: x.sum(0) + 1)(x), torch.ones(7, device=gpu))


def test_layouts_are_eagers(gpu: torch.device) -> None:
    x = torch.randn(4, 8, 6, 5, device=gpu).to(memory_format=torch.channels_last)
    assert compiled(chain)(x).stride() == chain(x).stride()
    t = torch.randn(30, 20, device=gpu).t()
    torch.testing.assert_close(compiled(chain)(t), chain(t))
    assert compiled(chain)(t).stride() == chain(t).stride()


def test_the_current_stream_is_used(gpu: torch.device) -> None:
    function = compiled(chain)
    x = torch.randn(1 << 22, device=gpu)
    expected = chain(x)
    function(x)
    stream = torch.cuda.Stream()
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # what does not wait for this sees zeros
        y.copy_(x)
        result = function(y)
    stream.synchronize()
    torch.testing.assert_close(result, expected)


def test_a_new_thread_may_call(gpu: torch.device) -> None:
    function, x = compiled(chain), torch.randn(1000, device=gpu)
    function(x)
    found: list[Tensor] = []
    thread = threading.Thread(target=lambda: found.append(function(x)))
    thread.start()
    thread.join()
    torch.testing.assert_close(found[0], chain(x))


def test_tensors_on_both_devices(gpu: torch.device) -> None:
    def mixed(x: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        moved = c.to(x.device)
        return x * 2 + moved, c * 3 + c.sum(), (x.sum() + 1).cpu() + c

    x, c = torch.randn(20, 30, device=gpu), torch.randn(20, 30)
    for found, expected in zip(compiled(mixed)(x, c), mixed(x, c), strict=True):
        assert found.device == expected.device
        torch.testing.assert_close(found, expected)


def test_a_number_on_the_cpu_may_change(gpu: torch.device) -> None:
    function = compiled(lambda x, s: x * s + 1)
    x = torch.randn(100, device=gpu)
    for number in (2.0, 3.0):
        torch.testing.assert_close(function(x, torch.tensor(number)), x * number + 1)


def test_a_graph_on_the_cpu_is_as_before(gpu: torch.device) -> None:
    x = torch.randn(100)
    torch.testing.assert_close(compiled(chain)(x), chain(x))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_another_device_than_the_current_one() -> None:
    function, x = compiled(chain), torch.randn(1000, device="cuda:1")
    result = function(x)
    assert result.device == x.device
    assert torch.cuda.current_device() == 0
    torch.testing.assert_close(result, chain(x))
    a, b = torch.randn(100, device="cuda:0"), torch.randn(100, device="cuda:1")
    both = compiled(lambda a, b: (a * 2 + 1, b * 3 + 1, a + b.to(a.device)))
    for found, expected in zip(both(a, b), (a * 2 + 1, b * 3 + 1, a + b.to(a.device)), strict=True):
        assert found.device == expected.device
        torch.testing.assert_close(found, expected)


def test_memory_that_runs_out_is_torchs_error(gpu: torch.device) -> None:
    function = torch.compile(lambda x, n: x.new_ones(()) + x.expand(n, 1 << 20), backend="stepwell", dynamic=True)
    x = torch.ones(1 << 20, device=gpu)
    torch.testing.assert_close(function(x, 3), torch.full((3, 1 << 20), 2.0, device=gpu))
    before = torch.cuda.memory_allocated()
    with pytest.raises(torch.OutOfMemoryError):
        function(x, 1 << 17)  # 512 GiB
    assert torch.cuda.memory_allocated() == before
    torch.testing.assert_close(function(x, 4), torch.full((4, 1 << 20), 2.0, device=gpu))


def test_temporaries_are_given_back(gpu: torch.device) -> None:
    function, x = compiled(lambda x: F.softmax(x @ x, -1).sum(0)), torch.randn(512, 512, device=gpu)
    function(x)
    before = torch.cuda.memory_allocated()
    for _ in range(10):
        function(x)
    assert torch.cuda.memory_allocated() == before


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    import os

    text = textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=os.environ | environment)


def test_a_bad_index_fails_and_touches_nothing_else(gpu: torch.device) -> None:
    function, w = compiled(lambda i, w: F.embedding(i, w) * 2), torch.randn(10, 64, device=gpu)
    good, bad = torch.tensor([1, 2], device=gpu), torch.tensor([1, 10_000_000], device=gpu)
    torch.testing.assert_close(function(good, w), w[good] * 2)
    function(bad, w)
    torch.cuda.synchronize()
    with pytest.raises(IndexError, match="index out of range") as caught:
        function(good, w)
    assert "of an earlier call on the GPU" in "".join(caught.value.__notes__)
    torch.testing.assert_close(function(good, w), w[good] * 2)


def test_a_bad_index_is_raised_at_once_where_launches_block(gpu: torch.device) -> None:
    done = run(
        """
        import torch
        f = torch.compile(lambda i, w: torch.nn.functional.embedding(i, w) * 2, backend="stepwell")
        f(torch.tensor([1, 12], device="cuda"), torch.randn(10, 64, device="cuda"))
        """,
        CUDA_LAUNCH_BLOCKING="1",
    )
    assert "IndexError: index out of range in self" in done.stderr


def test_a_second_process_compiles_nothing(gpu: torch.device, tmp_path: Any) -> None:
    program = """
        import torch
        from stepwell.backends.triton import compiler
        compile, asked = compiler._compile, []
        compiler._compile = lambda job, dump: (asked.append(job), compile(job, dump))[1]
        f = torch.compile(lambda x: torch.softmax(x, -1) * 2, backend="stepwell")
        x = torch.randn(100, 100, device="cuda")
        torch.testing.assert_close(f(x), torch.softmax(x, -1) * 2)
        print(len(asked))
    """
    settings = {"STEPWELL_DISABLE_CACHE": "0", "STEPWELL_CACHE_DIR": str(tmp_path)}
    assert [run(program, **settings).stdout.strip() for _ in range(2)] == ["1", "0"]


def test_explain_shows_the_kernels(gpu: torch.device) -> None:
    explanation = stepwell.explain(chain, torch.randn(1000, device=gpu))
    (kernel,) = explanation.kernels
    assert "tt.func" in kernel.stages["ttir"]
    assert "tile.kernel" in kernel.stages["tile"]


def test_the_profiler_sees_kernels(gpu: torch.device) -> None:
    function, x = compiled(chain), torch.randn(1000, device=gpu)
    function(x)
    with torch.profiler.profile() as profile:
        function(x)
    assert any(event.name.startswith("stepwell::") for event in profile.events())

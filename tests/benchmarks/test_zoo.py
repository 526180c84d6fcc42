"""Where the time of a plan goes: every line is told apart, and timed while it runs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers", reason="most models of the zoo are those of transformers")

from stepwell.benchmarks.zoo import HOST, LIBRARY, NATIVE, OTHER, Measured, Step, StepTimer, native_share, steps_of

PLAN = """def inference(args):
    profiling = profiler_enabled()
    x, y = args
    buffer = empty_strided_cpu((4, 4), (4, 1), float32)
    aten_mm_out(x, y, out=buffer)
    (profiled_0 if profiling else stretch_0)(0, 2, buffer, x)
    values, places = aten_topk_default(buffer, 2)
    y.copy_(buffer)
    return [values]
"""


def test_lines_are_told_apart() -> None:
    steps = steps_of(PLAN, ["aten.mm.out", "aten.topk.default"])
    assert list(steps) == [*range(2, 10)]
    assert [step.kind for step in steps.values()] == [HOST, HOST, HOST, LIBRARY, NATIVE, OTHER, OTHER, HOST]
    assert [step.name for step in steps.values() if step.name] == ["aten.mm.out", "aten.topk.default", "copy"]


def test_each_step_takes_time() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.topk(x.sin() @ x, 2).values * 2

    timer, x = StepTimer(), torch.randn(64, 64)
    compiled = torch.compile(function, backend=timer.backend)
    torch.testing.assert_close(compiled(x), function(x))
    seconds = timer.medians(lambda: compiled(x), 3)
    assert {step.kind for step, spent in seconds.items() if 0 < spent < 1} == {NATIVE, LIBRARY, OTHER, HOST}
    assert not timer.unexpected


def test_libraries_and_the_host_do_not_count() -> None:
    rows = [
        Measured("a", "inference", {Step(NATIVE): 8.0, Step(LIBRARY, "aten.mm.out"): 50.0, Step(HOST): 7.0}, ()),
        Measured("b", "inference", {Step(NATIVE): 1.0, Step(OTHER, "aten.topk.default"): 1.0}, ()),
    ]
    assert native_share(rows) == pytest.approx(0.9)
    assert native_share([rows[1]]) == 0.5
    assert native_share([]) == 1

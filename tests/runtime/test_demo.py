"""The main job: backends train alike, a difference is an error, and what is missing is said."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
import torch
from rich.console import Console

from stepwell import BackendError
from stepwell.runtime import demo


def test_contenders_start_equal_and_take_every_step() -> None:
    eager, aot = demo.train(["eager", "aot_eager"], steps=4)
    assert len(eager.steps) == len(aot.steps) == 4
    assert eager.losses[0] > eager.losses[-1]
    assert demo.disagreement([eager, aot]) < demo.TOLERANCE


def test_a_backend_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda loss, backend: lambda x, y: 1.1 * loss(x, y))
    monkeypatch.setattr(demo, "default_backends", lambda: ["eager", "wrong"])
    with pytest.raises(BackendError, match="final losses within 1e-05"):
        demo.demo(steps=2, console=Console(file=io.StringIO()))


def test_the_demo_shows_losses_counts_and_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "default_backends", lambda: ["eager", "stepwell"])
    shown = io.StringIO()
    demo.demo(steps=2, console=Console(file=shown, width=120))
    text = shown.getvalue()
    for word in ("final loss", "stepwell", "graph", "kernel", "extern", "loop.", "tile.", "mm"):
        assert word in text


def test_cuda_is_refused_with_what_is_missing() -> None:
    command = [sys.executable, "-m", "stepwell", "demo", "--device", "cuda"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("stepwell: --device cuda: expected cpu, got cuda; the way from tile IR to GPU")
    assert "Traceback" not in done.stderr

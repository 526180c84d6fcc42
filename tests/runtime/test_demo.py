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


@pytest.mark.parametrize(
    ("device", "complaint"),
    [
        ("meta", "--device: expected cpu or cuda, got meta"),
        ("nowhere", "--device: expected cpu or cuda, got nowhere"),
        pytest.param(
            "cuda",
            "--device: expected a GPU that torch can use, got none",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_a_device_that_cannot_train_is_refused(device: str, complaint: str) -> None:
    command = [sys.executable, "-m", "stepwell", "demo", "--device", device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"stepwell: {complaint}")
    assert "Traceback" not in done.stderr

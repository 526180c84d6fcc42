"""The demonstration and the examples on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("example", ["cnn", "gpt_block"])
def test_example(example: str, gpu: torch.device) -> None:
    command = [sys.executable, str(ROOT / "examples" / f"{example}.py"), "cuda"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_demo(gpu: torch.device) -> None:
    command = [sys.executable, "-m", "stepwell", "demo", "--device", "cuda", "--steps", "5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tt.func" in done.stdout

"""Tests here need a GPU; where there is none they are skipped and say so."""

from __future__ import annotations

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/gpu/" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def gpu() -> torch.device:
    """The current device; skips where torch sees none."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU that this torch can use")
    return torch.device("cuda", torch.cuda.current_device())

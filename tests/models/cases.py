"""Models as parameters of a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def cases(names: Iterable[str], *in_ci: str) -> Any:
    """A test for each model, those that CI leaves out marked."""
    marked = [pytest.param(name, marks=() if name in in_ci else pytest.mark.slow) for name in names]
    return pytest.mark.parametrize("name", marked)

"""Where the checkout is and which Python files belong to it."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepwell

ROOT = Path(stepwell.__file__).parent
NOT_PACKAGED = {"benchmarks", "docs", "examples", "tests"}


def _sources() -> list[Path]:
    """Python files of the checkout, relative to it; what tools write, hidden or not, lies elsewhere."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return sorted(path for path in paths if path.parts[0] not in {"build", "dist"} and path.parts[0][0] != ".")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sources() -> list[Path]:
    return _sources()


@pytest.fixture(scope="session")
def package_sources(sources: list[Path]) -> list[Path]:
    """The sources that are installed."""
    return [path for path in sources if path.parts[0] not in NOT_PACKAGED]

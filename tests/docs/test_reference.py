"""The reference is what its generator makes of the definitions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import stepwell

FOLDER = Path(stepwell.__file__).parent / "docs" / "reference"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, str] = generator().pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    found = (FOLDER / name).read_text() if (FOLDER / name).exists() else ""
    assert found == PAGES[name], "run `python docs/reference/generate.py`"


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)


def test_a_page_says_what_the_definition_says() -> None:
    graph = PAGES["graph.md"]
    assert "## `graph.exp`\n\ne to the power of x.\n" in graph
    assert "| operand | `operand` | one |" in graph
    assert "Traits: `Elementwise`, `Pure`." in graph
    assert "## `loop-fuse-nests`\n\nMake a kernel and the kernels that it reads from one" in PAGES["passes.md"]

"""The tutorial shows what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepwell
from stepwell.tests.docs.tutorial import Shown, missing, output, shown

ROOT = Path(stepwell.__file__).parent

COMMANDS = list(shown((ROOT / "docs" / "tutorial.md").read_text()))


def test_the_tutorial_runs_commands_and_shows_the_program() -> None:
    assert len(COMMANDS) >= 8
    assert all(command.excerpt for command in COMMANDS)
    program = (ROOT / "docs" / "tutorial_program.py").read_text()
    quoted = (ROOT / "docs" / "tutorial.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert quoted in program


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.command[-40:])
def test_a_command_prints_what_the_page_shows(command: Shown) -> None:
    text = output(command.command, ROOT)
    assert command.excerpt is not None
    part = missing(command.excerpt, text)
    assert part is None, f"the page shows\n{part}\nwhich `{command.command}` does not print:\n{text}"


def test_an_excerpt_that_is_not_printed_is_noticed() -> None:
    assert missing("  a\n  b\n", "x\na\nb\ny\n") is None
    assert missing("a\n…\ny\n", "x\na\nb\ny\n") is None
    assert missing("y\n…\na\n", "x\na\nb\ny\n") == "a\n"
    assert missing("a\ny\n", "x\na\nb\ny\n") == "a\ny\n"

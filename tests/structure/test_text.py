"""What no file may hold: the addresses of one machine, and promises instead of code."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.~])/(home|root|work|opt|mnt|Users)/\w"),
    "a registry's host": re.compile(r"\b(pypi|pythonhosted|anaconda)\.(org|com)\b"),
    "a note to do it later": re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    "an unfinished function": re.compile(r"\braise NotImplementedError\b"),
}


def tracked(root: Path) -> list[Path]:
    """Text files under version control, or all of them in an unpacked source distribution."""
    if not (root / ".git").exists():
        return [path for path in root.rglob("*") if path.suffix in (".py", ".md", ".toml", ".mlir")]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    return [path for name in listing.stdout.split("\0") if name and (path := root / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(root: Path, what: str) -> None:
    hits = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in tracked(root)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert not hits, "\n".join(hits)


def test_every_module_says_why_it_exists_in_at_most_six_lines(root: Path, sources: list[Path]) -> None:
    docstrings = {path: ast.get_docstring(ast.parse((root / path).read_text())) for path in sources}
    wrong = [str(path) for path, text in docstrings.items() if not text or len(text.splitlines()) > 6]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_named_for_nothing(sources: list[Path]) -> None:
    vague = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    assert [str(path) for path in sources if path.name in vague] == []

"""The operation that docs/extending.md adds: its steps, done in a copy of the checkout, give one that works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import stepwell
from stepwell.ir import graph

ROOT = Path(stepwell.__file__).parent

_STEP = re.compile(r"<!-- (.*?) -->\n```(?:python|text)\n(.*?)^```$", re.M | re.S)


def after_class(text: str, name: str, code: str) -> str:
    end = text.index("\n\n\n", text.index(f"class {name}("))
    return f"{text[:end]}\n\n\n{code.strip()}{text[end:]}"


def row(text: str, table: str, code: str) -> str:
    start = re.search(rf"^{table}\b.*\{{$", text, re.M)
    assert start, table
    return f"{text[: start.end()]}\n{code.rstrip()}{text[start.end() :]}"


def row_under(text: str, place: str, code: str) -> str:
    """A row of the tuple under a key of a table."""
    table, key = place.rstrip("]").split("[")
    start = re.search(rf"^{table}\b.*\{{$", text, re.M)
    assert start, table
    head = f"    {key}: (\n"
    end = text.index(head, start.end()) + len(head)
    return f"{text[:end]}{code.rstrip()}\n{text[end:]}"


def before(text: str, line: str, code: str) -> str:
    assert text.count(line) == 1
    return text.replace(line, f"{code.strip()}\n\n\n{line}")


def for_function(text: str, name: str, code: str) -> str:
    start = text.rindex("\n\n\n@", 0, text.index(f"def {name}("))
    end = text.index("\n\n\n", start + 3)
    return f"{text[:start]}\n\n\n{code.strip()}{text[end:]}"


def for_line(text: str, name: str, code: str) -> str:
    (line,) = re.findall(rf"^ *{re.escape(name)}\W.*$", text, re.M)
    return text.replace(line, code.rstrip())


STEPS: dict[str, Callable[[str, str, str], str]] = {
    r'after "class (\w+)" in (\S+)': after_class,
    r"row of (\w+) in (\S+)": row,
    r'row of (\w+\["\w+"\]) in (\S+)': row_under,
    r'function before "(.*)" in (\S+)': before,
    r"replaces the function (\w+) in (\S+)": for_function,
    r'replaces the row ("\S+") in (\S+)': for_line,
    r"replaces the line (\S+) in (\S+)": for_line,
}
"""What the page says of a piece of code → (text of the file, the place, the code) → the new text."""


def follow(page: str, copy: Path) -> int:
    """Does every step of the page in a copy of the checkout."""
    steps = _STEP.findall(page)
    for what, code in steps:
        (edit, place, file) = next((e, m[1], m[2]) for p, e in STEPS.items() if (m := re.fullmatch(p, what)))
        path = copy / file
        path.write_text(edit(path.read_text(), place, code))
    return len(steps)


def export(copy: Path) -> None:
    """Step 2, and the import that step 5 asks for."""
    package, activations = copy / "ir/graph/__init__.py", copy / "frontend/aten/activations.py"
    text = package.read_text()
    additions = {
        "    FmodOp,\n": "    HardSwishOp,\n",
        " SignOp, ReluOp,": " HardSwishOp,",
        ' "GraphOp",': ' "HardSwishOp",',
    }
    for place, addition in additions.items():
        assert text.count(place) == 1
        text = text.replace(place, place + addition)
    package.write_text(text)
    line = "from ...ir.dtypes import"
    activations.write_text(activations.read_text().replace(line, f"from ...ir import graph\n{line}", 1))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with the operation in it."""
    if hasattr(graph, "HardSwishOp"):
        pytest.skip("this checkout has the operation already: done twice, the steps define it twice")
    ignored = ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
    copy = copytree(ROOT, tmp_path_factory.mktemp("extended") / "stepwell", ignore=ignored)
    assert follow((ROOT / "docs/extending.md").read_text(), copy) == 9
    export(copy)
    return copy


def run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    done = subprocess.run([sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PROGRAM = """
import torch, stepwell
from stepwell.ir import graph
from stepwell.tests.property.programs import UNARY
assert "extended" in stepwell.__file__, stepwell.__file__
x = torch.randn(100)
(kernel,) = stepwell.explain(lambda x: torch.nn.functional.hardswish(x) * 2, x).kernels
assert "hardswish" in kernel.ops, kernel.ops
assert graph.HardSwishOp in dict(UNARY["float"])
torch.testing.assert_close(stepwell.compile(torch.nn.functional.hardswish)(x), torch.nn.functional.hardswish(x))
"""


def test_the_steps_of_the_page_make_the_operation_native(copy: Path) -> None:
    run(copy, "-c", PROGRAM)


def test_the_code_of_the_page_is_in_style(copy: Path) -> None:
    """But for the lists that are wrapped by hand, to which `export` adds without wrapping."""
    run(copy, "-m", "ruff", "check", "--ignore", "E501,RUF100", ".")


@pytest.mark.slow
def test_the_tests_of_the_page_pass_with_the_operation(copy: Path) -> None:
    run(copy, "docs/reference/generate.py")
    folders = ["tests/interpreters", "tests/frontend/test_rows.py", "tests/docs/test_reference.py"]
    options = ["-q", "-p", "no:cacheprovider", "-k", "hardswish or reference"]
    summary = run(copy, "-m", "pytest", *options, *folders)
    assert "passed" in summary


def test_every_file_that_the_page_names_exists() -> None:
    page = (ROOT / "docs/extending.md").read_text()
    named = {name for name in re.findall(r"`([\w./-]+\.(?:py|md|mlir|toml))`", page) if "/" in name}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists() and not (ROOT / "docs" / name).exists()] == []

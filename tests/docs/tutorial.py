"""The commands of a page with the output that it shows: `sh` blocks, each followed by an excerpt in another block.

A line `…` in an excerpt stands for lines left out. What depends on the machine is left out of the comparison.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from typer.testing import CliRunner

from stepwell.__main__ import app
from stepwell.runtime.config import config

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)

VECTOR_BITS = 256
"""Width of the vectors in every output, so that it is the same on each machine."""


@dataclass(frozen=True)
class Shown:
    """A command and the excerpt of its output, which is None where the page shows none."""

    command: str
    excerpt: str | None


def shown(page: str) -> Iterator[Shown]:
    blocks = _BLOCK.findall(page)
    for position, (language, text) in enumerate(blocks):
        if language == "sh":
            following = blocks[position + 1] if position + 1 < len(blocks) else ("sh", "")
            yield Shown(text.strip(), None if following[0] in ("sh", "python") else following[1])


def output(command: str, root: Path) -> str:
    """What a command prints when it is run in the root of the checkout."""
    name = "python -m stepwell "
    if command.startswith(name) and "|" not in command:
        with config.patch(vector_bits=VECTOR_BITS):
            done = CliRunner().invoke(app, command.removeprefix(name).replace("docs/", f"{root}/docs/").split())
        assert done.exit_code == 0, done.output
        return done.output
    command = command.replace("stepwell-run", "python -m stepwell.ir.run_main")  # installed or not
    tools = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "STEPWELL_VECTOR_BITS": str(VECTOR_BITS)}
    run = subprocess.run(command, shell=True, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def missing(excerpt: str, text: str) -> str | None:
    """The first part of an excerpt that does not stand in the text, after the parts before it; None if all do."""
    left = normal(text)
    for part in re.split(r"^\s*…\n", excerpt, flags=re.M):
        wanted = normal(part)
        found = left.find(wanted)
        if found < 0:
            return part
        left = left[found + len(wanted) :]
    return None


def normal(text: str) -> str:
    """Without indentation, so that an excerpt may begin anywhere, and without the paths of the machine."""
    lines = (re.sub(r"; \S*/docs/", "; docs/", line.strip()) for line in dedent(text).splitlines())
    return "\n".join(lines)

"""RUN lines of FileCheck tests: reads them, runs them inside this process, and finds mistyped directives.

The lines are the stock form that `lit` runs with a shell, but a process for each would cost 0.4 s. The linter
is here because filecheck takes a directive that it does not know, such as one without its colon, for prose.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.xdsl_opt_main import xDSLOptMain

KINDS = ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", r"COUNT-\d+")
DIAGNOSTICS = {"--verify-diagnostics", "--parsing-diagnostics"}
LASTING = {"--disable-verify", "--syntax-highlight"}
"""Options that change xDSL for the rest of the process."""

_RUN = re.compile(r"//\s*RUN:(.*)")
_COMMENT_WORD = re.compile(r"//\s*([A-Za-z][\w-]*)(\{LITERAL\})?(:?)")


@dataclass(frozen=True)
class Command:
    """One program of a RUN line; `%s` stands for the test file."""

    tool: str
    arguments: tuple[str, ...]

    def option(self, *names: str) -> str | None:
        """The value after the last of these names, or after its `=`."""
        value = None
        for position, argument in enumerate(self.arguments):
            name, equals, attached = argument.partition("=")
            if name in names:
                value = attached if equals else self.arguments[position + 1]
        return value


@dataclass(frozen=True)
class RunLine:
    """A pipe of commands that ends in `filecheck %s`."""

    number: int
    commands: tuple[Command, ...]

    @property
    def passes(self) -> list[str]:
        pipelines = [command.option("-p", "--passes") for command in self.commands[:-1]]
        return [spec.name for pipeline in pipelines if pipeline for spec in parse_pipeline(pipeline)]

    @property
    def prefixes(self) -> list[str]:
        return (self.commands[-1].option("--check-prefix", "--check-prefixes") or "CHECK").split(",")

    @property
    def options(self) -> set[str]:
        return {argument for command in self.commands for argument in command.arguments}


def read_run_lines(text: str) -> list[RunLine]:
    """Every RUN line of a file, in order."""
    matches = ((number, _RUN.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return [RunLine(number, _commands(match[1])) for number, match in matches if match]


def _commands(text: str) -> tuple[Command, ...]:
    stages = [shlex.split(stage) for stage in re.split(r"\s\|\s", text)]
    return tuple(Command(stage[0], tuple(stage[1:])) for stage in stages)


# -- execution ---------------------------------------------------------------------------------------


class FileCheckError(Exception):
    """A RUN line that did not succeed, with what filecheck or the tool printed."""


class _Opt(xDSLOptMain):
    """`xdsl-opt` whose standard input is a string."""

    def __init__(self, arguments: Sequence[str], stdin: str) -> None:
        self.stdin = stdin
        super().__init__(args=arguments)

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file is None:
            return io.BytesIO(self.stdin.encode()), "mlir"
        return super().get_input_stream()


def _run_xdsl_opt(arguments: Sequence[str], stdin: str) -> str:
    stdout = io.StringIO()
    with redirect_stdout(stdout):
        _Opt(arguments, stdin).run()
    return stdout.getvalue()


def _run_filecheck(arguments: Sequence[str], stdin: str) -> str:
    options = parse_argv_options(["filecheck", *arguments])
    stderr = io.StringIO()
    with redirect_stderr(stderr), redirect_stdout(stderr):
        failed = Matcher(options, FInput("-", stdin), Parser.from_opts(options)).run()
    if failed:
        raise FileCheckError(f"{stderr.getvalue()}\nThe text that was checked:\n{stdin}")
    return ""


TOOLS: dict[str, Callable[[Sequence[str], str], str]] = {
    "xdsl-opt": _run_xdsl_opt,
    "filecheck": _run_filecheck,
}
"""Program → function of its arguments and standard input that returns its standard output."""


def execute(run: RunLine, path: Path) -> None:
    """Run the pipe in this process; raises FileCheckError or what a tool raises."""
    text = ""
    for command in run.commands:
        arguments = [argument.replace("%s", str(path)) for argument in command.arguments]
        text = TOOLS[command.tool](arguments, text)


# -- linter ------------------------------------------------------------------------------------------


def lint(path: Path) -> list[str]:
    """What is wrong with a test file, as `file:line: message`; empty if nothing is."""
    text = path.read_text()
    runs = read_run_lines(text)
    if not runs:
        return [f"{path.name}:1: expected a RUN line, got none"]
    shape = [complaint for run in runs for complaint in _lint_run(run, path.stem)]
    if shape:
        return [f"{path.name}:{complaint}" for complaint in shape]
    complaints = [*_lint_directives(text, runs), *_lint_labels(text, runs)]
    return [f"{path.name}:{complaint}" for complaint in complaints]


def _lint_run(run: RunLine, stem: str) -> Iterator[str]:
    *tools, last = run.commands
    if not tools or last.tool != "filecheck" or "%s" not in last.arguments:
        yield f"{run.number}: expected a pipe that ends in `filecheck %s`"
    if unknown := [command.tool for command in run.commands if command.tool not in TOOLS]:
        yield f"{run.number}: expected one of {', '.join(TOOLS)}, got {', '.join(unknown)}"
    if lasting := run.options & LASTING:
        yield f"{run.number}: expected no {', '.join(lasting)}, which would stay on for later tests"
    if len(run.passes) > 1:
        yield f"{run.number}: expected one pass, got {', '.join(run.passes)}"
    if any(not stem.startswith(name) for name in run.passes):
        yield f"{run.number}: expected a file named as its pass, {run.passes[0]}, got {stem}"


def _lint_directives(text: str, runs: list[RunLine]) -> Iterator[str]:
    """Comments whose first word is a directive that filecheck will not see as one."""
    prefixes = sorted({prefix for run in runs for prefix in run.prefixes})
    valid = re.compile(rf"(?:RUN|COM|(?:{'|'.join(map(re.escape, prefixes))})(?:-(?:{'|'.join(KINDS)}))?)")
    known = ["RUN", *prefixes, *(f"{prefix}-{kind}" for prefix in prefixes for kind in KINDS)]
    for number, line in enumerate(text.splitlines(), 1):
        for match in _COMMENT_WORD.finditer(line):
            word, colon = match[1], match[3]
            if not (colon and valid.fullmatch(word)) and _is_meant(word, colon, known):
                yield f"{number}: expected a directive of {', '.join(prefixes)} with its colon, got {word!r}"


def _is_meant(word: str, colon: str, known: list[str]) -> bool:
    """Whether the first word of a comment was meant as a directive rather than as prose."""
    if not word.isupper():
        return bool(colon) and word.upper() in known
    return bool(colon) or "-" in word or bool(get_close_matches(word, known, n=1, cutoff=0.75))


def _lint_labels(text: str, runs: list[RunLine]) -> Iterator[str]:
    """Checks of IR that do not begin with a label could match anywhere in the output."""
    for run in runs:
        if run.options & DIAGNOSTICS:
            continue
        for prefix in run.prefixes:
            first = re.search(rf"//.*?\b{re.escape(prefix)}(-[A-Z0-9-]+)?(?:\{{LITERAL\}})?:", text)
            if first is None or first[1] != "-LABEL":
                yield f"{run.number}: expected the first directive to be {prefix}-LABEL"

"""Lists the conditions and guards that decide nothing in any test: mutants that drop them live.

`python tests/mutation/decisions.py tests/golden tests/filecheck` runs tests once, in this process, with every condition
of the modules that are mutated watched: one of `a and b` decides where it is false and the others are not, a guard
where it fires. What never decided is either implied by something else, and can go, or lacks a test.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TypeVar, cast

import pytest

from stepwell.tests.mutation.mutants import EXITS, Source, one_line, untouched
from stepwell.tests.mutation.run import ROOT, modules

T = TypeVar("T")

WATCH = "__watch__"


class Decisions:
    """Which conditions there are, and which of them decided."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.decided: set[int] = set()

    def add(self, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def watch(self, key: int, value: T, neutral: bool, others: Callable[[], object]) -> T:
        """The value of a condition. It decides if it is not the neutral one and the conditions behind it, which are
        asked only then, would give that; where they can't even be asked without it, too. Asking may have effects, as of
        a step that is counted: tests may fail while watched, which says nothing of the compiler."""
        if bool(value) != neutral and key not in self.decided:
            try:
                decides = bool(others()) == neutral
            except Exception:  # whatever the condition guards against
                decides = True
            if decides:
                self.decided.add(key)
        return value

    @property
    def idle(self) -> list[str]:
        return [name for key, name in enumerate(self.names) if key not in self.decided]


class Watcher(ast.NodeTransformer):
    """Puts each condition of a module into a call that watches it."""

    def __init__(self, path: str, text: str, decisions: Decisions) -> None:
        self.path = path
        self.source = Source(text)
        self.decisions = decisions
        self.ignored = untouched(self.source.tree)

    def watched(self) -> ast.Module:
        tree = cast(ast.Module, self.visit(self.source.tree))
        return ast.fix_missing_locations(tree)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if id(node) in self.ignored:
            return node
        neutral = isinstance(node.op, ast.And)
        plain = copy.deepcopy(node.values)
        values = []
        for place, value in enumerate(node.values):
            key = self.key(value, "condition")
            rest = plain[place + 1 :]
            others = ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0] if rest else ast.Constant(neutral)
            values.append(self.call(key, cast(ast.expr, self.visit(value)), neutral, others))
        return ast.copy_location(ast.BoolOp(node.op, values), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        is_guard = isinstance(node.body[-1], EXITS) and len(node.body) == 1 and id(node) not in self.ignored
        key = self.key(node.test, "guard") if is_guard else None
        self.generic_visit(node)
        if key is not None:
            node.test = self.call(key, node.test, False, ast.Constant(False))
        return node

    def key(self, node: ast.expr, kind: str) -> int:
        text = one_line(self.source.text_of(node))
        return self.decisions.add(f"{self.path}:{node.lineno}:{node.col_offset + 1}: {kind}: {text}")

    def call(self, key: int, value: ast.expr, neutral: bool, others: ast.expr) -> ast.expr:
        nothing = ast.arguments([], [], None, [], [], None, [])
        function = ast.Attribute(ast.Name(WATCH, ast.Load()), "watch", ast.Load())
        return ast.Call(function, [ast.Constant(key), value, ast.Constant(neutral), ast.Lambda(nothing, others)], [])


class Loader(importlib.abc.Loader):
    def __init__(self, path: Path, decisions: Decisions) -> None:
        self.path = path
        self.decisions = decisions

    def exec_module(self, module: ModuleType) -> None:
        name = self.path.relative_to(ROOT).as_posix()
        tree = Watcher(name, self.path.read_text(), self.decisions).watched()
        module.__dict__[WATCH] = self.decisions
        exec(compile(tree, str(self.path), "exec"), module.__dict__)


class Finder(importlib.abc.MetaPathFinder):
    """Loads the modules that are mutated with their conditions watched."""

    def __init__(self, beginning: str, decisions: Decisions) -> None:
        self.paths = {f"stepwell.{name[:-3].replace('/', '.')}": ROOT / name for name in modules(beginning)}
        self.decisions = decisions

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self.paths:
            return None
        loader = Loader(self.paths[name], self.decisions)
        return importlib.util.spec_from_file_location(name, self.paths[name], loader=loader)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tests", nargs="+", help="what to run")
    parser.add_argument("--modules", default="", help="beginning of the paths of the modules to watch")
    options = parser.parse_args(arguments)
    decisions = Decisions()
    for name in [name for name in sys.modules if name.startswith(("stepwell.lowering", "stepwell.backends"))]:
        del sys.modules[name]
    finder = Finder(options.modules, decisions)
    sys.meta_path.insert(0, finder)
    for name in finder.paths:
        importlib.import_module(name)
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *options.tests])
    idle = decisions.idle
    print("\n".join((*sorted(idle), f"{len(idle)} of {len(decisions.names)} conditions decided nothing")))


if __name__ == "__main__":
    main()

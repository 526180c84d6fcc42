"""Counts what passes do step by step, and stops them after a number of steps: how a fault is traced to one rewrite.

Without a limit in force every step is permitted and nothing is counted. A pass asks `permitted` where it decides on a
step that it could as well leave out; patterns are counted by their walker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern


@dataclass
class Steps:
    """The steps that were done, in words, and how many may be (None: any number)."""

    limit: int | None = None
    done: list[str] = field(default_factory=list)

    @property
    def are_over(self) -> bool:
        return self.limit is not None and len(self.done) >= self.limit


_steps: ContextVar[Steps | None] = ContextVar("stepwell.steps", default=None)


def permitted(describe: Callable[[], str]) -> bool:
    """Whether a step may be done, which is then counted as done; `describe` says what it is."""
    steps = _steps.get()
    if steps is None:
        return True
    if steps.are_over:
        return False
    steps.done.append(describe())
    return True


@dataclass
class Counted(RewritePattern):
    """A pattern that is applied until the steps are over."""

    pattern: RewritePattern
    steps: Steps

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if self.steps.are_over:
            return
        description = str(op)
        self.pattern.match_and_rewrite(op, rewriter)
        if rewriter.has_done_action:
            self.steps.done.append(description)


@contextmanager
def limited(limit: int | None = None) -> Iterator[Steps]:
    """Counts the steps of the passes that run in the block on this thread, and permits no more than `limit`."""
    steps = Steps(limit)
    rewrite_module = PatternRewriteWalker.rewrite_module

    def counting(walker: PatternRewriteWalker, module: ModuleOp) -> bool:
        if _steps.get() is steps:
            walker.pattern = Counted(walker.pattern, steps)
        return rewrite_module(walker, module)

    token = _steps.set(steps)
    PatternRewriteWalker.rewrite_module = counting  # type: ignore[method-assign, assignment]
    try:
        yield steps
    finally:
        PatternRewriteWalker.rewrite_module = rewrite_module  # type: ignore[method-assign]
        _steps.reset(token)

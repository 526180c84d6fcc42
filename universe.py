"""What stock `xdsl-opt` learns from us through the entry point `xdsl.universe`: dialects, passes and targets.

Names only: each factory imports its module when xDSL asks for it, so that the tool starts at once.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from xdsl.universe import Universe

from .ir import DIALECTS
from .lowering.pipelines import PASSES

TARGETS: dict[str, tuple[str, str]] = {
    "llvm-ir": ("cpu.targets", "LlvmTarget"),
    "asm": ("cpu.targets", "AssemblyTarget"),
    "ttir": ("triton.targets", "TtirTarget"),
    "ptx": ("triton.targets", "PtxTarget"),
}
"""Target of `xdsl-opt -t` → module of `backends` and the `Target` class in it."""


def _factories(package: str, table: Mapping[str, tuple[str, str]]) -> dict[str, Callable[[], Any]]:
    return {name: _factory(f".{package}.{module}", attribute) for name, (module, attribute) in table.items()}


def _factory(module: str, attribute: str) -> Callable[[], Any]:
    """A function of no arguments that imports `attribute` from `module` when it is called."""
    return lambda: getattr(import_module(module, __package__), attribute)


STEPWELL_UNIVERSE = Universe(
    all_dialects=_factories("ir", DIALECTS),
    all_passes=_factories("lowering", PASSES),
    all_targets=_factories("backends", TARGETS),
)


def pass_sentences() -> str:
    """Each pass and what it does, a line each; imports them all."""
    classes = {name: factory() for name, factory in sorted(STEPWELL_UNIVERSE.all_passes.items())}
    width = max(map(len, classes))
    return "\n".join(
        f"  {name:{width}}  {(cls.__doc__ or '').strip().splitlines()[0]}" for name, cls in classes.items()
    )


def _asked_for_help() -> bool:
    return Path(sys.argv[0]).stem == "xdsl-opt" and not {"-h", "--help"}.isdisjoint(sys.argv[1:])


if _asked_for_help():
    # Its help gives names alone and has no hook for more, so the sentences follow it.
    atexit.register(lambda: print(f"\npasses of stepwell:\n{pass_sentences()}"))

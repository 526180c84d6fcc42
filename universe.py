"""What stock `xdsl-opt` learns from us through the entry point `xdsl.universe`: dialects, passes and targets.

Names only: each factory imports its module when xDSL asks for it, so that the tool starts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from xdsl.universe import Universe

from .ir import DIALECTS
from .lowering.pipelines import PASSES

TARGETS: dict[str, tuple[str, str]] = {}
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

"""What other packages add: entry points by group, loaded by the module that owns the table in question.

Dialects and passes that are called by name come through xDSL's own group `xdsl.universe`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from .errors import ConfigError

GROUPS = {
    "stepwell.imports": "a module that adds rows with `frontend.aten.registry.imports`: ATen overload → graph ops",
    "stepwell.interpreters": "a module that adds rows to `ir.graph.evaluate.FUNCTIONS`: op → NumPy function",
    "stepwell.conversions": "a module that adds rows to tables of `lowering.convert.graph`: op → scalar expansion",
    "stepwell.passes": "a ModulePass that runs in every compile, after the stage that it names",
    "stepwell.backends": "a backend (`backends.interface.Backend`) that the knob `backend` can name",
}
"""Entry-point group → what an entry point of it names."""


@cache
def load(group: str) -> dict[str, Any]:
    """The objects that the installed packages register in a group, by name; raises ConfigError for one that fails."""
    return {point.name: _loaded(point) for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def _loaded(point: Any) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise ConfigError(
            f"entry point {point.name} of {point.group}",
            expected=GROUPS[point.group],
            got=f"{type(error).__name__}: {error}",
            hint=f"{point.value} must import; uninstall the package that names it otherwise",
        ) from error

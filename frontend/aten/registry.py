"""The table of ATen overloads that have a native form, and the decorator that fills it.

A row is a function of the builder and the op's arguments under their schema names, which returns the value (or a
tuple of values) before rounding. Rows for overloads that the installed torch lacks are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import torch
from torch._ops import OpOverload

Row: TypeAlias = Callable[..., Any]
RowT = TypeVar("RowT", bound=Row)

TABLE: dict[OpOverload, Row] = {}


def overload(name: str) -> OpOverload | None:
    """The overload by its dotted name, `aten.add.Tensor`; None if this torch has none."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    assert isinstance(found, OpOverload)
    return found


def imports(*names: str) -> Callable[[RowT], RowT]:
    """Makes the function the row of these overloads; `aten.exp` is short for `aten.exp.default`."""

    def register(row: RowT) -> RowT:
        for name in names:
            target = overload(name if name.count(".") == 2 else f"{name}.default")
            if target is not None:
                TABLE[target] = row
        return row

    return register

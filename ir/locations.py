"""Source lines: where in the user's program an operation comes from.

Every op has xDSL's `location` (printed by `--print-debuginfo`). The importer sets it; a pass that makes an op
from others gives it theirs: `Op.create(…, location=op.location)`, or `fused` where several take part.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Operation


def file_line(filename: str, line: int, column: int = 0) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(filename), IntAttr(line), IntAttr(column))


def fused(locations: Iterable[LocationAttr]) -> LocationAttr:
    """One location for an op made of several: the distinct known ones, in order."""
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        if isinstance(location, FusedLoc):
            parts.update(dict.fromkeys(location.locations))  # type: ignore[call-overload]
        elif not isinstance(location, UnknownLoc):
            parts[location] = None
    if not parts:
        return UNKNOWN_LOC
    return next(iter(parts)) if len(parts) == 1 else FusedLoc(ArrayAttr(parts), NoneAttr())


def source_lines(location: LocationAttr) -> tuple[str, ...]:
    """The places in the user's program as `file.py:12`."""
    if isinstance(location, FileLineColLoc):
        return (f"{location.filename.data}:{location.line.data}",)
    if isinstance(location, FusedLoc):
        return tuple(line for part in location.locations for line in source_lines(part))  # type: ignore[attr-defined]
    return ()


def location_text(op: Operation) -> str | None:
    """Where `op` comes from, as `file.py:12`, for messages and comments."""
    lines = source_lines(op.location)
    return ", ".join(lines) if lines else None

"""The one error of the conversion: an op that no row knows."""

from __future__ import annotations

from xdsl.ir import Operation

from ....ir.errors import LoweringError
from ....ir.locations import location_text


def not_convertible(op: Operation) -> LoweringError:
    types = ", ".join(str(value.type) for value in (*op.operands, *op.results))
    return LoweringError(
        "convert-graph-to-loop",
        expected="an op that becomes a kernel or stays for the host",
        got=f"{op.name} on {types}",
        hint="run graph passes and the importer before it, and loop passes after it",
        location=location_text(op),
    )

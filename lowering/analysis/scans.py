"""Sequential loops that combine each element with all before it, which blocks can do at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...ir import loop
from .accesses import only

COMBINERS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}
"""Op that combines the carried value with an element → the combiner that it is."""


@dataclass(frozen=True)
class Scan:
    """The op of a loop's body that combines the carried value with `element`, and the combiner that it is."""

    step: Operation
    element: SSAValue
    combiner: str


def scan_of(nest: loop.ForOp) -> Scan | None:
    """What a loop does, if it carries one value that only the next step of a known combiner uses."""
    if len(nest.carried) != 1:
        return None
    (carried,) = nest.carried
    use = only(list(carried.uses))
    if use is None:
        return None
    step = use.operation
    if type(step) not in COMBINERS or step.parent is not nest.block:
        return None
    (carried_on,) = nest.yielded.operands
    if carried_on is not SSAValue.get(step):
        return None
    return Scan(step, step.operands[1 - use.index], COMBINERS[type(step)])


__all__ = ["Scan", "scan_of"]

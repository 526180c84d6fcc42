"""Native ops that are better called than compiled become externs: one row per op and reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from ....ir import graph
from ....ir.dtypes import FLOAT64
from ....ir.graph import Argument, Arguments, OperandRef
from ....ir.graph.base import integer_of
from .joining import MOST_PARTS
from .memory import Memory


@dataclass(frozen=True)
class Call:
    """When an op becomes a call, of which overload, and with which arguments."""

    when: Callable[[Any], bool]
    target: str
    arguments: Callable[[Any], tuple[Argument, ...]] = lambda op: operands(op)
    keywords: tuple[tuple[str, Argument], ...] = ()


def operands(op: Operation) -> tuple[Argument, ...]:
    """All operands in order."""
    return tuple(OperandRef(position) for position in range(len(op.operands)))


def _is_double(op: graph.GraphOp) -> bool:
    """Remainders of f64 would take 44 steps where f32 takes 6."""
    return op.element == FLOAT64


def _has_many_parts(op: graph.CatOp) -> bool:
    return len(op.parts) > MOST_PARTS


def _always(op: graph.GraphOp) -> bool:
    """No scalar op computes it."""
    return True


CALLS: dict[type[Operation], Call] = {
    graph.CatOp: Call(_has_many_parts, "aten.cat.default", lambda op: (operands(op), integer_of(op.dim))),
    graph.ErfcOp: Call(_always, "aten.erfc.default"),
    graph.FmodOp: Call(_is_double, "aten.fmod.Tensor"),
    graph.RemainderOp: Call(_is_double, "aten.remainder.Tensor"),
    graph.FloorDivOp: Call(_is_double, "aten.div.Tensor_mode", keywords=(("rounding_mode", "floor"),)),
}


def call_for(op: Operation) -> Call | None:
    """The call that an op becomes, if it becomes one."""
    call = CALLS.get(type(op))
    return call if call is not None and call.when(op) else None


def extern(memory: Memory, op: graph.GraphOp, call: Call) -> graph.ExternOp:
    inputs = [memory.tensor(operand) for operand in op.operands]
    arguments = Arguments(call.arguments(op), call.keywords)
    return graph.ExternOp.make(call.target, inputs, arguments, op.result_types, location=op.location)

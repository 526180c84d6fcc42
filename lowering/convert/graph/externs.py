"""Native ops that are better called than compiled become externs: one row per op and reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from ....ir import graph
from ....ir.dtypes import FLOAT64
from ....ir.graph import Argument, Arguments, OperandRef
from ....ir.graph.base import integer_of
from ....ir.target import target_of
from ...analysis.atomics import atomic_kind
from .joining import MOST_PARTS
from .memory import Memory
from .reductions import combiner_for


@dataclass(frozen=True)
class Call:
    """When an op becomes a call, of which overload, and with which arguments, which name the inputs in their order."""

    when: Callable[[Any], bool]
    target: str
    arguments: Callable[[Any], tuple[Argument, ...]] = lambda op: operands(op)
    keywords: tuple[tuple[str, Argument], ...] = ()
    inputs: Callable[[Any], Sequence[SSAValue]] = lambda op: op.operands


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


def _lacks_atomics(op: graph.ScatterOp | graph.IndexPutOp) -> bool:
    """Programs of a GPU combine what they write to one place by atomic operations."""
    if op.combiner is None or not target_of(op).is_gpu:
        return False
    return atomic_kind(combiner_for(op.combiner.data, op.element), op.element) is None


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""Combiner → torch's name of a scatter's reduction."""


def _scattered(op: graph.ScatterOp) -> tuple[Argument, ...]:
    assert op.combiner is not None
    operand, index, value = operands(op)
    return operand, integer_of(op.dim), index, value, _REDUCTIONS[op.combiner.data]


def _put(op: graph.IndexPutOp) -> tuple[Argument, ...]:
    places: list[Argument] = [None] * (max(op.indexed) + 1)
    for position, k in enumerate(op.indexed):
        places[k] = OperandRef(1 + position)
    return OperandRef(0), tuple(places), OperandRef(1 + len(op.indexed)), True


CALLS: dict[type[Operation], Call] = {
    graph.CatOp: Call(_has_many_parts, "aten.cat.default", lambda op: (operands(op), integer_of(op.dim))),
    graph.ErfcOp: Call(_always, "aten.erfc.default"),
    graph.FmodOp: Call(_is_double, "aten.fmod.Tensor"),
    graph.RemainderOp: Call(_is_double, "aten.remainder.Tensor"),
    graph.IndexPutOp: Call(
        _lacks_atomics, "aten.index_put.default", _put, inputs=lambda op: (op.operand, *op.indices, op.value)
    ),
    graph.ScatterOp: Call(_lacks_atomics, "aten.scatter_reduce.two", _scattered),
    graph.FloorDivOp: Call(_is_double, "aten.div.Tensor_mode", keywords=(("rounding_mode", "floor"),)),
}


def call_for(op: Operation) -> Call | None:
    """The call that an op becomes, if it becomes one."""
    call = CALLS.get(type(op))
    return call if call is not None and call.when(op) else None


def extern(memory: Memory, op: graph.GraphOp, call: Call) -> graph.ExternOp:
    inputs = [memory.tensor(operand) for operand in call.inputs(op)]
    arguments = Arguments(call.arguments(op), call.keywords)
    return graph.ExternOp.make(call.target, inputs, arguments, op.result_types, location=op.location)

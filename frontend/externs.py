"""Calls of eager ops: their arguments as attributes, their names, what they do besides computing.

What has no text (submodules, script objects, callables) is kept in a dictionary under a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from xdsl.ir import SSAValue

from ..ir.expr import Expr
from ..ir.graph import Argument, Arguments, Fields, Named, OperandRef
from .builder import Value, WeakValue

_NAMED: dict[str, type] = {
    "dtype": torch.dtype,
    "device": torch.device,
    "layout": torch.layout,
    "memory_format": torch.memory_format,
}


@dataclass(frozen=True)
class HeldObject:
    """An attribute of the FX module that has no text, by its name."""

    name: str


@dataclass(frozen=True)
class ObjectInput:
    """An FX input that is neither tensor nor number, such as a process group: known only when a call brings it."""

    input: int

    @property
    def named(self) -> Named:
        return Named("input", str(self.input))


class CallArguments:
    """The arguments of one call: tensors become operands in the order in which they stand, the rest attributes."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self.objects = objects
        self.inputs: list[SSAValue] = []

    def convert(self, positional: list[Any], keywords: dict[str, Any]) -> Arguments:
        first = tuple(map(self._one, positional))
        return Arguments(first, tuple((name, self._one(value)) for name, value in keywords.items()))

    def _one(self, argument: Any) -> Argument:
        if isinstance(argument, Value):
            self.inputs.append(argument.ssa)
            return OperandRef(len(self.inputs) - 1, isinstance(argument, WeakValue))
        if isinstance(argument, list):
            return tuple(map(self._one, argument))
        if isinstance(argument, dict):
            return Fields(tuple((name, self._one(value)) for name, value in argument.items()))
        if argument is None or isinstance(argument, Expr | bool | int | float | str):
            return argument
        for kind, class_ in _NAMED.items():
            if isinstance(argument, class_):
                return Named(kind, str(argument).removeprefix("torch."))
        if isinstance(argument, ObjectInput):
            return argument.named
        return Named("object", self._name(argument))

    def _name(self, argument: Any) -> str:
        if isinstance(argument, HeldObject):
            return argument.name
        name = f"object_{len(self.objects)}"
        self.objects[name] = argument
        return name


def target_name(target: Any) -> str:
    """The dotted name below `torch.ops`; for a plain function that of its module."""
    if isinstance(target, OpOverload | OpOverloadPacket):
        return str(target)
    if isinstance(target, HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return f"{target.__module__}.{target.__qualname__}"


_CHECKS = {"aten::_assert_scalar", "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"}
"""Ops that raise if sizes are not as they must be."""

_ASSERTIONS = {
    "aten::_assert_async",
    "aten::_assert_async.msg",
    "aten::_assert_tensor_metadata",
    "aten::_linalg_check_errors",
    "aten::_print",
}
_PURE_MODULES = ("_operator", "math")


def effect_of(target: Any) -> str | None:
    """What the op does besides computing, as `graph.EFFECTS` names it. What is not an ATen op may do anything."""
    if not isinstance(target, OpOverload):
        return None if getattr(target, "__module__", None) in _PURE_MODULES else "write"
    if torch.Tag.nondeterministic_seeded in target.tags:
        return "random"
    if target.name() in _CHECKS:
        return "check"
    pure = not target._schema.is_mutable and target.namespace in ("aten", "prims", "stepwell")
    return None if pure and target.name() not in _ASSERTIONS else "write"

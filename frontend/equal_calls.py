"""Merges calls of one operator on the same operands, before a joint graph is split into forward and backward.

torch has such a pass; importing what that one asks of Inductor takes more than a second of a first call.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.multiprocessing.reductions import StorageWeakRef

Key = tuple[Any, ...]

_OPERATOR = operator.getitem.__module__
"""Where Python's own operators are: those that take results apart, and those on sizes."""

_EMPTY = (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default)


def merge_equal_calls(graph: fx.Graph) -> None:
    """Each call that an earlier one equals becomes that one; between both nothing is written in place.

    Tensors that are returned stay apart, as do random ones, memory that nobody has written, and sizes that only the run
    knows. An operand equals another if it has the same type and prints the same: 1 is not 1.0, nor 0.0 -0.0.
    """
    returned = set(_storages(graph.output_node().all_input_nodes))
    known: dict[Key, fx.Node] = {}
    for node in list(graph.nodes):
        if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
            known.clear()
        elif _has_only_a_value(node) and not returned.intersection(_storages([node])):
            first = known.setdefault(_key(node), node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)


def _has_only_a_value(node: fx.Node) -> bool:
    """Whether a call of a function gives the same for the same operands, and does nothing else."""
    if node.op != "call_function" or node.is_impure() or free_unbacked_symbols([*_parts(node)]):
        return False
    if not isinstance(node.target, OpOverload):
        return getattr(node.target, "__module__", None) == _OPERATOR
    return node.target not in _EMPTY and torch.Tag.nondeterministic_seeded not in node.target.tags


def _parts(node: fx.Node) -> Iterator[Tensor | torch.SymInt | torch.SymFloat | torch.SymBool]:
    """The tensors and symbolic numbers that a node gives."""
    value = node.meta.get("val")
    for part in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(part, (Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
            yield part


def _storages(nodes: Iterable[fx.Node]) -> Iterator[StorageWeakRef]:
    for node in nodes:
        for part in _parts(node):
            if isinstance(part, Tensor) and part.layout is torch.strided:
                yield StorageWeakRef(part.untyped_storage())


def _key(node: fx.Node) -> Key:
    return node.target, _token(node.args), _token(node.kwargs)


def _token(operand: Any) -> Any:
    """What tells an operand from others."""
    if isinstance(operand, (tuple, list)):
        return tuple(map(_token, operand))
    if isinstance(operand, dict):
        return tuple((name, _token(value)) for name, value in operand.items())
    return operand if isinstance(operand, fx.Node) else (type(operand), repr(operand))

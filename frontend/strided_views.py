"""Has `as_strided` look at the tensor that owns the memory, where a program calls it on a view of that.

It reads memory whatever its operand's sizes are, but functionalization cannot write through it into views. Done on
Dynamo's graph; `fill_diagonal_` writes that way too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx, sym_min


def look_at_owners(graph: fx.Graph) -> None:
    """Rewrites the calls in Dynamo's graph, in place."""
    for node in graph.nodes:
        call = _CALLS.get(node.target)
        if call is None or not node.args or (owner := _owner(node.args[0])) is node.args[0]:
            continue
        if call is _as_strided and _value(node).requires_grad and not any(map(_writes, node.users)):
            continue  # what is read from outside of the view has no gradient in eager
        node.op, node.target, node.args = "call_function", call, (owner, *node.args)


def _as_strided(
    owner: Tensor, self: Tensor, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Tensor:
    return owner.as_strided(size, stride, self.storage_offset() if storage_offset is None else storage_offset)


def _fill_diagonal(owner: Tensor, self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    height, width = self.shape[:2]
    length, step, start = sym_min(height, width), sum(self.stride()), self.storage_offset()
    owner.as_strided((length,), (step,), start).fill_(fill_value)
    if wrap and self.ndim == 2 and height > width + 1:  # a row is left out below each square
        rest = (self.numel() + width) // (width + 1) - length
        owner.as_strided((rest,), (step,), start + self.stride(0) * (width + 1)).fill_(fill_value)
    return self


_CALLS: dict[Any, Callable[..., Tensor]] = {
    "as_strided": _as_strided,
    "fill_diagonal_": _fill_diagonal,
    torch.as_strided: _as_strided,
    torch.ops.aten.as_strided.default: _as_strided,
    torch.ops.aten.fill_diagonal_.default: _fill_diagonal,
}


_WRITERS = {operator.iadd, operator.imul, operator.isub, operator.itruediv, operator.setitem}


def _writes(user: fx.Node) -> bool:
    """Whether a call changes its first operand, as names of methods say."""
    return user.target in _WRITERS or (isinstance(user.target, str) and user.target.endswith("_"))


def _owner(node: Any) -> Any:
    """The first of the tensors whose memory a node's tensor shares, as far as gradients flow and numbers look alike."""
    while (viewed := next((operand for operand in _operands(node) if _is_alike(node, operand)), None)) is not None:
        node = viewed
    return node


def _operands(node: fx.Node) -> Iterator[fx.Node]:
    """What a node's tensor may be a view of: for parts of a tuple the operands that this was made of."""
    for operand in node.all_input_nodes:
        yield from operand.all_input_nodes if isinstance(_value(operand), tuple | list) else (operand,)


def _is_alike(*nodes: fx.Node) -> bool:
    first, other = map(_value, nodes)
    return (
        isinstance(first, Tensor)
        and isinstance(other, Tensor)
        and first.layout is other.layout is torch.strided
        and _looks(first) == _looks(other)
    )


def _looks(value: Tensor) -> tuple[Any, ...]:
    return value.untyped_storage()._cdata, value.dtype, value.requires_grad, value.is_conj(), value.is_neg()


def _value(node: fx.Node) -> Any:
    return node.meta.get("example_value")

"""Lets a backward make a norm's result anew from the statistics that it needs anyway, so that it need not be saved.

The gradient of what follows a norm often asks for the norm's result, as that of SiLU does, or its sign, as a relu's.
The norm's own gradient asks for its input, mean and deviation, of which the result is a few pointwise steps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch._prims_common import get_computation_dtype
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .aten import TABLE
from .aten.normalization import FEW
from .aten.products import PRODUCTS
from .import_fx import is_empty

ops = torch.ops.aten

Statistic = Callable[["Steps", fx.Node, fx.Node], fx.Node]
"""Of (steps, a norm's call, its mean or deviation) the same in a form that broadcasts to the norm's input."""


class Steps:
    """Adds calls to a graph before a node, with their fake values; they belong to the user's line of `origin`."""

    def __init__(self, before: fx.Node, origin: fx.Node):
        self.graph, self.before, self.origin = before.graph, before, origin

    def call(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        with self.graph.inserting_before(self.before):
            node = self.graph.call_function(target, args, kwargs)
        node.meta = copy(self.origin.meta)
        node.meta["val"] = target(*fx.map_arg(args, _value), **kwargs)
        node.meta.pop("tensor_meta", None)
        return node


def _value(node: fx.Node) -> Any:
    return node.meta["val"]


def _by_row(steps: Steps, norm: fx.Node, statistic: fx.Node) -> fx.Node:
    return statistic


def _by_channel(steps: Steps, norm: fx.Node, statistic: fx.Node) -> fx.Node:
    return steps.call(ops.view.default, statistic, [-1, *_ones_after_channels(norm)])


def _by_group(steps: Steps, norm: fx.Node, statistic: fx.Node) -> fx.Node:
    _, _, _, batch, channels, _, groups, _ = norm.args
    single = steps.call(ops.unsqueeze.default, statistic, 2)
    spread = steps.call(ops.expand.default, single, [batch, groups, channels // groups])  # type: ignore[operator]
    dense = steps.call(ops.clone.default, spread, memory_format=torch.contiguous_format)
    return steps.call(ops.view.default, dense, [batch, channels, *_ones_after_channels(norm)])


def _ones_after_channels(norm: fx.Node) -> list[int]:
    return [1] * (_value(norm.args[0]).dim() - 2)  # type: ignore[arg-type]


NORMS: dict[Any, tuple[Statistic, tuple[int, int]]] = {
    ops.native_layer_norm.default: (_by_row, (2, 3)),
    ops.native_group_norm.default: (_by_group, (1, 2)),
    ops._native_batch_norm_legit_functional.default: (_by_channel, (1, 2)),
    ops._native_batch_norm_legit.no_stats: (_by_channel, (1, 2)),
}
"""How a norm's statistics broadcast, and where among its arguments weight and bias are. Its results begin with output,
mean, and reciprocal deviation."""


def recompute_norms(joint: fx.GraphModule, num_fwd_outputs: int) -> None:
    """Gives those users of norms that a joint graph's forward does not need pointwise steps in place of the norms.

    Only where all such users fuse with what they read: for others the result is in memory anyway. What a checkpoint is
    to save or not is left to it.
    """
    graph = joint.graph
    outputs: Any = graph.output_node().args[0]
    forward = _needed_for(outputs[:num_fwd_outputs])
    for norm in [node for node in graph.nodes if node.target in NORMS and "recompute" not in node.meta]:
        results = {user.args[1]: user for user in norm.users if user.target is operator.getitem}
        output, mean, scale = (results.get(position) for position in range(3))
        if output is None or mean is None or scale is None:
            continue
        later = {user: output for user in output.users if user not in forward}
        later |= {user: operand for user, operand in _sign_users(output) if user not in forward}
        if later and all(map(_fuses, later)) and _is_enough(norm, mean, scale):
            last = max(output, mean, scale)
            again = _again(Steps(last.next, output), norm, mean, scale)
            if _alike(again, output):
                for user, former in later.items():
                    user.replace_input_with(former, again)


def _sign_users(value: fx.Node) -> Iterator[tuple[fx.Node, fx.Node]]:
    """What asks a relu of a value where it is 0, which the value says as well; with its operand."""
    for relu in value.users:
        if relu.target is ops.relu.default:
            for user, operand in _readers(relu):
                if user.target is ops.le.Scalar and user.args[1] == 0:
                    yield user, operand


def _readers(value: fx.Node) -> Iterator[tuple[fx.Node, fx.Node]]:
    """The users of a value, also under another name for autograd, with that name."""
    for user in value.users:
        if user.target is ops.detach.default:
            yield from _readers(user)
        else:
            yield user, value


def _needed_for(nodes: Iterable[Any]) -> set[fx.Node]:
    """The nodes that some are made of, and these."""
    found: set[fx.Node] = set()
    rest = [node for node in nodes if isinstance(node, fx.Node)]
    while rest:
        node = rest.pop()
        if node not in found:
            found.add(node)
            rest += node.all_input_nodes
    return found


def _fuses(node: fx.Node) -> bool:
    """Whether a call, or each that reads the view that it gives, is one with what it reads."""
    target = node.target
    if isinstance(target, OpOverload) and target.is_view:
        return all(map(_fuses, node.users))
    return target in TABLE and target.overloadpacket not in PRODUCTS


def _is_enough(norm: fx.Node, mean: fx.Node, scale: fx.Node) -> bool:
    """Whether the statistics are there and all that the norm computes with, and channels fixed in number. Of few
    elements a mean may be wrong by what they differ by; the norm then takes more into account."""
    operand, value = norm.args[0], _value(mean)
    assert isinstance(operand, fx.Node)
    x = _value(operand)
    channels = norm.args[4] if norm.target is ops.native_group_norm.default else 0
    wide = all(_value(one).dtype == get_computation_dtype(x.dtype) for one in (mean, scale))
    many = NORMS[norm.target][0] is not _by_channel or statically_known_true(x.numel() > FEW * x.shape[1])
    return isinstance(channels, int) and wide and many and not is_empty(value)


def _again(steps: Steps, norm: fx.Node, mean: fx.Node, scale: fx.Node) -> fx.Node:
    """The result as `frontend.aten.normalization` forms it, so that not even its last bit differs."""
    statistic, parameters = NORMS[norm.target]
    x = norm.args[0]
    assert isinstance(x, fx.Node)
    kind = _value(x).dtype
    wide = get_computation_dtype(kind)
    result: fx.Node = x if kind == wide else steps.call(ops._to_copy.default, x, dtype=wide)
    result = steps.call(ops.sub.Tensor, result, statistic(steps, norm, mean))
    factor = statistic(steps, norm, scale)
    weight, bias = (
        one if statistic is _by_row or not isinstance(one, fx.Node) else _by_channel(steps, norm, one)
        for one in (norm.args[position] for position in parameters)
    )
    if statistic is _by_channel and weight is not None:
        factor, weight = steps.call(ops.mul.Tensor, factor, weight), None
    for target, operand in ((ops.mul.Tensor, factor), (ops.mul.Tensor, weight), (ops.add.Tensor, bias)):
        if operand is not None:
            result = steps.call(target, result, operand)
    return result if kind == wide else steps.call(ops._to_copy.default, result, dtype=kind)


def _alike(one: fx.Node, other: fx.Node) -> bool:
    """Whether both have the same type and layout."""
    first, second = _value(one), _value(other)
    assert isinstance(first, Tensor)
    return (first.dtype, first.shape, first.stride()) == (second.dtype, second.shape, second.stride())


__all__ = ["recompute_norms"]

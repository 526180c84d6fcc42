"""Mends fake tensors where torch's promise other strides or element types than eager's kernels give.

Done on the joint graph, before it is split: what one graph saves, the other then reads as it was saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
import torch
from torch import SymInt, Tensor, fx
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.functions import Max

from .element_types import TYPES, Types
from .strides import POSITIONS, layout_rule


def correct_fakes(gm: fx.GraphModule) -> None:
    """Gives the nodes of the graph the fake values that eager's strides and types lead to, in place."""
    changed: set[fx.Node] = set()
    for node in gm.graph.nodes:
        if node.op == "call_function" and (_is_doubtful(node.target) or changed.intersection(node.all_input_nodes)):
            _correct(node, changed)


def _is_doubtful(target: Any) -> bool:
    return target in TYPES or layout_rule(target) is not None


def _correct(node: fx.Node, changed: set[fx.Node]) -> None:
    before = node.meta.get("val")
    if changed.intersection(node.all_input_nodes):
        node.meta["val"] = _recomputed(node, before)
    if (type_rule := TYPES.get(node.target)) is not None:
        node.meta["val"] = _with_types(node.meta["val"], type_rule(node))
    if (rule := layout_rule(node.target)) is not None and (wanted := rule(node)) is not None:
        places = POSITIONS.get(node.target, range(1))
        shares = isinstance(node.target, OpOverload) and node.target.is_view
        node.meta["val"] = _with_layout(node.meta["val"], wanted, places, shares)
    if not _agree(before, node.meta.get("val")):
        changed.add(node)


def _recomputed(node: fx.Node, before: Any) -> Any:
    """What the op makes of its operands' fake values; as before where it cannot: a `view` that is none with these
    strides stands for a `reshape` in the user's program, which then copies."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda operand: operand.meta.get("val"))
    fakes = [leaf for leaf in _tensors(before) if hasattr(leaf, "fake_mode")]
    if not fakes or not callable(node.target):
        return before
    try:
        with fakes[0].fake_mode:
            return node.target(*args, **kwargs)
    except (RuntimeError, ValueError):
        return before


def _with_types(value: Any, types: Types) -> Any:
    """The results, some of them of other element types."""
    if isinstance(value, Tensor):
        return _typed(value, types[0])
    return tuple(
        _typed(each, types[position]) if position in types and isinstance(each, Tensor) else each
        for position, each in enumerate(value)
    )


def _typed(fake: Any, dtype: torch.dtype) -> Any:
    with fake.fake_mode:
        return fake.to(dtype)


def _with_layout(value: Any, wanted: torch.memory_format | tuple[Any, ...], places: range, shares: bool) -> Any:
    """The value, its tensors at those places in that layout: new ones, unless they have it already, or the operand's
    memory is theirs."""
    if isinstance(value, Tensor):
        return _laid_out(value, wanted, shares)
    return tuple(
        _laid_out(each, wanted, shares) if place in places and isinstance(each, Tensor) else each
        for place, each in enumerate(value)
    )


def _laid_out(fake: Any, wanted: torch.memory_format | tuple[Any, ...], shares: bool) -> Any:
    with fake.fake_mode:
        if shares:
            laid_out = fake.as_strided(fake.shape, wanted)
        elif isinstance(wanted, tuple):
            laid_out = torch.empty_strided(fake.shape, wanted, dtype=fake.dtype, device=fake.device)
        else:
            laid_out = torch.empty(fake.shape, dtype=fake.dtype, device=fake.device, memory_format=wanted)
    return fake if _same_strides(laid_out, fake) else laid_out


def _tensors(value: Any) -> Iterable[Any]:
    return [leaf for leaf in (value if isinstance(value, tuple | list) else (value,)) if isinstance(leaf, Tensor)]


def _agree(first: Any, second: Any) -> bool:
    """Whether the strided tensors in two values are of the same types and strides."""
    strided = [[leaf for leaf in _tensors(value) if leaf.layout == torch.strided] for value in (first, second)]
    return len(strided[0]) == len(strided[1]) and all(
        one is other or (one.dtype == other.dtype and _same_strides(one, other))
        for one, other in zip(*strided, strict=True)
    )


def _same_strides(first: Tensor, second: Tensor) -> bool:
    strides = first.stride(), second.stride()
    return len(strides[0]) == len(strides[1]) and all(map(_is_same, *strides))


def _is_same(first: int | SymInt, second: int | SymInt) -> bool:
    """Whether two strides are equal. Of what depends on data that is decided by form, and not for empty tensors:
    torch makes strides of `Max(1, size)` or of `size`."""
    if not (free_unbacked_symbols(first) or free_unbacked_symbols(second)):
        return bool(first == second)
    return bool(_of_filled(first) == _of_filled(second))


def _of_filled(stride: int | SymInt) -> sympy.Expr:
    """The stride where no size is 0."""
    form = stride.node.expr if isinstance(stride, SymInt) else sympy.Integer(stride)
    return form.replace(
        lambda part: isinstance(part, Max) and sympy.S.One in part.args,
        lambda part: Max(*(size for size in part.args if size != 1)),
    )

"""Views as index maps: for each view op, where an index of the result lies in the operand.

Also the way back: whether a map reads a tensor's memory just as another layout of it would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ....ir import graph
from ....ir.expr import ONE, ZERO, Expr, contiguous_strides, delinearize, dim, exact_quotient, linearize
from ....ir.shapes import Layout, dense_order, layout_of, sizes_of
from .sources import Box, identity

Place = tuple[Expr, ...]

# -- from ops to maps --------------------------------------------------------------------------------


def _permute(op: graph.PermuteOp) -> Place:
    order = op.permutation
    return tuple(dim(order.index(position)) for position in range(len(order)))


def _broadcast(op: graph.BroadcastOp) -> Place:
    sizes = sizes_of(op.operand.type)
    lead = len(op.sizes) - len(sizes)
    return tuple(ZERO if size == ONE else dim(lead + position) for position, size in enumerate(sizes))


def _slice(op: graph.SliceOp) -> Place:
    return stepped(op.starts.results, op.steps.results)


def stepped(starts: Sequence[Expr], steps: Sequence[Expr]) -> Place:
    """Index i of a box within a tensor: `start + i * step`."""
    return tuple(start + dim(position) * step for position, (start, step) in enumerate(zip(starts, steps, strict=True)))


def _flip(op: graph.FlipOp) -> Place:
    flipped = op.flipped
    return tuple(
        size - 1 - dim(position) if position in flipped else dim(position) for position, size in enumerate(op.sizes)
    )


def _window(op: graph.WindowOp) -> Place:
    steps, dilations = graph.integers_of(op.steps), graph.integers_of(op.dilations)
    kept = len(op.sizes) - 2 * len(steps)
    slid = (
        dim(kept + position) * step + dim(kept + len(steps) + position) * dilation
        for position, (step, dilation) in enumerate(zip(steps, dilations, strict=True))
    )
    return (*identity(kept), *slid)


def _reshape(op: graph.ReshapeOp) -> Place:
    return reshaped(sizes_of(op.operand.type), op.sizes)


@lru_cache(maxsize=1 << 14)
def reshaped(sizes: Place, results: Place) -> Place:
    """Where the row-major index of a box of `results` lies in one of `sizes`, group of dims by group."""
    place = [ZERO] * len(sizes)
    for group, result_group in _groups(sizes, results):
        offset = linearize([dim(k) for k in result_group], contiguous_strides([results[k] for k in result_group]))
        indices = delinearize(offset, [sizes[k] for k in group])
        for position, index in zip(group, indices, strict=True):
            place[position] = index
    return tuple(place)


def _groups(sizes: Place, results: Place) -> list[tuple[list[int], list[int]]]:
    """Groups of neighbouring dims, those of size 1 left out, that hold equally many elements: as fine as sizes show."""
    left = [position for position, size in enumerate(sizes) if size != ONE]
    right = [position for position, size in enumerate(results) if size != ONE]
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        first, first_result = left.pop(0), right.pop(0)
        group, result_group = [first], [first_result]
        have, want = sizes[first], results[first_result]
        while have != want and (left or right):
            if left and (not right or _may_be_less(have, want)):
                group.append(left.pop(0))
                have = have * sizes[group[-1]]
            else:
                result_group.append(right.pop(0))
                want = want * results[result_group[-1]]
        groups.append((group, result_group))
    return groups


def _may_be_less(first: Expr, second: Expr) -> bool:
    """Whether the first of two products of sizes needs more factors to become the second."""
    difference = second - first
    return difference.constant > 0 if difference.is_constant else exact_quotient(first, second) is None


def _as_strided(op: graph.AsStridedOp) -> Place | None:
    """Known where the operand's elements fill a stretch of memory, in whatever order of dims."""
    operand, result = layout_of(op.operand.type), layout_of(op.type)
    order = dense_order(operand)
    if order is None:
        return None
    offset = op.offset.result + linearize(identity(len(result.sizes)), result.strides)
    indices = delinearize(offset, [operand.sizes[position] for position in order])
    place = [ZERO] * len(operand.sizes)
    for position, index in zip(order, indices, strict=True):
        place[position] = index
    return tuple(place)


_PLACES: dict[type[graph.ViewOp], Callable[[Any], Place | None]] = {
    graph.PermuteOp: _permute,
    graph.BroadcastOp: _broadcast,
    graph.SliceOp: _slice,
    graph.FlipOp: _flip,
    graph.WindowOp: _window,
    graph.ReshapeOp: _reshape,
    graph.AsStridedOp: _as_strided,
}


def place_in_operand(op: graph.ViewOp) -> Place | None:
    """Where each index of a view's result lies in its operand; None where only memory tells."""
    if ZERO in op.sizes:
        return (ZERO,) * len(sizes_of(op.operand.type))
    return _PLACES[type(op)](op)


# -- from maps to memory -----------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def offset_in_memory(place: Place, strides: Place, layout: Layout, box: Box) -> Expr | None:
    """From which element of a tensor with those strides on the elements at `place` lie in memory as in the layout;
    None where they do not."""
    if ZERO in layout.sizes:
        return ZERO
    single = {position: ZERO for position, size in enumerate(layout.sizes) if size == ONE}
    offset = box.domain.simplify(linearize(place, strides).substitute_dims(single))
    for position, stride in enumerate(layout.strides):
        if position not in single and offset.coefficient(position) != stride:
            return None
    start = offset.substitute_dims(dict.fromkeys(range(len(layout.sizes)), ZERO))
    return None if start.dims else start

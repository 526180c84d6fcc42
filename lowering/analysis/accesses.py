"""Reads and writes of loop kernels: their indices, their offsets, and which indices two of them share.

The IR side of `radix`, plus the small steps by which passes rewrite accesses in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...ir import loop
from ...ir.expr import ZERO, Expr, contiguous_strides, dim
from ...ir.loop.ops import AccessOp
from ...ir.shapes import IndexMap, MapAttr, sizes_of, strides_of
from .radix import Place, canonical, linear_offset, match_places, substituted
from .sizes import Sizes

# -- indices and accesses ----------------------------------------------------------------------------

Item = TypeVar("Item")


def nests_of(block: Block) -> list[loop.NestOp]:
    """The nests directly in a block."""
    return [op for op in block.ops if isinstance(op, loop.NestOp)]


def is_leaf(nest: loop.NestOp) -> bool:
    return not nests_of(nest.block)


def only(items: Sequence[Item]) -> Item | None:
    """The item of a sequence that holds just one."""
    match items:
        case [item]:
            return item
        case _:
            return None


def extent_of(index: SSAValue) -> Expr | None:
    """The extent of the nest dimension that `index` runs over; None for a computed or carried index."""
    if not isinstance(index, BlockArgument):
        return None
    nest = index.block.parent_op()
    assert isinstance(nest, loop.NestOp)
    return nest.sizes[index.index] if index.index < nest.rank else None


_FIRST_INDEX: dict[type[Operation], int] = {loop.ReadOp: 1, loop.WriteOp: 2, loop.IndexOp: 0}


def index_operands(op: AccessOp) -> Sequence[SSAValue]:
    """The operands that the dims of the access map stand for."""
    first = _FIRST_INDEX[type(op)]
    return op.operands[first : first + op.map.rank]


def accessed(op: loop.ReadOp | loop.WriteOp) -> SSAValue:
    """The tensor or buffer that an access touches."""
    return op.source if isinstance(op, loop.ReadOp) else op.target


def same_place(first: AccessOp, second: AccessOp) -> bool:
    """Whether both accesses name the same element in the same words."""
    return first.properties["access"] == second.properties["access"] and tuple(index_operands(first)) == tuple(
        index_operands(second)
    )


def set_access(op: AccessOp, indices: Sequence[SSAValue], results: Sequence[Expr], sizes: Sizes) -> None:
    """Gives the op another access, in canonical form and simplified by the ranges of its indices."""
    seen: dict[SSAValue, int] = {}
    same_as = tuple(seen.setdefault(index, position) for position, index in enumerate(indices))
    order, simple = canonical(Place(tuple(results), tuple(map(extent_of, indices))), same_as, sizes)
    used, access = [indices[position] for position in order], IndexMap(len(order), simple)
    first, rank = _FIRST_INDEX[type(op)], op.map.rank
    rest = op.operands[first + rank :]
    op.operands = [*op.operands[:first], *used, *rest]
    op.properties["access"] = MapAttr(access)
    if isinstance(op, loop.ReadOp) and len(used) != rank:
        op.properties["operandSegmentSizes"] = _read_segments(len(used), len(rest) // 2)


def substitute_indices(
    op: AccessOp, replaced: Mapping[SSAValue, Expr], indices: Sequence[SSAValue], sizes: Sizes
) -> None:
    """Puts expressions over `indices` in the place of some of the op's own indices."""
    operands = index_operands(op)
    own = len(indices)
    inner = tuple(replaced.get(operand, dim(own + position)) for position, operand in enumerate(operands))
    set_access(op, [*indices, *operands], substituted(op.map.results, inner), sizes)


@cache
def _read_segments(rank: int, guards: int) -> Attribute:
    return DenseArrayBase.from_list(i32, [1, rank, guards, guards])


def guard_of(read: loop.ReadOp) -> tuple[SSAValue, SSAValue] | None:
    """The condition of a guarded read and what it gives elsewhere."""
    match tuple(read.operands[1 + read.map.rank :]):
        case condition, other:
            return condition, other
        case _:
            return None


def buffer_sizes(value: SSAValue) -> tuple[Expr, ...]:
    """Sizes of a tensor, of a kernel's destination or of a local buffer."""
    if isinstance(value, BlockArgument) and isinstance(kernel := value.block.parent_op(), loop.KernelOp):
        return sizes_of(kernel.results[value.index].type)
    if isinstance(value.owner, loop.LocalOp):
        return value.owner.sizes
    return sizes_of(value.type)


def buffer_strides(value: SSAValue) -> tuple[Expr, ...]:
    """Strides of a tensor, of a kernel's destination (those of its result) or of a local (row-major)."""
    if isinstance(value.owner, loop.LocalOp):
        return contiguous_strides(value.owner.sizes)
    if isinstance(value, BlockArgument) and isinstance(kernel := value.block.parent_op(), loop.KernelOp):
        return strides_of(kernel.results[value.index].type)
    return strides_of(value.type)


def all_ops(block: Block) -> list[Operation]:
    """The ops of a block with those inside of them, in order."""
    found: list[Operation] = []
    op = block.first_op
    while op is not None:
        found.append(op)
        for region in op.regions:
            for inner in region.blocks:
                found.extend(all_ops(inner))
        op = op.next_op
    return found


def enclosing_nests(op: Operation) -> list[loop.NestOp]:
    """The nests around an op, innermost first."""
    found: list[loop.NestOp] = []
    parent = op.parent_op()
    while isinstance(parent, loop.NestOp):
        found.append(parent)
        parent = parent.parent_op()
    return found


def ancestor_in(block: Block, op: Operation) -> Operation | None:
    """The op of `block` that is `op` or holds it."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


# -- pairs of accesses -------------------------------------------------------------------------------


def place_of(op: AccessOp) -> Place:
    """The access as expressions over dims, with the extents of those dims."""
    return Place(op.map.results, tuple(map(extent_of, index_operands(op))))


@dataclass(frozen=True)
class Match:
    """Pairs of indices of two accesses that are equal wherever both touch one element, and the factors into which
    indices must first be split, outermost factor first, for there to be more such pairs."""

    pairs: dict[SSAValue, SSAValue] = field(default_factory=dict)
    splits: dict[SSAValue, tuple[Expr, ...]] = field(default_factory=dict)


def match(first: AccessOp, second: AccessOp, buffer: tuple[Expr, ...], sizes: Sizes) -> Match:
    """Matches the indices of two accesses to a buffer of these sizes."""
    left, right = index_operands(first), index_operands(second)
    found = match_places(place_of(first), place_of(second), buffer, sizes)
    splits = {left[position]: factors for position, factors in found.first_splits}
    splits |= {right[position]: factors for position, factors in found.second_splits}
    return Match({left[one]: right[other] for one, other in found.pairs}, splits)


def step(op: AccessOp, index: SSAValue, strides: tuple[Expr, ...]) -> Expr | None:
    """How far an access moves in a buffer of these strides per step of an index; None where that differs."""
    for position, operand in enumerate(index_operands(op)):
        if operand is index:
            return linear_offset(op.map.results, strides).coefficient(position)
    return ZERO

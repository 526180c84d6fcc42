"""Which loop indices two accesses must share to touch the same element.

An access is a number in a mixed-radix system: its linear offset is a sum of indices, each with a stride and an
extent. If a digit, that is a pair of stride and extent, occurs in both of two systems, equal offsets have equal
digits there. This one fact gives the dependences between nests and the way to align their spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...ir import loop
from ...ir.expr import ONE, Domain, Expr, Interval, contiguous_strides, dim, exact_quotient, linearize
from ...ir.loop.ops import AccessOp
from ...ir.shapes import MapAttr, canonical_access, sizes_of, symbol_intervals, symbol_ranges
from ..schedule.model import Hints

# -- indices and accesses ----------------------------------------------------------------------------


def extent_of(index: SSAValue) -> Expr | None:
    """The extent of the nest dimension that `index` runs over; None for a computed index."""
    if not isinstance(index, BlockArgument):
        return None
    nest = index.block.parent_op()
    if not isinstance(nest, loop.NestOp) or index.index >= nest.rank:
        return None
    return nest.sizes[index.index]


_FIRST_INDEX: dict[type[Operation], int] = {loop.ReadOp: 1, loop.WriteOp: 2, loop.IndexOp: 0}


def index_operands(op: AccessOp) -> Sequence[SSAValue]:
    """The operands that the dims of the access map stand for."""
    first = _FIRST_INDEX[type(op)]
    return op.operands[first : first + op.map.rank]


def accessed(op: loop.ReadOp | loop.WriteOp) -> SSAValue:
    """The tensor or buffer that an access touches."""
    return op.operands[0] if isinstance(op, loop.ReadOp) else op.operands[1]


def same_place(first: AccessOp, second: AccessOp) -> bool:
    """Whether both accesses name the same element in the same words."""
    return first.properties["access"] == second.properties["access"] and tuple(index_operands(first)) == tuple(
        index_operands(second)
    )


def set_access(op: AccessOp, indices: Sequence[SSAValue], results: Sequence[Expr], sizes: Sizes) -> None:
    """Gives the op another access, in canonical form and simplified by the ranges of its indices."""
    used, access = canonical_access(indices, results)
    simple = access.simplify(sizes.domain(used))
    if simple != access:
        used, access = canonical_access(used, simple.results)
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
    inner = [replaced.get(operand, dim(own + position)) for position, operand in enumerate(operands)]
    results = [result.substitute_dims(inner) for result in op.map.results]
    set_access(op, [*indices, *operands], results, sizes)


@cache
def _read_segments(rank: int, guards: int) -> Attribute:
    return DenseArrayBase.from_list(i32, [1, rank, guards, guards])


def guard_of(read: loop.ReadOp) -> tuple[SSAValue, SSAValue] | None:
    """The condition of a guarded read and what it gives elsewhere."""
    operands = read.operands
    return (operands[-2], operands[-1]) if len(operands) > 1 + read.map.rank else None


def buffer_sizes(value: SSAValue) -> tuple[Expr, ...]:
    """Sizes of a tensor, of a kernel's destination or of a local buffer."""
    if isinstance(value, BlockArgument) and isinstance(kernel := value.block.parent_op(), loop.KernelOp):
        return sizes_of(kernel.results[value.index].type)
    if isinstance(value.owner, loop.LocalOp):
        return value.owner.sizes
    return sizes_of(value.type)


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


# -- what is known of sizes --------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Guarded ranges and likely values of the symbols of one function."""

    intervals: Mapping[str, Interval]
    hints: Hints

    @staticmethod
    def at(op: Operation) -> Sizes:
        values = {name: known.hint for name, known in symbol_ranges(op).items() if known.hint is not None}
        return Sizes(symbol_intervals(op), Hints(values))

    def domain(self, indices: Sequence[SSAValue]) -> Domain:
        """Where dims run that stand for these index values."""
        extents = {position: extent for position, index in enumerate(indices) if (extent := extent_of(index))}
        return Domain(extents, self.intervals)

    def is_positive(self, size: Expr) -> bool:
        """Whether a space of that size certainly has a point."""
        low = Domain({}, self.intervals).interval(size)[0]
        return low is not None and low > 0


NO_DOMAIN = Domain({}, {})


def linear_offset(op: AccessOp, strides: Sequence[Expr]) -> Expr:
    """The offset of an access over its own index operands, with what divisions took apart rejoined."""
    return NO_DOMAIN.simplify(linearize(op.map.results, strides))


# -- digits ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digit:
    """One index of a linear offset."""

    index: SSAValue
    stride: Expr
    extent: Expr


@dataclass(frozen=True)
class Match:
    """Pairs of indices of two accesses that are equal wherever both touch one element, and the factors into which
    indices must first be split, outermost factor first, for there to be more such pairs."""

    pairs: dict[SSAValue, SSAValue] = field(default_factory=dict)
    splits: dict[SSAValue, tuple[Expr, ...]] = field(default_factory=dict)


NO_MATCH = Match()


def match(first: AccessOp, second: AccessOp, sizes: tuple[Expr, ...], hints: Hints) -> Match:
    """Matches the indices of two accesses to a buffer of these sizes."""
    left, right = index_operands(first), index_operands(second)
    pairs: dict[SSAValue, SSAValue] = {}
    composite = False
    for one, other in zip(first.map.results, second.map.results, strict=True):
        position, other_position = one.as_dim, other.as_dim
        if position is None or other_position is None:
            composite = composite or not (one.is_constant or other.is_constant)
        elif extent_of(left[position]) == extent_of(right[other_position]) or left[position] is right[other_position]:
            pairs[left[position]] = right[other_position]
        else:
            composite = True
    return _match_composite(first, second, sizes, hints, pairs) if composite else Match(pairs)


def _match_composite(
    first: AccessOp, second: AccessOp, sizes: tuple[Expr, ...], hints: Hints, pairs: dict[SSAValue, SSAValue]
) -> Match:
    """Dimension by dimension where no division mixes them, else by the offset in the whole buffer."""
    left, right = index_operands(first), index_operands(second)
    results = [(first.map.results, second.map.results)]
    if _divides(first.map.results) or _divides(second.map.results):
        strides = contiguous_strides(sizes)
        results = [((linear_offset(first, strides),), (linear_offset(second, strides),))]
    pairs, splits = dict(pairs), {}
    for ones, others in results:
        for one, other in zip(ones, others, strict=True):
            digits, other_digits = radix_digits(one, left, hints), radix_digits(other, right, hints)
            found = _match_digits(digits, other_digits, hints)
            pairs.update(found.pairs)
            splits.update(found.splits)
    return Match(pairs, splits)


def _divides(results: Sequence[Expr]) -> bool:
    return any(
        atom.kind not in ("dim", "symbol") for result in results for monomial, _ in result.terms for atom in monomial
    )


def radix_digits(offset: Expr, indices: Sequence[SSAValue], hints: Hints) -> list[Digit]:
    """The digits of an offset, highest first; none unless it is a mixed-radix number over nest indices."""
    digits: list[Digit] = []
    for monomial, coefficient in offset.terms:
        dims = [atom for atom in monomial if atom.kind != "symbol"]
        if len(dims) != 1 or dims[0].kind != "dim" or coefficient < 0:
            return []
        index = indices[dims[0].args[0]]
        extent = extent_of(index)
        if extent is None:
            return []
        rest = tuple(atom for atom in monomial if atom.kind == "symbol")
        digits.append(Digit(index, Expr.from_terms({rest: coefficient}), extent))
    digits.sort(key=lambda digit: -hints.size(digit.stride))
    for higher, lower in pairwise(digits):
        if exact_quotient(higher.stride, lower.stride * lower.extent) is None:
            return []
    return digits


def _match_digits(first: list[Digit], second: list[Digit], hints: Hints) -> Match:
    """Pairs equal digits; where a digit of one system is several of the other, says how to split it."""
    by_place = {(digit.stride, digit.extent): digit.index for digit in second}
    pairs: dict[SSAValue, SSAValue] = {}
    for digit in first:
        partner = by_place.get((digit.stride, digit.extent))
        if partner is not None:
            pairs[digit.index] = partner
    factors = {digit.index: _factors(digit, second, hints) for digit in first}
    factors |= {digit.index: _factors(digit, first, hints) for digit in second}
    shared = _places(first, factors) & _places(second, factors)
    splits = {
        digit.index: factors[digit.index]
        for digit in (*first, *second)
        if len(factors[digit.index]) > 1 and _places([digit], factors) & shared
    }
    return Match(pairs, splits)


def _places(digits: Sequence[Digit], factors: Mapping[SSAValue, tuple[Expr, ...]]) -> set[tuple[Expr, Expr]]:
    """Stride and extent of each digit once it is split."""
    places: set[tuple[Expr, Expr]] = set()
    for digit in digits:
        stride = digit.stride
        for factor in reversed(factors[digit.index]):
            places.add((stride, factor))
            stride = stride * factor
    return places


def _factors(digit: Digit, others: list[Digit], hints: Hints) -> tuple[Expr, ...]:
    """The factors of the digit's extent between the places where digits of the other system begin or end."""
    cuts: set[Expr] = set()
    for other in others:
        for place in (other.stride, other.stride * other.extent):
            inner = exact_quotient(place, digit.stride)
            if inner is not None and inner not in (ONE, digit.extent) and exact_quotient(digit.extent, inner):
                cuts.add(inner)
    factors: list[Expr] = []
    rest = digit.extent
    for cut in sorted(cuts, key=lambda cut: -hints.size(cut)):
        factor = exact_quotient(rest, cut)
        if factor is None:
            return (digit.extent,)
        factors.append(factor)
        rest = cut
    return (*factors, rest)

"""Combining values: the lanes of a block by a fixed tree, so that results repeat, and values in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan, prod

from xdsl.dialects.builtin import IntegerType

from ...ir import tile
from ...ir.combiners import last_index
from .blocks import BOOL, F32, NARROW_FLOATS, Block, block_of, constant_text
from .convert import narrow, widen
from .emit_arith import (
    add,
    add_float,
    both,
    choose,
    compare,
    differ,
    either,
    maximum_float,
    maximum_signed,
    maximum_unsigned,
    minimum_float,
    minimum_signed,
    minimum_unsigned,
    multiply,
    multiply_float,
)
from .emitter import Emitter, Table, unsupported

Group = tuple[str, ...]
"""One piece of each operand of a reduction: one, or a key and its index."""

Combine = Callable[[Emitter, Sequence[Block], Group, Group], Group]
"""Combines two groups whose pieces have those types."""


def _single(on_floats: Callable[..., str], on_integers: Callable[..., str]) -> Combine:
    def combine(e: Emitter, blocks: Sequence[Block], first: Group, second: Group) -> Group:
        (block,), (one,), (other,) = blocks, first, second
        compute = on_floats if block.element.is_float else on_integers
        return (compute(e, block, one, other),)

    return combine


def _extremal_pair(order: str) -> Combine:
    """The pair with the better key: NaN before numbers, then by order, then by the smaller index."""

    def combine(e: Emitter, blocks: Sequence[Block], first: Group, second: Group) -> Group:
        (block, indices), (key, index), (other_key, other_index) = blocks, first, second
        mask = block.mask
        compare_keys = _better_float if block.element.is_float else _better_integer
        better, equal = compare_keys(e, block, order, key, other_key)
        earlier = compare(e, indices, "slt", other_index, index)
        takes = either(e, mask, better, both(e, mask, equal, earlier))
        return choose(e, block, takes, other_key, key), choose(e, indices, takes, other_index, index)

    return combine


def _better_float(e: Emitter, block: Block, order: str, first: str, second: str) -> tuple[str, str]:
    """Whether the second key is better than the first, and whether they are equal; NaN is better than all numbers."""
    number = compare(e, block, "ord", first, first)
    better = both(e, block.mask, compare(e, block, f"u{order}", second, first), number)
    nans = [compare(e, block, "uno", key, key) for key in (first, second)]
    equal = either(e, block.mask, compare(e, block, "oeq", first, second), both(e, block.mask, *nans))
    return better, equal


def _better_integer(e: Emitter, block: Block, order: str, first: str, second: str) -> tuple[str, str]:
    signedness = "u" if block.element is BOOL else "s"
    return compare(e, block, signedness + order, second, first), compare(e, block, "eq", first, second)


COMBINE: dict[str, Combine] = {
    "add": _single(add_float, add),
    "mul": _single(multiply_float, multiply),
    "max": _single(maximum_float, maximum_signed),
    "min": _single(minimum_float, minimum_signed),
    "maxu": _single(maximum_float, maximum_unsigned),
    "minu": _single(minimum_float, minimum_unsigned),
    "and": _single(both, both),
    "or": _single(either, either),
    "xor": _single(differ, differ),
    "argmax": _extremal_pair("gt"),
    "argmin": _extremal_pair("lt"),
}

_ON_BOOLS = {"add": "or", "mul": "and", "max": "or", "maxu": "or", "min": "and", "minu": "and"}


def combine(e: Emitter, name: str, blocks: Sequence[Block], first: Group, second: Group) -> Group:
    """Combines two groups of pieces; a narrow float goes through f32."""
    key, *_ = blocks
    if key.element is BOOL:
        name = _ON_BOOLS.get(name, name)
    if key.element not in NARROW_FLOATS:
        return COMBINE[name](e, blocks, first, second)
    one, other = ((widen(e, key, piece),) for (piece,) in (first, second))
    (result,) = COMBINE[name](e, [key.of(F32)], one, other)
    return (narrow(e, key, result),)


# -- lanes of a block --------------------------------------------------------------------------------


def _emit_reduce(e: Emitter, op: tile.ReduceOp) -> None:
    block, dimension = e.block(op.values[0].type), op.dimension.value.data
    if not block.shape:
        raise unsupported(op, "a block of rank 1 or more")
    columns = [e.values[value] for value in op.values]
    wide = block.of(F32) if block.element in NARROW_FLOATS else block
    blocks = [wide, *(e.block(value.type) for value in op.values[1:])]
    if wide is not block:  # narrow floats are rounded once, at the end
        columns[0] = tuple([widen(e, block.piece, piece) for piece in columns[0]])
    reduce = _across_lanes if dimension == len(block.shape) - 1 else _across_rows
    groups = reduce(e, op.combiner.data, blocks, dimension, list(zip(*columns, strict=True)))
    results = list(zip(*groups, strict=True))
    if wide is not block:
        key, *_ = op.results
        kept = e.block(key.type).piece
        results[0] = tuple([narrow(e, kept, piece) for piece in results[0]])
    e.values.update(zip(op.results, results, strict=True))


def _across_rows(e: Emitter, name: str, blocks: list[Block], dimension: int, rows: list[Group]) -> list[Group]:
    block, *_ = blocks
    size, inner = block.shape[dimension], prod(block.shape[dimension + 1 : -1])
    join = partial(combine, e, name, [column.piece for column in blocks])
    return [
        _tree(join, rows[start + offset : start + size * inner : inner])
        for start in range(0, len(rows), size * inner)
        for offset in range(inner)
    ]


def _tree(join: Callable[[Group, Group], Group], groups: list[Group]) -> Group:
    """Combines neighbours until one is left: the same order for the same number."""
    while len(groups) > 1:
        pairs = [join(*groups[at : at + 2]) for at in range(0, len(groups) - 1, 2)]
        groups = pairs + groups[len(groups) & ~1 :]
    (group,) = groups
    return group


def _across_lanes(e: Emitter, name: str, blocks: list[Block], _: int, rows: list[Group]) -> list[Group]:
    block, *_others = blocks
    groups = [_lanes_combined(e, name, [column.piece for column in blocks], group) for group in rows]
    if len(block.shape) == 1:
        return groups
    lanes = block.shape[-2]
    pieces = [block_of(column.element, (lanes,)) for column in blocks]
    return [
        tuple([e.assemble(*pair) for pair in zip(pieces, zip(*groups[at : at + lanes], strict=True), strict=True)])
        for at in range(0, len(groups), lanes)
    ]


def _lanes_combined(e: Emitter, name: str, blocks: list[Block], group: Group) -> Group:
    """All lanes as one: by LLVM's reductions where it has one that is exact, else by halves."""
    (key, *_), (piece, *_) = blocks, group
    lanes = key.lanes
    if key.element.is_float and name in _FLOAT_REDUCTIONS and lanes & (lanes - 1) == 0:
        return (_by_halves(e, key, piece, *_FLOAT_REDUCTIONS[name]),)
    if not key.element.is_float and name in _INTEGER_REDUCTIONS:
        function = _INTEGER_REDUCTIONS[_ON_BOOLS.get(name, name) if key.element is BOOL else name]
        return (e.call(key.element.register, f"llvm.vector.reduce.{function}.{key.suffix}", (key.text, piece)),)
    if lanes == 1:
        return tuple([e.lane(block, piece, 0) for block, piece in zip(blocks, group, strict=True)])
    if name in _PAIRS:
        return _first_extremum(e, _PAIRS[name], blocks, group)
    if name in _FLOAT_EXTREMA:
        return (_float_extremum(e, key, piece, _FLOAT_EXTREMA[name]),)
    half = 1 << (lanes - 1).bit_length() - 1
    low, high = _part(e, blocks, group, 0, half), _part(e, blocks, group, half, lanes)
    first, second = (
        _lanes_combined(e, name, [block_of(block.element, (size,)) for block in blocks], part)
        for size, part in ((half, low), (lanes - half, high))
    )
    return combine(e, name, [block_of(block.element, ()) for block in blocks], first, second)


def _float_extremum(e: Emitter, block: Block, piece: str, name: str) -> str:
    """The greatest or least lane, NaN if one is: `nnan` spares a check at each step, and what it gives is not taken
    where it does not hold."""
    scalar, function = block_of(block.element, ()), f"llvm.vector.reduce.{name}.{block.suffix}"
    e.module.declare_intrinsic(scalar.text, function, [(block.text, piece)])
    found = e.value(f"call nnan {scalar.text} @{function}({block.text} {piece})")
    return choose(e, scalar, _any_nan(e, block, piece), scalar.constant(nan), found)


def _any_nan(e: Emitter, block: Block, piece: str) -> str:
    return e.any_lane(compare(e, block, "uno", piece, piece), block.lanes)


def _first_extremum(e: Emitter, name: str, blocks: list[Block], group: Group) -> Group:
    """The extremal key, and the least index among the lanes that hold it; NaN is the extremal key if there is one."""
    (key, indices), (piece, numbers) = blocks, group
    (best,) = _lanes_combined(e, name, [key], (piece,))
    hits = compare(e, key, "oeq" if key.element.is_float else "eq", piece, e.splat(key, best))
    if key.element.is_float:
        any_nan, nans, mask = _any_nan(e, key, piece), compare(e, key, "uno", piece, piece), key.mask.text
        hits = e.value(f"select i1 {any_nan}, {mask} {nans}, {mask} {hits}")
    candidates = choose(e, indices, hits, numbers, indices.constant(last_index(IntegerType(indices.element.bits))))
    return best, *_lanes_combined(e, "min", [indices], (candidates,))


def _by_halves(e: Emitter, block: Block, piece: str, name: str, neutral: float) -> str:
    """LLVM's float reduction, which `reassoc` allows to go by halves, always the same ones."""
    scalar, function = block.element.register, f"llvm.vector.reduce.{name}.{block.suffix}"
    start = constant_text(block.element, neutral)
    e.module.declare_intrinsic(scalar, function, [(scalar, start), (block.text, piece)])
    return e.value(f"call reassoc {scalar} @{function}({scalar} {start}, {block.text} {piece})")


def _part(e: Emitter, blocks: list[Block], group: Group, start: int, stop: int) -> Group:
    return tuple(
        [
            e.part(block, piece, start, block_of(block.element, (stop - start,)))
            for block, piece in zip(blocks, group, strict=True)
        ]
    )


_INTEGER_REDUCTIONS = {
    "add": "add", "mul": "mul", "max": "smax", "min": "smin", "maxu": "umax", "minu": "umin", "and": "and",
    "or": "or", "xor": "xor",
}  # fmt: skip

_FLOAT_REDUCTIONS = {"add": ("fadd", -0.0), "mul": ("fmul", 1.0)}
"""LLVM's name and neutral element."""

_FLOAT_EXTREMA = {"max": "fmax", "maxu": "fmax", "min": "fmin", "minu": "fmin"}

_PAIRS = {"argmax": "max", "argmin": "min"}

REDUCE: Table = {tile.ReduceOp: _emit_reduce}

"""Operations that make or rearrange whole blocks: indices, lane numbers, broadcasts, transposes, random bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...ir import tile
from .blocks import ALWAYS, INT32, NEVER, Block, Pieces, block_of
from .convert import convert
from .emitter import Emitter, Table

# -- lane numbers, broadcasts, transposes ------------------------------------------------------------


def _emit_index(e: Emitter, op: tile.IndexOp) -> None:
    indices = e.scalars(op.indices)
    name = e.expressions.emit(op.access.result, indices)
    if name.startswith("%") and e.expressions.is_nonnegative(op.access.result, indices):
        e.expressions.nonnegative.add(name)
    e.values[op.result] = (name,)


def _emit_iota(e: Emitter, op: tile.IotaOp) -> None:
    block, dimension = e.block(op.result.type), op.dimension.value.data
    if dimension == len(block.shape) - 1:
        e.values[op.result] = (e.lane_numbers(block.piece),) * block.rows
    else:
        inner = prod(block.shape[dimension + 1 : -1])
        numbers = [row // inner % block.shape[dimension] for row in range(block.rows)]
        e.values[op.result] = tuple([block.constant(number) for number in numbers])


def _emit_broadcast(e: Emitter, op: tile.BroadcastOp) -> None:
    source, target = e.block(op.operand.type), e.block(op.result.type)
    pieces = e.values[op.operand]
    if not source.shape:
        e.values[op.result] = (e.splat(target.piece, e.scalar(op.operand)),) * target.rows
        return
    dims, last = op.dim_list, len(target.shape) - 1
    along_lanes = dims[-1] == last
    if not along_lanes:  # the operand's lanes become rows
        pieces = tuple([lane for piece in pieces for lane in _lanes(e, source.piece, piece)])
    rows = [pieces[_source_row(row, dims, source, target)] for row in range(target.rows)]
    e.values[op.result] = tuple(rows if along_lanes else [e.splat(target.piece, row) for row in rows])


def _source_row(row: int, dims: Sequence[int], source: Block, target: Block) -> int:
    """The row of the operand, counting its lanes as rows if they become rows, that a row of the result repeats."""
    kept = [(dim, size) for dim, size in zip(dims, source.shape, strict=True) if dim != len(target.shape) - 1]
    places = [row // prod(target.shape[dim + 1 : -1]) % size for dim, size in kept]
    return sum(place * prod(size for _, size in kept[k + 1 :]) for k, place in enumerate(places))


def _lanes(e: Emitter, block: Block, piece: str) -> list[str]:
    if piece in ALWAYS or piece in NEVER:
        return ["true" if piece in ALWAYS else "false"] * block.lanes
    return [e.lane(block, piece, lane) for lane in range(block.lanes)]


def _emit_transpose(e: Emitter, op: tile.TransposeOp) -> None:
    e.values[op.result] = transposed(e, e.block(op.operand.type), e.values[op.operand])


def transposed(e: Emitter, block: Block, pieces: Pieces) -> Pieces:
    """The rows of the transposed block. Interleaving row k with row k + n/2 rotates the bits of all positions by
    one; after log2 n stages rows and columns have changed places."""
    rows, columns = block.shape
    target = block_of(block.element, (columns, rows))
    first, *others = pieces
    if first.startswith("splat") and set(others) <= {first}:
        return (first,) * columns
    if rows & (rows - 1) or columns & (columns - 1) or columns == 1:
        lanes = [_lanes(e, block.piece, piece) for piece in pieces]
        return tuple([e.assemble(target.piece, column) for column in zip(*lanes, strict=True)])
    half = rows // 2
    for _ in range(rows.bit_length() - 1):
        pairs = [_interleaved(e, block.piece, pieces[row], pieces[row + half]) for row in range(half)]
        pieces = tuple([piece for pair in pairs for piece in pair])
    return _regrouped(e, block.piece, pieces, rows)


def _interleaved(e: Emitter, block: Block, first: str, second: str) -> tuple[str, str]:
    lanes = [lane for pair in range(block.lanes) for lane in (pair, block.lanes + pair)]
    low, high = lanes[: block.lanes], lanes[block.lanes :]
    return e.shuffle(block, first, second, low), e.shuffle(block, first, second, high)


def _regrouped(e: Emitter, block: Block, pieces: Pieces, lanes: int) -> Pieces:
    """The same elements in order, in pieces of another power of two of lanes."""
    while block.lanes < lanes:
        whole = range(2 * block.lanes)
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = tuple([e.shuffle(block, first, second, whole) for first, second in pairs])
        block = block_of(block.element, (2 * block.lanes,))
    if block.lanes == lanes:
        return pieces
    part = block_of(block.element, (lanes,))
    return tuple([e.part(block, piece, at, part) for piece in pieces for at in range(0, block.lanes, lanes)])


# -- random bits -------------------------------------------------------------------------------------

PHILOX_ROUNDS = 10
"""As the authors recommend."""

PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
"""Of the first and the third word."""

PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
"""Constants of Philox4x32: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011."""

_WORD = 0xFFFFFFFF


def _emit_philox(e: Emitter, op: tile.PhiloxOp) -> None:
    block = e.block(op.counter.type).piece
    seed = e.scalar(op.seed)
    keys = [
        e.pure(f"and i64 {seed}, {_WORD}", seed),
        e.pure(f"lshr i64 {seed}, 32", seed),
    ]
    schedule = [
        tuple([_round_key(e, block, key, number, step) for key, step in zip(keys, PHILOX_KEY_STEPS, strict=True)])
        for number in range(PHILOX_ROUNDS)
    ]
    e.values[op.bits] = tuple(
        [_philox(e, block, counter, op.stream.value.data, schedule) for counter in e.values[op.counter]]
    )


def _round_key(e: Emitter, block: Block, key: str, number: int, step: int) -> str:
    """The key of a round as a block of words: the key plus the round number times its step."""
    moved = e.pure(f"add i64 {key}, {number * step & _WORD}", key) if number else key
    return e.splat(block, e.pure(f"and i64 {moved}, {_WORD}", moved))


def _philox(e: Emitter, block: Block, counter: str, stream: int, schedule: Sequence[tuple[str, ...]]) -> str:
    """The first word. Words lie in the low halves of i64 lanes, where x86 multiplies them as they are."""
    words = [
        _low_word(e, block, counter),
        e.value(f"lshr {block.text} {counter}, {block.constant(32)}"),
        block.constant(stream & _WORD),
        block.constant(stream >> 32 & _WORD),
    ]
    for keys in schedule:
        first, second = (
            e.value(f"mul {block.text} {word}, {block.constant(factor)}")
            for word, factor in zip((words[0], words[2]), PHILOX_FACTORS, strict=True)
        )
        words = [
            _mixed_high(e, block, second, words[1], keys[0]),
            _low_word(e, block, second),
            _mixed_high(e, block, first, words[3], keys[1]),
            _low_word(e, block, first),
        ]
    return convert(e, "trunc", block, block.of(INT32), words[0])


def _low_word(e: Emitter, block: Block, piece: str) -> str:
    return e.value(f"and {block.text} {piece}, {block.constant(_WORD)}")


def _mixed_high(e: Emitter, block: Block, product: str, word: str, key: str) -> str:
    high = e.value(f"lshr {block.text} {product}, {block.constant(32)}")
    return e.value(f"xor {block.text} {e.value(f'xor {block.text} {high}, {word}')}, {key}")


BLOCKS: Table = {
    tile.IndexOp: _emit_index,
    tile.IotaOp: _emit_iota,
    tile.BroadcastOp: _emit_broadcast,
    tile.TransposeOp: _emit_transpose,
    tile.PhiloxOp: _emit_philox,
}

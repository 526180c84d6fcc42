"""Memory operations: accesses by the strides of lanes, gathers, scatters, scratch, and error records."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...ir import tile
from ...ir.errors import BackendError
from ...ir.locations import location_text
from .blocks import ALWAYS, INT64, Block, Pieces, block_of, element_of
from .emit_arith import both, negate_mask
from .emit_blocks import transposed
from .emitter import Emitter, Table, unsupported
from .lanes import Lanes, guarded, load, store

CACHE_LINE = 64
"""Bytes that one hint fetches."""

SCRATCH_BYTES = 256 << 10
"""The most memory of one scratch buffer; it lies on a thread's stack."""


# -- blocks ------------------------------------------------------------------------------------------


def _masks(group: list[Pieces], block: Block) -> Pieces:
    """The given mask, or the one that includes every lane."""
    return next(iter(group), (block.mask.constant(True),) * block.rows)


def _others(group: list[Pieces], block: Block) -> Pieces:
    return next(iter(group), (block.constant(0),) * block.rows)


def _rows(e: Emitter, block: Block, base: str, strides: Sequence[str]) -> list[Lanes]:
    """The pieces of a block, each at the address of the one before it plus a stride."""
    addresses = [base]
    for size, stride in zip(block.shape[:-1], strides, strict=False):
        spread = []
        for address in addresses:
            for _ in range(size):
                spread.append(address)
                address = e.offset(block.element.memory, address, stride)
        addresses = spread
    return [Lanes(block.piece, address, strides[-1] if strides else "") for address in addresses]


def _base(
    e: Emitter, op: tile.LoadOp | tile.StoreOp, block: Block, buffer: str, indices: list[Pieces]
) -> tuple[str, list[str]]:
    """The address of lane (0, 0, …), and the strides."""
    address = e.expressions.address(block.element, buffer, op.offset, [piece for (piece,) in indices])
    return address, [e.expressions.emit(stride) for stride in op.lane_strides]


def _is_column_major(block: Block, strides: Sequence[str]) -> bool:
    """Whether columns are contiguous and rows are not, so that the transposed block is accessed."""
    match strides:
        case "1", lane:
            return lane not in ("0", "1")
        case _:
            return False


def _emit_load(e: Emitter, op: tile.LoadOp) -> None:
    result = SSAValue.get(op)
    block, (((buffer,),), indices, mask, other) = e.block(result.type), e.operand_groups(op)
    address, strides = _base(e, op, block, buffer, indices)
    masks, others = _masks(mask, block), _others(other, block)
    if not _is_column_major(block, strides):
        e.values[result] = _load_rows(e, block, address, strides, masks, others)
        return
    flipped = block_of(block.element, block.shape[::-1])
    masks, others = transposed(e, block.mask, masks), transposed(e, block, others)
    columns = _load_rows(e, flipped, address, strides[::-1], masks, others)
    e.values[result] = transposed(e, flipped, columns)


def _load_rows(e: Emitter, block: Block, address: str, strides: Sequence[str], masks: Pieces, others: Pieces) -> Pieces:
    rows = zip(_rows(e, block, address, strides), masks, others, strict=True)
    return tuple([load(e, *row) for row in rows])


def _emit_store(e: Emitter, op: tile.StoreOp) -> None:
    block, ((pieces,), ((buffer,),), indices, mask) = e.block(op.value.type), e.operand_groups(op)
    address, strides = _base(e, op, block, buffer, indices)
    masks = _masks(mask, block)
    if _is_column_major(block, strides):
        pieces, masks = transposed(e, block, pieces), transposed(e, block.mask, masks)
        block, strides = block_of(block.element, block.shape[::-1]), strides[::-1]
    for row in zip(_rows(e, block, address, strides), masks, pieces, strict=True):
        store(e, *row, combiner=_combiner(op))


def _combiner(op: tile.StoreOp | tile.ScatterOp) -> str | None:
    return None if op.combiner is None else op.combiner.data


def _scattered(e: Emitter, block: Block, buffer: str, offsets: Pieces) -> list[Lanes]:
    if not block.lanes:
        return [Lanes(block, e.offset(block.element.memory, buffer, offset)) for offset in offsets]
    return [Lanes(block.piece, buffer, offsets=offset) for offset in offsets]


def _emit_gather(e: Emitter, op: tile.GatherOp) -> None:
    block, (((buffer,),), (offsets,), mask, other) = e.block(op.result.type), e.operand_groups(op)
    rows = zip(_scattered(e, block, buffer, offsets), _masks(mask, block), _others(other, block), strict=True)
    e.values[op.result] = tuple([load(e, *row) for row in rows])


def _emit_scatter(e: Emitter, op: tile.ScatterOp) -> None:
    block, ((pieces,), ((buffer,),), (offsets,), mask) = e.block(op.value.type), e.operand_groups(op)
    rows = zip(_scattered(e, block, buffer, offsets), _masks(mask, block), pieces, strict=True)
    for row in rows:
        store(e, *row, combiner=_combiner(op))


def _emit_prefetch(e: Emitter, op: tile.PrefetchOp) -> None:
    """One hint per cache line; none for an incomplete block."""
    element, (((buffer,),), indices, mask) = element_of(op.buffer.type), e.operand_groups(op)
    if any(not set(pieces) <= set(ALWAYS) for pieces in mask):
        return
    address = e.expressions.address(element, buffer, op.offset, [piece for (piece,) in indices])
    for lane in range(0, op.lanes.value.data, CACHE_LINE // element.bytes):
        place = e.offset(element.memory, address, str(lane))
        kind, locality = "0" if op.write is None else "1", "3" if op.level is None else "2"
        e.call_effect("llvm.prefetch.p0", ("ptr", place), ("i32", kind), ("i32", locality), ("i32", "1"))


def _emit_scratch(e: Emitter, op: tile.ScratchOp) -> None:
    element, size = e.block(op.buffer.type.element_type).element, op.size.value.data
    if size * element.bytes > SCRATCH_BYTES:
        got = f"{size * element.bytes} bytes"
        raise BackendError(op.name, expected=f"at most {SCRATCH_BYTES} bytes", got=got, location=location_text(op))
    e.values[op.buffer] = (e.local(op, element.memory, size),)


# -- errors ------------------------------------------------------------------------------------------

_RECORD = """\
; Records an error and its value in the slot of the call, unless it holds one already.
define internal void @stepwell.record(ptr %slot, i64 %code, i64 %value) cold noinline nounwind {
  %found = cmpxchg ptr %slot, i64 0, i64 %code seq_cst seq_cst
  %first = extractvalue { i64, i1 } %found, 1
  br i1 %first, label %store, label %done
store:
  %place = getelementptr i64, ptr %slot, i64 1
  store i64 %value, ptr %place, align 8
  br label %done
done:
  ret void
}"""


def _emit_assert(e: Emitter, op: tile.AssertOp) -> None:
    block, ((conditions,), (values,), mask) = e.block(op.value.type), e.operand_groups(op)
    if block.element.is_float:
        raise unsupported(op, "an integer value")
    e.module.define("stepwell.record", _RECORD)
    for row in zip(conditions, values, _masks(mask, block), strict=True):
        _check(e, block.piece, op.code.value.data, *row)


def _check(e: Emitter, block: Block, code: int, condition: str, value: str, mask: str) -> None:
    failed = both(e, block.mask, negate_mask(e, block.mask, condition), mask)
    guarded(e, e.any_lane(failed, block.lanes), lambda: _record(e, block, code, failed, value))


def _record(e: Emitter, block: Block, code: int, failed: str, value: str) -> None:
    """Records the value of the first lane that failed."""
    if block.lanes:
        bits = f"i{block.lanes}"
        packed = e.value(f"bitcast {block.mask.text} {failed} to {bits}")
        lane = e.call(bits, f"llvm.cttz.{bits}", (bits, packed), ("i1", "true"))
        value = e.value(f"extractelement {block.text} {value}, {bits} {lane}")
    if block.element is not INT64:
        value = e.value(f"sext {block.element.register} {value} to i64")
    e.effect(f"call void @stepwell.record(ptr {e.error}, i64 {code}, i64 {value})")


MEMORY: Table = {
    tile.LoadOp: _emit_load,
    tile.StoreOp: _emit_store,
    tile.GatherOp: _emit_gather,
    tile.ScatterOp: _emit_scatter,
    tile.PrefetchOp: _emit_prefetch,
    tile.ScratchOp: _emit_scratch,
    tile.AssertOp: _emit_assert,
}

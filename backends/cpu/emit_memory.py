"""Memory operations: accesses by the strides of lanes, gathers, scatters, scratch, and error records.

A mask constant that includes every lane makes plain vector accesses. An excluded lane is never accessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...ir import tile
from ...ir.errors import BackendError
from ...ir.locations import location_text
from .blocks import ALWAYS, BOOL, INT64, Block, Pieces, block_of
from .convert import from_memory, to_memory
from .emit_arith import both, choose, negate_mask
from .emit_blocks import transposed
from .emit_reduce import combine
from .emitter import Emitter, Table, unsupported

SCRATCH_BYTES = 256 << 10
"""The most memory of one scratch buffer; it lies on a thread's stack."""


# -- one piece ---------------------------------------------------------------------------------------


class Lanes(NamedTuple):
    """Where the lanes of one piece lie: at `address + lane * stride`, or at `address + offsets[lane]`."""

    block: Block
    address: str
    stride: str = ""
    offsets: str = ""

    @property
    def pointer(self) -> tuple[str, str]:
        return f"ptr align {self.block.element.bytes}", self.address

    def pointers(self, e: Emitter) -> tuple[str, str]:
        """The addresses of all lanes as a vector."""
        block = self.block
        text = f"getelementptr {block.element.memory}, ptr {self.address}, <{block.lanes} x i64> {self.lane_offsets(e)}"
        return f"<{block.lanes} x ptr> align {block.element.bytes}", e.value(text)

    def lane_offsets(self, e: Emitter) -> str:
        if self.offsets:
            return self.offsets
        numbers = block_of(INT64, (self.block.lanes,))
        lanes, steps = e.lane_numbers(numbers), e.splat(numbers, self.stride)
        return e.pure(f"mul {numbers.text} {lanes}, {steps}", lanes, steps)


def _load(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
    """The lanes as they lie in registers."""
    block = lanes.block
    return from_memory(e, block, _load_stored(e, lanes, mask, to_memory(e, block, other)))


def _load_stored(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
    block = lanes.block.stored
    if not block.lanes:
        return _load_scalar(e, lanes, mask, other)
    if lanes.stride == "0":
        found = _load_scalar(e, lanes, mask if mask in ALWAYS else e.any_lane(mask, block.lanes), other)
        return choose(e, block, mask, e.splat(block, found), other)
    if lanes.stride == "1":
        if mask in ALWAYS:
            return e.value(f"load {block.text}, ptr {lanes.address}, align {block.element.bytes}")
        name, pointer = f"llvm.masked.load.{block.suffix}.p0", lanes.pointer
    else:
        name, pointer = f"llvm.masked.gather.{block.suffix}.v{block.lanes}p0", lanes.pointers(e)
    return e.call(block.text, name, pointer, (block.mask.text, mask), (block.text, other))


def _load_scalar(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
    """One element, where the mask holds."""
    element = lanes.block.element
    load = f"load {element.memory}, ptr {lanes.address}, align {element.bytes}"
    if mask in ALWAYS:
        return e.value(load)
    scalar = other if not lanes.block.lanes else block_of(element, ()).stored.constant(0)
    return e.conditional(mask, [(element.memory, scalar)], lambda: [e.value(load)])[0]


def _store(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> None:
    """Stores the lanes that the mask includes; lanes that may meet in one place act one by one."""
    block = lanes.block
    if not block.lanes:
        _guarded(e, mask, lambda: _store_scalar(e, block, lanes.address, value, combiner))
    elif lanes.stride == "0" or (lanes.offsets and combiner) or not lanes.stride == "1" and block.element.bits < 32:
        _store_in_order(e, lanes, mask, value, combiner)
    else:
        _store_lanes(e, lanes, mask, _combined(e, lanes, mask, value, combiner))


def _combined(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> str:
    if combiner is None:
        return value
    found = _load(e, lanes, mask, lanes.block.constant(0))
    return combine(e, combiner, lanes.block, (found,), (value,))[0]


def _store_lanes(e: Emitter, lanes: Lanes, mask: str, value: str) -> None:
    block = lanes.block.stored
    stored = to_memory(e, lanes.block, value)
    if lanes.stride == "1" and mask in ALWAYS:
        e.effect(f"store {block.text} {stored}, ptr {lanes.address}, align {block.element.bytes}")
        return
    if lanes.stride == "1":
        name, pointer = f"llvm.masked.store.{block.suffix}.p0", lanes.pointer
    else:
        name, pointer = f"llvm.masked.scatter.{block.suffix}.v{block.lanes}p0", lanes.pointers(e)
    e.call_effect(name, (block.text, stored), pointer, (block.mask.text, mask))


def _store_scalar(e: Emitter, block: Block, address: str, value: str, combiner: str | None) -> None:
    combined = _combined(e, Lanes(block, address), "true", value, combiner)
    text = f"{block.stored.text} {to_memory(e, block, combined)}"
    e.effect(f"store {text}, ptr {address}, align {block.element.bytes}")


def _store_in_order(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> None:
    """A loop over lanes, which first go to the stack."""
    block, numbers = lanes.block, block_of(INT64, (lanes.block.lanes,))
    scalar = block_of(block.element, ())
    values, offsets = _spilled(e, block, value), _spilled(e, numbers, lanes.lane_offsets(e))
    masks = "" if mask in ALWAYS else _spilled(e, block.mask, mask)

    def store(lane: str) -> None:
        offset = _load(e, Lanes(block_of(INT64, ()), e.offset("i64", offsets, lane)), "true", "0")
        element = _load(e, Lanes(scalar, e.offset(scalar.element.memory, values, lane)), "true", "0")
        _store_scalar(e, scalar, e.offset(scalar.element.memory, lanes.address, offset), element, combiner)

    def body(lane: str, _: Sequence[str]) -> Sequence[str]:
        included = _load(e, Lanes(block_of(BOOL, ()), e.offset("i8", masks, lane)), "true", "false") if masks else "true"
        _guarded(e, included, lambda: store(lane))
        return ()

    e.loop("0", str(block.lanes), 1, (), body, entered=True)


def _spilled(e: Emitter, block: Block, piece: str) -> str:
    """The address of an array that holds the lanes; one array per type serves all."""
    address = e.local(block.suffix, block.element.memory, block.lanes)
    _store_lanes(e, Lanes(block, address, "1"), "true", piece)
    return address


def _guarded(e: Emitter, mask: str, effect: Callable[[], None]) -> None:
    """Runs `effect` where a scalar mask holds."""

    def body() -> Sequence[str]:
        effect()
        return ()

    if mask in ALWAYS:
        effect()
    else:
        e.conditional(mask, (), body)


# -- blocks ------------------------------------------------------------------------------------------


def _masks(group: list[Pieces], block: Block) -> Pieces:
    """The given mask, or the one that includes every lane."""
    return group[0] if group else (block.mask.constant(1),) * block.rows


def _others(group: list[Pieces], block: Block) -> Pieces:
    return group[0] if group else (block.constant(0),) * block.rows


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
    e: Emitter, op: tile.LoadOp | tile.StoreOp, block: Block, buffer: Pieces, indices: list[Pieces]
) -> tuple[str, list[str]]:
    """The address of lane (0, 0, …), and the strides."""
    address = e.expressions.address(block.element, buffer[0], op.offset, [piece for (piece,) in indices])
    return address, [e.expressions.emit(stride) for stride in op.lane_strides]


def _is_column_major(block: Block, strides: Sequence[str], masks: Pieces) -> bool:
    """Whether columns are contiguous and rows are not, so that the transposed block is accessed."""
    return (
        len(strides) == 2
        and strides[0] == "1"
        and strides[1] not in ("0", "1")
        and all(mask in ALWAYS for mask in masks)
        and all(size & (size - 1) == 0 for size in block.shape)
    )


def _emit_load(e: Emitter, op: tile.LoadOp) -> None:
    result = op.results[0]
    block, ((buffer,), indices, mask, other) = e.block(result.type), e.operand_groups(op)
    address, strides = _base(e, op, block, buffer, indices)
    masks, others = _masks(mask, block), _others(other, block)
    if _is_column_major(block, strides, masks):
        flipped = block_of(block.element, block.shape[::-1])
        columns = _rows(e, flipped, address, strides[::-1])
        pieces = tuple([_load(e, lanes, flipped.mask.constant(1), flipped.constant(0)) for lanes in columns])
        e.values[result] = transposed(e, flipped, pieces)
        return
    rows = zip(_rows(e, block, address, strides), masks, others, strict=True)
    e.values[result] = tuple([_load(e, *row) for row in rows])


def _emit_store(e: Emitter, op: tile.StoreOp) -> None:
    block, ((pieces,), (buffer,), indices, mask) = e.block(op.operands[0].type), e.operand_groups(op)
    address, strides = _base(e, op, block, buffer, indices)
    masks = _masks(mask, block)
    if _is_column_major(block, strides, masks):
        pieces = transposed(e, block, pieces)
        block, strides = block_of(block.element, block.shape[::-1]), strides[::-1]
        masks = (block.mask.constant(1),) * block.rows
    for row in zip(_rows(e, block, address, strides), masks, pieces, strict=True):
        _store(e, *row, combiner=_combiner(op))


def _combiner(op: tile.StoreOp | tile.ScatterOp) -> str | None:
    return None if op.combiner is None else op.combiner.data


def _scattered(e: Emitter, block: Block, buffer: str, offsets: Pieces) -> list[Lanes]:
    if not block.lanes:
        return [Lanes(block, e.offset(block.element.memory, buffer, offset)) for offset in offsets]
    return [Lanes(block.piece, buffer, offsets=offset) for offset in offsets]


def _emit_gather(e: Emitter, op: tile.GatherOp) -> None:
    block, ((buffer,), (offsets,), mask, other) = e.block(op.result.type), e.operand_groups(op)
    rows = zip(_scattered(e, block, buffer[0], offsets), _masks(mask, block), _others(other, block), strict=True)
    e.values[op.result] = tuple([_load(e, *row) for row in rows])


def _emit_scatter(e: Emitter, op: tile.ScatterOp) -> None:
    block, ((pieces,), (buffer,), (offsets,), mask) = e.block(op.value.type), e.operand_groups(op)
    rows = zip(_scattered(e, block, buffer[0], offsets), _masks(mask, block), pieces, strict=True)
    for row in rows:
        _store(e, *row, combiner=_combiner(op))


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
    for condition, value, mask in zip(conditions, values, _masks(mask, block), strict=True):
        if condition not in ALWAYS:
            failed = both(e, block.mask, negate_mask(e, block.mask, condition), mask)
            any_failed = e.any_lane(failed, block.lanes)
            _guarded(e, any_failed, lambda: _record(e, op, block.piece, failed, value))


def _record(e: Emitter, op: tile.AssertOp, block: Block, failed: str, value: str) -> None:
    """Records the value of the first lane that failed."""
    if block.lanes:
        bits = f"i{block.lanes}"
        packed = e.value(f"bitcast {block.mask.text} {failed} to {bits}")
        lane = e.call(bits, f"llvm.cttz.{bits}", (bits, packed), ("i1", "true"))
        value = e.value(f"extractelement {block.text} {value}, {bits} {lane}")
    if block.element is not INT64:
        value = e.value(f"sext {block.element.register} {value} to i64")
    e.effect(f"call void @stepwell.record(ptr {e.error}, i64 {op.code.value.data}, i64 {value})")


MEMORY: Table = {
    tile.LoadOp: _emit_load,
    tile.StoreOp: _emit_store,
    tile.GatherOp: _emit_gather,
    tile.ScatterOp: _emit_scatter,
    tile.ScratchOp: _emit_scratch,
    tile.AssertOp: _emit_assert,
}

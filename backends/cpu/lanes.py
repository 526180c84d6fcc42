"""Loads and stores of one piece, by how its lanes lie in memory.

A mask constant that includes every lane makes plain vector accesses. An excluded lane is never accessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .blocks import ALWAYS, BOOL, INT32, INT64, Block, block_of
from .convert import from_memory, to_memory
from .emit_arith import choose
from .emit_reduce import combine
from .emitter import Emitter


class Lanes(NamedTuple):
    """Where the lanes of one piece lie: at `address + lane * stride`, or at `address + offsets[lane]`."""

    block: Block
    address: str
    stride: str = ""
    offsets: str = ""

    @property
    def dense(self) -> bool:
        """Whether the lanes are neighbours, in either direction."""
        return self.stride in ("1", "-1")

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


def load(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
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
    if lanes.stride == "-1":
        ascending = _load_stored(e, _ascending(e, lanes), _reversed(e, block.mask, mask), _reversed(e, block, other))
        return _reversed(e, block, ascending)
    if lanes.stride == "1":
        if mask in ALWAYS:
            return e.value(f"load {block.text}, ptr {lanes.address}, align {block.element.bytes}")
        name, pointer = f"llvm.masked.load.{block.suffix}.p0", lanes.pointer
    elif block.element.bits < INT32.bits and mask not in ALWAYS:
        return _load_one_by_one(e, lanes, mask, other)
    else:
        name, pointer = f"llvm.masked.gather.{block.suffix}.v{block.lanes}p0", lanes.pointers(e)
    return e.call(block.text, name, pointer, (block.mask.text, mask), (block.text, other))


def _ascending(e: Emitter, lanes: Lanes) -> Lanes:
    """The same places, lowest first, of lanes that descend."""
    lowest = e.offset(lanes.block.element.memory, lanes.address, str(1 - lanes.block.lanes))
    return Lanes(lanes.block, lowest, "1")


def _reversed(e: Emitter, block: Block, value: str) -> str:
    """The lanes in the opposite order; a constant that repeats one number is the same in both."""
    return e.shuffle(block, value, "poison", range(block.lanes)[::-1]) if value.startswith(("%", "<")) else value


def _load_scalar(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
    """One element, where the mask holds."""
    element = lanes.block.element
    load = f"load {element.memory}, ptr {lanes.address}, align {element.bytes}"
    if mask in ALWAYS:
        return e.value(load)
    scalar = other if not lanes.block.lanes else block_of(element, ()).stored.constant(0)
    (value,) = e.conditional(mask, [(element.memory, scalar)], lambda: [e.value(load)])
    return value


def store(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> None:
    """Stores the lanes that the mask includes; lanes that may meet in one place act one by one."""
    block = lanes.block
    if not block.lanes:
        guarded(e, mask, lambda: _store_scalar(e, block, lanes.address, value, combiner))
    elif lanes.stride == "0" or (lanes.offsets and combiner) or (not lanes.dense and block.element.bits < INT32.bits):
        _store_one_by_one(e, lanes, mask, value, combiner)
    else:
        _store_lanes(e, lanes, mask, _combined(e, lanes, mask, value, combiner))


def _combined(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> str:
    if combiner is None:
        return value
    found = load(e, lanes, mask, lanes.block.constant(0))
    (result,) = combine(e, combiner, [lanes.block], (found,), (value,))
    return result


def _store_lanes(e: Emitter, lanes: Lanes, mask: str, value: str) -> None:
    block = lanes.block.stored
    stored = to_memory(e, lanes.block, value)
    if lanes.stride == "-1":
        lanes, stored, mask = _ascending(e, lanes), _reversed(e, block, stored), _reversed(e, block.mask, mask)
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


# -- lane by lane ------------------------------------------------------------------------------------


def _store_one_by_one(e: Emitter, lanes: Lanes, mask: str, value: str, combiner: str | None) -> None:
    scalar, values = block_of(lanes.block.element, ()), _spilled(e, "values", lanes.block, value)

    def act(address: str, lane: str) -> None:
        _store_scalar(e, scalar, address, _element(e, values, scalar, lane), combiner)

    _one_by_one(e, lanes, mask, act)


def _load_one_by_one(e: Emitter, lanes: Lanes, mask: str, other: str) -> str:
    """A masked gather of narrow elements, which LLVM would make a branch and an insertion per lane."""
    block = lanes.block.stored
    scalar, found = block_of(block.element, ()), _spilled(e, "found", block, other)

    def act(address: str, lane: str) -> None:
        element = load(e, Lanes(scalar, address), "true", "poison")
        _store_scalar(e, scalar, e.offset(scalar.element.memory, found, lane), element, None)

    _one_by_one(e, lanes, mask, act)
    return load(e, Lanes(block, found, "1"), block.mask.constant(True), other)


def _one_by_one(e: Emitter, lanes: Lanes, mask: str, act: Callable[[str, str], None]) -> None:
    """A loop that acts on the address and the number of every lane that the mask includes, in ascending order."""
    element, numbers = lanes.block.element.memory, block_of(INT64, (lanes.block.lanes,))
    offsets = _spilled(e, "offsets", numbers, lanes.lane_offsets(e))
    masks = "" if mask in ALWAYS else _spilled(e, "mask", lanes.block.mask, mask)

    def act_on(lane: str) -> None:
        act(e.offset(element, lanes.address, _element(e, offsets, block_of(INT64, ()), lane)), lane)

    def body(lane: str, _: Sequence[str]) -> Sequence[str]:
        guarded(e, _element(e, masks, block_of(BOOL, ()), lane) if masks else "true", lambda: act_on(lane))
        return ()

    e.loop("0", str(lanes.block.lanes), 1, (), body, entered=True)


def _spilled(e: Emitter, role: str, block: Block, piece: str) -> str:
    """The address of an array that holds the lanes; one array per role and type serves all."""
    address = e.local((role, block.suffix), block.element.memory, block.lanes)
    _store_lanes(e, Lanes(block, address, "1"), block.mask.constant(True), piece)
    return address


def _element(e: Emitter, array: str, scalar: Block, lane: str) -> str:
    return load(e, Lanes(scalar, e.offset(scalar.element.memory, array, lane)), "true", scalar.constant(0))


def guarded(e: Emitter, mask: str, effect: Callable[[], None]) -> None:
    """Runs `effect` where a scalar mask holds."""

    def body() -> Sequence[str]:
        effect()
        return ()

    if mask in ALWAYS:
        effect()
    else:
        e.conditional(mask, (), body)

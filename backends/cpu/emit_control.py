"""Loops and the grid. A masked loop is emitted as a loop over whole blocks and one masked block for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...ir import tile
from ...ir.expr import ZERO, Expr, minimum, mod
from .blocks import BOOL, block_of
from .builder import Typed
from .emitter import Emitter, Table

MANY = 1 << 10
"""Iterations that a loop of unknown length is taken to have."""


def _emit_program_id(e: Emitter, op: tile.ProgramIdOp) -> None:
    e.values[op.result] = (e.program,)


def _emit_grid_size(e: Emitter, op: tile.GridSizeOp) -> None:
    e.values[op.result] = (e.grid,)


def _emit_for(e: Emitter, op: tile.ForOp) -> None:
    _Loop(e, op).emit()


class _Loop:
    """The emission of one `tile.for`; carried blocks are flat lists of pieces."""

    def __init__(self, e: Emitter, op: tile.ForOp) -> None:
        self.e = e
        self.op = op
        indices, inits = e.operand_groups(op)
        self.indices = [index for (index,) in indices]
        self.inits = [piece for pieces in inits for piece in pieces]
        self.low, self.high = op.bounds.results
        self.lanes = op.lanes
        self.block = op.block
        first = len(self.block.args) - len(inits)
        self.index, *masks = self.block.args[:first]
        self.mask = next(iter(masks), None)
        self.carried = self.block.args[first:]
        self.types = [e.block(value.type) for value in op.results]
        self.every = block_of(BOOL, (op.lanes,)).constant(True)

    def emit(self) -> None:
        extent = self.high - self.low
        rest = ZERO if self.mask is None or _is_empty(extent) else mod(extent, self.lanes)
        values = self.whole_blocks(extent - rest, self.inits)
        self.bind(self.op.results, self.incomplete_block(extent, rest, values) if rest.terms else values)

    def whole_blocks(self, extent: Expr, values: list[str]) -> list[str]:
        """Runs the body on blocks without a mask; what it carries."""
        e = self.e
        if _is_empty(extent):
            return values
        low = self.value(self.low)
        if extent.is_constant and extent.constant <= self.lanes:
            return self.body(low, self.every, values)
        with e.repeating(extent.constant // self.lanes if extent.is_constant else MANY):
            return e.loop(
                low,
                self.value(self.low + extent),
                self.lanes,
                self.typed(values),
                lambda index, carried: self.body(index, self.every, carried),
                entered=extent.is_constant,
            )

    def incomplete_block(self, extent: Expr, rest: Expr, values: list[str]) -> list[str]:
        """Runs the body on the last lanes, if there are any; what it carries."""
        e = self.e
        if not e.expressions.is_nonnegative(extent, self.indices):
            rest = minimum(rest, extent)
        index, remaining = self.value(self.high - rest), self.value(rest)

        def body() -> list[str]:
            with e.repeating(1):
                return self.body(index, e.first_lanes(self.lanes, remaining), values)

        if rest.is_constant:
            return body()
        return e.conditional(e.value(f"icmp sgt i64 {remaining}, 0"), self.typed(values), body)

    def value(self, expr: Expr) -> str:
        return self.e.expressions.emit(expr, self.indices)

    def body(self, index: str, mask: str, values: Sequence[str]) -> list[str]:
        """Emits the body for one index; the values that it yields."""
        e = self.e
        if index.startswith("%") and e.expressions.is_nonnegative(self.low, self.indices):
            e.expressions.nonnegative.add(index)
        e.values[self.index] = (index,)
        if self.mask is not None:
            e.values[self.mask] = (mask,)
        self.bind(self.carried, values)
        e.emit(self.block.ops)
        last = self.block.last_op
        assert last is not None
        return [piece for value in last.operands for piece in e.values[value]]

    def typed(self, values: Sequence[str]) -> list[Typed]:
        texts = [block.text for block in self.types for _ in range(block.rows)]
        return list(zip(texts, values, strict=True))

    def bind(self, targets: Sequence[SSAValue], values: Sequence[str]) -> None:
        """Deals the flat list of pieces out to the values they make up."""
        at = 0
        for target, block in zip(targets, self.types, strict=True):
            self.e.values[target] = tuple(values[at : at + block.rows])
            at += block.rows


def _is_empty(extent: Expr) -> bool:
    return extent.is_constant and extent.constant <= 0


def _emit_yield(e: Emitter, op: tile.YieldOp) -> None:
    """The loop takes the operands."""


CONTROL: Table = {
    tile.ForOp: _emit_for,
    tile.YieldOp: _emit_yield,
    tile.ProgramIdOp: _emit_program_id,
    tile.GridSizeOp: _emit_grid_size,
}

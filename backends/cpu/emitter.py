"""The state of emitting one kernel: the LLVM operands of its SSA values, and the table of what emits each operation."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue

from ...ir.errors import BackendError
from ...ir.expr import Interval
from ...ir.locations import location_text
from ...ir.target import Target
from .blocks import Block, Pieces, block_of_type
from .builder import Builder, Module
from .expressions import Expressions

OpEmitter: TypeAlias = Callable[["Emitter", Any], None]
"""Emits one operation and binds its results."""

Table: TypeAlias = Mapping[type[Operation], OpEmitter]


class Emitter(Builder):
    """Emits the operations of one function."""

    def __init__(
        self, module: Module, target: Target, table: Table, symbols: Mapping[str, str], ranges: Mapping[str, Interval]
    ) -> None:
        super().__init__(module, target)
        self.table = table
        self.values: dict[SSAValue, Pieces] = {}
        self.expressions = Expressions(self, symbols, ranges)
        self.program = self.grid = self.error = ""
        self.repeats = 1
        self._blocks: dict[int, Block] = {}
        self._location: Attribute = UNKNOWN_LOC
        self._line = ""

    @contextmanager
    def repeating(self, times: int) -> Iterator[None]:
        """Emits code that the loop around it repeats so often, which `repeats` tells the emitters of operations."""
        previous, self.repeats = self.repeats, times
        yield
        self.repeats = previous

    def block(self, type_: Attribute) -> Block:
        """How a type is spelled; by identity first, because attributes are slow to hash."""
        block = self._blocks.get(id(type_))
        if block is None:
            block = self._blocks[id(type_)] = block_of_type(type_)
        return block

    def scalar(self, value: SSAValue) -> str:
        (piece,) = self.values[value]
        return piece

    def scalars(self, values: Sequence[SSAValue]) -> list[str]:
        return [self.scalar(value) for value in values]

    def operand_groups(self, op: Operation) -> list[list[Pieces]]:
        """The operands of an op whose groups have sizes of their own, as its definition names the groups."""
        pieces = [self.values[operand] for operand in op.operands]
        groups, start = [], 0
        for size in _group_sizes(op.properties["operandSegmentSizes"]):
            groups.append(pieces[start : start + size])
            start += size
        return groups

    def emit(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            emit = self.table.get(type(op))
            if emit is None:
                raise unsupported(op, "an operation that the CPU has an emitter for")
            if op.location is not self._location:
                self._note_location(op)
            emit(self, op)

    def _note_location(self, op: Operation) -> None:
        """A comment with the user's source line, where it is another one than before."""
        self._location = op.location
        line = location_text(op)
        if line is not None and line != self._line:
            self._line = line
            self.comment(line)


def _group_sizes(attr: Attribute) -> tuple[int, ...]:
    assert isinstance(attr, DenseArrayBase)
    return _unpacked(attr.data.data)


@cache
def _unpacked(data: bytes) -> tuple[int, ...]:
    """i32 numbers; a handful of patterns serve all kernels, and unpacking them through xDSL is slow."""
    return tuple(array("i", data))


def unsupported(op: Operation, expected: str) -> BackendError:
    """The error for an operation that has no machine code."""
    types = ", ".join(str(value.type) for value in (*op.operands, *op.results))
    got = f"{op.name} on {types or 'nothing'}"
    return BackendError(op.name, expected=expected, got=got, location=location_text(op))

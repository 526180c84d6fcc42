"""Joins nests of one body along the indices they share, and then the nests inside of them. Not a pass.

A nest of the second part of a body joins one of the first part if what it needs can be computed before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, OpResult

from ...ir import loop
from ..analysis import costs
from ..analysis.accesses import all_ops, ancestor_in
from ..analysis.sizes import Sizes
from .alignment import Accesses, Aligner, Pairs
from .moves import detach
from .nests import can_join, join, peel

Need = tuple[Operation, bool]
"""An op that must run before another, and whether the other only reads what it writes to a buffer."""


class Merger:
    """Joins nests of one block."""

    def __init__(self, sizes: Sizes):
        self.aligner = Aligner(sizes)
        self.sizes = sizes
        self.known_needs: dict[Operation, list[Need]] = {}
        """What `direct_needs` found since the last change."""

    def join(self, first: loop.NestOp, second: loop.NestOp, pairs: Pairs) -> loop.NestOp:
        """Joins two nests of a block along the pairs and goes on inside; what the second needs is moved up."""
        self.move_up(first, second)
        count = len(pairs)
        positions = sorted(pairs, key=list(first.indices).index)
        theirs = [list(second.indices).index(pairs[index]) for index in positions]
        first = peel(first, count) if first.rank > count else first
        second = peel(second, count) if second.rank > count else second
        moved = [op for op in second.block.ops if not isinstance(op, loop.YieldOp)]
        joined = join(first, second, {first.indices[k]: second.indices[their] for k, their in enumerate(theirs)})
        self.known_needs.clear()
        self.join_inside(joined.block, moved)
        return joined

    def join_inside(self, block: Block, moved: Sequence[Operation]) -> None:
        """Joins each nest among the moved ops with the best one of the others, where there is one; of three that
        read x, x and y, and y, two first have nothing in common."""
        added = [op for op in moved if isinstance(op, loop.NestOp) and op.rank]
        for nest in added:
            others = [op for op in block.ops if isinstance(op, loop.NestOp) and op not in added]
            joined = self.join_best(block, nest, others)
            while joined is not None:
                left = [other for other in others if other.parent is block and other is not joined]
                joined = self.join_third(block, joined, left)

    def join_third(self, block: Block, joined: loop.NestOp, others: Sequence[loop.NestOp]) -> loop.NestOp | None:
        """Joins a nest that two have become with one before or behind it."""
        behind_it = set(behind(joined))
        before = self.join_best(block, joined, [other for other in others if other not in behind_it])
        if before is not None:
            return before
        for other in others:
            if other in behind_it and (found := self.join_best(block, other, [joined])) is not None:
                return found
        return None

    def join_best(self, block: Block, nest: loop.NestOp, others: Sequence[loop.NestOp]) -> loop.NestOp | None:
        """Joins a nest with the best one of those before it, if there is one; what they become."""
        best = self.best_partner(block, nest, [other for other in others if can_join(other, nest)])
        if best is None:
            return None
        partner, pairs = best
        return self.join(partner, nest, pairs)

    def best_partner(
        self, block: Block, nest: loop.NestOp, others: Sequence[loop.NestOp]
    ) -> tuple[loop.NestOp, Pairs] | None:
        """The nest with which joining saves the most reads, the last at a tie."""
        if not others:
            return None
        reading = Accesses.of(nest)
        best, most = None, 0
        for candidate in others:
            found = Accesses.of(candidate)
            common = [buffer for buffer in reading.reads if buffer in found.reads or buffer in found.writes]
            saved = sum(costs.tensor_bytes(buffer, self.sizes) for buffer in common)
            if not common or saved < most or candidate in self.needs(block, nest, candidate):
                continue
            pairs = self.aligner.shared(candidate, nest, found, reading)
            if pairs:
                best, most = (candidate, pairs), saved
        return best

    def needs(self, block: Block, op: Operation, joined: Operation | None = None) -> set[Operation]:
        """`op` and the ops of the block that must run before it, where it may read per iteration what `joined`
        writes."""
        found = {op}
        pending = [before for before, reads in self.direct_needs(block, op) if not (reads and before is joined)]
        while pending:
            needed = pending.pop()
            if needed not in found:
                found.add(needed)
                pending.extend(before for before, _ in self.direct_needs(block, needed))
        return found

    def direct_needs(self, block: Block, op: Operation) -> list[Need]:
        known = self.known_needs.get(op)
        if known is None:
            known = self.known_needs[op] = list(dict.fromkeys(direct_needs(block, op)))
        return known

    def move_up(self, first: Operation, second: Operation) -> None:
        """Moves what `second` needs before `first`."""
        block = first.parent
        assert block is not None
        between = list(takewhile(lambda op: op is not second, behind(first)))
        needed = self.needs(block, second, first) if between else ()
        for op in between:
            if op in needed:
                detach(op)
                block.insert_op_before(op, first)


def behind(op: Operation) -> Iterator[Operation]:
    """The ops of its block that follow an op."""
    current = op.next_op
    while current is not None:
        yield current
        current = current.next_op


def direct_needs(block: Block, op: Operation) -> Iterator[Need]:
    """Ops of the block whose results `op` uses or whose writes it reads, be they its own."""
    inside = [inner for region in op.regions for inner in all_ops(region.block)]
    for inner in (op, *inside):
        for operand in inner.operands:
            if isinstance(operand, OpResult) and operand.op.parent is block:
                yield operand.op, False
        if isinstance(inner, loop.ReadOp) and isinstance(inner.source.type, MemRefType):
            for use in inner.source.uses:
                if isinstance(use.operation, loop.WriteOp):
                    writer = ancestor_in(block, use.operation)
                    if writer is not None:
                        yield writer, True

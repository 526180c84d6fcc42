"""Finds the indices along which two nests can be joined, from what both access. Not a pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from xdsl.ir import Operation, SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Expr
from ...ir.loop.ops import AccessOp
from ..analysis import costs
from ..analysis.accesses import (
    Match,
    accessed,
    all_ops,
    buffer_sizes,
    buffer_strides,
    enclosing_nests,
    index_operands,
    match,
    place_of,
    step,
)
from ..analysis.kernels import Kernel
from ..analysis.sizes import Sizes
from .nests import split_index

Pairs = dict[SSAValue, SSAValue]
"""Indices of one nest and the indices of another that take their place."""


@dataclass
class Accesses:
    """The reads and writes of a stretch of IR, by tensor or buffer."""

    reads: dict[SSAValue, list[loop.ReadOp]] = field(default_factory=dict)
    writes: dict[SSAValue, list[loop.WriteOp]] = field(default_factory=dict)

    @staticmethod
    def of(op: Operation) -> Accesses:
        found = Accesses()
        for inner in (inner for region in op.regions for inner in all_ops(region.block)):
            if isinstance(inner, loop.ReadOp):
                found.reads.setdefault(inner.source, []).append(inner)
            elif isinstance(inner, loop.WriteOp):
                found.writes.setdefault(inner.target, []).append(inner)
        return found

    @staticmethod
    def of_kernel(kernel: Kernel) -> Accesses:
        """Those of a kernel, its writes by the tensor that they make."""
        found = Accesses(kernel.reads)
        for result in kernel.op.results:
            found.writes[result] = kernel.writes(result)
        return found


class Aligner:
    """Finds the indices along which two nests can be joined."""

    def __init__(self, sizes: Sizes):
        self.sizes = sizes

    def shared(
        self, first: loop.NestOp, second: loop.NestOp, one: Accesses, other: Accesses, *, split: bool = True
    ) -> Pairs:
        """Pairs of leading indices that are equal wherever the second nest reads what the first wrote or, if it
        reads nothing of it, wherever both read the same. May split indices to get there."""
        links = list(self.links(one, other))
        found = [self.match(writer, reader) for writer, reader in links]
        if split and self.split(first, second, found):
            found = [self.match(writer, reader) for writer, reader in links]
        pairs = found[0].pairs if found else {}
        for other_match in found[1:]:
            pairs = {a: b for a, b in other_match.pairs.items() if pairs.get(a) is b}
        return leading_pairs(first, second, pairs)

    def match(self, first: AccessOp, reader: AccessOp) -> Match:
        """Pairs of a write and a read are those that must be equal. Two reads may run at any time: where they are
        alike, sliding windows for one, all their indices pair."""
        if isinstance(first, loop.ReadOp) and place_of(first) == place_of(reader):
            return Match(dict(zip(index_operands(first), index_operands(reader), strict=True)))
        return match(first, reader, buffer_sizes(reader.operands[0]), self.sizes)

    def links(self, one: Accesses, other: Accesses) -> Iterator[tuple[loop.WriteOp | loop.ReadOp, loop.ReadOp]]:
        """The accesses that must agree: each write with each read of it, else reads of the largest common tensor."""
        dependences = [
            (write, read)
            for buffer, reads in other.reads.items()
            for write in one.writes.get(buffer, ())
            for read in reads
        ]
        if dependences:
            yield from dependences
            return
        common = [buffer for buffer in other.reads if buffer in one.reads]
        if common:
            largest = max(common, key=lambda buffer: costs.tensor_bytes(buffer, self.sizes))
            yield one.reads[largest][0], other.reads[largest][0]

    def split(self, first: loop.NestOp, second: loop.NestOp, matches: Sequence[Match]) -> bool:
        """Splits indices of the two nests where one of one is several of the other; whether there were any."""
        found_any = False
        for index, factors in [entry for found in matches for entry in found.splits.items()]:
            for nest in (first, second):
                if (
                    index in nest.indices
                    and not isinstance(nest, loop.ForOp)
                    and self.keeps_lines(nest, index, factors)
                ):
                    split_index(nest, index, factors, self.sizes)
                    found_any = True
        return found_any

    def keeps_lines(self, nest: loop.NestOp, index: SSAValue, factors: Sequence[Expr]) -> bool:
        """Whether what is contiguous along an index, but far apart along those inside of it, stays in whole lines of
        the cache: as channels that lie beside each other, of which each place has all."""
        later = {*list(nest.indices)[list(nest.indices).index(index) + 1 :]}
        for access in (op for op in all_ops(nest.block) if isinstance(op, loop.ReadOp | loop.WriteOp)):
            buffer = accessed(access)
            strides = buffer_strides(buffer)
            within = takewhile(lambda one: one is not nest, enclosing_nests(access))
            inside = later.union(*(one.indices for one in within))
            apart = any(step(access, inner, strides) != ZERO for inner in access.indices if inner in inside)
            short = self.sizes.likely(factors[-1]) * costs.width_of(buffer) < costs.LINE_BYTES
            if apart and short and step(access, index, strides) == ONE:
                return False
        return True


def leading_pairs(first: loop.NestOp, second: loop.NestOp, pairs: Pairs) -> Pairs:
    """Those pairs whose indices come before all others in both nests, so that what is left over stays inside.

    Were a row index left outside of a column index, rows would be walked down columns.
    """
    taken = [(a, pairs[a]) for a in first.indices if a in pairs and pairs[a] in second.indices]
    count = len(taken)
    while True:
        ours = list(first.indices)[:count]
        theirs = list(second.indices)[:count]
        kept = [(a, b) for a, b in taken if a in ours and b in theirs]
        if len(kept) == count:
            return dict(kept)
        taken, count = kept, len(kept)

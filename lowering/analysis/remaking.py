"""What a kernel reads of its own buffers, and whether that can be computed again at the place of the read."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ...ir import loop
from ...ir.expr import Expr, dim
from .accesses import all_ops, only


def writers_of(kernel: loop.KernelOp) -> dict[SSAValue, list[loop.WriteOp]]:
    """The writes of each buffer that the kernel writes and reads."""
    found: dict[SSAValue, list[loop.WriteOp]] = {}
    read: set[SSAValue] = set()
    for op in all_ops(kernel.block):
        if isinstance(op, loop.WriteOp):
            found.setdefault(op.target, []).append(op)
        elif isinstance(op, loop.ReadOp):
            read.add(op.source)
    return {target: writes for target, writes in found.items() if target in read}


def nest_beside(writer: loop.WriteOp, read: loop.ReadOp) -> Operation:
    """The op around a write that stands in a block around a read."""
    around: set[Block | None] = set()
    current: Operation | None = read
    while current is not None:
        around.add(current.parent)
        current = current.parent_op()
    found: Operation = writer
    while found.parent not in around:
        parent = found.parent_op()
        assert parent is not None
        found = parent
    return found


def is_index_in(index: SSAValue, nest: Operation) -> bool:
    """Whether a value is an index of a nest, or of one inside of it."""
    block = index.owner
    return isinstance(block, Block) and nest.is_ancestor(block)


def slice_of(value: SSAValue, nest: Operation) -> list[Operation]:
    """The ops inside of a nest that make a value, in order."""
    needed: set[Operation] = set()
    waiting = [value]
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Block) or op in needed or not nest.is_ancestor(op):
            continue
        needed.add(op)
        for inner in op.walk():
            waiting.extend(inner.operands)
    return [op for op in nest.walk() if op in needed]


def places(read: loop.ReadOp, writer: loop.WriteOp, nest: Operation) -> dict[SSAValue, Expr] | None:
    """The indices of the nest at which an element was written, over the indices at which it is read.

    None where they do not follow: written at other places than plain indices, or read at others than were written.
    """
    found: dict[SSAValue, Expr] = {}
    if writer.map.results == read.map.results:
        pairs = [(index, dim(position)) for position, index in enumerate(writer.indices)]
    else:
        pairs = []
        shape = read.source.type.get_shape()  # type: ignore[attr-defined]
        for written, wanted, size in zip(writer.map.results, read.map.results, shape, strict=True):
            if size == 1:
                continue
            if written.as_dim is not None:
                pairs.append((writer.indices[written.as_dim], wanted))
            elif not _is_shared(written, writer, wanted, read, nest):
                return None
    for index, place in pairs:
        if is_index_in(index, nest):
            found[index] = place
        elif place.as_dim is None or read.indices[place.as_dim] is not index:
            return None
    return found


def _is_shared(written: Expr, writer: loop.WriteOp, wanted: Expr, read: loop.ReadOp, nest: Operation) -> bool:
    """Whether both name one place, which only indices outside of the nest decide."""
    around = {number: writer.indices[number] for number in written.dims}
    numbers = {index: number for number, index in enumerate(read.indices)}
    if any(is_index_in(index, nest) or index not in numbers for index in around.values()):
        return False
    return written.substitute_dims({number: dim(numbers[index]) for number, index in around.items()}) == wanted


def can_remake(read: loop.ReadOp, writes: list[loop.WriteOp]) -> bool:
    """Whether what is read takes scalar code alone to compute again."""
    writer = only(writes)
    if writer is None or writer.combiner is not None:
        return False
    nest = nest_beside(writer, read)
    ops = slice_of(writer.value, nest)
    scalars = not any(isinstance(op, loop.NestOp) for op in ops)
    carried = any(isinstance(parent, loop.ForOp) for parent in parents(writer, nest))
    return scalars and not carried and places(read, writer, nest) is not None


def parents(op: Operation, last: Operation) -> list[Operation]:
    """The ops around an op, up to the last one."""
    found: list[Operation] = []
    while op is not last:
        parent = op.parent_op()
        assert parent is not None
        found.append(parent)
        op = parent
    return found


__all__ = ["can_remake", "nest_beside", "places", "slice_of", "writers_of"]

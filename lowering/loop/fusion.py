"""Decides whether two kernels become one and makes them one. Not a pass: `fuse_nests` and `fuse_siblings` choose.

All vertical and horizontal fusion is one step, applied to bodies: put one body behind the other, join a nest of
the second with one of the first along the indices that their accesses share, and do the same inside of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...ir import loop
from ...ir.locations import fused
from ...ir.loop.ops import destination_type, extents_attr
from ...ir.shapes import sizes_of
from ...ir.target import target_of
from ..analysis import costs
from ..analysis.accesses import enclosing_nests, guard_of, is_leaf, same_place
from ..analysis.kernels import Kernel
from ..analysis.sizes import Sizes
from .alignment import Accesses, Pairs
from .merging import Merger
from .moves import detach, erase, erase_writes, fused_name, is_only_written
from .nests import can_join


@dataclass(frozen=True)
class Obstacle:
    """Why two kernels stay two."""

    reason: str


def join_text(*, first: Kernel, second: Kernel) -> str:
    return f"join {first.op.kernel_name.data} with {second.op.kernel_name.data}"


class KernelFuser:
    """Plans and performs the fusion of two kernels of a function."""

    def __init__(self, ops: Sequence[loop.KernelOp]):
        self.kernels: dict[Operation, Kernel] = {op: Kernel(op) for op in ops}
        first, *_ = ops
        self.sizes = Sizes.at(first)
        target = target_of(first)
        self.is_gpu = target.is_gpu
        self.cores = target.cores
        self.hot_bytes = costs.HOT_SHARE * target.l2_bytes
        self.merger = Merger(self.sizes)

    # -- deciding --------------------------------------------------------------------------------

    def plan(self, first: Kernel, second: Kernel, *, split: bool = True) -> Pairs | Obstacle:
        """The indices along which the kernels' nests can be joined; empty where only scalars follow."""
        if first.op.operands or second.op.operands or first.combines or second.combines:
            return Obstacle("one of them updates a tensor in place")
        if first.size + second.size > costs.MAX_OPS:
            return Obstacle("together they have too many ops")
        if self.tensors(first, second) > costs.MAX_TENSORS:
            return Obstacle("together they touch too many tensors")
        if len(first.nests) > 1 or len(second.nests) > 1:
            return Obstacle("one of them has several nests")
        if second.is_product:
            return Obstacle("a product reads its factors from memory")
        if second.nest is None:
            alone = first.nest is None or isinstance(first.nest, loop.ReduceOp)
            return {} if alone else Obstacle("scalars would follow a parallel nest")
        if first.nest is None:
            return Obstacle("every iteration would compute the scalars")
        return self.plan_nests(first, second, first.nest, second.nest, split)

    def tensors(self, first: Kernel, second: Kernel) -> int:
        made = [result for result in first.op.results if self.leaves(result, second)]
        reads = first.reads.keys() | (second.reads.keys() - set(first.op.results))
        return len(reads) + len(made) + len(second.op.results)

    def plan_nests(
        self, first: Kernel, second: Kernel, ours: loop.NestOp, theirs: loop.NestOp, split: bool
    ) -> Pairs | Obstacle:
        if not can_join(ours, theirs):
            return Obstacle("their nests have no common form")
        if self.needs_whole(set(first.op.results), second.op.block, theirs):
            return Obstacle("the second needs a complete result of the first before it starts")
        one, other = Accesses.of_kernel(first), Accesses.of_kernel(second)
        pairs = self.merger.aligner.shared(ours, theirs, one, other, split=split)
        if not pairs:
            return Obstacle("their index spaces share no leading index")
        if first.is_product and not follows_points(first, second, ours, theirs, pairs):
            return Obstacle("only what follows each element of a product by itself joins it")
        if self.is_gpu and self.computes_again(one, other, pairs):
            return Obstacle("a result of the first, which is kept nowhere, would be computed more often")
        iterations = self.iterations(ours, pairs)
        common = [buffer for buffer in other.reads if buffer in one.writes or buffer in one.reads]
        shared = sum(costs.tensor_bytes(buffer, self.sizes) for buffer in common)
        if shared > costs.SMALL_BYTES and not self.keeps_parallelism(ours, theirs, iterations):
            return Obstacle("too few iterations would run in parallel")
        if shared // iterations > self.hot_bytes and not self.streams(ours, theirs, one, other):
            return Obstacle("what one iteration keeps would not stay in cache")
        return pairs

    def needs_whole(self, results: Set[SSAValue], block: Block, nest: loop.NestOp) -> bool:
        """Whether a scalar of the block that its nest needs comes from one of the results."""
        return any(not results.isdisjoint(op.operands) for op in self.merger.needs(block, nest))

    def computes_again(self, one: Accesses, other: Accesses, pairs: Pairs) -> bool:
        """Whether a nest of the second, as one of windows does, would compute more elements of a result than there are,
        and what is expensive. A GPU's programs have no memory for what is made within the joined nest by a nest of its
        own: each read is the computation."""
        for result in one.writes.keys() & other.reads.keys():
            makers = [write for write in one.writes[result] if not _indices_around(write) <= pairs.keys()]
            blocks = [write.parent for write in makers if write.parent is not None]
            if not any(costs.is_expensive(op) for block in blocks for op in block.ops):
                continue
            runs: Counter[Block | None] = Counter()
            for read in {(read.parent, read.access): read for read in other.reads[result]}.values():
                runs[read.parent] += costs.executions(read, self.sizes)
            if max(runs.values()) > self.sizes.volume(sizes_of(result.type)):
                return True
        return False

    def iterations(self, nest: loop.NestOp, pairs: Pairs) -> int:
        """How often the joined nest runs what is inside of it."""
        return self.sizes.volume(size for index, size in zip(nest.indices, nest.sizes, strict=True) if index in pairs)

    def keeps_parallelism(self, ours: loop.NestOp, theirs: loop.NestOp, iterations: int) -> bool:
        """Whether the joined nest keeps every core busy, if its parts did; a reduction is split into chunks."""
        if isinstance(ours, loop.ReduceOp) or isinstance(theirs, loop.ReduceOp):
            return True
        before = min(self.sizes.volume(ours.sizes), self.sizes.volume(theirs.sizes))
        return iterations >= min(before, costs.TASKS_PER_CORE * self.cores)

    def streams(self, ours: loop.NestOp, theirs: loop.NestOp, one: Accesses, other: Accesses) -> bool:
        """Whether the second nest can use each value as the first makes it: all points of the first are points of
        the second's outer two nests."""
        if not is_leaf(ours):
            return False
        for writer, reader in self.merger.aligner.links(one, other):
            found = self.merger.aligner.match(writer, reader).pairs
            outer = {index for nest in enclosing_nests(reader)[-2:] for index in nest.indices}
            if any(found.get(index) not in outer for index in ours.indices):
                return False
        return True

    # -- doing -----------------------------------------------------------------------------------

    def leaves(self, result: SSAValue, second: Kernel) -> bool:
        """Whether anything but the second kernel uses a result."""
        return result.uses.get_length() > len(second.reads.get(result, ()))

    def fuse(self, first: Kernel, second: Kernel, pairs: Pairs) -> None:
        """Makes `second` do what both do; values that the first does not hand out become scalars or locals."""
        ours, theirs = first.nest, second.nest
        kept = [result for result in first.op.results if self.leaves(result, second)]
        reads = [second.reads.pop(result, []) for result in first.op.results]
        old = first.op, second.op
        op = self.with_results(first.op, second.op, kept)
        buffers = self.destinations(first.op, op, kept)
        self.put_in_front(first.op, op)
        for buffer, found in zip(buffers, reads, strict=True):
            for read in found:
                read.operands[0] = buffer
        if pairs:
            assert ours is not None
            assert theirs is not None
            self.merger.join(ours, theirs, pairs)
        self.merger.known_needs.clear()
        for buffer, found in zip(buffers, reads, strict=True):
            forward(buffer, found)
        self.register(first, second, op, old)

    def with_results(self, first: loop.KernelOp, second: loop.KernelOp, kept: Sequence[SSAValue]) -> loop.KernelOp:
        """The second kernel op, or one in its place that also has the kept results of the first."""
        name, location = fused_name(first, second), fused([first.location, second.location])
        if not kept:
            second.properties["kernel_name"] = name
            second.location = location
            return second
        results = [*second.results, *kept]
        op = loop.KernelOp.create(
            result_types=[result.type for result in results],
            properties={"kernel_name": name},
            regions=[second.detach_region(0)],
            location=location,
        )
        assert second.parent is not None
        second.parent.insert_op_before(op, second)
        for result, replacement in zip(results, op.results, strict=True):
            result.replace_all_uses_with(replacement)
            self.rename(result, replacement)
        erase(second)
        return op

    def rename(self, tensor: SSAValue, replacement: SSAValue) -> None:
        """Files the reads of a tensor in all kernels under its new name."""
        for use in replacement.uses:
            kernel = self.kernel_around(use.operation)
            if kernel is not None and tensor in kernel.reads:
                kernel.reads[replacement] = kernel.reads.pop(tensor)

    def kernel_around(self, op: Operation) -> Kernel | None:
        parent = op.parent_op()
        while parent is not None and not isinstance(parent, loop.KernelOp):
            parent = parent.parent_op()
        return None if parent is None else self.kernels.get(parent)

    def destinations(self, first: loop.KernelOp, op: loop.KernelOp, kept: Sequence[SSAValue]) -> list[SSAValue]:
        """Gives the first's writes buffers in the body of `op`: destinations for what is kept, else locals."""
        buffers: list[SSAValue] = []
        for result, argument in zip(first.results, first.block.args, strict=True):
            if result in kept:
                buffer: SSAValue = op.block.insert_arg(argument.type, len(op.block.args))
                buffer.name_hint = argument.name_hint
            else:
                buffer = local_like(result, op.block)
            argument.replace_all_uses_with(buffer)
            buffers.append(buffer)
        return buffers

    def put_in_front(self, first: loop.KernelOp, op: loop.KernelOp) -> None:
        """Moves the body of the first before that of `op`, behind the locals of both."""
        start = next((inner for inner in op.block.ops if not isinstance(inner, loop.LocalOp)), None)
        for inner in list(first.block.ops):
            detach(inner)
            if start is None:
                op.block.add_op(inner)
            else:
                op.block.insert_op_before(inner, start)

    def register(self, first: Kernel, second: Kernel, op: loop.KernelOp, old: tuple[Operation, Operation]) -> None:
        for former in old:
            del self.kernels[former]
        erase(first.op)
        self.kernels[op] = second
        second.absorb(first, op)


def _indices_around(op: Operation) -> set[SSAValue]:
    return {index for nest in enclosing_nests(op) for index in nest.indices}


def follows_points(first: Kernel, second: Kernel, ours: loop.NestOp, theirs: loop.NestOp, pairs: Pairs) -> bool:
    """Whether the second does something for each point of the first, with what the first computes there."""
    reads = any(result in second.reads for result in first.op.results)
    pointwise = isinstance(theirs, loop.ParallelOp) and is_leaf(theirs)
    return reads and pointwise and len(pairs) == ours.rank == theirs.rank


def local_like(tensor: SSAValue, block: Block) -> SSAValue:
    """A local of a tensor's shape at the start of the block."""
    local = loop.LocalOp.create(
        properties={"extents": extents_attr(sizes_of(tensor.type))},
        result_types=[destination_type(tensor.type)],
        location=tensor.owner.location if isinstance(tensor.owner, Operation) else None,
    )
    local.buffer.name_hint = tensor.name_hint
    if block.first_op is None:
        block.add_op(local)
    else:
        block.insert_op_before(local, block.first_op)
    return local.buffer


def forward(buffer: SSAValue, reads: Iterable[loop.ReadOp]) -> None:
    """`loop.write %v, %b[f]  …  loop.read %b[f]  →  %v`; removes a local that is then never read."""
    writes = [use.operation for use in buffer.uses if isinstance(use.operation, loop.WriteOp)]
    for read in reads:
        write = next((write for write in writes if reaches(write, read)), None)
        if write is not None:
            read.result.replace_all_uses_with(guarded_value(read, write.value))
            erase(read)
    if isinstance(buffer.owner, loop.LocalOp) and is_only_written(buffer):
        erase_writes(buffer)
        erase(buffer.owner)


def guarded_value(read: loop.ReadOp, value: SSAValue) -> SSAValue:
    """What a read gives that would find `value`."""
    guard = guard_of(read)
    if guard is None:
        return value
    condition, other = guard
    select = arith.SelectOp(condition, value, other)
    select.location = read.location
    assert read.parent is not None
    read.parent.insert_op_before(select, read)
    return select.result


def reaches(write: loop.WriteOp, read: loop.ReadOp) -> bool:
    """Whether the read, in the write's block or inside of it, names the element just written."""
    return same_place(write, read) and any(op.parent is write.parent for op in (read, *enclosing_nests(read)))

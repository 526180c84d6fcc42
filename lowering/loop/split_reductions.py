"""`loop-split-reductions`: cuts a large reduction with few results into parts, for machines that need many programs.

One kernel reduces the parts, all at once, and leaves a result of each; a second one combines them in their order. No
atomics: how a reduction is cut depends on sizes and the machine alone, so results repeat bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from ...ir import loop
from ...ir.combiners import COMBINERS, identity_value, last_index
from ...ir.expr import Expr, ceildiv, const, dim
from ...ir.product_schedule import PRODUCT
from ...ir.shapes import tensor_type
from ...ir.target import Target, target_of
from ..analysis.accesses import all_ops, nests_of, only
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from ..schedule.grid_plan import GridPlanner
from ..schedule.model import KernelModel
from .moves import constant, detach, erase
from .nests import flatten, take_part
from .split_phases import PhaseSplitter

PROGRAMS_PER_CORE = 4
"""Programs that a split aims at, for each multiprocessor."""

BUSY = 2
"""A kernel with so many programs for each multiprocessor is not split."""

FEWER = 4
"""Equal parts are preferred to others where they are more than one in so many of those that are wanted."""

ENOUGH = 2
"""A dimension is cut if it has one in so many of the parts that are wanted, else the longest one."""

LEAST_PARTS = 2
"""Parts that a cut makes at least."""

LEAST_PART = 1 << 14
"""Scalar operations that a part has at least: a second launch takes some microseconds."""


@dataclass(frozen=True)
class Cut:
    """Dimension `position` of a reduction in `count` parts of `length`; `ragged` if the last one may be shorter."""

    position: int
    count: Expr
    length: Expr
    ragged: bool


class Splitter:
    """Splits the reduction of one kernel, if it is worth it."""

    def __init__(self, kernel: loop.KernelOp, target: Target):
        self.kernel = kernel
        self.target = target
        self.sizes = Sizes.at(kernel)

    def run(self) -> None:
        """`reduce (i) to (n) { b(i) }  →  parallel (c) to (p) { reduce (j) to (n/p) { b(c·n/p + j) } }  reduce (c)`.

        Does not fire where there are enough programs anyway, where a part would have too little to do, or where the
        kernel holds other nests or locals, or writes in a nest around the reduction, or is a product that has a
        schedule.
        """
        found = None if PRODUCT in self.kernel.attributes else self.reduction()
        if found is None:
            return
        nest, reduction = found
        cut = self.cut(reduction)
        if cut is None:
            return
        if writes_of(reduction):
            self.split_writing(reduction, cut)
        else:
            parts = self.make_parts(nest, reduction, cut)
            self.combine(nest, reduction, cut, parts)

    def reduction(self) -> tuple[loop.ParallelOp | None, loop.ReduceOp] | None:
        """The one reduction of the kernel, with the parallel nest around it if there is one."""
        nest = only(nests_of(self.kernel.block))
        around = nest if isinstance(nest, loop.ParallelOp) else None
        if around is not None:
            nest = only(nests_of(around.block))
        if not isinstance(nest, loop.ReduceOp) or not nest.rank:
            return None
        flatten(nest)
        outside = [op for op in all_ops(self.kernel.block) if not nest.is_ancestor(op)]
        keeps = any(isinstance(op, loop.LocalOp) for op in (*outside, *all_ops(nest.block)))
        writes = bool(writes_of(nest)) and (around is not None or bool(nests_of(nest.block)))
        return None if writes or keeps else (around, nest)

    # -- choice --------------------------------------------------------------------------------------

    def cut(self, reduction: loop.ReduceOp) -> Cut | None:
        model = KernelModel(self.kernel)
        programs = model.sizes.volume([GridPlanner(model, self.target).plan().grid])
        wanted = -(-PROGRAMS_PER_CORE * self.target.cores // programs)
        wanted = min(wanted, model.work // (programs * LEAST_PART))
        if programs >= BUSY * self.target.cores:
            return None
        likely = [self.sizes.likely(size) for size in reduction.sizes]
        position = next((k for k, size in enumerate(likely) if ENOUGH * size >= wanted), likely.index(max(likely)))
        return self.parts(position, reduction.sizes[position], min(wanted, likely[position]))

    def parts(self, position: int, size: Expr, wanted: int) -> Cut | None:
        """Equal parts if a number of them near the wanted one divides the size."""
        if wanted < LEAST_PARTS:
            return None
        if size.is_constant:
            for count in range(wanted, wanted // FEWER, -1):
                if count > 1 and size.constant % count == 0:
                    return Cut(position, const(count), const(size.constant // count), ragged=False)
        length = ceildiv(size, wanted)
        return Cut(position, const(wanted), length, ragged=True)

    # -- what writes besides -------------------------------------------------------------------------

    def split_writing(self, reduction: loop.ReduceOp, cut: Cut) -> None:
        """Cuts a reduction whose elements are written, too: equal parts write theirs. Of others the last one would
        write beyond the end, so elements are written by a nest of their own, and what is left is cut like any other."""
        block, end = self.kernel.parent, self.kernel.next_op
        assert block is not None
        start = self.kernel.prev_op
        if cut.ragged:
            self.free_writes(reduction)
        else:
            self.share_parts(reduction, cut)
        PhaseSplitter(self.kernel).run()
        made = block.first_op if start is None else start.next_op
        while cut.ragged and made is not None and made is not end:
            if isinstance(made, loop.KernelOp):
                Splitter(made, self.target).run()
            made = made.next_op

    def free_writes(self, reduction: loop.ReduceOp) -> None:
        """`reduce (i) { b(i)  write  yield x }  →  parallel (i) { b(i)  write }  reduce (i) { b(i)  yield x }`."""
        assert reduction.parent is not None
        space = loop.ParallelOp.make(reduction.sizes)
        space.location = reduction.location
        reduction.parent.insert_op_before(space, reduction)
        copies: dict[SSAValue, SSAValue] = dict(zip(reduction.indices, space.indices, strict=True))
        for op in reduction.block.ops:
            if op is not reduction.yielded and not isinstance(op, loop.AssertOp):
                space.block.add_op(op.clone(copies))
        for write in writes_of(reduction):
            erase(write)
        for nest in (space, reduction):
            erase_dead(list(all_ops(nest.block)))

    def share_parts(self, reduction: loop.ReduceOp, cut: Cut) -> None:
        """`reduce (i) { b(i) }  →  parallel (c) { reduce (j) { b(c·n/p + j) } }  reduce (c)`, in one kernel."""
        assert reduction.parent is not None
        block, space = reduction.parent, loop.ParallelOp.make([cut.count])
        kept = [loop.LocalOp.make(type_, [cut.count]) for type_ in reduction.result_types]
        total = loop.ReduceOp.make([cut.count], reduction.combiner_names, reduction.result_types)
        total.location = space.location = reduction.location
        reads = [loop.ReadOp.make(local.buffer, list(total.indices), [dim(0)]) for local in kept]
        total.block.add_ops([*reads, loop.YieldOp.make([read.result for read in reads])])
        block.insert_ops_before([*kept, space, total], reduction)
        for old, new in zip(reduction.results, total.results, strict=True):
            old.replace_all_uses_with(new)
        detach(reduction)
        space.block.add_op(reduction)
        take_part(reduction, cut.position, space.indices[0], cut.length, self.sizes)
        for result, local in zip(reduction.results, kept, strict=True):
            space.block.add_op(loop.WriteOp.make(result, local.buffer, list(space.indices), [dim(0)]))

    # -- parts ---------------------------------------------------------------------------------------

    def make_parts(self, nest: loop.ParallelOp | None, reduction: loop.ReduceOp, cut: Cut) -> loop.KernelOp:
        """The kernel that reduces each part."""
        outer = () if nest is None else nest.sizes
        types = [tensor_type(type_, (cut.count, *outer)) for type_ in reduction.result_types]
        made = loop.KernelOp.make(f"{self.kernel.kernel_name.data}_parts", types)
        made.location = self.kernel.location
        assert self.kernel.parent is not None
        self.kernel.parent.insert_op_before(made, self.kernel)
        copies: dict[SSAValue, SSAValue] = {}
        space = loop.ParallelOp.make((cut.count, *outer))
        for op in before(reduction if nest is None else nest):
            made.block.add_op(op.clone(copies))
        made.block.add_op(space)
        if nest is not None:
            copies.update(zip(nest.indices, space.indices[1:], strict=True))
            for op in before(reduction):
                space.block.add_op(op.clone(copies))
        part = reduction.clone(copies)
        space.block.add_op(part)
        self.shift(part, space.indices[0], cut)
        for destination, value in zip(made.block.args, part.results, strict=True):
            indices = list(space.indices)
            space.block.add_op(loop.WriteOp.make(value, destination, indices, [dim(k) for k in range(len(indices))]))
        erase_dead(list(all_ops(made.block)))
        return made

    def shift(self, part: loop.ReduceOp, number: SSAValue, cut: Cut) -> None:
        """Has a copy of the reduction go over the part of that number."""
        whole = part.sizes[cut.position]
        inner = take_part(part, cut.position, number, cut.length, self.sizes)
        if cut.ragged:
            self.guard(part, number, inner, dim(0) * cut.length + dim(1), whole)

    def guard(self, part: loop.ReduceOp, number: SSAValue, inner: SSAValue, place: Expr, size: Expr) -> None:
        """Beyond the end nothing is read, nothing fails, and identities are combined."""
        first = part.block.first_op
        assert first is not None
        index = loop.IndexOp.make([number, inner], place)
        end = loop.IndexOp.make([], size)
        inside = arith.CmpiOp(index.result, end.result, "slt")
        part.block.insert_ops_before([index, end, inside], first)
        for op in list(all_ops(part.block)):
            if isinstance(op, loop.ReadOp):
                guard_read(op, inside.result)
            elif isinstance(op, loop.AssertOp):
                guard_assert(op, inside.result)
        values = [
            keep_if(part.yielded, inside.result, value, identity)
            for value, identity in zip(part.yielded.operands, identities(part), strict=True)
        ]
        part.yielded.operands = values

    # -- combination -----------------------------------------------------------------------------------

    def combine(self, nest: loop.ParallelOp | None, reduction: loop.ReduceOp, cut: Cut, parts: loop.KernelOp) -> None:
        """Has the kernel reduce what the parts left."""
        made = loop.ReduceOp.make([cut.count], reduction.combiner_names, reduction.result_types)
        made.location = reduction.location
        indices = [*made.indices, *(() if nest is None else nest.indices)]
        places = [dim(k) for k in range(len(indices))]
        reads = [loop.ReadOp.make(result, indices, places) for result in parts.results]
        made.block.add_ops([*reads, loop.YieldOp.make([read.result for read in reads])])
        assert reduction.parent is not None
        reduction.parent.insert_op_before(made, reduction)
        for old, new in zip(reduction.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        erase(reduction)
        erase_dead(list(all_ops(self.kernel.block)))


def writes_of(nest: loop.NestOp) -> list[loop.WriteOp]:
    """The writes in a nest."""
    return [op for op in all_ops(nest.block) if isinstance(op, loop.WriteOp)]


def before(nest: loop.NestOp) -> list[Operation]:
    """The ops without effects before a nest in its block."""
    found: list[Operation] = []
    op = nest.prev_op
    while op is not None:
        if not isinstance(op, loop.WriteOp | loop.AssertOp):
            found.append(op)
        op = op.prev_op
    return found[::-1]


def erase_dead(ops: Sequence[Operation]) -> None:
    """Erases those of the ops, from the last on, that have no effects and no uses."""
    for op in reversed(ops):
        if is_trivially_dead(op):
            erase(op)


def identities(part: loop.ReduceOp) -> list[float]:
    """What leaves each accumulator as it is."""
    found: list[float] = []
    types = iter(part.result_types)
    for name in part.combiner_names:
        found.append(identity_value(COMBINERS[name], next(types)))
        if COMBINERS[name].arity == 2:
            found.append(last_index(next(types)))
    return found


def keep_if(user: Operation, condition: SSAValue, value: SSAValue, otherwise: float) -> SSAValue:
    """The value, or a constant where the condition fails, computed before `user`."""
    other = constant(otherwise, value.type)
    kept = arith.SelectOp(condition, value, other.result)
    assert user.parent is not None
    user.parent.insert_ops_before([other, kept], user)
    return kept.result


def guard_read(read: loop.ReadOp, inside: SSAValue) -> None:
    """Reads only where `inside` holds, too."""
    assert read.parent is not None
    guard, other = inside, read.other
    if read.guard is not None:
        both = arith.AndIOp(read.guard, inside)
        read.parent.insert_op_before(both, read)
        guard = both.result
    if other is None:
        zero = constant(0, read.result.type)
        read.parent.insert_op_before(zero, read)
        other = zero.result
    made = loop.ReadOp.make(read.source, list(read.indices), read.map.results, guard, other)
    made.location = read.location
    read.parent.insert_op_before(made, read)
    read.result.replace_all_uses_with(made.result)
    erase(read)


def guard_assert(op: loop.AssertOp, inside: SSAValue) -> None:
    """Fails only where `inside` holds."""
    true = constant(1, i1)
    outside = arith.XOrIOp(inside, true.result)
    either = arith.OrIOp(op.condition, outside.result)
    assert op.parent is not None
    op.parent.insert_ops_before([true, outside, either], op)
    op.operands[0] = either.result


class LoopSplitReductions(ModulePass):
    """Cut large reductions with few results into parts, where the target is a GPU."""

    name = "loop-split-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        if not target.is_gpu:
            return
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                Splitter(kernel, target).run()


__all__ = ["LoopSplitReductions"]

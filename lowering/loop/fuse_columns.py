"""`loop-fuse-columns`: has a kernel that goes over rows combine the columns of what it touches, in the same pass.

The gradients of a norm's weight and of a layer's bias are sums down the columns of what another kernel reads or makes
row by row. Each row is combined into a local of the kernel as it passes by; `analysis/accumulation` is the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.combiners import COMBINERS, Combiner, identity_value
from ...ir.expr import ONE, ZERO, dim, product
from ...ir.locations import fused
from ...ir.loop.ops import AccessOp
from ..analysis import costs
from ..analysis.accesses import (
    accessed,
    all_ops,
    buffer_strides,
    index_operands,
    is_leaf,
    nests_of,
    only,
    same_place,
    step,
)
from ..analysis.accumulation import accumulation_of
from ..analysis.kernels import Kernel, Order, functions_with_kernels
from ..analysis.sizes import Sizes, element_bytes
from ..applications import permitted
from ..schedule.plan import SPLIT_CHUNKS
from .fusion import KernelFuser, guarded_value, join_text
from .moves import constant, detach, erase, fused_name
from .nests import split_index

LOCAL_PASSES = 8
"""Ways through memory that a local of columns costs: it is cleared, filled and read, and that counts twice."""

LEAST_COLUMNS = 16
"""Columns from which on they fill lanes."""


@dataclass(frozen=True)
class Columns:
    """A kernel that reduces each column: `parallel (j) { reduce (i) { … } … }`."""

    nest: loop.ParallelOp
    reduction: loop.ReduceOp

    @property
    def before(self) -> list[Operation]:
        """Scalars of a column that its reduction may use."""
        ops = list(self.nest.block.ops)
        return ops[: ops.index(self.reduction)]


@dataclass(frozen=True)
class Rows:
    """A kernel that goes over rows: its outer nest, the innermost one in it, and the indices of rows and columns."""

    nest: loop.ParallelOp
    leaf: loop.ParallelOp
    rows: Sequence[SSAValue]
    columns: Sequence[SSAValue]


def columns_of(kernel: Kernel) -> Columns | None:
    """The form of a kernel that reduces columns and does nothing else."""
    nest = kernel.nest
    if not isinstance(nest, loop.ParallelOp) or nest is not kernel.op.block.last_op or kernel.op.operands:
        return None
    reduction = only(nests_of(nest.block))
    if not isinstance(reduction, loop.ReduceOp) or not reduction.rank or not is_leaf(reduction):
        return None
    if any(isinstance(op, loop.LocalOp) for op in all_ops(kernel.op.block)):
        return None
    if not nest.rank:
        return None
    writes = any(isinstance(op, loop.WriteOp) for op in all_ops(reduction.block))
    pairs = any(COMBINERS[name].arity != 1 for name in reduction.combiner_names)
    return None if writes or pairs else Columns(nest, reduction)


def rows_of(kernel: Kernel, columns: Columns, sizes: Sizes) -> Rows | None:
    """The form of a kernel that goes over the same rows, with an innermost nest over the same columns. Splits an index
    of either kernel where one counts rows by one index and the other by several."""
    known = accumulation_of(kernel.op)
    nest = kernel.nest if known is None else known.rows
    if not isinstance(nest, loop.ParallelOp) or kernel.op.operands or (kernel.combines and known is None):
        return None
    inner = nests_of(nest.block)
    leaf = inner[-1] if inner else nest
    if not isinstance(leaf, loop.ParallelOp) or not is_leaf(leaf):
        return None
    rank = columns.nest.rank
    count = nest.rank if inner else nest.rank - rank
    if leaf.sizes[-rank:] != columns.nest.sizes or not count or (inner and leaf.rank != rank):
        return None
    if not align(nest, count, columns.reduction, sizes):
        return None
    return Rows(nest, leaf, nest.indices[: columns.reduction.rank], leaf.indices[-rank:])


def align(nest: loop.ParallelOp, count: int, reduction: loop.ReduceOp, sizes: Sizes) -> bool:
    """Whether the first `count` dims of a nest are those of a reduction, or become so by splitting a single one."""
    ours, theirs = nest.sizes[:count], reduction.sizes
    if ours == theirs:
        return True
    if product(ours) != product(theirs):
        return False
    if (index := only(reduction.indices)) is not None:
        split_index(reduction, index, ours, sizes)
    elif (index := only(nest.indices[:count])) is not None:
        split_index(nest, index, theirs, sizes)
    return nest.sizes[: reduction.rank] == reduction.sizes


class ColumnFuser:
    """Fuses kernels of a function that reduce columns with kernels that go over the rows."""

    def __init__(self, function: FuncOp, kernels: Sequence[loop.KernelOp]):
        self.fuser = KernelFuser(kernels)
        self.order = Order(function.body.block, self.fuser.kernels)

    def run(self) -> None:
        for op, kernel in list(self.fuser.kernels.items()):
            columns = columns_of(kernel) if op in self.fuser.kernels else None
            if columns is not None and self.fuser.sizes.likely(columns.nest.sizes[-1]) >= LEAST_COLUMNS:
                self.fuse_columns(kernel, columns)
        self.order.rearrange()

    def fuse_columns(self, kernel: Kernel, columns: Columns) -> None:
        """Fuses with the kernel with which that saves most."""
        saved = {first: self.saved(first, kernel, columns) for first in self.fuser.kernels.values()}
        for first in sorted(saved, key=lambda candidate: -saved[candidate]):
            # Again, since looking at another one may have split an index.
            rows = self.rows(first, kernel, columns) if saved[first] >= self.cost(columns) else None
            if rows is not None and permitted(partial(join_text, first=first, second=kernel)):
                old = first.op, kernel.op
                op = self.fuse(first, kernel, rows, columns)
                self.order.fuse(*old, op)
                return

    def saved(self, first: Kernel, kernel: Kernel, columns: Columns) -> int:
        """Bytes that the columns need not read if they are combined as the rows of the first pass by."""
        rows = self.rows(first, kernel, columns)
        if rows is None:
            return 0
        return sum(costs.tensor_bytes(tensor, self.fuser.sizes) for tensor in matches(first, kernel, rows, columns))

    def rows(self, first: Kernel, kernel: Kernel, columns: Columns) -> Rows | None:
        """The rows of a kernel if the columns can be combined as they pass by."""
        if first is kernel or not self.touches(first, kernel) or not self.is_legal(first, kernel):
            return None
        rows = rows_of(first, columns, self.fuser.sizes)
        if rows is None or not self.runs_along_columns(rows, columns):
            return None
        made = set(first.op.results) & kernel.reads.keys()
        return rows if made <= matches(first, kernel, rows, columns) else None

    def touches(self, first: Kernel, kernel: Kernel) -> bool:
        """Whether the kernels have a tensor in common."""
        return any(tensor in first.reads or tensor.owner is first.op for tensor in kernel.reads)

    def is_legal(self, first: Kernel, kernel: Kernel) -> bool:
        """Whether the two can be one, small enough; what the second reads of the first others must use too, since a
        result that only the second reads had better not be made."""
        if self.order.joined_by_third(first.op, kernel.op):
            return False
        if first.size + kernel.size > costs.MAX_OPS or self.fuser.tensors(first, kernel) > costs.MAX_TENSORS:
            return False
        return all(self.fuser.leaves(result, kernel) for result in first.op.results if result in kernel.reads)

    def runs_along_columns(self, rows: Rows, columns: Columns) -> bool:
        """Whether neighbouring columns are neighbours in memory wherever they are read or written."""
        found = [(op, rows.columns[-1]) for op in rows.leaf.block.ops]
        found += [(op, columns.nest.indices[-1]) for op in columns.reduction.block.ops]
        return all(
            step(op, index, buffer_strides(accessed(op))) in (ZERO, ONE)
            for op, index in found
            if isinstance(op, loop.ReadOp | loop.WriteOp)
        )

    def cost(self, columns: Columns) -> int:
        """Bytes that the locals cost, of which each chunk of rows has its own."""
        sizes = self.fuser.sizes
        rows = min(SPLIT_CHUNKS, sizes.volume(columns.reduction.sizes))
        widths = sum(element_bytes(type_) for type_ in columns.reduction.result_types)
        return LOCAL_PASSES * rows * sizes.volume(columns.nest.sizes) * widths

    # -- doing -----------------------------------------------------------------------------------

    def fuse(self, first: Kernel, second: Kernel, rows: Rows, columns: Columns) -> loop.KernelOp:
        """`kernel { rows { a } }  kernel { columns { b  c } }  →  kernel { clear  rows { a b }  columns { c } }`"""
        made = [result for result in first.op.results if result in second.reads]
        sources: dict[SSAValue, SSAValue] = {result: first.op.block.args[result.index] for result in made}
        for result in made:
            del second.reads[result]
        op = self.with_results_of_both(first.op, second.op, sources)
        for inner in list(second.op.block.ops):
            detach(inner)
            if inner is columns.nest:
                op.block.add_op(inner)
            else:
                op.block.insert_op_before(inner, rows.nest)
        locals_ = [
            self.collect(op, type_, COMBINERS[name], rows, columns)
            for name, type_ in zip(columns.reduction.combiner_names, columns.reduction.result_types, strict=True)
        ]
        self.move_body(rows, columns, locals_)
        self.hand_out(columns, locals_)
        for former in (first.op, second.op):
            del self.fuser.kernels[former]
            erase(former)
        self.fuser.kernels[op] = Kernel(op)
        return op

    def with_results_of_both(
        self, first: loop.KernelOp, second: loop.KernelOp, sources: dict[SSAValue, SSAValue]
    ) -> loop.KernelOp:
        """A kernel with the body of the first and the results of both; the second's reads of `sources` read them."""
        results = [*first.results, *second.results]
        op = loop.KernelOp.create(
            result_types=[result.type for result in results],
            properties={"kernel_name": fused_name(first, second)},
            regions=[first.detach_region(0)],
            location=fused([first.location, second.location]),
        )
        assert second.parent is not None
        second.parent.insert_op_before(op, second)
        for read in [inner for inner in all_ops(second.block) if isinstance(inner, loop.ReadOp)]:
            if read.source in sources:
                read.operands[0] = sources[read.source]
        for argument in second.block.args:
            destination = op.block.insert_arg(argument.type, len(op.block.args))
            destination.name_hint = argument.name_hint
            argument.replace_all_uses_with(destination)
        for result, replacement in zip(results, op.results, strict=True):
            replacement.name_hint = result.name_hint
            result.replace_all_uses_with(replacement)
            self.fuser.rename(result, replacement)
        return op

    def collect(
        self, op: loop.KernelOp, type_: Attribute, combiner: Combiner, rows: Rows, columns: Columns
    ) -> SSAValue:
        """A local for one result of the reduction, cleared before the rows."""
        local = loop.LocalOp.make(type_, columns.nest.sizes)
        assert op.block.first_op is not None
        op.block.insert_op_before(local, op.block.first_op)
        neutral = constant(identity_value(combiner, type_), type_)
        clear = loop.ParallelOp.make(columns.nest.sizes)
        places = [dim(k) for k in range(clear.rank)]
        clear.block.add_op(loop.WriteOp.make(neutral.result, local.buffer, clear.indices, places))
        for added in (neutral, clear):
            added.location = columns.reduction.location
            op.block.insert_op_before(added, rows.nest)
        return local.buffer

    def move_body(self, rows: Rows, columns: Columns, locals_: Sequence[SSAValue]) -> None:
        """Computes what a column's reduction yields where the rows pass by, and combines it into the locals."""
        reduction = columns.reduction
        values: dict[SSAValue, SSAValue] = dict(zip(columns.nest.indices, rows.columns, strict=True))
        values.update(zip(reduction.indices, rows.rows, strict=True))
        block = rows.leaf.block
        writes = [inner for inner in block.ops if isinstance(inner, loop.WriteOp)]
        for inner in (*columns.before, *reduction.block.ops):
            if isinstance(inner, loop.YieldOp):
                continue
            made = inner.clone(values)
            block.add_op(made)
            if isinstance(made, loop.ReadOp) and (write := _writer(writes, made)) is not None:
                values[SSAValue.get(inner)] = guarded_value(made, write.value)
                erase(made)
        places = [dim(k) for k in range(len(rows.columns))]
        for yielded, local, name in zip(reduction.yielded.operands, locals_, reduction.combiner_names, strict=True):
            value = values.get(yielded, yielded)
            write = loop.WriteOp.make(value, local, rows.columns, places, name)
            write.location = reduction.location
            block.add_op(write)

    def hand_out(self, columns: Columns, locals_: Sequence[SSAValue]) -> None:
        """Lets the rest of each column read what was collected."""
        nest, reduction = columns.nest, columns.reduction
        for result, local in zip(reduction.results, locals_, strict=True):
            read = loop.ReadOp.make(local, nest.indices, [dim(k) for k in range(nest.rank)])
            read.location = reduction.location
            nest.block.insert_op_before(read, reduction)
            result.replace_all_uses_with(read.result)
        erase(reduction)


def matches(first: Kernel, second: Kernel, rows: Rows, columns: Columns) -> set[SSAValue]:
    """The tensors of which each column reads, row by row, just what the first kernel reads or writes there."""
    own = dict(zip(columns.nest.indices, rows.columns, strict=True))
    own.update(zip(columns.reduction.indices, rows.rows, strict=True))
    places: dict[SSAValue, list[AccessOp]] = {}
    for op in all_ops(rows.nest.block):
        if isinstance(op, loop.ReadOp) or (isinstance(op, loop.WriteOp) and op.parent is rows.leaf.block):
            places.setdefault(accessed(op), []).append(op)
    found: set[SSAValue] = set()
    for tensor, reads in second.reads.items():
        made = tensor.owner is first.op
        touched = places.get(first.op.block.args[tensor.index] if made else tensor, ())  # type: ignore[attr-defined]
        if all(any(_same_place(read, own, other) for other in touched) for read in reads):
            found.add(tensor)
    return found


def _same_place(read: loop.ReadOp, own: dict[SSAValue, SSAValue], other: AccessOp) -> bool:
    indices = [own.get(index, index) for index in index_operands(read)]
    return indices == list(index_operands(other)) and read.properties["access"] == other.properties["access"]


def _writer(writes: Sequence[loop.WriteOp], read: loop.ReadOp) -> loop.WriteOp | None:
    """The write that made what is read."""
    return next((op for op in writes if op.target is read.source and same_place(op, read)), None)


class LoopFuseColumns(ModulePass):
    """Have kernels that go over rows combine the columns of what they read or make."""

    name = "loop-fuse-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function, kernels in functions_with_kernels(op):
            ColumnFuser(function, kernels).run()

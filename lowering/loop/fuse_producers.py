"""`loop-fuse-producers`: computes pointwise producers where their values are read, whatever the index map.

The producer's body moves to the read, and is copied only where that repeats nothing expensive and moves no more
bytes than keeping the tensor. Readers are visited last to first, so every op moves once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.loop.ops import INDEX, AccessOp
from ...ir.shapes import sizes_of
from ...ir.target import target_of
from ..analysis import costs
from ..analysis.accesses import enclosing_nests, guard_of, index_operands, substitute_indices
from ..analysis.kernels import Kernel, functions_with_kernels
from ..analysis.sizes import Sizes
from ..applications import permitted
from .moves import detach, erase, fused_name

# -- legality ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pointwise:
    """A kernel that computes each element of its one result from scalars, by the ops in `ops`."""

    kernel: Kernel
    ops: tuple[Operation, ...]
    write: loop.WriteOp

    @property
    def indices(self) -> Sequence[SSAValue]:
        nest = self.kernel.nest
        return () if nest is None else nest.indices

    @property
    def result(self) -> SSAValue:
        return SSAValue.get(self.kernel.op)

    def describe_move(self) -> str:
        return f"move {self.kernel.op.kernel_name.data} to its readers"

    @property
    def is_expensive(self) -> bool:
        return any(costs.is_expensive(op) for op in self.ops)

    @property
    def ops_on_data(self) -> int:
        """How many ops do not follow from indices and constants alone, as the guard of a padded read does."""
        places: set[SSAValue] = {*self.indices}
        for op in self.ops:
            if not isinstance(op, loop.ReadOp) and places.issuperset(op.operands):
                places.update(op.results)
        return sum(places.isdisjoint(op.results) for op in self.ops)


def as_pointwise(kernel: Kernel) -> Pointwise | None:
    """The kernel as a pointwise one, if it is."""
    if len(kernel.op.results) != 1 or kernel.op.operands or kernel.combines or kernel.asserts:
        return None
    nests = kernel.nests
    if not all(isinstance(nest, loop.ParallelOp) for nest in nests):
        return None
    ops = [op for op in kernel.op.block.ops if op not in nests] + [op for nest in nests for op in nest.block.ops]
    last = ops.pop()
    if not isinstance(last, loop.WriteOp) or any(op.regions or isinstance(op, loop.WriteOp) for op in ops):
        return None
    indices = [index for nest in nests for index in nest.indices]
    plain = [result.as_dim for result in last.map.results] == list(range(len(indices)))
    if not plain or list(index_operands(last)) != indices:
        return None
    return Pointwise(kernel, tuple(ops), last)


# -- cost --------------------------------------------------------------------------------------------


class Fuser:
    """Fuses the producers of one function."""

    def __init__(self, kernels: Sequence[loop.KernelOp]):
        first, *_ = kernels
        self.sizes = Sizes.at(first)
        self.is_gpu = target_of(first).is_gpu
        self.kernels = {op: Kernel(op) for op in kernels}

    def run(self) -> None:
        for kernel in reversed(list(self.kernels.values())):
            pointwise = as_pointwise(kernel)
            if pointwise is not None:
                self.fuse(pointwise)

    def fuse(self, producer: Pointwise) -> None:
        """Moves or copies the producer to its readers where that pays."""
        reads = self.reads_of(producer)
        if not reads or not self.pays(producer, reads) or not permitted(producer.describe_move):
            return
        for read, consumer in reads[:-1]:
            inline(producer, read, consumer, self.sizes, move=False)
        inline(producer, *reads[-1], self.sizes, move=True)
        del self.kernels[producer.kernel.op]
        erase(producer.kernel.op)

    def reads_of(self, producer: Pointwise) -> list[tuple[loop.ReadOp, Kernel]]:
        """All reads of the result with their kernels; none if something else uses it, too."""
        reads: list[tuple[loop.ReadOp, Kernel]] = []
        for use in producer.result.uses:
            read = use.operation
            if not isinstance(read, loop.ReadOp):
                return []
            *_, outermost = (read, *enclosing_nests(read))
            around = outermost.parent_op()
            assert isinstance(around, loop.KernelOp)
            kernel = self.kernels[around]
            if kernel.is_product and isinstance(read.parent_op(), loop.ReduceOp):
                return []  # a product reads its factors from memory
            reads.append((read, kernel))
        return _without_repetition(reads)

    def pays(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> bool:
        tests = (self.within_limits, self.repeats_little, self.saves_bytes)
        return all(test(producer, reads) for test in tests)

    def within_limits(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> bool:
        inputs = producer.kernel.reads
        for consumer in {consumer for _, consumer in reads}:
            copies = [reader for _, reader in reads].count(consumer)
            tensors = len(consumer.reads.keys() | inputs) + len(consumer.op.results)
            if consumer.size + copies * len(producer.ops) > costs.MAX_OPS or tensors > costs.MAX_TENSORS:
                return False
        return True

    def repeats_little(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> bool:
        """Whether no element is computed twice, or computing it is cheap."""
        sizes = self.sizes
        nest = producer.kernel.nest
        elements = sizes.volume(() if nest is None else nest.sizes)
        runs = [costs.executions(read, sizes) for read, _ in reads]
        if sum(runs) <= elements:
            return True
        limit = costs.CHEAP_COPY_OPS if max(runs) <= elements else costs.CHEAP_REPEATED_OPS
        # What a GPU's kernel keeps in a local is computed at each read of it anyway.
        count = producer.ops_on_data if self.is_gpu else len(producer.ops)
        return count <= limit and not producer.is_expensive

    def saves_bytes(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> bool:
        """Whether all readers together move no more than they do without the copies."""
        before, after = self.bytes_read(producer, reads)
        return after <= before + self.spared(producer)

    def bytes_read(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> tuple[int, int]:
        """What the producer reads and what its readers read of it; and what these read instead, with copies."""
        consumers = {consumer for _, consumer in reads}
        sizes = self.sizes
        inputs = {tensor: costs.read_bytes(found, sizes) for tensor, found in producer.kernel.reads.items()}
        added = sum(size for consumer in consumers for tensor, size in inputs.items() if tensor not in consumer.reads)
        kept = sum(costs.read_bytes(consumer.reads[producer.result], sizes) for consumer in consumers)
        return sum(inputs.values()) + kept, added

    def spared(self, producer: Pointwise) -> int:
        """What goes away with the producer: nothing, since it could yet be one kernel with one of its readers."""
        return 0


def is_seed(read: loop.ReadOp) -> bool:
    """Whether a read is of one number that is there in any case, and only seeds generators: they take one seed for all
    lanes, so that no guard may make it vary."""
    places = zip(read.map.results, sizes_of(read.source.type), strict=True)
    exists = all(place.is_constant and size.is_constant and place.constant < size.constant for place, size in places)
    return exists and all(isinstance(use.operation, loop.PhiloxOp) for use in read.result.uses)


def _without_repetition(reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> list[tuple[loop.ReadOp, Kernel]]:
    """Lets one read of a block serve all others of the same element in it."""
    kept: dict[object, tuple[loop.ReadOp, Kernel]] = {}
    for read, kernel in reads:
        key = (read.parent, read.properties["access"], tuple(read.operands))
        if key not in kept:
            kept[key] = (read, kernel)
            continue
        other = kept[key][0]
        first, second = (read, other) if read.is_before_in_block(other) else (other, read)
        second.result.replace_all_uses_with(first.result)
        kernel.forget(second)
        erase(second)
        kept[key] = (first, kernel)
    return list(kept.values())


# -- rewriting ---------------------------------------------------------------------------------------


def inline(producer: Pointwise, read: loop.ReadOp, consumer: Kernel, sizes: Sizes, *, move: bool) -> None:
    """`%v = loop.read %p[f]  →  the body of %p's kernel at f`, as copies unless it may move."""
    _Inliner(producer, read, consumer, sizes).run(move)
    consumer.forget(read)
    consumer.size += len(producer.ops) - 1
    consumer.op.properties["kernel_name"] = fused_name(producer.kernel.op, consumer.op)
    erase(read)


class _Inliner:
    """One inlining: the producer's index k becomes expression k of the read's access."""

    def __init__(self, producer: Pointwise, read: loop.ReadOp, consumer: Kernel, sizes: Sizes):
        self.producer = producer
        self.read = read
        self.consumer = consumer
        self.sizes = sizes
        self.guard = guard_of(read)
        self.indices = list(index_operands(read))
        results = read.map.results
        self.exprs = dict(zip(producer.indices, results, strict=True))
        self.values: dict[SSAValue, SSAValue] = {
            index: self.indices[position]
            for index, result in self.exprs.items()
            if (position := result.as_dim) is not None
        }

    def run(self, move: bool) -> None:
        for op in self.producer.ops:
            self.place(op, move)
        written = self.producer.write.value
        value = self.values.get(written, written)
        if self.guard is not None and not (isinstance(written.owner, loop.ReadOp) and self.gives_other(value.owner)):
            value = self.add(arith.SelectOp(self.guard[0], value, self.guard[1]))
        self.read.result.replace_all_uses_with(value)

    def place(self, op: Operation, move: bool) -> None:
        if isinstance(op, loop.ReadOp) and self.guard is not None and not is_seed(op):
            self.values[op.result] = self.guarded(op, self.guard[0])
            return
        if not isinstance(op, AccessOp):
            self.materialize_indices(op)
        operands = [self.values.get(operand, operand) for operand in op.operands]
        if move:
            detach(op)
            op.operands = operands
            placed = op
        else:
            placed = copy_op(op, operands)
            self.values.update(zip(op.results, placed.results, strict=True))
        if isinstance(placed, AccessOp):
            self.compose(placed)
        self.insert(placed)
        if isinstance(placed, loop.ReadOp):
            self.consumer.note(placed)

    def compose(self, op: AccessOp) -> None:
        """Replaces what is left of the producer's indices by their expressions."""
        if any(operand in self.exprs for operand in index_operands(op)):
            substitute_indices(op, self.exprs, self.indices, self.sizes)

    def guarded(self, read: loop.ReadOp, guard: SSAValue) -> SSAValue:
        """The read under the guard of the one it stands for; elsewhere it gives 1, which is safe to divide by."""
        indices = [self.values.get(index, index) for index in index_operands(read)]
        own = guard_of(read)
        if own is not None:
            condition, other = (self.values.get(value, value) for value in own)
            guard = self.add(arith.AndIOp(guard, condition, i1))
        else:
            other = self.add(_one(read.result.type))
        placed = loop.ReadOp.make(read.source, indices, read.map.results, guard, other)
        placed.location = read.location
        self.compose(placed)
        self.insert(placed)
        self.consumer.note(placed)
        return placed.result

    def gives_other(self, placed: Operation | Block) -> bool:
        """Whether a read under the guard of the one it stands for gives elsewhere what that one would."""
        own = guard_of(placed) if isinstance(placed, loop.ReadOp) else None
        return self.guard is not None and own is not None and _same_constant(own[1], self.guard[1])

    def materialize_indices(self, op: Operation) -> None:
        """Indices that are used as plain operands become `loop.index` values."""
        for operand in op.operands:
            if operand in self.exprs and operand not in self.values:
                self.values[operand] = self.add(loop.IndexOp.make(self.indices, self.exprs[operand], INDEX))

    def insert(self, op: Operation) -> None:
        block = self.read.parent
        assert block is not None
        block.insert_op_before(op, self.read)

    def add(self, op: Operation) -> SSAValue:
        op.location = self.read.location
        self.insert(op)
        return SSAValue.get(op)


def copy_op(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The op without regions on other operands."""
    return type(op).create(
        operands=operands,
        result_types=op.result_types,
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
    )


def _same_constant(first: SSAValue, second: SSAValue) -> bool:
    one, other = first.owner, second.owner
    return isinstance(one, arith.ConstantOp) and isinstance(other, arith.ConstantOp) and one.value == other.value


def _one(type_: Attribute) -> arith.ConstantOp:
    if isinstance(type_, AnyFloat):
        return arith.ConstantOp(FloatAttr(1.0, type_))
    assert isinstance(type_, IntegerType | IndexType)
    return arith.ConstantOp(IntegerAttr(1, type_))


class LoopFuseProducers(ModulePass):
    """Compute pointwise producers where their values are read."""

    name = "loop-fuse-producers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            Fuser(kernels).run()

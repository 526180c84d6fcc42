"""The loop kernels of a function, as fusion sees them: what each reads, and which must come before which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import DefaultResource, MemoryEffectKind, Resource, get_effects

from ...ir import loop
from ...ir.definitions import definitions_of, symbols_of
from ...ir.graph.calls import Checks
from .accesses import all_ops, nests_of, only
from .contractions import contraction_of
from .costs import read_bytes, tensor_bytes
from .sizes import Sizes


def functions_with_kernels(module: ModuleOp) -> Iterator[tuple[FuncOp, list[loop.KernelOp]]]:
    """Each function of a module with the kernels of its body, in order."""
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            kernels = [op for op in function.body.block.ops if isinstance(op, loop.KernelOp)]
            if kernels:
                yield function, kernels


class Kernel:
    """A kernel with its reads of tensors of the function; passes keep it up to date as they rewrite."""

    def __init__(self, op: loop.KernelOp):
        self.op = op
        self.reads: dict[SSAValue, list[loop.ReadOp]] = {}
        """The reads by tensor."""
        self.captured: set[Operation] = set()
        """The ops of the function whose results the kernel uses."""
        ops = all_ops(op.block)
        self.size = len(ops)
        self.combines = False
        """Whether it combines into memory, so that an element is written more than once."""
        self.asserts = False
        self.is_product = contraction_of(op) is not None
        """Whether it sums up a product of matrices."""
        for inner in ops:
            if isinstance(inner, loop.ReadOp):
                self.note(inner)
            elif isinstance(inner, loop.WriteOp):
                self.combines = self.combines or "combiner" in inner.properties
            elif isinstance(inner, loop.AssertOp):
                self.asserts = True
            self.capture(inner)
        self.capture(op)

    def capture(self, op: Operation) -> None:
        function_body = self.op.parent
        for operand in op.operands:
            if isinstance(operand, OpResult) and operand.op.parent is function_body:
                self.captured.add(operand.op)

    def note(self, read: loop.ReadOp) -> None:
        """Counts a read if it is of a tensor of the function."""
        source = read.source
        if isinstance(source.type, TensorType):
            self.reads.setdefault(source, []).append(read)

    def forget(self, read: loop.ReadOp) -> None:
        """No longer counts a read."""
        reads = self.reads[read.source]
        reads.remove(read)
        if not reads:
            del self.reads[read.source]

    def absorb(self, other: Kernel, op: loop.KernelOp) -> None:
        """Counts what another kernel does, too, which may be a product; `op` does both now."""
        self.op = op
        for tensor, reads in other.reads.items():
            self.reads.setdefault(tensor, []).extend(reads)
        self.size += other.size
        self.asserts = self.asserts or other.asserts
        self.is_product = other.is_product

    @property
    def nest(self) -> loop.NestOp | None:
        """The one nest of the kernel's body."""
        return only(self.nests)

    @property
    def nests(self) -> list[loop.NestOp]:
        return nests_of(self.op.block)

    def writes(self, result: SSAValue) -> list[loop.WriteOp]:
        """The writes that make a result."""
        destination = self.op.block.args[result.index]  # type: ignore[attr-defined]
        return [use.operation for use in destination.uses if isinstance(use.operation, loop.WriteOp)]

    def bytes_moved(self, sizes: Sizes) -> int:
        """What `costs.bytes_moved` says, without a walk."""
        read = sum(read_bytes(reads, sizes) for reads in self.reads.values())
        return read + sum(tensor_bytes(value, sizes) for value in (*self.op.operands, *self.op.results))


# -- order -------------------------------------------------------------------------------------------


class Node:
    """An op of a function's body: what it needs directly, and everything that comes before it, as bits."""

    __slots__ = ("ancestors", "bits", "op", "position", "predecessors", "successors")

    def __init__(self, op: Operation, position: int):
        self.op = op
        self.position = position
        self.bits = 1 << position
        self.ancestors = 0
        self.predecessors: set[Node] = set()
        self.successors: set[Node] = set()

    def need(self, other: Node) -> None:
        """An edge; what comes before the node, and all that need it, is told by `Order`, once it has all edges."""
        if other is not self:
            self.predecessors.add(other)
            other.successors.add(self)


class Order:
    """The dependences between the ops of a block: values, symbols, and effects in program order."""

    def __init__(self, block: Block, kernels: Mapping[Operation, Kernel]):
        self.block = block
        self.kernels = kernels
        self.nodes = {op: Node(op, position) for position, op in enumerate(block.ops)}
        self._add_values()
        self._add_symbols()
        self._add_effects()
        for node in self.nodes.values():  # in program order, in which each comes after what it needs
            for needed in node.predecessors:
                node.ancestors |= needed.ancestors | needed.bits

    def _add_values(self) -> None:
        for op, node in self.nodes.items():
            if op in self.kernels:
                for needed in self.kernels[op].captured:
                    node.need(self.nodes[needed])
                continue
            for operand in op.operands:  # kernels alone hold other ops
                if isinstance(operand, OpResult):
                    node.need(self.nodes[operand.op])

    def _add_symbols(self) -> None:
        """Orders what names a symbol behind the op that defines it, and behind the checks of it that come first."""
        known: dict[str, Node] = {}
        for op, node in self.nodes.items():
            for name in symbols_of(op) & known.keys() if known else ():
                node.need(known[name])
                if Checks() in _resources(op):
                    known[name] = node
            known.update((definition.name, node) for definition in definitions_of(op))

    def _add_effects(self) -> None:
        """Orders ops with effects on one resource; an effect on memory at large is a barrier for all ops."""
        last_of: dict[Resource, Node] = {}
        barrier: Node | None = None
        since_barrier: list[Node] = []
        for node in self.nodes.values():
            if barrier is not None:
                node.need(barrier)
            resources = _resources(node.op)
            if DefaultResource() in resources:
                for earlier in since_barrier:
                    node.need(earlier)
                barrier, since_barrier = node, []
                continue
            since_barrier.append(node)
            for resource in resources:
                if resource in last_of:
                    node.need(last_of[resource])
                last_of[resource] = node

    def joined_by_third(self, first: Operation, second: Operation) -> bool:
        """Whether an op between the two needs `first` and is needed by `second`, or `second` comes first."""
        one, other = self.nodes[first], self.nodes[second]
        if one.ancestors & other.bits:
            return True
        return any(one.bits & needed.ancestors for needed in other.predecessors if needed is not one)

    def independent(self, first: Operation, second: Operation) -> bool:
        one, other = self.nodes[first], self.nodes[second]
        return not (one.ancestors & other.bits or other.ancestors & one.bits)

    def fuse(self, first: Operation, second: Operation, fused: Operation) -> None:
        """Puts one node in the place of two."""
        one, other = self.nodes.pop(first), self.nodes.pop(second)
        other.op = fused  # may be `second` itself
        other.bits |= one.bits
        for node in one.predecessors - {other}:
            node.successors.discard(one)
            other.need(node)
        for node in one.successors - {other}:
            node.predecessors.discard(one)
            node.need(other)
        other.predecessors.discard(one)
        other.successors.discard(one)
        other.ancestors = (other.ancestors | one.ancestors) & ~other.bits
        self.nodes[fused] = other
        self._propagate(other)

    def _propagate(self, node: Node) -> None:
        pending = [node]
        while pending:
            current = pending.pop()
            known = current.ancestors | current.bits
            for successor in current.successors:
                if known & ~successor.ancestors:
                    successor.ancestors |= known
                    pending.append(successor)

    def rearrange(self) -> None:
        """Moves ops of the block into an order that respects all dependences, changing little."""
        missing = {node: len(node.predecessors) for node in self.nodes.values()}
        ready = [(node.position, node) for node, count in missing.items() if not count]
        heapify(ready)
        expected = self.block.first_op
        while ready:
            _, node = heappop(ready)
            if node.op is expected:
                expected = node.op.next_op
            else:
                self.block.detach_op(node.op)
                assert expected is not None
                self.block.insert_op_before(node.op, expected)
            for successor in node.successors:
                missing[successor] -= 1
                if not missing[successor]:
                    heappush(ready, (successor.position, successor))


def _resources(op: Operation) -> set[Resource]:
    """What an op has effects on; kernels write nothing but their results."""
    if isinstance(op, loop.KernelOp):
        return set()
    effects = get_effects(op)
    if effects is None:
        return {DefaultResource()}
    return {effect.resource for effect in effects if effect.kind is not MemoryEffectKind.ALLOC}

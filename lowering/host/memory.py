"""Which values share memory, and until when it is used: what every pass of this level asks before it moves memory.

An extern may return a view of any operand, so its results count as sharing memory with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...ir import graph, host

SHARING = (host.ViewOp, host.ExternOp, graph.ExternOp)
"""Ops whose results may lie in the memory of their operands."""


def host_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions of a module that have a body."""
    return (op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks)


def is_memory(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType | host.BufferType)


def erase(op: Operation) -> None:
    """Takes an op whose results nobody uses out of its block."""
    block = op.parent
    assert block is not None
    block.erase_op(op)


class MemoryUse:
    """The memory behind each value of a block, named by the value that brought it into being."""

    def __init__(self, block: Block) -> None:
        self.roots: dict[SSAValue, frozenset[SSAValue]] = {}
        self.positions: dict[Operation, int] = {}
        self.users: dict[SSAValue, list[Operation]] = {}
        for argument in block.args:
            self._add(argument, frozenset((argument,)))
        for position, op in enumerate(block.ops):
            self._visit(op, position)

    def _visit(self, op: Operation, position: int) -> None:
        self.positions[op] = position
        used = [operand for inner in op.walk() for operand in inner.operands]
        for root in {root for operand in used for root in self.roots.get(operand, ())}:
            self.users[root].append(op)
        shared = frozenset(root for value in op.operands for root in self.roots.get(value, ()))
        for result in op.results:
            self._add(result, _roots_of(op, result, shared))

    def _add(self, value: SSAValue, roots: frozenset[SSAValue]) -> None:
        if is_memory(value):
            self.roots[value] = roots
            for root in roots:
                self.users.setdefault(root, [])

    def first(self, root: SSAValue) -> int:
        """The position of the first use of the memory that `root` brought into being."""
        return self.positions[self.users[root][0]]

    def last(self, root: SSAValue) -> int:
        return self.positions[self.users[root][-1]]

    def ends_at(self, value: SSAValue, op: Operation) -> bool:
        """Whether nothing after `op` uses the memory of `value`."""
        position = self.positions[op]
        return all(self.last(root) <= position for root in self.roots[value])

    def merge(self, old: SSAValue, new: SSAValue) -> None:
        """Notes that what lay in `old` now lies in `new`."""
        users = {*self.users.pop(old), *self.users[new]}
        self.users[new] = sorted(users, key=self.positions.__getitem__)
        for value, roots in self.roots.items():
            if old in roots:
                self.roots[value] = roots - {old} | {new}

    def share(self, first: SSAValue, second: SSAValue) -> bool:
        """Whether the two may lie in the same memory."""
        return not self.roots[first].isdisjoint(self.roots[second])


def _roots_of(op: Operation, result: SSAValue, shared: frozenset[SSAValue]) -> frozenset[SSAValue]:
    if isinstance(op, host.ViewOp):
        return shared
    return shared | {result} if isinstance(op, SHARING) else frozenset((result,))

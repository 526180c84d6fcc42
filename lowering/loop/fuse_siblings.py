"""`loop-fuse-siblings`: makes kernels that do not depend on each other one, where they read the same tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ..analysis import costs
from ..analysis.kernels import Kernel, Order, functions_with_kernels
from ..applications import permitted
from .alignment import Pairs
from .fusion import KernelFuser, Obstacle, join_text


class SiblingFuser:
    """Fuses kernels of a function that read one tensor, tensors with most bytes first."""

    def __init__(self, function: FuncOp, kernels: Sequence[loop.KernelOp]):
        self.fuser = KernelFuser(kernels)
        self.order = Order(function.body.block, self.fuser.kernels)
        self.fused_into: dict[Kernel, Kernel] = {}
        self.known_bytes: dict[Kernel, int] = {}

    def run(self) -> None:
        for group in self.groups():
            self.fuse_group(group)
        self.order.rearrange()

    def groups(self) -> list[list[Kernel]]:
        """The readers of each tensor that several kernels read, by the bytes that one reading would save."""
        readers: dict[SSAValue, list[Kernel]] = {}
        for kernel in self.fuser.kernels.values():
            for tensor in kernel.reads:
                readers.setdefault(tensor, []).append(kernel)
        sizes = self.fuser.sizes
        shared = [(costs.tensor_bytes(tensor, sizes), group) for tensor, group in readers.items() if len(group) > 1]
        return [group for _, group in sorted(shared, key=lambda entry: -entry[0])]

    def current(self, kernel: Kernel) -> Kernel:
        """The kernel that one has become part of."""
        while kernel in self.fused_into:
            kernel = self.fused_into[kernel]
        return kernel

    def fuse_group(self, group: Sequence[Kernel]) -> None:
        left = list(dict.fromkeys(self.current(kernel) for kernel in group))
        while left:
            left.sort(key=lambda kernel: self.order.nodes[kernel.op].position)
            first = left.pop(0)
            for second in left:
                plan = self.plan(first, second)
                if not isinstance(plan, Obstacle) and permitted(partial(join_text, first=first, second=second)):
                    self.fuse(first, second, plan)
                    break

    def plan(self, first: Kernel, second: Kernel) -> Pairs | Obstacle:
        if not self.order.independent(first.op, second.op):
            return Obstacle("one needs the other")
        if not self.is_worthwhile(first, second):
            return Obstacle("they share too little")
        return self.fuser.plan(first, second)

    def is_worthwhile(self, first: Kernel, second: Kernel) -> bool:
        sizes = self.fuser.sizes
        reads = second.reads
        common = first.reads.keys() & reads.keys()
        saved = sum(costs.read_bytes(reads[tensor], sizes) for tensor in common)
        return saved >= costs.MIN_SHARE * min(self.bytes_moved(first), self.bytes_moved(second))

    def bytes_moved(self, kernel: Kernel) -> int:
        if kernel not in self.known_bytes:
            self.known_bytes[kernel] = kernel.bytes_moved(self.fuser.sizes)
        return self.known_bytes[kernel]

    def fuse(self, first: Kernel, second: Kernel, pairs: Pairs) -> None:
        old = first.op, second.op
        self.fuser.fuse(first, second, pairs)
        self.order.fuse(*old, second.op)
        self.fused_into[first] = second
        del self.known_bytes[second]


class LoopFuseSiblings(ModulePass):
    """Make kernels that do not depend on each other one, where they read the same tensors."""

    name = "loop-fuse-siblings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function, kernels in functions_with_kernels(op):
            SiblingFuser(function, kernels).run()

"""`loop-fuse-nests`: makes a kernel and a kernel that reads its results one, along the indices they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...ir import loop
from ..analysis import costs
from ..analysis.kernels import Kernel, Order, functions_with_kernels
from ..applications import permitted
from .alignment import Pairs
from .fusion import KernelFuser, Obstacle, join_text


class NestFuser:
    """Fuses each kernel of a function, first to last, with the kernels that make what it reads."""

    def __init__(self, function: FuncOp, kernels: Sequence[loop.KernelOp]):
        self.fuser = KernelFuser(kernels)
        self.order = Order(function.body.block, self.fuser.kernels)

    def run(self) -> None:
        for kernel in list(self.fuser.kernels.values()):
            self.fuse_with_producers(kernel)
        self.order.rearrange()

    def fuse_with_producers(self, kernel: Kernel) -> None:
        """Takes producers by the bytes they share with the kernel, most first."""
        refused: set[Operation] = set()
        while (producer := self.best_producer(kernel, refused)) is not None:
            plan = self.plan(producer, kernel)
            if isinstance(plan, Obstacle) or not permitted(partial(join_text, first=producer, second=kernel)):
                refused.add(producer.op)
                continue
            old = producer.op, kernel.op
            self.fuser.fuse(producer, kernel, plan)
            self.order.fuse(*old, kernel.op)

    def plan(self, producer: Kernel, kernel: Kernel, *, split: bool = True) -> Pairs | Obstacle:
        if self.order.joined_by_third(producer.op, kernel.op):
            return Obstacle("another op needs the first and is needed by the second")
        return self.fuser.plan(producer, kernel, split=split)

    def best_producer(self, kernel: Kernel, refused: set[Operation]) -> Kernel | None:
        shared: Counter[Operation] = Counter()
        for tensor in kernel.reads:
            owner = tensor.owner
            if isinstance(owner, loop.KernelOp) and owner not in refused:
                shared[owner] += costs.tensor_bytes(tensor, self.fuser.sizes)
        if not shared:
            return None
        return self.fuser.kernels[max(shared, key=lambda op: shared[op])]


@dataclass(frozen=True)
class Refusal:
    """Two kernels of which one reads from the other, and why they are two."""

    producer: loop.KernelOp
    consumer: loop.KernelOp
    reason: str


def refusals(function: FuncOp) -> list[Refusal]:
    """Why the kernels of a function are not fewer; changes nothing."""
    kernels = [op for op in function.body.block.ops if isinstance(op, loop.KernelOp)]
    if not kernels:
        return []
    fuser = NestFuser(function, kernels)
    found: list[Refusal] = []
    for consumer in fuser.fuser.kernels.values():
        producers = dict.fromkeys(tensor.owner for tensor in consumer.reads if isinstance(tensor.owner, loop.KernelOp))
        for op in producers:
            plan = fuser.plan(fuser.fuser.kernels[op], consumer, split=False)
            reason = plan.reason if isinstance(plan, Obstacle) else "nobody tried: they could be joined"
            found.append(Refusal(op, consumer.op, reason))
    return found


class LoopFuseNests(ModulePass):
    """Make a kernel and the kernels that it reads from one, along the indices they share."""

    name = "loop-fuse-nests"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function, kernels in functions_with_kernels(op):
            NestFuser(function, kernels).run()

"""`loop-fuse-leftovers`: computes at their reads those pointwise kernels that no other kernel could be joined with.

By now each would stay a kernel of its own, so copies may read more than where joining was still possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...ir import loop
from ..analysis import costs
from ..analysis.kernels import Kernel, functions_with_kernels
from ..schedule.model import MATH_WORK
from .fuse_producers import Fuser, Pointwise


class LeftoverFuser(Fuser):
    """Weighs copies against the producer as a kernel of its own."""

    def repeats_little(self, producer: Pointwise, reads: Sequence[tuple[loop.ReadOp, Kernel]]) -> bool:
        """On a GPU also where what is computed again takes less time than the memory that it spares."""
        if super().repeats_little(producer, reads):
            return True
        elements = costs.tensor_bytes(producer.result, self.sizes) // costs.width_of(producer.result)
        runs = [costs.executions(read, self.sizes) for read, _ in reads]
        if not self.is_gpu or max(runs) > elements:
            return False
        before, after = self.bytes_read(producer, reads)
        spared = before + costs.tensor_bytes(producer.result, self.sizes) - after
        work = sum(MATH_WORK if costs.is_expensive(op) else 1 for op in producer.ops)
        return (sum(runs) - elements) * work <= costs.WORK_PER_BYTE * spared

    def spared(self, producer: Pointwise) -> int:
        return costs.tensor_bytes(producer.result, self.sizes) + costs.LAUNCH_BYTES


class LoopFuseLeftovers(ModulePass):
    """Compute at their reads the pointwise kernels that no other kernel could be joined with."""

    name = "loop-fuse-leftovers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            LeftoverFuser(kernels).run()

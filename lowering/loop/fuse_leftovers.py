"""`loop-fuse-leftovers`: computes at their reads those pointwise kernels that no other kernel could be joined with.

By now each would stay a kernel of its own, so copies may read more than where joining was still possible.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis import costs
from ..analysis.kernels import functions_with_kernels
from .fuse_producers import Fuser, Pointwise


class LeftoverFuser(Fuser):
    """Weighs copies against the producer as a kernel of its own."""

    def spared(self, producer: Pointwise) -> int:
        return costs.tensor_bytes(producer.result, self.sizes) + costs.LAUNCH_BYTES


class LoopFuseLeftovers(ModulePass):
    """Compute at their reads the pointwise kernels that no other kernel could be joined with."""

    name = "loop-fuse-leftovers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            LeftoverFuser(kernels).run()

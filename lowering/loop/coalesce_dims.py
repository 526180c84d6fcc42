"""`loop-coalesce-dims`: makes two neighbouring dimensions of a nest one where all accesses step through them evenly.

The accesses then hold divisions that vanish once they are linear offsets (`radix.linear_offset`).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import ONE, delinearize, dim, product
from ...ir.loop.ops import INDEX, AccessOp, extents_attr
from ..analysis.accesses import accessed, all_ops, buffer_strides, step
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from .nests import drop_index, replace_indices


class Coalescer:
    """Coalesces the dimensions of the nests of one kernel."""

    def __init__(self, kernel: loop.KernelOp):
        self.kernel = kernel
        self.sizes = Sizes.at(kernel)

    def run(self) -> None:
        for op in all_ops(self.kernel.block):
            if isinstance(op, loop.ParallelOp | loop.ReduceOp):
                for low, high in reversed(list(self.runs(op))):
                    self.coalesce(op, low, high)

    def runs(self, nest: loop.NestOp) -> Iterator[tuple[int, int]]:
        """The longest ranges of dimensions that can be one."""
        low = 0
        for high in range(1, nest.rank + 1):
            if high == nest.rank or not self.is_even(nest, high - 1):
                if high - low > 1:
                    yield low, high
                low = high

    def is_even(self, nest: loop.NestOp, position: int) -> bool:
        """Whether every step of an index is as long as the whole range of the next one."""
        outer, inner, extent = nest.indices[position], nest.indices[position + 1], nest.sizes[position + 1]
        for op in {use.operation: None for index in (outer, inner) for use in index.uses}:
            if not isinstance(op, AccessOp):
                return False
            strides = buffer_strides(accessed(op)) if isinstance(op, loop.ReadOp | loop.WriteOp) else (ONE,)
            long, short = step(op, outer, strides), step(op, inner, strides)
            if short is None or long != short * extent:
                return False
        return True

    def coalesce(self, nest: loop.NestOp, low: int, high: int) -> None:
        """`nest (i, j) to (2, 3) { b(i, j) }  →  nest (n) to (6) { b(n floordiv 3, n mod 3) }`."""
        extents, indices = nest.sizes, nest.indices[low:high]
        joined = nest.block.insert_arg(INDEX, low)
        joined.name_hint = indices[-1].name_hint
        size = product(extents[low:high])
        nest.properties["extents"] = extents_attr([*extents[:low], size, *extents[low:]])
        exprs = delinearize(dim(0), extents[low:high])
        replace_indices(dict(zip(indices, exprs, strict=True)), [joined], self.sizes)
        for position in range(high, low, -1):
            drop_index(nest, position)


class LoopCoalesceDims(ModulePass):
    """Make two neighbouring dimensions of a nest one where all accesses step through them evenly."""

    name = "loop-coalesce-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                Coalescer(kernel).run()

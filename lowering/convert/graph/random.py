"""Random bits: a word of Philox for each element, by its place in the tensor, so that no schedule changes it."""

from __future__ import annotations

from ....ir import graph, loop
from ....ir.expr import ZERO, contiguous_strides, linearize
from ....ir.graph.base import integer_of
from ....ir.shapes import sizes_of
from .kernels import Kernel
from .sources import Values, identity


def random(values: Values, op: graph.RandomOp) -> Kernel:
    kernel = Kernel.of(values, op)
    kernel.enter_parallel(op.sizes)
    seed = kernel.read(op.seed, [ZERO] * len(sizes_of(op.seed.type)))
    counter = kernel.index(kernel.indices, linearize(identity(len(op.sizes)), contiguous_strides(op.sizes)))
    kernel.write(kernel.add(loop.PhiloxOp.make(seed, counter, integer_of(op.stream))))
    return kernel

"""Tensors put together from parts: each element reads the part in whose place it lies, under a guard."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....ir import graph, loop
from ....ir.expr import ZERO, Domain, Expr, dim, floordiv, maximum, mod
from ....ir.graph.base import integer_of
from ....ir.shapes import sizes_of
from .kernels import Kernel
from .sources import Values, identity

MOST_PARTS = 8
"""A concatenation of more parts is a call: every element would pass too many guards."""


class Guard:
    """The conjunction of conditions on the index, as far as ranges do not decide them."""

    def __init__(self, kernel: Kernel, domain: Domain) -> None:
        self.kernel = kernel
        self.domain = domain
        self.value: SSAValue | None = None

    def require(self, condition: SSAValue) -> None:
        self.value = condition if self.value is None else self.kernel.apply(arith.AndIOp, self.value, condition)

    def require_inside(self, offset: Expr, size: Expr) -> None:
        """`0 <= offset < size`; one unsigned comparison says both."""
        above, below = self.domain.is_nonnegative(offset), self.domain.is_less(offset, size)
        if above and below:
            return
        kernel = self.kernel
        index = kernel.index(kernel.indices, offset)
        if below:
            self.require(kernel.compare("sge", index, kernel.constant(0, i64)))
        else:
            self.require(kernel.compare("slt" if above else "ult", index, kernel.index((), size)))

    def require_multiple(self, offset: Expr, step: Expr) -> None:
        """`offset mod step == 0`."""
        rest = self.domain.simplify(mod(offset, step))
        if rest != ZERO:
            kernel = self.kernel
            self.require(kernel.compare("eq", kernel.index(kernel.indices, rest), kernel.constant(0, i64)))

    def read(self, value: SSAValue, place: Sequence[Expr], other: SSAValue) -> SSAValue:
        """An element where the conditions hold, the other value elsewhere."""
        if self.value is None:
            return self.kernel.read(value, place)
        return self.kernel.read_where(self.value, value, place, other)


def _begin(values: Values, op: graph.GraphOp) -> tuple[Kernel, Domain]:
    kernel = Kernel.of(values, op)
    kernel.enter_parallel(op.sizes)
    return kernel, values.box(op.sizes).domain


def pad(values: Values, op: graph.PadOp) -> Kernel:
    kernel, domain = _begin(values, op)
    guard, sizes = Guard(kernel, domain), sizes_of(op.operand.type)
    place = [dim(k) - low for k, low in enumerate(op.low.results)]
    for offset, size in zip(place, sizes, strict=True):
        guard.require_inside(offset, size)
    around = kernel.constant(op.value.scalar, loop.scalar_type(op.element))
    kernel.write(guard.read(op.operand, place, around))
    return kernel


def insert_slice(values: Values, op: graph.InsertSliceOp) -> Kernel:
    kernel, domain = _begin(values, op)
    guard, place = Guard(kernel, domain), []
    bounds = zip(op.starts.results, op.steps.results, sizes_of(op.value.type), strict=True)
    for k, (start, step, size) in enumerate(bounds):
        offset = dim(k) - start
        guard.require_inside(offset, domain.simplify(maximum((size - 1) * step + 1, ZERO)))
        guard.require_multiple(offset, step)
        place.append(floordiv(offset, step))
    base = kernel.constant(0, loop.scalar_type(op.element)) if guard.value is None else kernel.read(op.operand)
    kernel.write(guard.read(op.value, place, base))
    return kernel


def cat(values: Values, op: graph.CatOp) -> Kernel:
    """Part after part: `part if inside else what the parts before say`."""
    kernel, domain = _begin(values, op)
    along = integer_of(op.dim)
    extents = [sizes_of(part.type)[along] for part in op.parts]
    value = kernel.constant(0, loop.scalar_type(op.element))
    for part, extent, start in zip(op.parts, extents, accumulate([ZERO, *extents]), strict=False):
        if extent == ZERO:
            continue
        guard, place = Guard(kernel, domain), list(identity(len(op.sizes)))
        place[along] = dim(along) - start
        guard.require_inside(place[along], extent)
        value = guard.read(part, place, value)
    kernel.write(value)
    return kernel

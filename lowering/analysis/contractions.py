"""Finds the product of matrices in a loop kernel: a sum of products of two reads, with what follows for each element.

Nothing marks such a kernel; it is what its nests say. `@` and `mm` on whatever views are one form here, since views
are index maps, and so is a product that pointwise kernels were joined to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...ir import loop
from ...ir.dtypes import BFLOAT16, FLOAT16, FLOAT32
from ...ir.expr import Expr
from .accesses import nests_of, only

NARROW = (BFLOAT16, FLOAT16)
"""Element types whose products are exact in f32, in which they are summed."""


@dataclass(frozen=True)
class Contraction:
    """`parallel (…, i, …, j, …) { reduce (k) [add] { lhs[…, i, k] * rhs[…, k, j] }  … }`."""

    nest: loop.ParallelOp
    reduction: loop.ReduceOp
    lhs: loop.ReadOp
    rhs: loop.ReadOp

    @cached_property
    def rows(self) -> tuple[SSAValue, ...]:
        """The indices that only the left factor has."""
        return self._only(self.lhs, self.rhs)

    @cached_property
    def columns(self) -> tuple[SSAValue, ...]:
        """The indices that only the right factor has."""
        return self._only(self.rhs, self.lhs)

    def _only(self, one: loop.ReadOp, other: loop.ReadOp) -> tuple[SSAValue, ...]:
        return tuple(index for index in self.nest.indices if index in one.indices and index not in other.indices)

    @property
    def row(self) -> SSAValue:
        """The last of the indices that only the left factor has."""
        *_, index = self.rows
        return index

    @property
    def column(self) -> SSAValue:
        """The last of the indices that only the right factor has."""
        *_, index = self.columns
        return index

    @property
    def extents(self) -> dict[SSAValue, Expr]:
        """The sizes of all indices."""
        nests = (self.nest, self.reduction)
        return {index: size for nest in nests for index, size in zip(nest.indices, nest.sizes, strict=True)}

    @property
    def is_wide(self) -> bool:
        """Whether the factors are f32, as they are of many sums along rows that are no products of matrices."""
        return bool(self.lhs.result.type == FLOAT32)

    @property
    def depth(self) -> SSAValue:
        """The index that is summed over."""
        (index,) = self.reduction.indices
        return index


def contraction_of(kernel: loop.KernelOp) -> Contraction | None:
    """The product that a kernel computes, if that is what it does."""
    nest = only(nests_of(kernel.block))
    if not isinstance(nest, loop.ParallelOp):
        return None
    reduction = only(nests_of(nest.block))
    if not isinstance(reduction, loop.ReduceOp):
        return None
    factors = factors_of(reduction)
    found = None if factors is None else Contraction(nest, reduction, *factors)
    return None if found is not None and found.is_wide and not (found.rows and found.columns) else found


def factors_of(reduction: loop.ReduceOp) -> tuple[loop.ReadOp, loop.ReadOp] | None:
    """The two reads, both along its one index, whose products a reduction sums up."""
    if reduction.rank != 1 or reduction.combiner_names != ("add",):
        return None
    (yielded,) = reduction.yielded.operands
    if not isinstance(yielded.owner, arith.MulfOp):
        return None
    reads = [_read_of(operand) for operand in yielded.owner.operands]
    if None in reads:
        return None
    first, second = (read for read in reads if read is not None)
    if len([*reduction.block.ops]) != (_OPS if first.result.type == FLOAT32 else _OPS + 2):
        return None
    if first.result.type != second.result.type or not all(_along(read, reduction) for read in (first, second)):
        return None
    return first, second


_OPS = 4
"""Of the body of such a sum: two reads, their product, and the end; each read may be widened."""


def _read_of(value: SSAValue) -> loop.ReadOp | None:
    """The read of f32 that a value is, or of a narrow float that it widens to f32."""
    if value.type != FLOAT32:
        return None
    read = value.owner.input.owner if isinstance(value.owner, arith.ExtFOp) else value.owner
    return read if isinstance(read, loop.ReadOp) and read.guard is None else None


def _along(read: loop.ReadOp, reduction: loop.ReduceOp) -> bool:
    return not set(reduction.indices).isdisjoint(read.indices)


__all__ = ["Contraction", "contraction_of", "factors_of"]

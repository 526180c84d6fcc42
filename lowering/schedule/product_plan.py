"""Lays a product of matrices on the programs of a GPU: the tile of a program, the order of tiles, where factors lie.

Programs are as many as run at once; where there are more tiles, each takes one after the other, so that the factors
of the next tile arrive while this one is finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import SSAValue

from ...ir import loop
from ...ir.expr import ONE, ZERO, Expr, ceildiv, const, linearize, minimum, product
from ...ir.product_schedule import ProductSchedule
from ...ir.target import Target
from ..analysis.contractions import Contraction
from .grid_plan import PIECE_ELEMENTS, GridPlan
from .model import KernelModel, op_work
from .product_costs import Epilogue, programs_at_once

GROUP = 8
"""Rows of tiles that are gone through together: their factors are still in the cache when the next column comes."""


@dataclass(frozen=True)
class Dim:
    """A dim of an array in memory: the loop index that steps through it, how often, and how far."""

    index: SSAValue
    size: Expr
    stride: Expr


@dataclass(frozen=True)
class Array:
    """What an access with linear offset touches: an array with a dim for each of its indices, the nearest last."""

    dims: tuple[Dim, ...]
    start: Expr

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements of its last dim are neighbours."""
        return self.dims[-1].stride == ONE


def array_of(
    op: loop.ReadOp | loop.WriteOp, strides: Sequence[Expr], extents: Mapping[SSAValue, Expr], axes: Sequence[SSAValue]
) -> Array | None:
    """The array that an access touches, its last two dims those of `axes`; None where it is not linear or lacks one."""
    offset = linearize(op.map.results, strides)
    coefficients = [offset.coefficient(k) for k in range(len(op.indices))]
    dims: list[Dim] = []
    for index, stride in zip(op.indices, coefficients, strict=True):
        if stride is None or stride.dims or index not in extents:
            return None
        dims.append(Dim(index, extents[index], stride))
    if not set(axes) <= {one.index for one in dims}:
        return None
    lead = [one for one in dims if one.index not in axes]
    last = [one for axis in axes for one in dims if one.index is axis]
    last.sort(key=lambda one: one.stride == ONE)
    start = offset.substitute_dims(dict.fromkeys(range(len(coefficients)), ZERO))
    return Array((*lead, *last), start)


@dataclass(frozen=True)
class ProductPlan(GridPlan):
    """How the kernel of a product is laid out; `row` and `column` are the dims of its nest along which tiles lie."""

    schedule: ProductSchedule = field(kw_only=True)
    programs: int = field(kw_only=True)
    row: int = field(kw_only=True)
    column: int = field(kw_only=True)

    @cached_property
    def tile_counts(self) -> tuple[Expr, Expr]:
        """Tiles along rows and columns."""
        assert self.nest is not None
        sizes, schedule = self.nest.sizes, self.schedule
        return ceildiv(sizes[self.row], schedule.rows), ceildiv(sizes[self.column], schedule.columns)

    @property
    def outer(self) -> tuple[int, ...]:
        """The dims of the nest for each of whose indices there is a product of its own, or a part of one."""
        assert self.nest is not None
        return tuple(k for k in range(self.nest.rank) if k not in (self.row, self.column))

    @property
    def tiles(self) -> Expr:
        assert self.nest is not None
        return product([*(self.nest.sizes[k] for k in self.outer), *self.tile_counts])

    @property
    def is_persistent(self) -> bool:
        """Whether a program takes several tiles."""
        return not (self.tiles.is_constant and self.tiles.constant <= self.programs)

    @property
    def grid(self) -> Expr:
        return minimum(self.tiles, const(self.programs)) if self.is_persistent else self.tiles


def epilogue_of(model: KernelModel, contraction: Contraction) -> Epilogue:
    """What follows the sum."""
    row, column = contraction.row, contraction.column
    outside = [access for access in model.accesses if not contraction.reduction.is_ancestor(access.op)]
    moved = sum(access.bytes for access in outside if row in access.indices and column in access.indices)
    work = sum(op_work(op) for op, _ in model.scalar_ops if not contraction.reduction.is_ancestor(op))
    return Epilogue(moved, work)


def plan_product(
    model: KernelModel, contraction: Contraction, schedule: ProductSchedule, target: Target
) -> ProductPlan:
    """The plan of a kernel under a schedule."""
    nest = contraction.nest
    row = list(nest.indices).index(contraction.row)
    column = list(nest.indices).index(contraction.column)
    widths = [1] * nest.rank
    widths[row], widths[column] = schedule.rows, schedule.columns // schedule.parts
    at_once = programs_at_once(schedule, epilogue_of(model, contraction), target)
    return ProductPlan(
        nest,
        tuple(widths),
        PIECE_ELEMENTS,
        schedule.warps,
        schedule.stages,
        schedule=schedule,
        programs=at_once * target.cores,
        row=row,
        column=column,
    )


__all__ = ["GROUP", "Array", "Dim", "ProductPlan", "array_of", "epilogue_of", "plan_product"]

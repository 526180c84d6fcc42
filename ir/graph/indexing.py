"""Ops that move elements to or from computed places, and those that join or extend tensors."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect, Pure

from ..combiners import COMBINERS
from ..dtypes import INT32, INT64, element_of
from ..expr import Expr, ExprLike, as_expr
from ..shapes import MapAttr, expr_list_text, own_type, sizes_of, tensor_type
from .attributes import DataAttr
from .base import (
    TENSOR,
    Elements,
    Exprs,
    GraphOp,
    Integer,
    Integers,
    Parameter,
    Word,
    differ,
    exprs,
    integer,
    integer_of,
    integers,
    integers_of,
    rank_of,
    verify_dims,
    verify_same_element,
    verify_sizes,
)
from .views import verify_box

# -- bounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """What becomes of an index: whether negative ones count from the end, and what eager raises for a bad one.

    In the message `{}` is the index, `{dim}` and `{size}` those of the indexed dim. Without an exception the
    index is known to be good, and is clamped all the same before memory is touched.
    """

    wraps: bool
    exception: str | None = None
    message: str = ""


BOUNDS: dict[str, Bounds] = {
    "index": Bounds(True, "IndexError", "index {} is out of bounds for dimension {dim} with size {size}"),
    "select": Bounds(False, "IndexError", "index out of range in self"),
    "copy": Bounds(
        False, "IndexError", "index_copy_(): index {} is out of bounds for dimension {dim} with size {size}"
    ),
    "gather": Bounds(False, "RuntimeError", "index {} is out of bounds for dimension {dim} with size {size}"),
    "target": Bounds(False, "IndexError", "Target {} is out of bounds."),
    "wrapped": Bounds(True),
    "unchecked": Bounds(False),
}

BOUNDS_PARAMETER = Parameter("bounds", "bounds", Word())
COMBINER_PARAMETER = Parameter("with", "combiner", Word(), optional=True)


class IndexedOp(GraphOp, ABC):
    """An op with computed indices, checked as the row of `BOUNDS` says that its `bounds` names."""

    traits = traits_def(NoMemoryEffect())

    @property
    def index_bounds(self) -> Bounds:
        attr = self.properties["bounds"]
        assert isinstance(attr, StringAttr)
        return BOUNDS[attr.data]

    def verify_bounds(self, indices: Sequence[SSAValue]) -> None:
        attr = self.properties["bounds"]
        assert isinstance(attr, StringAttr)
        if attr.data not in BOUNDS:
            raise self.fail(f"bounds of {', '.join(BOUNDS)}", attr.data)
        for index in indices:
            if element_of(index.type) not in (INT64, INT32):
                raise self.fail("indices of i64 or i32", f"{index.type}")

    def verify_combiner(self) -> None:
        attr = self.properties.get("combiner")
        if isinstance(attr, StringAttr) and attr.data not in COMBINERS:
            raise self.fail(f"a combiner of {', '.join(COMBINERS)}", attr.data)


def _combined(bounds: str, combiner: str | None, **properties: Attribute) -> dict[str, Attribute]:
    given = {} if combiner is None else {"combiner": StringAttr(combiner)}
    return {**properties, "bounds": StringAttr(bounds), **given}


# -- reading -----------------------------------------------------------------------------------------


@irdl_op_definition
class GatherOp(IndexedOp):
    """
    Element (…, i, …) of the result is the operand's element (…, index(…, i, …), …) along the dim; the index
    has the result's sizes, each (but along the dim) at most the operand's.

    ```mlir
    %y = graph.gather %x, %index dim 1 bounds gather : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
    ```
    """

    name = "graph.gather"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("dim", "dim", Integer()), BOUNDS_PARAMETER)

    operand = operand_def(TENSOR)
    index = operand_def(TENSOR)
    dim = prop_def(IntegerAttr)
    bounds = prop_def(StringAttr)
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        index: SSAValue,
        dim: int,
        bounds: str = "gather",
        location: LocationAttr = UNKNOWN_LOC,
    ) -> GatherOp:
        type_ = tensor_type(element_of(operand.type), sizes_of(index.type))
        return cls.build_from((operand, index), type_, location, dim=integer(dim), bounds=StringAttr(bounds))

    def verify_(self) -> None:
        verify_same_element(self, (self.operand,))
        verify_dims(self, (integer_of(self.dim),), rank_of(self.operand))
        verify_sizes(self, sizes_of(self.index.type))
        if rank_of(self.index) != rank_of(self.operand):
            raise self.fail(f"an index of rank {rank_of(self.operand)}", f"{rank_of(self.index)}")
        self.verify_bounds((self.index,))


def indexed_sizes(sizes: Sequence[Expr], dims: Sequence[int], index_sizes: Sequence[Expr]) -> tuple[Expr, ...]:
    """The sizes of `x[…]` with index tensors at `dims`: their common sizes replace the dims, in place if these
    are neighbours, else in front."""
    kept = [size for dim, size in enumerate(sizes) if dim not in dims]
    position = index_position(dims)
    return (*kept[:position], *index_sizes, *kept[position:])


def index_position(dims: Sequence[int]) -> int:
    """Where the dims of the index tensors stand in the result of indexing."""
    adjacent = all(second == first + 1 for first, second in pairwise(dims))
    return dims[0] if adjacent and dims else 0


@irdl_op_definition
class IndexOp(IndexedOp):
    """
    Advanced indexing: index tensors of common sizes at the (ascending) dims; their sizes replace the dims, in
    place if those are neighbours, else in front.

    ```mlir
    %y = graph.index %x, %i, %j dims [0, 2] bounds index
      : (tensor<4x8x6xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x8xf32>
    ```
    """

    name = "graph.index"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("dims", "dims", Integers()), BOUNDS_PARAMETER)

    operand = operand_def(TENSOR)
    indices = var_operand_def(TENSOR)
    dims = prop_def(DenseArrayBase)
    bounds = prop_def(StringAttr)
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        indices: Sequence[SSAValue],
        dims: Sequence[int],
        bounds: str = "index",
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> IndexOp:
        if type_ is None:
            sizes = indexed_sizes(sizes_of(operand.type), dims, sizes_of(indices[0].type))
            type_ = tensor_type(element_of(operand.type), sizes)
        return cls.build_from((operand, *indices), type_, location, dims=integers(dims), bounds=StringAttr(bounds))

    @property
    def indexed(self) -> tuple[int, ...]:
        return integers_of(self.dims)

    def verify_(self) -> None:
        verify_same_element(self, (self.operand,))
        verify_indices(self, self.operand, self.indices, self.indexed)
        verify_sizes(self, indexed_sizes(sizes_of(self.operand.type), self.indexed, sizes_of(self.indices[0].type)))
        self.verify_bounds(self.indices)


def verify_indices(op: IndexedOp, operand: SSAValue, indices: Sequence[SSAValue], dims: Sequence[int]) -> None:
    verify_dims(op, dims, rank_of(operand))
    if not dims or list(dims) != sorted(dims) or len(dims) != len(indices):
        raise op.fail(f"{len(indices)} ascending dims, at least one", str(list(dims)))
    if any(differ(sizes_of(index.type), sizes_of(indices[0].type)) for index in indices):
        raise op.fail("index tensors of equal sizes", ", ".join(str(index.type) for index in indices))


# -- writing -----------------------------------------------------------------------------------------


@irdl_op_definition
class IndexPutOp(IndexedOp):
    """
    The operand with the value written to (or combined into) the elements that `graph.index` with the same
    indices would read; with repeated places and no combiner the last in row-major order stays.

    ```mlir
    %y = graph.index_put %x, %value, %i dims [0] bounds index with add
      : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<4x8xf32>
    ```
    """

    name = "graph.index_put"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("dims", "dims", Integers()),
        BOUNDS_PARAMETER,
        COMBINER_PARAMETER,
    )

    operand = operand_def(TENSOR)
    value = operand_def(TENSOR)
    indices = var_operand_def(TENSOR)
    dims = prop_def(DenseArrayBase)
    bounds = prop_def(StringAttr)
    combiner = opt_prop_def(StringAttr)
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        value: SSAValue,
        indices: Sequence[SSAValue],
        dims: Sequence[int],
        bounds: str = "index",
        combiner: str | None = None,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> IndexPutOp:
        properties = _combined(bounds, combiner, dims=integers(dims))
        return cls.build_from((operand, value, *indices), type_ or own_type(operand.type), location, **properties)

    @property
    def indexed(self) -> tuple[int, ...]:
        return integers_of(self.dims)

    def verify_(self) -> None:
        verify_same_element(self, (self.operand, self.value))
        verify_sizes(self, sizes_of(self.operand.type))
        verify_indices(self, self.operand, self.indices, self.indexed)
        expected = indexed_sizes(self.sizes, self.indexed, sizes_of(self.indices[0].type))
        if differ(sizes_of(self.value.type), expected):
            raise self.fail(f"a value of sizes {expr_list_text(expected)}", expr_list_text(sizes_of(self.value.type)))
        self.verify_bounds(self.indices)
        self.verify_combiner()


@irdl_op_definition
class ScatterOp(IndexedOp):
    """
    The operand with value(…, i, …) written to (or combined into) its element (…, index(…, i, …), …) along the
    dim; with repeated places and no combiner the last in row-major order stays.

    ```mlir
    %y = graph.scatter %x, %index, %value dim 1 bounds gather with add
      : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
    ```
    """

    name = "graph.scatter"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("dim", "dim", Integer()),
        BOUNDS_PARAMETER,
        COMBINER_PARAMETER,
    )

    operand = operand_def(TENSOR)
    index = operand_def(TENSOR)
    value = operand_def(TENSOR)
    dim = prop_def(IntegerAttr)
    bounds = prop_def(StringAttr)
    combiner = opt_prop_def(StringAttr)
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        index: SSAValue,
        value: SSAValue,
        dim: int,
        bounds: str = "gather",
        combiner: str | None = None,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> ScatterOp:
        properties = _combined(bounds, combiner, dim=integer(dim))
        return cls.build_from((operand, index, value), type_ or own_type(operand.type), location, **properties)

    def verify_(self) -> None:
        verify_same_element(self, (self.operand, self.value))
        verify_sizes(self, sizes_of(self.operand.type))
        verify_dims(self, (integer_of(self.dim),), rank_of(self.operand))
        if differ(sizes_of(self.index.type), sizes_of(self.value.type)):
            raise self.fail(f"a value of the index's sizes {self.index.type}", f"{self.value.type}")
        if rank_of(self.index) != rank_of(self.operand):
            raise self.fail(f"an index of rank {rank_of(self.operand)}", f"{rank_of(self.index)}")
        self.verify_bounds((self.index,))
        self.verify_combiner()


@irdl_op_definition
class InsertSliceOp(GraphOp):
    """
    The operand with the value in the place that `graph.slice` with the same starts and steps would read.

    ```mlir
    %y = graph.insert_slice %x, %value from (0, 2) step (1, 3)
      : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
    ```
    """

    name = "graph.insert_slice"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("from", "starts", Exprs()),
        Parameter("step", "steps", Exprs()),
    )

    operand = operand_def(TENSOR)
    value = operand_def(TENSOR)
    starts = prop_def(MapAttr)
    steps = prop_def(MapAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        value: SSAValue,
        starts: Sequence[ExprLike],
        steps: Sequence[ExprLike] | None = None,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> InsertSliceOp:
        steps = [1] * len(starts) if steps is None else steps
        return cls.build_from(
            (operand, value), type_ or own_type(operand.type), location, starts=exprs(starts), steps=exprs(steps)
        )

    def verify_(self) -> None:
        verify_same_element(self, (self.operand, self.value))
        verify_sizes(self, sizes_of(self.operand.type))
        verify_box(self, self.sizes, sizes_of(self.value.type))


# -- joining and extending ---------------------------------------------------------------------------


@irdl_op_definition
class CatOp(GraphOp):
    """
    The operands one after the other along the dim.

    ```mlir
    %z = graph.cat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    ```
    """

    name = "graph.cat"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("dim", "dim", Integer()),)

    parts = var_operand_def(TENSOR)
    dim = prop_def(IntegerAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        parts: Sequence[SSAValue],
        dim: int,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> CatOp:
        if type_ is None:
            sizes = list(sizes_of(parts[0].type))
            sizes[dim] = sum((sizes_of(part.type)[dim] for part in parts), as_expr(0))
            type_ = tensor_type(element_of(parts[0].type), sizes)
        return cls.build_from(tuple(parts), type_, location, dim=integer(dim))

    def verify_(self) -> None:
        verify_same_element(self, self.parts)
        dim = integer_of(self.dim)
        verify_dims(self, (dim,), len(self.sizes))
        for part in self.parts:
            sizes = sizes_of(part.type)
            other = (*self.sizes[:dim], *sizes[dim : dim + 1], *self.sizes[dim + 1 :])
            if differ(sizes, other):
                raise self.fail(f"operands of sizes {expr_list_text(self.sizes)} but for dim {dim}", f"{part.type}")
        total = sum((sizes_of(part.type)[dim] for part in self.parts), as_expr(0))
        if differ((total,), self.sizes[dim : dim + 1]):
            raise self.fail(f"{total} elements along dim {dim}", f"{self.sizes[dim]}")


@irdl_op_definition
class PadOp(GraphOp):
    """
    The operand within a larger tensor, `low` elements from its start along each dim, the value around it.

    ```mlir
    %y = graph.pad %x low (0, 1) value f32<0.0> : (tensor<4x8xf32>) -> tensor<4x10xf32>
    ```
    """

    name = "graph.pad"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("low", "low", Exprs()),
        Parameter("value", "value", Elements()),
    )

    operand = operand_def(TENSOR)
    low = prop_def(MapAttr)
    value = prop_def(DataAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        low: Sequence[ExprLike],
        high: Sequence[ExprLike],
        value: DataAttr,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> PadOp:
        if type_ is None:
            sizes = [
                size + before + after for size, before, after in zip(sizes_of(operand.type), low, high, strict=True)
            ]
            type_ = tensor_type(element_of(operand.type), sizes)
        return cls.build_from((operand,), type_, location, low=exprs(low), value=value)

    def verify_(self) -> None:
        verify_same_element(self, (self.operand,))
        sizes, low = sizes_of(self.operand.type), self.low.results
        if not len(sizes) == len(low) == len(self.sizes):
            raise self.fail(f"{len(sizes)} low paddings and result dims", expr_list_text(low))
        for before, size, padded in zip(low, sizes, self.sizes, strict=True):
            after = padded - before - size
            if any(pad.is_constant and pad.constant < 0 for pad in (before, after)):
                raise self.fail("paddings of at least 0", f"{before} and {after}")
        if len(self.value) != 1 or self.value.element != self.element:
            raise self.fail(f"one value of type {self.element}", f"{self.value}")

"""Reductions drop their dims (keeping them at size 1 is a reshape after); scans keep them.

They accumulate in their result's type: a sum of bf16 is a conversion to f32, a sum, and a conversion back.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from ..dtypes import BOOL, INT64, element_of, is_native
from ..shapes import own_type, sizes_of, tensor_type
from .base import (
    TENSOR,
    GraphOp,
    Integer,
    Integers,
    Parameter,
    Word,
    integer,
    integer_of,
    integers,
    integers_of,
    rank_of,
    verify_dims,
    verify_same_element,
    verify_same_sizes,
    verify_sizes,
)
from .elementwise import is_number
from .traits import Reduction


class ReductionOp(GraphOp, ABC):
    """Combines the elements along `dims`, which the result lacks."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "dims", Integers()),)

    operand = operand_def(TENSOR)
    dims = prop_def(DenseArrayBase)
    result = result_def(TENSOR)

    traits = traits_def(Reduction(), Pure())

    @property
    def reduced(self) -> tuple[int, ...]:
        return integers_of(self.dims)

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_number(element)

    @classmethod
    def result_element(cls, element: Attribute) -> Attribute:
        """The element type of the result for that of the operand."""
        return element

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        dims: Iterable[int],
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> ReductionOp:
        dropped = tuple(dims)
        if type_ is None:
            kept = [size for dim, size in enumerate(sizes_of(operand.type)) if dim not in dropped]
            type_ = tensor_type(cls.result_element(element_of(operand.type)), kept)
        return cls.build_from((operand,), type_, location, dims=integers(dropped))

    def verify_(self) -> None:
        sizes, element = sizes_of(self.operand.type), element_of(self.operand.type)
        verify_dims(self, self.reduced, len(sizes))
        verify_sizes(self, [size for dim, size in enumerate(sizes) if dim not in self.reduced])
        if not self.accepts(element):
            raise self.fail("an element type that it combines", f"{element}")
        if self.element != self.result_element(element):
            raise self.fail(f"a result of element type {self.result_element(element)}", f"{self.element}")


@irdl_op_definition
class SumOp(ReductionOp):
    """
    The sum; 0 over nothing.

    ```mlir
    %y = graph.sum %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    ```
    """

    name = "graph.sum"


@irdl_op_definition
class ProdOp(ReductionOp):
    """
    The product; 1 over nothing.

    ```mlir
    %y = graph.prod %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    ```
    """

    name = "graph.prod"


@irdl_op_definition
class MaxOp(ReductionOp):
    """
    The largest element, NaN if any is; the lowest value over nothing.

    ```mlir
    %y = graph.max %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    ```
    """

    name = "graph.max"

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_native(element)


@irdl_op_definition
class MinOp(ReductionOp):
    """
    The smallest element, NaN if any is; the highest value over nothing.

    ```mlir
    %y = graph.min %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    ```
    """

    name = "graph.min"

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_native(element)


class LogicalReductionOp(ReductionOp, ABC):
    """A reduction of i1."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return element == BOOL


@irdl_op_definition
class AnyOp(LogicalReductionOp):
    """
    Whether any element holds; false over nothing.

    ```mlir
    %y = graph.any %x [1] : (tensor<4x8xi1>) -> tensor<4xi1>
    ```
    """

    name = "graph.any"


@irdl_op_definition
class AllOp(LogicalReductionOp):
    """
    Whether all elements hold; true over nothing.

    ```mlir
    %y = graph.all %x [1] : (tensor<4x8xi1>) -> tensor<4xi1>
    ```
    """

    name = "graph.all"


class IndexReductionOp(ReductionOp, ABC):
    """A reduction along one dim that gives an index."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_native(element)

    @classmethod
    def result_element(cls, element: Attribute) -> Attribute:
        return INT64

    def verify_(self) -> None:
        super().verify_()
        if len(self.reduced) != 1:
            raise self.fail("one dim", str(list(self.reduced)))


@irdl_op_definition
class ArgMaxOp(IndexReductionOp):
    """
    The index of the largest element: the first among equals, the first NaN if there is one.

    ```mlir
    %y = graph.argmax %x [1] : (tensor<4x8xf32>) -> tensor<4xi64>
    ```
    """

    name = "graph.argmax"


@irdl_op_definition
class ArgMinOp(IndexReductionOp):
    """
    The index of the smallest element: the first among equals, the first NaN if there is one.

    ```mlir
    %y = graph.argmin %x [1] : (tensor<4x8xf32>) -> tensor<4xi64>
    ```
    """

    name = "graph.argmin"


SCAN_COMBINERS = ("add", "mul")


@irdl_op_definition
class ScanOp(GraphOp):
    """
    Element i along the dim combines the operand's elements up to and with i.

    ```mlir
    %y = graph.scan %x dim 1 with add : tensor<4x8xf32>
    ```
    """

    name = "graph.scan"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("dim", "dim", Integer()),
        Parameter("with", "combiner", Word()),
    )

    operand = operand_def(TENSOR)
    dim = prop_def(IntegerAttr)
    combiner = prop_def(StringAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        dim: int,
        combiner: str,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> ScanOp:
        return cls.build_from(
            (operand,), type_ or own_type(operand.type), location, dim=integer(dim), combiner=StringAttr(combiner)
        )

    def verify_(self) -> None:
        verify_same_sizes(self, (self.operand,))
        verify_same_element(self, (self.operand,))
        verify_dims(self, (integer_of(self.dim),), rank_of(self.operand))
        if self.combiner.data not in SCAN_COMBINERS:
            raise self.fail(f"a combiner of {', '.join(SCAN_COMBINERS)}", self.combiner.data)

"""Views: each result element is one operand element. They become index maps and then cost nothing.

Sizes (and for `graph.as_strided` strides) are those of the result type.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from ..dtypes import element_of
from ..expr import Expr, ExprLike, as_expr, product
from ..shapes import MapAttr, expr_list_text, sizes_of, strides_of, tensor_type
from .base import (
    TENSOR,
    Exprs,
    GraphOp,
    Integers,
    Parameter,
    broadcasts,
    differ,
    exprs,
    integers,
    integers_of,
    verify_dims,
    verify_same_element,
    verify_sizes,
)
from .traits import View


class ViewOp(GraphOp, ABC):
    """One operand of the same element type."""

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(View(), Pure())

    def verify_(self) -> None:
        verify_same_element(self, (self.operand,))
        self.verify_view(sizes_of(self.operand.type))

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        """Checks parameters and result against the operand's sizes."""


@irdl_op_definition
class PermuteOp(ViewOp):
    """
    Result dim k is operand dim `dims[k]`.

    ```mlir
    %y = graph.permute %x [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32, #stepwell.layout<(8, 4), (1, 8)>>
    ```
    """

    name = "graph.permute"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "dims", Integers()),)

    dims = prop_def(DenseArrayBase)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        dims: Sequence[int],
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> PermuteOp:
        if type_ is None:
            sizes, strides = sizes_of(operand.type), strides_of(operand.type)
            element = element_of(operand.type)
            type_ = tensor_type(element, [sizes[dim] for dim in dims], [strides[dim] for dim in dims])
        return cls.build_from((operand,), type_, location, dims=integers(dims))

    @property
    def permutation(self) -> tuple[int, ...]:
        return integers_of(self.dims)

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        if sorted(self.permutation) != list(range(len(sizes))):
            raise self.fail(f"a permutation of {len(sizes)} dims", str(list(self.permutation)))
        verify_sizes(self, [sizes[dim] for dim in self.permutation])


@irdl_op_definition
class ReshapeOp(ViewOp):
    """
    The same elements in row-major order of indices under other sizes.

    ```mlir
    %y = graph.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>
    ```
    """

    name = "graph.reshape"

    @classmethod
    def make(cls, operand: SSAValue, sizes: Iterable[ExprLike], location: LocationAttr = UNKNOWN_LOC) -> ReshapeOp:
        return cls.build_from((operand,), tensor_type(element_of(operand.type), sizes), location)

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        expected, found = product(sizes), product(self.sizes)
        if expected.is_constant and found.is_constant and expected != found:
            raise self.fail(f"{expected} elements", f"{expr_list_text(self.sizes)}")


@irdl_op_definition
class BroadcastOp(ViewOp):
    """
    Repeats the operand along added leading dims and along its dims of size 1.

    ```mlir
    %y = graph.broadcast %x : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
    ```
    """

    name = "graph.broadcast"

    @classmethod
    def make(cls, operand: SSAValue, sizes: Iterable[ExprLike], location: LocationAttr = UNKNOWN_LOC) -> BroadcastOp:
        return cls.build_from((operand,), tensor_type(element_of(operand.type), sizes), location)

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        if not broadcasts(sizes, self.sizes):
            raise self.fail(f"sizes that {expr_list_text(sizes)} broadcasts to", expr_list_text(self.sizes))


@irdl_op_definition
class SliceOp(ViewOp):
    """
    Result index i along each dim is operand index `start + i * step`; steps are positive.

    ```mlir
    %y = graph.slice %x from (0, 2) step (1, 3) : (tensor<4x8xf32>) -> tensor<4x2xf32>
    ```
    """

    name = "graph.slice"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("from", "starts", Exprs()),
        Parameter("step", "steps", Exprs()),
    )

    starts = prop_def(MapAttr)
    steps = prop_def(MapAttr)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        starts: Sequence[ExprLike],
        sizes: Sequence[ExprLike],
        steps: Sequence[ExprLike] | None = None,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> SliceOp:
        type_ = type_ or tensor_type(element_of(operand.type), sizes)
        steps = [1] * len(starts) if steps is None else steps
        return cls.build_from((operand,), type_, location, starts=exprs(starts), steps=exprs(steps))

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        verify_box(self, sizes, self.sizes)


def verify_box(op: GraphOp, sizes: Sequence[Expr], box: Sequence[Expr]) -> None:
    """Checks that the op's `starts` and `steps` place a box of these sizes within `sizes`."""
    starts, steps = op.properties["starts"], op.properties["steps"]
    assert isinstance(starts, MapAttr)
    assert isinstance(steps, MapAttr)
    if not len(starts.results) == len(steps.results) == len(sizes) == len(box):
        raise op.fail(f"{len(sizes)} starts, steps and sizes", expr_list_text(starts.results))
    for start, step, extent, size in zip(starts.results, steps.results, box, sizes, strict=True):
        last = start + (extent - 1) * step
        static = all(value.is_constant for value in (start, step, extent, size))
        if static and extent.constant and not (0 <= start.constant <= last.constant < size.constant):
            raise op.fail(f"indices below {size}", f"{start} to {last}")


@irdl_op_definition
class FlipOp(ViewOp):
    """
    Reverses the order along the dims.

    ```mlir
    %y = graph.flip %x [0] : tensor<4x8xf32>
    ```
    """

    name = "graph.flip"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "dims", Integers()),)

    dims = prop_def(DenseArrayBase)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        dims: Sequence[int],
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> FlipOp:
        return cls.build_from((operand,), type_ or operand.type, location, dims=integers(dims))

    @property
    def flipped(self) -> tuple[int, ...]:
        return integers_of(self.dims)

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        verify_dims(self, self.flipped, len(sizes))
        verify_sizes(self, sizes)


@irdl_op_definition
class WindowOp(ViewOp):
    """
    Sliding windows over the trailing dims: the result has for each of them a dim of window positions, then
    for each a dim of elements within the window; index (o, k) is operand index `o * step + k * dilation`.

    ```mlir
    %y = graph.window %x step [2] dilation [1] : (tensor<4x9xf32>) -> tensor<4x4x3xf32>
    ```
    """

    name = "graph.window"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("step", "steps", Integers()),
        Parameter("dilation", "dilations", Integers()),
    )

    steps = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        window: Sequence[int],
        steps: Sequence[int],
        dilations: Sequence[int],
        location: LocationAttr = UNKNOWN_LOC,
    ) -> WindowOp:
        sizes = sizes_of(operand.type)
        kept, slid = sizes[: len(sizes) - len(window)], sizes[len(sizes) - len(window) :]
        spans = [(extent - 1) * dilation for extent, dilation in zip(window, dilations, strict=True)]
        positions = [
            (size - 1 - span) // as_expr(step) + 1 for size, span, step in zip(slid, spans, steps, strict=True)
        ]
        type_ = tensor_type(element_of(operand.type), [*kept, *positions, *window])
        return cls.build_from((operand,), type_, location, steps=integers(steps), dilations=integers(dilations))

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        count = len(integers_of(self.steps))
        kept = len(sizes) - count
        if len(integers_of(self.dilations)) != count or kept < 0 or len(self.sizes) != kept + 2 * count:
            raise self.fail(f"{count} dilations and {kept + 2 * count} result dims", expr_list_text(self.sizes))
        if differ(self.sizes[:kept], sizes[:kept]):
            raise self.fail(f"leading sizes {expr_list_text(sizes[:kept])}", expr_list_text(self.sizes))


@irdl_op_definition
class AsStridedOp(ViewOp):
    """
    Reads the operand's memory, from the place of its first element on, with the sizes and strides of the
    result type; the offset is in elements.

    ```mlir
    %y = graph.as_strided %x offset (8) : (tensor<4x8xf32>) -> tensor<3xf32, #stepwell.layout<(3), (9)>>
    ```
    """

    name = "graph.as_strided"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("offset", "offset", Exprs()),)

    offset = prop_def(MapAttr)

    @classmethod
    def make(
        cls, operand: SSAValue, offset: ExprLike, type_: Attribute, location: LocationAttr = UNKNOWN_LOC
    ) -> AsStridedOp:
        return cls.build_from((operand,), type_, location, offset=exprs([offset]))

    def verify_view(self, sizes: Sequence[Expr]) -> None:
        if len(self.offset.results) != 1:
            raise self.fail("one offset", expr_list_text(self.offset.results))

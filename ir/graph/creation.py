"""Tensors made of attributes, symbols or a seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, IndexType, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import BaseAttr, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import ConstantLike, Pure

from ..dtypes import INT32, INT64, element_of, is_native
from ..expr import Expr, ExprLike, product
from ..shapes import MapAttr, expr_list_text, tensor_type
from .attributes import DataAttr
from .base import TENSOR, Elements, Exprs, GraphOp, Integer, Parameter, Text, exprs, integer
from .elementwise import is_number
from .traits import Creation

INDEX = IndexType()
SCALAR_INT = tensor_type(INT64, ())


@irdl_op_definition
class FullOp(GraphOp):
    """
    One value everywhere.

    ```mlir
    %y = graph.full f32<0.5> : tensor<4x8xf32>
    ```
    """

    name = "graph.full"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "value", Elements()),)

    value = prop_def(DataAttr)
    result = result_def(TENSOR)

    traits = traits_def(ConstantLike(), Creation(), Pure())

    @classmethod
    def make(
        cls,
        value: Any,
        element: Attribute,
        sizes: Iterable[ExprLike] = (),
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> FullOp:
        return cls.build_from((), type_ or tensor_type(element, sizes), location, value=DataAttr.of(element, value))

    @property
    def scalar(self) -> Any:
        """The value as a Python bool, int or float."""
        return self.value.scalar

    def verify_(self) -> None:
        if len(self.value) != 1 or self.value.element != self.element:
            raise self.fail(f"one value of type {self.element}", f"{len(self.value)} of {self.value.element}")


@irdl_op_definition
class ConstantOp(GraphOp):
    """
    The given elements in row-major order.

    ```mlir
    %y = graph.constant i64<1, 2, -3, 4> : tensor<2x2xi64>
    ```
    """

    name = "graph.constant"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "value", Elements()),)

    value = prop_def(DataAttr)
    result = result_def(TENSOR)

    traits = traits_def(ConstantLike(), Pure())

    @classmethod
    def make(cls, value: DataAttr, type_: Attribute, location: LocationAttr = UNKNOWN_LOC) -> ConstantOp:
        return cls.build_from((), type_, location, value=value)

    def verify_(self) -> None:
        count = product(self.sizes)
        if count != product([len(self.value)]) or self.value.element != self.element:
            raise self.fail(f"{count} values of type {self.element}", f"{len(self.value)} of {self.value.element}")


@irdl_op_definition
class WeightOp(GraphOp):
    """
    A tensor that the compiled graph holds, by name: a large constant or a frozen parameter.

    ```mlir
    %y = graph.weight "layer.0.table" : tensor<512x64xf32>
    ```
    """

    name = "graph.weight"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "weight", Text()),)

    weight = prop_def(StringAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(cls, name: str, type_: Attribute, location: LocationAttr = UNKNOWN_LOC) -> WeightOp:
        return cls.build_from((), type_, location, weight=StringAttr(name))


@irdl_op_definition
class IotaOp(GraphOp):
    """
    Element i is `start + i * step`, an integer.

    ```mlir
    %y = graph.iota from (0) step (1) : tensor<8xi64>
    ```
    """

    name = "graph.iota"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("from", "start", Exprs()),
        Parameter("step", "step", Exprs()),
    )

    start = prop_def(MapAttr)
    step = prop_def(MapAttr)
    result = result_def(TENSOR)

    traits = traits_def(Creation(), Pure())

    @classmethod
    def make(
        cls,
        size: ExprLike,
        start: ExprLike = 0,
        step: ExprLike = 1,
        element: Attribute = INT64,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> IotaOp:
        return cls.build_from((), tensor_type(element, (size,)), location, start=exprs((start,)), step=exprs((step,)))

    def verify_(self) -> None:
        if len(self.sizes) != 1 or not is_number(self.element):
            raise self.fail("a result of one dim and a number type", f"{self.type}")
        if not len(self.start.results) == len(self.step.results) == 1:
            raise self.fail("one start and one step", expr_list_text(self.start.results))


@irdl_op_definition
class SizeOp(GraphOp):
    """
    The value of an expression over symbols, as an index or as an integer tensor of rank 0.

    ```mlir
    %n = graph.size (s0 * 2) : index
    %t = graph.size (s0 * 2) : tensor<i64>
    ```
    """

    name = "graph.size"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("", "value", Exprs()),)

    value = prop_def(MapAttr)
    result = result_def(TENSOR | BaseAttr(IndexType))

    traits = traits_def(Creation(), Pure())

    @classmethod
    def make(cls, value: ExprLike, type_: Attribute = SCALAR_INT, location: LocationAttr = UNKNOWN_LOC) -> SizeOp:
        return cls.build_from((), type_, location, value=exprs((value,)))

    @property
    def expr(self) -> Expr:
        return self.value.results[0]

    def verify_(self) -> None:
        if len(self.value.results) != 1:
            raise self.fail("one expression", expr_list_text(self.value.results))
        if self.results[0].type not in (INDEX, SCALAR_INT) and (self.sizes or not is_native(self.element)):
            raise self.fail("a result of type index or tensor<i64>", f"{self.results[0].type}")


@irdl_op_definition
class RandomOp(GraphOp):
    """
    32 random bits per element: the Philox word of (seed, row-major index of the element, stream).

    ```mlir
    %y = graph.random %seed stream 3 : (tensor<i64>) -> tensor<4x8xi32>
    ```
    """

    name = "graph.random"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("stream", "stream", Integer()),)

    seed = operand_def(TENSOR)
    stream = prop_def(IntegerAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        seed: SSAValue,
        sizes: Iterable[ExprLike],
        stream: int,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> RandomOp:
        return cls.build_from((seed,), tensor_type(INT32, sizes), location, stream=integer(stream))

    def verify_(self) -> None:
        if self.element != INT32 or element_of(self.seed.type) != INT64:
            raise self.fail("a seed of i64 and a result of i32", f"{self.seed.type} and {self.type}")

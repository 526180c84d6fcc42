"""Products. They accumulate in f32 (f64 for f64) and round once, after the bias is added."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def, traits_def
from xdsl.traits import Pure

from ..dtypes import element_of
from ..shapes import expr_list_text, sizes_of, tensor_type
from .base import TENSOR, GraphOp, broadcasts, differ, verify_same_element, verify_sizes
from .elementwise import is_number
from .traits import Contraction


class ProductOp(GraphOp, ABC):
    """A product over the last dim of the first and the last but one of the second operand."""

    RANK: ClassVar[int]

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    bias = opt_operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(Contraction(), Pure())

    @classmethod
    def make(
        cls,
        lhs: SSAValue,
        rhs: SSAValue,
        bias: SSAValue | None = None,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> ProductOp:
        if type_ is None:
            sizes = (*sizes_of(lhs.type)[:-1], sizes_of(rhs.type)[-1])
            type_ = tensor_type(element_of(lhs.type), sizes)
        operands = (lhs, rhs) if bias is None else (lhs, rhs, bias)
        return cls.build_from(operands, type_, location)

    def verify_(self) -> None:
        left, right = sizes_of(self.lhs.type), sizes_of(self.rhs.type)
        if not len(left) == len(right) == len(self.sizes) == self.RANK:
            raise self.fail(f"operands and a result of rank {self.RANK}", f"{len(left)}, {len(right)}")
        if differ((left[-1], *left[:-2]), (right[-2], *right[:-2])):
            raise self.fail("matching sizes", f"{expr_list_text(left)} and {expr_list_text(right)}")
        verify_sizes(self, (*left[:-1], right[-1]))
        verify_same_element(self, (self.lhs,))
        if element_of(self.rhs.type) != self.element or not is_number(self.element):
            raise self.fail("operands of one number type", f"{self.element}, {element_of(self.rhs.type)}")
        if self.bias is not None and not broadcasts(sizes_of(self.bias.type), self.sizes):
            raise self.fail(f"a bias that broadcasts to {expr_list_text(self.sizes)}", f"{self.bias.type}")


@irdl_op_definition
class MatmulOp(ProductOp):
    """
    The matrix product, plus a bias that broadcasts to it if there is one.

    ```mlir
    %z = graph.matmul %x, %y, %b : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
    ```
    """

    name = "graph.matmul"

    RANK: ClassVar[int] = 2


@irdl_op_definition
class BatchMatmulOp(ProductOp):
    """
    One matrix product for each index of the leading dim.

    ```mlir
    %z = graph.batch_matmul %x, %y : (tensor<3x4x8xf32>, tensor<3x8x6xf32>) -> tensor<3x4x6xf32>
    ```
    """

    name = "graph.batch_matmul"

    RANK: ClassVar[int] = 3

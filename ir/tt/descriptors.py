"""The operations of Triton's dialect on tensor descriptors, by which the copy engine of a multiprocessor moves boxes of
arrays (TMA), and those that cut a block in two. They print and parse in generic form, as all of this dialect do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, TensorType, i32, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .ops import block_type, element_of, pointee_of, shape_of


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """A descriptor of an array of which boxes of that block type are moved: `!tt.tensordesc<tensor<128x64xbf16>>`."""

    name = "tt.tensordesc"

    block: TensorType = param_def()


@cache
def _zeros() -> IntegerAttr[IntegerType]:
    """How Triton says that what lies beyond the ends of an array is 0, not NaN."""
    return IntegerAttr(1, i32)


@irdl_op_definition
class MakeDescriptorOp(IRDLOperation):
    """
    Describes an array by its address, its sizes (i32) and its strides in elements (i64), of which the last is 1 and
    the others are multiples of 16 bytes, as the address is.

    ```mlir
    %d = "tt.make_tensor_descriptor"(%x, %m, %n, %s, %one) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<128x64xbf16>>
    ```
    """  # noqa: E501

    name = "tt.make_tensor_descriptor"

    base = operand_def()
    sizes = var_operand_def(i32)
    strides = var_operand_def(i64)
    padding = prop_def(IntegerAttr)
    result = result_def(DescriptorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @staticmethod
    def make(
        base: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue], shape: Sequence[int]
    ) -> MakeDescriptorOp:
        return MakeDescriptorOp.create(
            operands=[base, *sizes, *strides],
            properties={
                "padding": _zeros(),
                "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, len(sizes), len(strides)]),
            },
            result_types=[DescriptorType(TensorType(pointee_of(base.type), shape))],
        )

    def verify_(self) -> None:
        block = self.result.type.block
        if not len(self.sizes) == len(self.strides) == len(shape_of(block)):
            raise VerifyException(f"tt.make_tensor_descriptor: expected a size and a stride for each dim of {block}")
        if element_of(block) != pointee_of(self.base.type):
            raise VerifyException(f"tt.make_tensor_descriptor: expected a pointer to {element_of(block)}")


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """
    Loads the box that begins at a place; what lies beyond the ends of the array is 0.

    ```mlir
    %v = "tt.descriptor_load"(%d, %i, %j) : (!tt.tensordesc<tensor<128x64xbf16>>, i32, i32) -> tensor<128x64xbf16>
    ```
    """

    name = "tt.descriptor_load"

    desc = operand_def(DescriptorType)
    places = var_operand_def(i32)
    result = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(descriptor: SSAValue, places: Sequence[SSAValue]) -> DescriptorLoadOp:
        assert isinstance(descriptor.type, DescriptorType)
        return DescriptorLoadOp.create(operands=[descriptor, *places], result_types=[descriptor.type.block])

    def verify_(self) -> None:
        _verify_box(self, self.desc.type, self.result.type, len(self.places))


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """
    Stores a box at a place; what lies beyond the ends of the array is not stored.

    ```mlir
    "tt.descriptor_store"(%d, %v, %i, %j) : (!tt.tensordesc<tensor<128x64xbf16>>, tensor<128x64xbf16>, i32, i32) -> ()
    ```
    """

    name = "tt.descriptor_store"

    desc = operand_def(DescriptorType)
    value = operand_def(TensorType)
    places = var_operand_def(i32)

    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(descriptor: SSAValue, value: SSAValue, places: Sequence[SSAValue]) -> DescriptorStoreOp:
        return DescriptorStoreOp.create(operands=[descriptor, value, *places])

    def verify_(self) -> None:
        _verify_box(self, self.desc.type, self.value.type, len(self.places))


def _verify_box(op: IRDLOperation, descriptor: Attribute, block: Attribute, places: int) -> None:
    assert isinstance(descriptor, DescriptorType)
    if descriptor.block != block or places != len(shape_of(block)):
        raise VerifyException(f"{op.name}: expected {descriptor.block} and a place for each dim, got {block}")


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """
    The same elements, in row-major order, under another shape.

    ```mlir
    %r = "tt.reshape"(%v) : (tensor<128x64xf32>) -> tensor<128x2x32xf32>
    ```
    """

    name = "tt.reshape"

    src = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(value: SSAValue, shape: Sequence[int]) -> ReshapeOp:
        return ReshapeOp.create(operands=[value], result_types=[block_type(element_of(value.type), shape)])

    def verify_(self) -> None:
        source, result = self.src.type, self.result.type
        if element_of(source) != element_of(result) or prod(shape_of(source)) != prod(shape_of(result)):
            raise VerifyException(f"tt.reshape: expected the elements of {source}, got {result}")


@irdl_op_definition
class SplitOp(IRDLOperation):
    """
    The elements 0 and 1 along a last dimension of two.

    ```mlir
    %a, %b = "tt.split"(%v) : (tensor<128x32x2xf32>) -> (tensor<128x32xf32>, tensor<128x32xf32>)
    ```
    """

    name = "tt.split"

    src = operand_def(TensorType)
    first = result_def(TensorType)
    second = result_def(TensorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(value: SSAValue) -> SplitOp:
        part = block_type(element_of(value.type), shape_of(value.type)[:-1])
        return SplitOp.create(operands=[value], result_types=[part, part])

    def verify_(self) -> None:
        *shape, last = shape_of(self.src.type)
        part = block_type(element_of(self.src.type), shape)
        if last != 2 or (self.first.type, self.second.type) != (part, part):
            raise VerifyException(f"tt.split: expected two blocks of {part}, got {self.first.type}")


__all__ = [
    "DescriptorLoadOp", "DescriptorStoreOp", "DescriptorType", "MakeDescriptorOp", "ReshapeOp", "SplitOp",
]  # fmt: skip

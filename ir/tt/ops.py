"""The operations of Triton's own dialect that kernels need, under the names and properties that Triton reads.

They print and parse in generic form, which is one text for every release of Triton. Comparisons, selection and casts
of `arith` take only scalars in xDSL; what takes blocks lives here under its own names, and `text.ttir` writes it as the
ops of `arith` that it stands for.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer into global memory: `!tt.ptr<f32>`. A bool is pointed to as the byte that holds it."""

    name = "tt.ptr"

    pointee: Attribute = param_def()


@cache
def pointer_type(element: Attribute) -> PointerType:
    return PointerType(element)


@cache
def _tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)


def block_type(element: Attribute, shape: Sequence[int]) -> Attribute:
    """The type of a block: the element itself at rank 0."""
    return _tensor_type(element, tuple(shape)) if shape else element


def shape_of(type_: Attribute) -> tuple[int, ...]:
    return type_.get_shape() if isinstance(type_, TensorType) else ()


def element_of(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, TensorType) else type_


def pointee_of(type_: Attribute) -> Attribute:
    """What a pointer, or each one of a block, points to."""
    element = element_of(type_)
    if not isinstance(element, PointerType):
        raise VerifyException(f"tt: expected a pointer or a block of pointers, got {type_}")
    return element.pointee


@cache
def _integer(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


@cache
def _boolean(value: bool) -> IntegerAttr[IntegerType]:
    return BoolAttr.from_bool(value)


def _optional(value: SSAValue | None) -> list[SSAValue]:
    return [] if value is None else [value]


def _verify_shapes(op: IRDLOperation, expected: Attribute, *values: SSAValue | None) -> None:
    """That the values given are scalars or blocks of the shape of `expected`."""
    for value in values:
        if value is not None and shape_of(value.type) != shape_of(expected):
            raise VerifyException(f"{op.name}: expected blocks of one shape, got {expected}, {value.type}")


# -- functions ---------------------------------------------------------------------------------------

GRID, ERRORS = "stepwell.grid", "stepwell.errors"
"""Attributes of a function: a map of its symbols to the number of programs, and exceptions and messages by turns."""

UNALIGNED = "stepwell.unaligned"
"""Attribute of a function: the name of the one that does the same for addresses that are multiples of nothing."""

ERROR_SHIFT = 56
"""Bits below the code in the word that an error is recorded as: code in the upper 8 bits, value in the lower 56."""

DIVISIBILITY = "tt.divisibility"
"""Attribute of an argument: a pointer, or an integer, is a multiple of that number. A promise of whoever launches."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """
    A kernel, run by every program of a launch. An argument attribute `tt.divisibility` promises that the address, or
    the integer, is a multiple of that number.

    ```mlir
    "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}], function_type = (!tt.ptr<f32>) -> (), sym_name = "k", sym_visibility = "public"}> ({
    ^bb0(%x : !tt.ptr<f32>):
      "tt.return"() : () -> ()
    }) : () -> ()
    ```
    """  # noqa: E501

    name = "tt.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @staticmethod
    def make(
        name: str, types: Sequence[Attribute], attributes: Sequence[Mapping[str, Attribute]], **rest: Attribute
    ) -> FuncOp:
        """An empty function; its body still needs its `tt.return`."""
        return FuncOp.create(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(types, []),
                "sym_visibility": StringAttr("public"),
                "arg_attrs": ArrayAttr([DictionaryAttr(one) for one in attributes]),
            },
            attributes=rest,
            regions=[Region(Block(arg_types=types))],
        )

    @property
    def block(self) -> Block:
        return self.body.block

    def verify_(self) -> None:
        if tuple(argument.type for argument in self.block.args) != tuple(self.function_type.inputs):
            raise VerifyException(f"tt.func: expected arguments as {self.function_type} says")
        if self.arg_attrs is not None and len(self.arg_attrs) != len(self.block.args):
            raise VerifyException(f"tt.func: expected attributes of {len(self.block.args)} arguments")


class _EndOp(IRDLOperation, ABC):
    """Ends a region with its values."""

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class ReturnOp(_EndOp):
    """
    Ends a kernel.

    ```mlir
    "tt.return"() : () -> ()
    ```
    """

    name = "tt.return"

    @staticmethod
    def make() -> ReturnOp:
        return ReturnOp.create()


@irdl_op_definition
class GetProgramIdOp(IRDLOperation):
    """
    The number of the running program along one axis of the launch.

    ```mlir
    %p = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
    ```
    """

    name = "tt.get_program_id"

    axis = prop_def(IntegerAttr)
    result = result_def(i32)

    traits = traits_def(Pure())

    @staticmethod
    def make() -> GetProgramIdOp:
        return GetProgramIdOp.create(properties={"axis": _integer(0)}, result_types=[i32])


@irdl_op_definition
class GetNumProgramsOp(IRDLOperation):
    """
    The number of programs along one axis of the launch.

    ```mlir
    %n = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
    ```
    """

    name = "tt.get_num_programs"

    axis = prop_def(IntegerAttr)
    result = result_def(i32)

    traits = traits_def(Pure())

    @staticmethod
    def make() -> GetNumProgramsOp:
        return GetNumProgramsOp.create(properties={"axis": _integer(0)}, result_types=[i32])


# -- shapes ------------------------------------------------------------------------------------------


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """
    The numbers from `start` to before `end`; as many as a power of two.

    ```mlir
    %r = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
    ```
    """

    name = "tt.make_range"

    start = prop_def(IntegerAttr)
    end = prop_def(IntegerAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(size: int) -> MakeRangeOp:
        return MakeRangeOp.create(
            properties={"start": _integer(0), "end": _integer(size)}, result_types=[block_type(i32, [size])]
        )

    def verify_(self) -> None:
        count = self.end.value.data - self.start.value.data
        if count < 1 or count & (count - 1) or self.result.type != block_type(i32, [count]):
            raise VerifyException(f"tt.make_range: expected a power of two of i32 numbers, got {self.result.type}")


class _ReshapingOp(IRDLOperation, ABC):
    """One block made from another, of the same elements."""

    src = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if element_of(self.src.type) != element_of(self.result.type):
            raise VerifyException(f"{self.name}: expected blocks of one element type")


@irdl_op_definition
class SplatOp(_ReshapingOp):
    """
    Repeats a scalar over a block.

    ```mlir
    %b = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    ```
    """

    name = "tt.splat"

    @staticmethod
    def make(value: SSAValue, shape: Sequence[int]) -> SplatOp:
        return SplatOp.create(operands=[value], result_types=[block_type(value.type, shape)])

    def verify_(self) -> None:
        super().verify_()
        if shape_of(self.src.type) or not shape_of(self.result.type):
            raise VerifyException(f"tt.splat: expected a scalar and a block, got {self.src.type}, {self.result.type}")


@irdl_op_definition
class ExpandDimsOp(_ReshapingOp):
    """
    Inserts a dimension of one element.

    ```mlir
    %e = "tt.expand_dims"(%r) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
    ```
    """

    name = "tt.expand_dims"

    axis = prop_def(IntegerAttr)

    @staticmethod
    def make(value: SSAValue, axis: int) -> ExpandDimsOp:
        shape = list(shape_of(value.type))
        shape.insert(axis, 1)
        return ExpandDimsOp.create(
            operands=[value],
            properties={"axis": _integer(axis)},
            result_types=[block_type(element_of(value.type), shape)],
        )

    def verify_(self) -> None:
        super().verify_()
        shape = list(shape_of(self.src.type))
        shape.insert(self.axis.value.data, 1)
        if tuple(shape) != shape_of(self.result.type):
            raise VerifyException(f"tt.expand_dims: expected a block of {shape}, got {self.result.type}")


@irdl_op_definition
class BroadcastOp(_ReshapingOp):
    """
    Repeats a block along its dimensions of one element.

    ```mlir
    %b = "tt.broadcast"(%e) : (tensor<64x1xi32>) -> tensor<64x32xi32>
    ```
    """

    name = "tt.broadcast"

    @staticmethod
    def make(value: SSAValue, shape: Sequence[int]) -> BroadcastOp:
        return BroadcastOp.create(operands=[value], result_types=[block_type(element_of(value.type), shape)])

    def verify_(self) -> None:
        super().verify_()
        source, target = shape_of(self.src.type), shape_of(self.result.type)
        if len(source) != len(target) or any(one not in (1, size) for one, size in zip(source, target, strict=True)):
            raise VerifyException(f"tt.broadcast: expected {source} to repeat as {target}")


@irdl_op_definition
class TransOp(_ReshapingOp):
    """
    Permutes dimensions: dimension k of the result is dimension `order[k]` of the operand.

    ```mlir
    %t = "tt.trans"(%v) <{order = array<i32: 1, 0>}> : (tensor<64x32xf32>) -> tensor<32x64xf32>
    ```
    """

    name = "tt.trans"

    order = prop_def(DenseArrayBase)

    @staticmethod
    def make(value: SSAValue, order: Sequence[int]) -> TransOp:
        shape = shape_of(value.type)
        return TransOp.create(
            operands=[value],
            properties={"order": DenseArrayBase.from_list(i32, list(order))},
            result_types=[block_type(element_of(value.type), [shape[k] for k in order])],
        )

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(int(value) for value in self.order.get_values())

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.src.type)
        if sorted(self.dims) != list(range(len(shape))) or shape_of(self.result.type) != tuple(
            shape[k] for k in self.dims
        ):
            raise VerifyException(f"tt.trans: expected {shape} in the order {self.dims}, got {self.result.type}")


# -- memory ------------------------------------------------------------------------------------------


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """
    Pointers moved by a number of elements, i32 or i64.

    ```mlir
    %p = "tt.addptr"(%b, %r) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    ```
    """

    name = "tt.addptr"

    ptr = operand_def()
    offset = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(pointer: SSAValue, offset: SSAValue) -> AddPtrOp:
        return AddPtrOp.create(operands=[pointer, offset], result_types=[pointer.type])

    def verify_(self) -> None:
        pointee_of(self.ptr.type)
        _verify_shapes(self, self.ptr.type, self.offset)
        if element_of(self.offset.type) not in (i32, i64) or self.result.type != self.ptr.type:
            raise VerifyException(f"tt.addptr: expected an offset of i32 or i64, got {self.offset.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """
    Loads what pointers point to; lanes that the mask excludes are not accessed and hold the other value.

    ```mlir
    %v = "tt.load"(%p, %m, %z) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    ```
    """  # noqa: E501

    name = "tt.load"

    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(pointer: SSAValue, mask: SSAValue | None = None, other: SSAValue | None = None) -> LoadOp:
        return LoadOp.create(
            operands=[pointer, *_optional(mask), *_optional(other)],
            properties={"operandSegmentSizes": _segments(1, int(mask is not None), int(other is not None))},
            result_types=[block_type(pointee_of(pointer.type), shape_of(pointer.type))],
        )

    def verify_(self) -> None:
        _verify_shapes(self, self.ptr.type, self.mask, self.other, self.result)
        if element_of(self.result.type) != pointee_of(self.ptr.type):
            raise VerifyException(f"tt.load: expected a result of {pointee_of(self.ptr.type)}, got {self.result.type}")


@cache
def _segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, list(sizes))


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Stores to where pointers point, in the lanes that the mask includes.

    ```mlir
    "tt.store"(%p, %v, %m) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    ```
    """

    name = "tt.store"

    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()

    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(pointer: SSAValue, value: SSAValue, mask: SSAValue | None = None) -> StoreOp:
        return StoreOp.create(operands=[pointer, value, *_optional(mask)])

    def verify_(self) -> None:
        _verify_shapes(self, self.ptr.type, self.value, self.mask)
        if element_of(self.value.type) != pointee_of(self.ptr.type):
            raise VerifyException(f"tt.store: expected a value of {pointee_of(self.ptr.type)}, got {self.value.type}")


ATOMICS = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")
"""Kinds of `tt.atomic_rmw` by the number that stands for each."""

RELAXED, WHOLE_GPU = 1, 1


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """
    Combines values into what pointers point to, each at once, in the lanes that the mask includes; gives what was
    there. The kinds are those of `ATOMICS`; 5 adds floats.

    ```mlir
    %o = "tt.atomic_rmw"(%p, %v, %m) <{atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>
    ```
    """  # noqa: E501

    name = "tt.atomic_rmw"

    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    atomic_rmw_op = prop_def(IntegerAttr)
    sem = prop_def(IntegerAttr)
    scope = prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(kind: str, pointer: SSAValue, value: SSAValue, mask: SSAValue | None = None) -> AtomicRMWOp:
        return AtomicRMWOp.create(
            operands=[pointer, value, *_optional(mask)],
            properties={
                "atomic_rmw_op": _integer(ATOMICS.index(kind)),
                "sem": _integer(RELAXED),
                "scope": _integer(WHOLE_GPU),
            },
            result_types=[value.type],
        )

    @property
    def kind(self) -> str:
        return ATOMICS[self.atomic_rmw_op.value.data]

    def verify_(self) -> None:
        _verify_shapes(self, self.ptr.type, self.value, self.mask, self.result)
        if not 0 < self.atomic_rmw_op.value.data < len(ATOMICS):
            raise VerifyException(f"tt.atomic_rmw: expected a kind from 1 to {len(ATOMICS) - 1}")


# -- values ------------------------------------------------------------------------------------------


@irdl_op_definition
class CmpIOp(IRDLOperation):
    """
    `arith.cmpi`, on blocks too; predicates by their numbers there.

    ```mlir
    %m = "tt.cmpi"(%a, %b) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    ```
    """

    name = "tt.cmpi"

    lhs = operand_def()
    rhs = operand_def()
    predicate = prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(predicate: str, lhs: SSAValue, rhs: SSAValue) -> CmpIOp:
        return CmpIOp.create(
            operands=[lhs, rhs],
            properties={"predicate": IntegerAttr(INTEGER_PREDICATES.index(predicate), i64)},
            result_types=[block_type(i1, shape_of(lhs.type))],
        )

    def verify_(self) -> None:
        _verify_comparison(self, self.lhs, self.rhs, self.result)


@irdl_op_definition
class CmpFOp(IRDLOperation):
    """
    `arith.cmpf`, on blocks too; predicates by their numbers there.

    ```mlir
    %m = "tt.cmpf"(%a, %b) <{fastmath = #arith.fastmath<none>, predicate = 4 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
    ```
    """  # noqa: E501

    name = "tt.cmpf"

    lhs = operand_def()
    rhs = operand_def()
    predicate = prop_def(IntegerAttr)
    fastmath = opt_prop_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(predicate: str, lhs: SSAValue, rhs: SSAValue) -> CmpFOp:
        return CmpFOp.create(
            operands=[lhs, rhs],
            properties={"predicate": IntegerAttr(FLOAT_PREDICATES.index(predicate), i64)},
            result_types=[block_type(i1, shape_of(lhs.type))],
        )

    def verify_(self) -> None:
        _verify_comparison(self, self.lhs, self.rhs, self.result)


FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _verify_comparison(op: IRDLOperation, lhs: SSAValue, rhs: SSAValue, result: SSAValue) -> None:
    if lhs.type != rhs.type or result.type != block_type(i1, shape_of(lhs.type)):
        raise VerifyException(f"{op.name}: expected operands of one type and i1 of their shape, got {result.type}")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """
    `arith.select`, with a condition for each lane too.

    ```mlir
    %v = "tt.select"(%m, %a, %b) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
    """

    name = "tt.select"

    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SelectOp:
        return SelectOp.create(operands=[condition, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException(f"tt.select: expected values of {self.result.type}")
        if self.condition.type not in (i1, block_type(i1, shape_of(self.result.type))):
            raise VerifyException(f"tt.select: expected a condition of i1, got {self.condition.type}")


class CastOp(IRDLOperation, ABC):
    """The cast of `arith` of the same name, which types only scalars in xDSL, on blocks too."""

    src = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _verify_shapes(self, self.src.type, self.result)


@irdl_op_definition
class ExtSIOp(CastOp):
    """
    Integers in a wider type, sign extended.

    ```mlir
    %w = "tt.extsi"(%v) : (tensor<64xi32>) -> tensor<64xi64>
    ```
    """

    name = "tt.extsi"


@irdl_op_definition
class ExtUIOp(CastOp):
    """
    Integers in a wider type, zero extended.

    ```mlir
    %w = "tt.extui"(%v) : (tensor<64xi1>) -> tensor<64xi32>
    ```
    """

    name = "tt.extui"


@irdl_op_definition
class TruncIOp(CastOp):
    """
    The low bits of integers.

    ```mlir
    %w = "tt.trunci"(%v) : (tensor<64xi64>) -> tensor<64xi32>
    ```
    """

    name = "tt.trunci"


@irdl_op_definition
class SIToFPOp(CastOp):
    """
    Signed integers as floats.

    ```mlir
    %w = "tt.sitofp"(%v) : (tensor<64xi32>) -> tensor<64xf32>
    ```
    """

    name = "tt.sitofp"


@irdl_op_definition
class UIToFPOp(CastOp):
    """
    Unsigned integers as floats.

    ```mlir
    %w = "tt.uitofp"(%v) : (tensor<64xi32>) -> tensor<64xf32>
    ```
    """

    name = "tt.uitofp"


@irdl_op_definition
class FPToSIOp(CastOp):
    """
    Floats as signed integers, rounded towards 0.

    ```mlir
    %w = "tt.fptosi"(%v) : (tensor<64xf32>) -> tensor<64xi32>
    ```
    """

    name = "tt.fptosi"


@irdl_op_definition
class FPToUIOp(CastOp):
    """
    Floats as unsigned integers, rounded towards 0.

    ```mlir
    %w = "tt.fptoui"(%v) : (tensor<64xf32>) -> tensor<64xi32>
    ```
    """

    name = "tt.fptoui"


STAND_INS: tuple[type[IRDLOperation], ...] = (
    CmpIOp, CmpFOp, SelectOp, ExtSIOp, ExtUIOp, TruncIOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp
)  # fmt: skip
"""Ops that stand for those of `arith` of the same name."""


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """
    The same bits as another type of their width.

    ```mlir
    %b = "tt.bitcast"(%v) : (tensor<64xf32>) -> tensor<64xi32>
    ```
    """

    name = "tt.bitcast"

    src = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(value: SSAValue, element: Attribute) -> BitcastOp:
        return BitcastOp.create(operands=[value], result_types=[block_type(element, shape_of(value.type))])

    def verify_(self) -> None:
        _verify_shapes(self, self.src.type, self.result)


@irdl_op_definition
class MulhiUIOp(IRDLOperation):
    """
    The high half of the product of unsigned integers.

    ```mlir
    %h = "tt.mulhiui"(%a, %b) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
    ```
    """

    name = "tt.mulhiui"

    x = operand_def()
    y = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(x: SSAValue, y: SSAValue) -> MulhiUIOp:
        return MulhiUIOp.create(operands=[x, y], result_types=[x.type])

    def verify_(self) -> None:
        _verify_same_types(self, self.x, self.y, self.result)


def _verify_same_types(op: IRDLOperation, *values: SSAValue) -> None:
    if len({value.type for value in values}) != 1:
        raise VerifyException(f"{op.name}: expected operands and result of one type")


@irdl_op_definition
class PreciseSqrtOp(IRDLOperation):
    """
    The square root of f32, rounded correctly; `math.sqrt` is an approximation.

    ```mlir
    %r = "tt.precise_sqrt"(%v) : (tensor<64xf32>) -> tensor<64xf32>
    ```
    """

    name = "tt.precise_sqrt"

    x = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(x: SSAValue) -> PreciseSqrtOp:
        return PreciseSqrtOp.create(operands=[x], result_types=[x.type])

    def verify_(self) -> None:
        _verify_same_types(self, self.x, self.result)


@irdl_op_definition
class PreciseDivFOp(IRDLOperation):
    """
    The quotient of f32, rounded correctly; `arith.divf` is an approximation.

    ```mlir
    %q = "tt.precise_divf"(%a, %b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
    """

    name = "tt.precise_divf"

    x = operand_def()
    y = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(x: SSAValue, y: SSAValue) -> PreciseDivFOp:
        return PreciseDivFOp.create(operands=[x, y], result_types=[x.type])

    def verify_(self) -> None:
        _verify_same_types(self, self.x, self.y, self.result)


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """
    A function of NVIDIA's libdevice on every lane.

    ```mlir
    %t = "tt.extern_elementwise"(%v) <{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"}> : (tensor<64xf32>) -> tensor<64xf32>
    ```
    """  # noqa: E501

    name = "tt.extern_elementwise"

    srcs = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    symbol = prop_def(StringAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(symbol: str, operands: Sequence[SSAValue], element: Attribute | None = None) -> ExternElementwiseOp:
        """`element`, if given, is the element of the result; else that of the operands."""
        type_ = operands[0].type if element is None else block_type(element, shape_of(operands[0].type))
        return ExternElementwiseOp.create(
            operands=list(operands),
            properties={
                "libname": StringAttr(""),
                "libpath": StringAttr(""),
                "pure": _boolean(True),
                "symbol": StringAttr(symbol),
            },
            result_types=[type_],
        )

    def verify_(self) -> None:
        _verify_shapes(self, self.result.type, *self.srcs)


ROUND_TO_BF16 = "{ .reg .b32 zero; mov.b32 zero, 0; cvt.rn.bf16x2.f32 $0, $1, zero; }"
"""PTX that rounds f32 to what bf16 can hold, as f32: the upper half of a pair is just that. The conversion of one
number runs on the unit of exponentials, at an eighth of the rate of that of pairs."""


RECIPROCAL = "rcp.approx.ftz.f32 $0, $1;"
"""PTX for the reciprocal of a normal f32, if that is normal too: right to a unit in the last place."""


@irdl_op_definition
class InlineAsmOp(IRDLOperation):
    """
    A function on every lane in PTX: `$0` is the result, `$1` the operand.

    ```mlir
    %r = "tt.elementwise_inline_asm"(%v) <{asm_string = "cvt.rn.bf16x2.f32 $0, $1, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (tensor<64xf32>) -> tensor<64xf32>
    ```
    """  # noqa: E501

    name = "tt.elementwise_inline_asm"

    src = operand_def()
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    packed_element = prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(assembly: str, operand: SSAValue) -> InlineAsmOp:
        return InlineAsmOp.create(
            operands=[operand],
            properties={
                "asm_string": StringAttr(assembly),
                "constraints": StringAttr("=r,r"),
                "pure": _boolean(True),
                "packed_element": _integer(1),
            },
            result_types=[operand.type],
        )

    def verify_(self) -> None:
        if self.src.type != self.result.type:
            raise VerifyException(f"{self.name}: expected a result of {self.src.type}, got {self.result.type}")


@irdl_op_definition
class DotOp(IRDLOperation):
    """
    The product of two blocks, added to a third. `inputPrecision` says how f32 operands are multiplied: 0 tf32,
    1 tf32x3, 2 ieee, 3 bf16x3, 4 bf16x6. Where `maxNumImpreciseAcc` is not 0, Triton leaves an addition that follows
    out of the product.

    ```mlir
    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    ```
    """  # noqa: E501

    name = "tt.dot"

    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    input_precision = prop_def(IntegerAttr, prop_name="inputPrecision")
    max_imprecise = prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    d = result_def(TensorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(a: SSAValue, b: SSAValue, c: SSAValue, precision: int = 2, most: int = 0) -> DotOp:
        return DotOp.create(
            operands=[a, b, c],
            properties={"inputPrecision": _integer(precision), "maxNumImpreciseAcc": _integer(most)},
            result_types=[c.type],
        )

    def verify_(self) -> None:
        (rows, inner), (depth, columns) = shape_of(self.a.type), shape_of(self.b.type)
        if inner != depth or shape_of(self.c.type) != (rows, columns) or self.c.type != self.d.type:
            raise VerifyException(
                f"tt.dot: expected ({rows}, {inner}) · ({inner}, {columns}) + ({rows}, {columns}), got "
                f"{self.a.type}, {self.b.type}, {self.c.type}"
            )


# -- combinations ------------------------------------------------------------------------------------


class CombiningOp(IRDLOperation, ABC):
    """Combines the lanes of blocks along one axis, by a region on scalars: first all of one lane, then of another."""

    srcs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    res = var_result_def()
    body = region_def("single_block")

    traits = traits_def(Pure())

    @property
    def block(self) -> Block:
        return self.body.block

    def verify_(self) -> None:
        elements = [element_of(value.type) for value in self.srcs]
        if [argument.type for argument in self.block.args] != elements * 2:
            raise VerifyException(f"{self.name}: expected a region that takes two scalars for each operand")
        last = self.block.last_op
        if last is None or last.name != f"{self.name}.return":
            raise VerifyException(f"{self.name}: expected its region to end in {self.name}.return")
        if [value.type for value in last.operands] != elements:
            raise VerifyException(f"{self.name}: expected its region to return a scalar for each operand")
        if [value.type for value in self.results] != [self.result_type(value.type) for value in self.srcs]:
            raise VerifyException(f"{self.name}: expected results that fit its operands")

    def result_type(self, type_: Attribute) -> Attribute:
        """The type of a result for an operand of some type."""
        return type_


@irdl_op_definition
class ReduceOp(CombiningOp):
    """
    Combines all lanes along one axis.

    ```mlir
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a : f32, %b : f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<64xf32>) -> f32
    ```
    """

    name = "tt.reduce"

    @staticmethod
    def make(values: Sequence[SSAValue], axis: int) -> ReduceOp:
        """A reduction; its region still needs its ops and its `tt.reduce.return`."""
        elements = [element_of(value.type) for value in values]
        return ReduceOp.create(
            operands=list(values),
            properties={"axis": _integer(axis)},
            result_types=[_without(value.type, axis) for value in values],
            regions=[Region(Block(arg_types=elements * 2))],
        )

    def result_type(self, type_: Attribute) -> Attribute:
        return _without(type_, self.axis.value.data)


def _without(type_: Attribute, axis: int) -> Attribute:
    """A block type without one of its dimensions."""
    shape = list(shape_of(type_))
    del shape[axis]
    return block_type(element_of(type_), shape)


@irdl_op_definition
class ReduceReturnOp(_EndOp):
    """
    Ends the region of `tt.reduce`.

    ```mlir
    "tt.reduce.return"(%c) : (f32) -> ()
    ```
    """

    name = "tt.reduce.return"

    @staticmethod
    def make(values: Sequence[SSAValue]) -> ReduceReturnOp:
        return ReduceReturnOp.create(operands=list(values))


@irdl_op_definition
class ScanOp(CombiningOp):
    """
    Combines each lane along one axis with all before it, or behind it if `reverse`.

    ```mlir
    %s = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a : f32, %b : f32):
      %c = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
      "tt.scan.return"(%c) : (f32) -> ()
    }) : (tensor<64xf32>) -> tensor<64xf32>
    ```
    """

    name = "tt.scan"

    reverse = prop_def(IntegerAttr)

    @staticmethod
    def make(values: Sequence[SSAValue], axis: int) -> ScanOp:
        """A scan; its region still needs its ops and its `tt.scan.return`."""
        elements = [element_of(value.type) for value in values]
        return ScanOp.create(
            operands=list(values),
            properties={"axis": _integer(axis), "reverse": _boolean(False)},
            result_types=[value.type for value in values],
            regions=[Region(Block(arg_types=elements * 2))],
        )


@irdl_op_definition
class ScanReturnOp(_EndOp):
    """
    Ends the region of `tt.scan`.

    ```mlir
    "tt.scan.return"(%c) : (f32) -> ()
    ```
    """

    name = "tt.scan.return"

    @staticmethod
    def make(values: Sequence[SSAValue]) -> ScanReturnOp:
        return ScanReturnOp.create(operands=list(values))

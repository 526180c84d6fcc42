"""Elementwise ops: unary, binary, comparisons, conversions. Broadcasting is an op of its own.

An op on bf16 or f16 computes in f32 and rounds its result once, as eager does.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerType, LocationAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Commutative, NoMemoryEffect, Pure

from ..dtypes import BOOL, element_of, is_float, is_native, numpy_dtype
from ..shapes import own_type
from .base import TENSOR, GraphOp, Parameter, Word, verify_same_element, verify_same_sizes
from .traits import Elementwise

# -- element types that an op takes ------------------------------------------------------------------


def is_number(element: Attribute) -> bool:
    return is_native(element) and element != BOOL


def is_integral(element: Attribute) -> bool:
    return isinstance(element, IntegerType)


class ElementwiseOp(GraphOp, ABC):
    """Element i of the result is computed from element i of each operand."""

    traits = traits_def(Elementwise())

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        """Whether the op computes on such operands."""
        return is_native(element)

    def verify_(self) -> None:
        verify_same_sizes(self, self.operands)
        for operand in self.operands:
            if not self.accepts(element_of(operand.type)):
                raise self.fail("an element type that it computes on", f"{element_of(operand.type)}")
        self.verify_elements()

    def verify_elements(self) -> None:
        verify_same_element(self, self.operands)


# -- unary -------------------------------------------------------------------------------------------


class UnaryOp(ElementwiseOp, ABC):
    """One operand, a result of the same element type."""

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(cls, operand: SSAValue, type_: Attribute | None = None, location: LocationAttr = UNKNOWN_LOC) -> UnaryOp:
        return cls.create(operands=(operand,), result_types=(type_ or own_type(operand.type),), location=location)


class FloatUnaryOp(UnaryOp, ABC):
    """A unary op on floats."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_float(element)


class NumberUnaryOp(UnaryOp, ABC):
    """A unary op on floats and integers, not on i1."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_number(element)


class FloatTestOp(FloatUnaryOp, ABC):
    """A property of each float, as i1."""

    def verify_elements(self) -> None:
        if self.element != BOOL:
            raise self.fail("a result of element type i1", f"{self.element}")

    @classmethod
    def make(cls, operand: SSAValue, type_: Attribute | None = None, location: LocationAttr = UNKNOWN_LOC) -> UnaryOp:
        type_ = type_ or own_type(operand.type, BOOL)
        return cls.create(operands=(operand,), result_types=(type_,), location=location)


@irdl_op_definition
class ExpOp(FloatUnaryOp):
    """
    e to the power of x.

    ```mlir
    %y = graph.exp %x : tensor<8xf32>
    ```
    """

    name = "graph.exp"


@irdl_op_definition
class Exp2Op(FloatUnaryOp):
    """
    2 to the power of x.

    ```mlir
    %y = graph.exp2 %x : tensor<8xf32>
    ```
    """

    name = "graph.exp2"


@irdl_op_definition
class Expm1Op(FloatUnaryOp):
    """
    e to the power of x, minus 1, exact near 0.

    ```mlir
    %y = graph.expm1 %x : tensor<8xf32>
    ```
    """

    name = "graph.expm1"


@irdl_op_definition
class LogOp(FloatUnaryOp):
    """
    The natural logarithm.

    ```mlir
    %y = graph.log %x : tensor<8xf32>
    ```
    """

    name = "graph.log"


@irdl_op_definition
class Log2Op(FloatUnaryOp):
    """
    The logarithm to base 2.

    ```mlir
    %y = graph.log2 %x : tensor<8xf32>
    ```
    """

    name = "graph.log2"


@irdl_op_definition
class Log10Op(FloatUnaryOp):
    """
    The logarithm to base 10.

    ```mlir
    %y = graph.log10 %x : tensor<8xf32>
    ```
    """

    name = "graph.log10"


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """
    The natural logarithm of 1 + x, exact near 0.

    ```mlir
    %y = graph.log1p %x : tensor<8xf32>
    ```
    """

    name = "graph.log1p"


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    """
    The square root, correctly rounded.

    ```mlir
    %y = graph.sqrt %x : tensor<8xf32>
    ```
    """

    name = "graph.sqrt"


@irdl_op_definition
class RsqrtOp(FloatUnaryOp):
    """
    1 divided by the square root.

    ```mlir
    %y = graph.rsqrt %x : tensor<8xf32>
    ```
    """

    name = "graph.rsqrt"


@irdl_op_definition
class ReciprocalOp(FloatUnaryOp):
    """
    1 divided by x.

    ```mlir
    %y = graph.reciprocal %x : tensor<8xf32>
    ```
    """

    name = "graph.reciprocal"


@irdl_op_definition
class SinOp(FloatUnaryOp):
    """
    The sine.

    ```mlir
    %y = graph.sin %x : tensor<8xf32>
    ```
    """

    name = "graph.sin"


@irdl_op_definition
class CosOp(FloatUnaryOp):
    """
    The cosine.

    ```mlir
    %y = graph.cos %x : tensor<8xf32>
    ```
    """

    name = "graph.cos"


@irdl_op_definition
class TanOp(FloatUnaryOp):
    """
    The tangent.

    ```mlir
    %y = graph.tan %x : tensor<8xf32>
    ```
    """

    name = "graph.tan"


@irdl_op_definition
class AsinOp(FloatUnaryOp):
    """
    The arc sine.

    ```mlir
    %y = graph.asin %x : tensor<8xf32>
    ```
    """

    name = "graph.asin"


@irdl_op_definition
class AcosOp(FloatUnaryOp):
    """
    The arc cosine.

    ```mlir
    %y = graph.acos %x : tensor<8xf32>
    ```
    """

    name = "graph.acos"


@irdl_op_definition
class AtanOp(FloatUnaryOp):
    """
    The arc tangent.

    ```mlir
    %y = graph.atan %x : tensor<8xf32>
    ```
    """

    name = "graph.atan"


@irdl_op_definition
class SinhOp(FloatUnaryOp):
    """
    The hyperbolic sine.

    ```mlir
    %y = graph.sinh %x : tensor<8xf32>
    ```
    """

    name = "graph.sinh"


@irdl_op_definition
class CoshOp(FloatUnaryOp):
    """
    The hyperbolic cosine.

    ```mlir
    %y = graph.cosh %x : tensor<8xf32>
    ```
    """

    name = "graph.cosh"


@irdl_op_definition
class TanhOp(FloatUnaryOp):
    """
    The hyperbolic tangent.

    ```mlir
    %y = graph.tanh %x : tensor<8xf32>
    ```
    """

    name = "graph.tanh"


@irdl_op_definition
class AsinhOp(FloatUnaryOp):
    """
    The inverse hyperbolic sine.

    ```mlir
    %y = graph.asinh %x : tensor<8xf32>
    ```
    """

    name = "graph.asinh"


@irdl_op_definition
class AcoshOp(FloatUnaryOp):
    """
    The inverse hyperbolic cosine.

    ```mlir
    %y = graph.acosh %x : tensor<8xf32>
    ```
    """

    name = "graph.acosh"


@irdl_op_definition
class AtanhOp(FloatUnaryOp):
    """
    The inverse hyperbolic tangent.

    ```mlir
    %y = graph.atanh %x : tensor<8xf32>
    ```
    """

    name = "graph.atanh"


@irdl_op_definition
class ErfOp(FloatUnaryOp):
    """
    The error function.

    ```mlir
    %y = graph.erf %x : tensor<8xf32>
    ```
    """

    name = "graph.erf"


@irdl_op_definition
class ErfcOp(FloatUnaryOp):
    """
    1 minus the error function, exact where that is small.

    ```mlir
    %y = graph.erfc %x : tensor<8xf32>
    ```
    """

    name = "graph.erfc"


@irdl_op_definition
class SigmoidOp(FloatUnaryOp):
    """
    1 / (1 + exp(-x)), step by step in the type, f32 for narrower ones: 0 where exp(-x) overflows.

    ```mlir
    %y = graph.sigmoid %x : tensor<8xf32>
    ```
    """

    name = "graph.sigmoid"


@irdl_op_definition
class FloorOp(FloatUnaryOp):
    """
    The largest integer not above x.

    ```mlir
    %y = graph.floor %x : tensor<8xf32>
    ```
    """

    name = "graph.floor"


@irdl_op_definition
class CeilOp(FloatUnaryOp):
    """
    The smallest integer not below x.

    ```mlir
    %y = graph.ceil %x : tensor<8xf32>
    ```
    """

    name = "graph.ceil"


@irdl_op_definition
class RoundOp(FloatUnaryOp):
    """
    The nearest integer, ties to even.

    ```mlir
    %y = graph.round %x : tensor<8xf32>
    ```
    """

    name = "graph.round"


@irdl_op_definition
class TruncOp(FloatUnaryOp):
    """
    The integer part, towards 0.

    ```mlir
    %y = graph.trunc %x : tensor<8xf32>
    ```
    """

    name = "graph.trunc"


@irdl_op_definition
class NegOp(NumberUnaryOp):
    """
    Minus x; integers wrap.

    ```mlir
    %y = graph.neg %x : tensor<8xf32>
    ```
    """

    name = "graph.neg"


@irdl_op_definition
class AbsOp(NumberUnaryOp):
    """
    The absolute value; the lowest integer stays.

    ```mlir
    %y = graph.abs %x : tensor<8xf32>
    ```
    """

    name = "graph.abs"


@irdl_op_definition
class SignOp(NumberUnaryOp):
    """
    -1, 0 or 1; 0 for NaN.

    ```mlir
    %y = graph.sign %x : tensor<8xf32>
    ```
    """

    name = "graph.sign"


@irdl_op_definition
class ReluOp(NumberUnaryOp):
    """
    x where it is above 0 or NaN, else 0.

    ```mlir
    %y = graph.relu %x : tensor<8xf32>
    ```
    """

    name = "graph.relu"


@irdl_op_definition
class NotOp(UnaryOp):
    """
    Bitwise not; logical not on i1.

    ```mlir
    %y = graph.not %x : tensor<8xi32>
    ```
    """

    name = "graph.not"

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_integral(element)


@irdl_op_definition
class IsNanOp(FloatTestOp):
    """
    Whether x is NaN.

    ```mlir
    %y = graph.isnan %x : (tensor<8xf32>) -> tensor<8xi1>
    ```
    """

    name = "graph.isnan"


@irdl_op_definition
class IsInfOp(FloatTestOp):
    """
    Whether x is an infinity.

    ```mlir
    %y = graph.isinf %x : (tensor<8xf32>) -> tensor<8xi1>
    ```
    """

    name = "graph.isinf"


@irdl_op_definition
class SignBitOp(FloatTestOp):
    """
    Whether the sign bit of x is set, as for -0.0.

    ```mlir
    %y = graph.signbit %x : (tensor<8xf32>) -> tensor<8xi1>
    ```
    """

    name = "graph.signbit"


@irdl_op_definition
class ProbabilityOp(ElementwiseOp):
    """
    x, which must be from 0 to 1; any other number, or NaN, raises when it runs.

    ```mlir
    %y = graph.probability %x : tensor<8xf32>
    ```
    """

    name = "graph.probability"

    MESSAGE: ClassVar[str] = "all elements of input should be between 0 and 1"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(NoMemoryEffect())

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_float(element)

    @classmethod
    def make(cls, operand: SSAValue, location: LocationAttr = UNKNOWN_LOC) -> ProbabilityOp:
        return cls.create(operands=(operand,), result_types=(own_type(operand.type),), location=location)


# -- binary ------------------------------------------------------------------------------------------


class BinaryOp(ElementwiseOp, ABC):
    """Two operands and a result of one element type."""

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls,
        lhs: SSAValue,
        rhs: SSAValue,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> BinaryOp:
        return cls.create(operands=(lhs, rhs), result_types=(type_ or own_type(lhs.type),), location=location)


class FloatBinaryOp(BinaryOp, ABC):
    """A binary op on floats."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_float(element)


class NumberBinaryOp(BinaryOp, ABC):
    """A binary op on floats and integers, not on i1."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_number(element)


class IntegralBinaryOp(BinaryOp, ABC):
    """A binary op on the bits of integers or on i1."""

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_integral(element)


@irdl_op_definition
class AddOp(NumberBinaryOp):
    """
    x + y; integers wrap.

    ```mlir
    %z = graph.add %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.add"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class SubOp(NumberBinaryOp):
    """
    x - y; integers wrap.

    ```mlir
    %z = graph.sub %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.sub"

    traits = traits_def(Pure())


@irdl_op_definition
class MulOp(NumberBinaryOp):
    """
    x * y; integers wrap.

    ```mlir
    %z = graph.mul %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.mul"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class DivOp(FloatBinaryOp):
    """
    x / y.

    ```mlir
    %z = graph.div %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.div"

    traits = traits_def(Pure())


@irdl_op_definition
class FloorDivOp(NumberBinaryOp):
    """
    x / y rounded down, as Python's `//`; an integer division by 0 raises when it runs.

    ```mlir
    %z = graph.floordiv %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.floordiv"

    traits = traits_def(NoMemoryEffect())


@irdl_op_definition
class TruncDivOp(NumberBinaryOp):
    """
    x / y rounded towards 0; an integer division by 0 raises when it runs.

    ```mlir
    %z = graph.truncdiv %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.truncdiv"

    traits = traits_def(NoMemoryEffect())


@irdl_op_definition
class RemainderOp(NumberBinaryOp):
    """
    x modulo y with the sign of y, as Python's `%`; an integer modulo 0 raises when it runs.

    ```mlir
    %z = graph.remainder %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.remainder"

    traits = traits_def(NoMemoryEffect())


@irdl_op_definition
class FmodOp(NumberBinaryOp):
    """
    x modulo y with the sign of x, as C's `fmod`; an integer modulo 0 raises when it runs.

    ```mlir
    %z = graph.fmod %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.fmod"

    traits = traits_def(NoMemoryEffect())


@irdl_op_definition
class PowOp(NumberBinaryOp):
    """
    x to the power of y; integers wrap, and a negative exponent gives 0 except for a base of 1 or -1.

    ```mlir
    %z = graph.pow %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.pow"

    traits = traits_def(Pure())


@irdl_op_definition
class MaximumOp(NumberBinaryOp):
    """
    The larger one, NaN if either is.

    ```mlir
    %z = graph.maximum %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.maximum"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class MinimumOp(NumberBinaryOp):
    """
    The smaller one, NaN if either is.

    ```mlir
    %z = graph.minimum %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.minimum"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class Atan2Op(FloatBinaryOp):
    """
    The angle of the point (y, x), the first operand being y.

    ```mlir
    %z = graph.atan2 %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.atan2"

    traits = traits_def(Pure())


@irdl_op_definition
class CopySignOp(FloatBinaryOp):
    """
    The magnitude of x with the sign of y.

    ```mlir
    %z = graph.copysign %x, %y : tensor<8xf32>
    ```
    """

    name = "graph.copysign"

    traits = traits_def(Pure())


@irdl_op_definition
class AndOp(IntegralBinaryOp):
    """
    Bitwise and; logical on i1.

    ```mlir
    %z = graph.and %x, %y : tensor<8xi32>
    ```
    """

    name = "graph.and"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class OrOp(IntegralBinaryOp):
    """
    Bitwise or; logical on i1.

    ```mlir
    %z = graph.or %x, %y : tensor<8xi32>
    ```
    """

    name = "graph.or"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class XorOp(IntegralBinaryOp):
    """
    Bitwise exclusive or; logical on i1.

    ```mlir
    %z = graph.xor %x, %y : tensor<8xi32>
    ```
    """

    name = "graph.xor"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class ShlOp(IntegralBinaryOp):
    """
    x shifted left; 0 if y is negative or not below the width.

    ```mlir
    %z = graph.shl %x, %y : tensor<8xi32>
    ```
    """

    name = "graph.shl"

    traits = traits_def(Pure())


@irdl_op_definition
class ShrOp(IntegralBinaryOp):
    """
    x shifted right, copying the sign of a signed type; a y that is negative or not below the width shifts
    by the width - 1 (signed) or gives 0 (unsigned).

    ```mlir
    %z = graph.shr %x, %y : tensor<8xi32>
    ```
    """

    name = "graph.shr"

    traits = traits_def(Pure())


# -- comparison and choice ---------------------------------------------------------------------------

PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


@irdl_op_definition
class CompareOp(ElementwiseOp):
    """
    Compares; a comparison with NaN is false, except `ne`.

    ```mlir
    %c = graph.compare %x, %y is lt : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    ```
    """

    name = "graph.compare"

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (Parameter("is", "predicate", Word()),)

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    predicate = prop_def(StringAttr)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        predicate: str,
        lhs: SSAValue,
        rhs: SSAValue,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> CompareOp:
        type_ = type_ or own_type(lhs.type, BOOL)
        return cls.build_from((lhs, rhs), type_, location, predicate=StringAttr(predicate))

    def verify_elements(self) -> None:
        if self.predicate.data not in PREDICATES:
            raise self.fail(f"a predicate of {', '.join(PREDICATES)}", self.predicate.data)
        left, right = (element_of(operand.type) for operand in self.operands)
        if left != right or self.element != BOOL:
            raise self.fail("operands of one element type and a result of i1", f"{left}, {right}, {self.element}")


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """
    The second operand where the condition holds, else the third.

    ```mlir
    %z = graph.select %c, %x, %y : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    name = "graph.select"

    condition = operand_def(TENSOR)
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def make(
        cls,
        condition: SSAValue,
        lhs: SSAValue,
        rhs: SSAValue,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> SelectOp:
        return cls.build_from((condition, lhs, rhs), type_ or own_type(lhs.type), location)

    def verify_elements(self) -> None:
        if element_of(self.condition.type) != BOOL:
            raise self.fail("a condition of element type i1", f"{element_of(self.condition.type)}")
        verify_same_element(self, (self.lhs, self.rhs))


@irdl_op_definition
class FmaOp(ElementwiseOp):
    """
    x * y + z, rounded once.

    ```mlir
    %w = graph.fma %x, %y, %z : tensor<8xf32>
    ```
    """

    name = "graph.fma"

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    addend = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def accepts(cls, element: Attribute) -> bool:
        return is_float(element)

    @classmethod
    def make(
        cls,
        lhs: SSAValue,
        rhs: SSAValue,
        addend: SSAValue,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> FmaOp:
        return cls.build_from((lhs, rhs, addend), type_ or own_type(lhs.type), location)


# -- conversion --------------------------------------------------------------------------------------


class ConversionOp(ElementwiseOp, ABC):
    """One operand, a result of any element type."""

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    traits = traits_def(Pure())

    def verify_elements(self) -> None:
        if not is_native(self.element):
            raise self.fail("a native element type", f"{self.element}")


@irdl_op_definition
class ConvertOp(ConversionOp):
    """
    The value in another element type: floats round to nearest even, to integers towards 0; integers wrap to
    narrower ones; i1 is `!= 0`.

    ```mlir
    %y = graph.convert %x : (tensor<8xf32>) -> tensor<8xbf16>
    ```
    """

    name = "graph.convert"

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        element: Attribute,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> ConvertOp:
        return cls.build_from((operand,), type_ or own_type(operand.type, element), location)


@irdl_op_definition
class BitcastOp(ConversionOp):
    """
    The same bits in another element type of the same width.

    ```mlir
    %y = graph.bitcast %x : (tensor<8xf32>) -> tensor<8xi32>
    ```
    """

    name = "graph.bitcast"

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        element: Attribute,
        type_: Attribute | None = None,
        location: LocationAttr = UNKNOWN_LOC,
    ) -> BitcastOp:
        return cls.build_from((operand,), type_ or own_type(operand.type, element), location)

    def verify_elements(self) -> None:
        super().verify_elements()
        source, target = (numpy_dtype(e).itemsize for e in (element_of(self.operand.type), self.element))
        if source != target:
            raise self.fail(f"a result element of {source} bytes", f"{target} bytes")


@irdl_op_definition
class CopyOp(UnaryOp):
    """
    The same values in a tensor of its own, with the strides of its type.

    ```mlir
    %y = graph.copy %x : (tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>) -> tensor<4x8xf32>
    ```
    """

    name = "graph.copy"

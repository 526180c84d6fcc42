"""Element types: torch's names, xDSL's types and numpy's types for the same thing, in one table.

Types that no native op computes with (complex, quantized, float8, …) are kept by name as `!graph.dtype`, so
that externs can carry them. This module knows numpy and xDSL, never torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class ForeignType(Data[str], TypeAttribute):
    """An element type that only externs compute with, by torch's name: `!graph.dtype<"complex64">`."""

    name = "graph.dtype"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data)


@dataclass(frozen=True)
class DType:
    """One native element type: torch's name, the IR type and the numpy type."""

    name: str
    type: Attribute
    numpy: np.dtype[Any]


NATIVE: dict[str, DType] = {
    name: DType(name, type_, np.dtype(numpy))
    for name, type_, numpy in (
        ("bool", IntegerType(1), np.bool_),
        ("uint8", IntegerType(8, Signedness.UNSIGNED), np.uint8),
        ("int8", IntegerType(8), np.int8),
        ("int16", IntegerType(16), np.int16),
        ("int32", IntegerType(32), np.int32),
        ("int64", IntegerType(64), np.int64),
        ("float16", Float16Type(), np.float16),
        ("bfloat16", BFloat16Type(), ml_dtypes.bfloat16),
        ("float32", Float32Type(), np.float32),
        ("float64", Float64Type(), np.float64),
    )
}

_BY_TYPE = {dtype.type: dtype for dtype in NATIVE.values()}

BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = (dtype.type for dtype in NATIVE.values())


def element_type(name: str) -> Attribute:
    """The IR type for torch's dtype name (`"float32"`, `"bool"`)."""
    known = NATIVE.get(name)
    return ForeignType(name) if known is None else known.type


def dtype_name(element: Attribute) -> str:
    """torch's name of an element type."""
    return element.data if isinstance(element, ForeignType) else _BY_TYPE[element].name


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy type of a native element type."""
    return _BY_TYPE[element].numpy


def element_of(tensor: Attribute) -> Attribute:
    assert isinstance(tensor, TensorType)
    element: Attribute = tensor.element_type
    return element


def is_native(element: Attribute) -> bool:
    return element in _BY_TYPE


def is_float(element: Attribute) -> bool:
    return isinstance(element, AnyFloat)


def is_integer(element: Attribute) -> bool:
    """Whether it is an integer type other than bool."""
    return isinstance(element, IntegerType) and element != BOOL


def compute_type(element: Attribute) -> Attribute:
    """The type in which eager computes on values of that type: f32 for bf16 and f16, else the type itself."""
    return FLOAT32 if element in (FLOAT16, BFLOAT16) else element


__all__ = [
    "BFLOAT16", "BOOL", "FLOAT16", "FLOAT32", "FLOAT64", "INT8", "INT16", "INT32", "INT64", "NATIVE", "UINT8",
    "DType", "ForeignType", "compute_type", "dtype_name", "element_of", "element_type", "is_float",
    "is_integer", "is_native", "numpy_dtype",
]  # fmt: skip

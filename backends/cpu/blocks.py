"""How types of the tile level are spelled in LLVM: the registers that hold a block and the bytes that store it.

A block is kept as *pieces*: one LLVM vector along its innermost dimension for every index of the outer ones, or
one scalar at rank 0. LLVM splits a piece that is longer than a machine register.
"""

from __future__ import annotations

import struct
from ctypes import c_float
from dataclasses import dataclass
from functools import cache, cached_property
from math import copysign, inf, isnan, prod
from typing import TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

from ...ir.errors import BackendError

Pieces: TypeAlias = tuple[str, ...]
"""The LLVM operands that make up one block, outer dimensions unrolled in row-major order."""


@dataclass(frozen=True, eq=False)
class Element:
    """One element type: its type in registers, its type and bytes in memory, its name in intrinsics."""

    name: str
    register: str
    memory: str
    bits: int
    is_float: bool

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8


BOOL = Element("i1", "i1", "i8", 1, is_float=False)
INT8, INT16, INT32, INT64 = (Element(f"i{n}", f"i{n}", f"i{n}", n, is_float=False) for n in (8, 16, 32, 64))
BF16 = Element("i16", "i16", "i16", 16, is_float=True)  # its bits, because LLVM would flush denormals
F16 = Element("f16", "half", "half", 16, is_float=True)
F32 = Element("f32", "float", "float", 32, is_float=True)
F64 = Element("f64", "double", "double", 64, is_float=True)

INTEGERS = {element.bits: element for element in (BOOL, INT8, INT16, INT32, INT64)}

_FLOATS: dict[type[Attribute], Element] = {
    BFloat16Type: BF16, Float16Type: F16, Float32Type: F32, Float64Type: F64,
}  # fmt: skip

NARROW_FLOATS = (BF16, F16)
"""Floats that are computed with in f32."""


@dataclass(frozen=True, eq=False)
class Block:
    """The shape and element of a block, and how LLVM calls one piece of it: its lanes, its type, its name in
    intrinsics. One object per type."""

    element: Element
    shape: tuple[int, ...]
    lanes: int
    rows: int
    text: str
    suffix: str

    def of(self, element: Element) -> Block:
        """A block of that element and the same shape."""
        return block_of(element, self.shape)

    @cached_property
    def piece(self) -> Block:
        """One piece, as a block."""
        return block_of(self.element, self.shape[-1:])

    @cached_property
    def mask(self) -> Block:
        return block_of(BOOL, self.shape)

    @cached_property
    def stored(self) -> Block:
        """The block as it lies in memory: bools are bytes."""
        return block_of(INT8, self.shape) if self.element is BOOL else self

    def splat(self, scalar: str) -> str:
        """The constant piece with that scalar constant in every lane."""
        return f"splat ({self.element.register} {scalar})" if self.shape else scalar

    def constant(self, value: float) -> str:
        return self.splat(constant_text(self.element, value))


@cache
def block_of(element: Element, shape: tuple[int, ...]) -> Block:
    if not shape:
        return Block(element, shape, 0, 1, element.register, element.name)
    lanes = shape[-1]
    text, suffix = f"<{lanes} x {element.register}>", f"v{lanes}{element.name}"
    return Block(element, shape, lanes, prod(shape[:-1]), text, suffix)


def element_of(type_: Attribute) -> Element:
    """The element of a scalar, vector or buffer type."""
    if isinstance(type_, VectorType | MemRefType):
        type_ = type_.element_type
    if isinstance(type_, IndexType):
        return INT64
    if isinstance(type_, IntegerType):
        element = INTEGERS.get(type_.width.data)
    else:
        element = _FLOATS.get(type(type_))
    if element is None:
        raise BackendError("cpu", expected="an element type that machine code computes with", got=str(type_))
    return element


def block_of_type(type_: Attribute) -> Block:
    shape = tuple(type_.get_shape()) if isinstance(type_, VectorType) else ()
    return block_of(element_of(type_), shape)


def constant_text(element: Element, value: float) -> str:
    """A scalar constant, floats by their bits so that NaN, infinities and signed zeros stay."""
    if element is BOOL:
        return "true" if value else "false"
    if not element.is_float:
        return str(int(value))
    if element is BF16:
        return str(_bf16_bits(value))
    if element is F16:
        return f"0xH{_half_bits(value):04X}"
    return f"0x{_bits('<d', c_float(value).value if element is F32 else value):016X}"


def _bits(format_: str, value: float) -> int:
    return int.from_bytes(struct.pack(format_, value), "little")


def _half_bits(value: float) -> int:
    try:
        return _bits("<e", value)
    except OverflowError:
        return _bits("<e", copysign(inf, value))


def _bf16_bits(value: float) -> int:
    """Of the nearest bf16; ties to even."""
    if isnan(value):
        return 0x7FC0
    bits = _bits("<f", c_float(value).value)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


ALWAYS = ("true", "splat (i1 true)")
"""The mask constants that include every lane; memory accesses and selects recognise them."""

NEVER = ("false", "splat (i1 false)")

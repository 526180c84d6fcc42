"""Remainders of arguments that are huge multiples of π/2, by Payne and Hanek's method, one lane at a time.

x·2/π is wanted modulo 4 and to many bits. Of x = m·2ᵏ only m enters a product; 2ᵏ selects which bits of 2/π it is
multiplied by. LLVM's wide integers say this directly; speed does not matter here.
"""

from __future__ import annotations

from functools import cache
from math import inf, nan

from .algebra import Body, Float, Int, MathFunction, exact_product, exact_sum, fma, function_name, vector_type
from .formats import F64, PI, Format, scaled_integer

FRACTION_BITS = 190
"""Bits of a part of a quarter turn: 53 for the result, 64 that may cancel, and 53 spoilt by the bits of 2/π that are
left out."""

WIDTH = FRACTION_BITS + 2
"""With the two bits above, which are the quadrant."""

SOURCE_BITS = 1184
"""Of 2/π: the largest double reaches down to the bit of weight 2^-1161."""

SOURCE_WIDTH = 1216
"""Of the integer that holds them and from which `WIDTH` bits are cut."""

RARE = "cold noinline nounwind"


Remainder = tuple[Float, Float, Int]  # (r, l, q) for r + l + q·π/2, where l is at most half a last bit of r


def remainder_of_large(x: Float) -> Remainder:
    """x modulo 2π with |r| ≤ π/4, for large x ≥ 0; a call, to be made rarely."""
    body, format = x.body, x.format
    function = lane_by_lane(format, body.lanes) if body.lanes > 1 else one_lane(format)
    types = result_type(format, body.lanes)
    result = body.call(function, types, x)
    r, lost, quadrant = (body.emit(f"extractvalue {types} {result}, {place}") for place in range(3))
    return x.renamed(r), x.renamed(lost), Int.named(body, quadrant, format.bits)


def result_type(format: Format, lanes: int) -> str:
    number, integer = vector_type(format.llvm, lanes), vector_type(format.integer, lanes)
    return f"{{ {number}, {number}, {integer} }}"


@cache
def one_lane(format: Format) -> MathFunction:
    body = Body(1)
    x = Float.named(body, "%x", format)
    wide, wide_lost, wide_quadrant = payne_hanek(x.to_format(F64))
    r = wide.to_format(format)
    lost = (wide - r.to_format(F64) + wide_lost).to_format(format)
    result, types = "poison", result_type(format, 1)
    for place, value in enumerate((r, lost, wide_quadrant.to_width(format.bits))):
        result = body.emit(f"insertvalue {types} {result}, {value.type} {value.name}, {place}")
    return body.function(function_name("large_remainder", format, 1), (x,), types, result, RARE)


def payne_hanek(x: Float) -> Remainder:
    """The remainder of a large double x ≥ 0, a few units of 2^-107 from exact."""
    field = x.bits().logical_shift_right(F64.mantissa)
    significand = (x.bits() & ((1 << F64.mantissa) - 1)) | (1 << F64.mantissa)
    source = Int.named(x.body, str(scaled_integer(2 / PI, SOURCE_BITS)), SOURCE_WIDTH)
    unused_bits = (SOURCE_BITS - FRACTION_BITS + F64.bias + F64.mantissa) - field
    window = source.logical_shift_right(unused_bits.to_width(SOURCE_WIDTH)).to_width(WIDTH)
    product = window * significand.to_width(WIDTH)  # x·2/π modulo 4, in units of 2^-FRACTION_BITS
    quadrant = (product + (1 << (FRACTION_BITS - 1))).logical_shift_right(FRACTION_BITS)
    r, lost = half_pi_times(product - (quadrant << FRACTION_BITS))
    return x.equals(inf).choose(nan, r), lost, quadrant.to_width(F64.bits)


def half_pi_times(fraction: Int) -> tuple[Float, Float]:
    """fraction·2^-FRACTION_BITS·π/2 in two words."""
    negative = fraction < 0
    size = negative.choose(0 - fraction, fraction)
    zeros = size.leading_zeros()
    normal = size << zeros
    high = normal.logical_shift_right(WIDTH - 53).to_width(64).to_float(F64)
    low = normal.logical_shift_right(WIDTH - 106).to_width(53).to_width(64).to_float(F64) * 2.0**-53
    pi_high, pi_low = F64.words(PI / 2, 2)
    product, error = exact_product(pi_high, high)
    words = exact_sum(product, error + fma(high, pi_low, low * pi_high))
    field = (F64.bias + WIDTH - 53 - FRACTION_BITS) - zeros.to_width(64)
    scale = (field << F64.mantissa).as_float(F64)
    signed_scale = negative.choose(-scale, scale)
    return words[0] * signed_scale, words[1] * signed_scale


@cache
def lane_by_lane(format: Format, lanes: int) -> MathFunction:
    scalar, name = one_lane(format), function_name("large_remainder", format, lanes)
    number, integer = vector_type(format.llvm, lanes), vector_type(format.integer, lanes)
    one, all_lanes = result_type(format, 1), result_type(format, lanes)
    text = f"""\
define internal {all_lanes} @{name}({number} %x) {RARE} {{
entry:
  br label %lane
lane:
  %i = phi i32 [ 0, %entry ], [ %next, %lane ]
  %rs = phi {number} [ poison, %entry ], [ %more.rs, %lane ]
  %ls = phi {number} [ poison, %entry ], [ %more.ls, %lane ]
  %qs = phi {integer} [ poison, %entry ], [ %more.qs, %lane ]
  %argument = extractelement {number} %x, i32 %i
  %result = call {one} @{scalar.name}({format.llvm} %argument)
  %r = extractvalue {one} %result, 0
  %l = extractvalue {one} %result, 1
  %q = extractvalue {one} %result, 2
  %more.rs = insertelement {number} %rs, {format.llvm} %r, i32 %i
  %more.ls = insertelement {number} %ls, {format.llvm} %l, i32 %i
  %more.qs = insertelement {integer} %qs, {format.integer} %q, i32 %i
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {lanes}
  br i1 %more, label %lane, label %done
done:
  %first = insertvalue {all_lanes} poison, {number} %more.rs, 0
  %second = insertvalue {all_lanes} %first, {number} %more.ls, 1
  %third = insertvalue {all_lanes} %second, {integer} %more.qs, 2
  ret {all_lanes} %third
}}"""
    return MathFunction(name, text, requires=(scalar,))

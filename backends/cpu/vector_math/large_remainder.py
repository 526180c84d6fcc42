"""Remainders of arguments that are huge multiples of π/2, by Payne and Hanek's method, one lane at a time.

x·2/π is wanted modulo 4 and to many bits. Of x = m·2ᵏ only m enters a product; 2ᵏ selects which bits of 2/π it is
multiplied by. LLVM's wide integers say this directly; speed does not matter here.
"""

from __future__ import annotations

from functools import cache
from math import inf, nan

from .algebra import Body, Float, Int, MathFunction, exact_product, fma, function_name, vector_type
from .formats import F64, PI, Format, scaled_integer

FRACTION_BITS = 190  # 53 for the result, 64 that may cancel, and 53 spoilt by the bits of 2/π that are left out
WIDTH = FRACTION_BITS + 2  # the two bits above are the quadrant
SOURCE_BITS = 1184  # of 2/π: the largest double reaches down to the bit of weight 2^-1161
SOURCE_WIDTH = 1216
RARE = "cold noinline nounwind"


def remainder_of_large(x: Float) -> tuple[Float, Int]:
    """(r, q) with x = q·π/2 + r modulo 2π and |r| ≤ π/4, for large x ≥ 0; a call, to be made rarely."""
    body, format = x.body, x.format
    integer = vector_type(format.integer, body.lanes)
    pair_type = f"{{ {x.type}, {integer} }}"
    pair = body.call(lane_by_lane(format, body.lanes) if body.lanes > 1 else one_lane(format), pair_type, x)
    r = x.renamed(body.emit(f"extractvalue {pair_type} {pair}, 0"))
    return r, Int.named(body, body.emit(f"extractvalue {pair_type} {pair}, 1"), format.bits)


@cache
def one_lane(format: Format) -> MathFunction:
    body = Body(1)
    x = Float.named(body, "%x", format)
    exact_r, exact_quadrant = payne_hanek(x.to_format(F64))
    r, quadrant = exact_r.to_format(format), exact_quadrant.to_width(format.bits)
    pair = f"{{ {r.type}, {quadrant.type} }}"
    first = body.emit(f"insertvalue {pair} poison, {r.type} {r.name}, 0")
    both = body.emit(f"insertvalue {pair} {first}, {quadrant.type} {quadrant.name}, 1")
    return body.function(function_name("large_remainder", format, 1), (x,), pair, both, RARE)


def payne_hanek(x: Float) -> tuple[Float, Int]:
    """(r, q) for a large double x ≥ 0, both a few units of 2^-107 from exact before r is rounded."""
    bits = x.bits()
    field = bits.logical_shift_right(F64.mantissa)
    significand = (bits & ((1 << F64.mantissa) - 1)) | (1 << F64.mantissa)
    source = Int.named(x.body, str(scaled_integer(2 / PI, SOURCE_BITS)), SOURCE_WIDTH)
    unused_bits = (SOURCE_BITS - FRACTION_BITS + F64.bias + F64.mantissa) - field
    window = source.logical_shift_right(unused_bits.to_width(SOURCE_WIDTH)).to_width(WIDTH)
    product = window * significand.to_width(WIDTH)  # x·2/π modulo 4, in units of 2^-FRACTION_BITS
    quadrant = (product + (1 << (FRACTION_BITS - 1))).logical_shift_right(FRACTION_BITS)
    fraction = product - (quadrant << FRACTION_BITS)
    r = half_pi_times(fraction)
    return x.equals(inf).choose(nan, r), quadrant.to_width(F64.bits)


def half_pi_times(fraction: Int) -> Float:
    """fraction·2^-FRACTION_BITS·π/2, in two words until the last sum."""
    negative = fraction < 0
    size = negative.choose(0 - fraction, fraction)
    zeros = size.leading_zeros()
    normal = size << zeros
    high = (normal.logical_shift_right(WIDTH - 53)).to_width(64).to_float(F64)
    low = (normal.logical_shift_right(WIDTH - 106).to_width(53)).to_width(64).to_float(F64) * 2.0**-53
    pi_high, pi_low = F64.words(PI / 2, 2)
    product, error = exact_product(pi_high, high)
    sum = product + (error + fma(high, pi_low, low * pi_high))
    scale = ((F64.bias + WIDTH - 53 - FRACTION_BITS) - zeros.to_width(64)) << F64.mantissa
    return negative.choose(-sum, sum) * scale.as_float(F64)


@cache
def lane_by_lane(format: Format, lanes: int) -> MathFunction:
    scalar, name = one_lane(format), function_name("large_remainder", format, lanes)
    number, integer = vector_type(format.llvm, lanes), vector_type(format.integer, lanes)
    one, pair = f"{{ {format.llvm}, {format.integer} }}", f"{{ {number}, {integer} }}"
    text = f"""\
define internal {pair} @{name}({number} %x) {RARE} {{
entry:
  br label %lane
lane:
  %i = phi i32 [ 0, %entry ], [ %next, %lane ]
  %rs = phi {number} [ poison, %entry ], [ %more.rs, %lane ]
  %qs = phi {integer} [ poison, %entry ], [ %more.qs, %lane ]
  %argument = extractelement {number} %x, i32 %i
  %result = call {one} @{scalar.name}({format.llvm} %argument)
  %r = extractvalue {one} %result, 0
  %q = extractvalue {one} %result, 1
  %more.rs = insertelement {number} %rs, {format.llvm} %r, i32 %i
  %more.qs = insertelement {integer} %qs, {format.integer} %q, i32 %i
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, {lanes}
  br i1 %more, label %lane, label %done
done:
  %first = insertvalue {pair} poison, {number} %more.rs, 0
  %both = insertvalue {pair} %first, {integer} %more.qs, 1
  ret {pair} %both
}}"""
    return MathFunction(name, text, requires=(scalar,))

"""asin, acos, atan and atan2: an odd polynomial on a short interval, and a sum with a multiple of π in two words."""

from __future__ import annotations

from math import sqrt

from . import coefficients
from .algebra import Float, Mask, exact_sum, fma, polynomial
from .formats import PI

EIGHTH = sqrt(2.0) - 1.0  # tan(π/8)


def asin(x: Float) -> Float:
    """asin(a) for a = |x| up to ½; beyond, π/2 - 2·asin(√((1 - a)/2))."""
    outer, sine, tail = half_arc(x)
    high, low = x.format.words(PI / 2, 2)
    near, lost = exact_sum(high, sine * -2.0)
    complement = near + (lost - fma(tail, 2.0, -low))
    return outer.choose(complement, sine + tail).with_sign_of(x)


def acos(x: Float) -> Float:
    """π/2 - asin(x) for |x| up to ½; beyond, 2·asin(√((1 - |x|)/2)) or π minus that."""
    outer, sine, tail = half_arc(x)
    factor = outer.choose((x < 0.0).choose(x.lift(2.0), -2.0), x.lift(1.0).with_sign_of(x))
    positive = outer & (x > 0.0)
    high, low = (
        positive.choose(0.0, outer.choose(whole, x.lift(half)))
        for whole, half in zip(x.format.words(PI, 2), x.format.words(PI / 2, 2), strict=True)
    )
    return fma(sine, -factor, high) - fma(tail, factor, -low)


def half_arc(x: Float) -> tuple[Mask, Float, Float]:
    """(|x| > ½, s, t) with s + t = asin(s), where s is √((1 - |x|)/2) if |x| > ½ and |x| if not."""
    size = abs(x)
    outer = size > 0.5
    square = outer.choose(fma(size, -0.5, 0.5), size * size)
    sine = outer.choose(square.sqrt(), size)
    return outer, sine, sine * square * polynomial(square, coefficients.ASIN[x.format.name])


def atan(x: Float) -> Float:
    return arctangent(abs(x), x.lift(1.0)).with_sign_of(x)


def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), with the sign of y; signed zeros and infinities as in C."""
    opposite, adjacent = comparable(abs(y), abs(x))
    angle = arctangent(opposite, adjacent)
    high, low = x.format.words(PI, 2)
    left = x.sign().has_bit(x.format.sign_bit)
    return left.choose(high - (angle - low), angle).with_sign_of(y)


def comparable(y: Float, x: Float) -> tuple[Float, Float]:
    """Two sizes of the same ratio whose sum does not overflow and is not denormal; equal ones become 1 or 0 and 1."""
    equal = y.equals(x)
    larger = (y > x).choose(y, x)
    bias = x.format.bias
    scale = (larger > 2.0 ** (bias - 2)).choose(0.25, x.lift(1.0))
    scale = (larger < 2.0 ** (2 - bias // 2)).choose(2.0 ** (bias // 2), scale)
    return equal.choose((y > 0.0).choose(1.0, y), y * scale), equal.choose(1.0, x * scale)


def arctangent(y: Float, x: Float) -> Float:
    """atan(y / x) for y, x ≥ 0, not both 0, as a multiple of π/4 plus atan(t) with |t| ≤ tan(π/8)."""
    flat, steep = y <= x * x.format.round(EIGHTH), y > x * x.format.round(1 / EIGHTH)
    numerator = flat.choose(y, steep.choose(-x, y - x))
    denominator = flat.choose(x, steep.choose(y, y + x))
    t = numerator / denominator
    square = t * t
    tail = t * square * polynomial(square, coefficients.ATAN[x.format.name])
    high, low = (
        flat.choose(0.0, steep.choose(quarter, x.lift(eighth)))
        for quarter, eighth in zip(x.format.words(PI / 2, 2), x.format.words(PI / 4, 2), strict=True)
    )
    return high + (t + (tail + low))

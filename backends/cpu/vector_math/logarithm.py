"""log, log2, log10, log1p and the inverse hyperbolic functions, which are logarithms.

All write x as 2ᵉ·(1 + f) with √½ ≤ 1 + f < √2 and take a polynomial in f, which needs no division.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, sqrt

from . import coefficients
from .algebra import Float, Int, exact_sum, fma, polynomial
from .formats import LN2, LN10, Format


def log(x: Float) -> Float:
    return natural_logarithm(*exponent_and_fraction(x))


def log2(x: Float) -> Float:
    exponent, fraction = exponent_and_fraction(x)
    high, small = scaled_logarithm(fraction, 1 / LN2)
    return exponent + fma(fraction, high, small)


def log10(x: Float) -> Float:
    exponent, fraction = exponent_and_fraction(x)
    high, small = scaled_logarithm(fraction, 1 / LN10)
    exponent_high, exponent_low = x.format.truncated_words(LN2 / LN10, 2)
    return fma(exponent, exponent_high, fma(fraction, high, fma(exponent, exponent_low, small)))


def log1p(x: Float) -> Float:
    return log1p_scaled(x, x.lift(0.0)).with_sign_of(x)


def asinh(x: Float) -> Float:
    """log(a + √(a² + 1)) for a = |x|, as log1p(a + a²/(1 + √(a² + 1))); log(2a) where a² + 1 is a²."""
    size = abs(x)
    square = size * size
    argument = exact_sum(size, square / (fma(size, size, 1.0).sqrt() + 1.0))
    return log1p_or_log_of_twice(size, argument).with_sign_of(x)


def acosh(x: Float) -> Float:
    """log(x + √(x² - 1)) as log1p(t + √(t² + 2t)) with t = x - 1; log(2x) where x² - 1 is x²."""
    t = x - 1.0
    argument = exact_sum(fma(t, t, t + t).sqrt(), t)
    return (x < 1.0).choose(nan, log1p_or_log_of_twice(x, argument))


def atanh(x: Float) -> Float:
    """½·log((1 + a)/(1 - a)) for a = |x|, as ½·log1p(2a + 2a²/(1 - a))."""
    size = abs(x)
    twice = size + size
    half = log1p_scaled(twice + twice * size / (1.0 - size), x.lift(0.0)) * 0.5
    return (size > 1.0).choose(nan, half).with_sign_of(x)


def log1p_or_log_of_twice(size: Float, argument: tuple[Float, Float]) -> Float:
    """log1p(argument), a sum of two, but log(2·size) where size is so large that 1 + size is size."""
    huge = size > 2.0 ** (size.format.precision + 1)
    return log1p_scaled(huge.choose(size, argument[0]), huge.choose(size.lift(1.0), 0.0), argument[1])


def exponent_and_fraction(x: Float) -> tuple[Float, Float]:
    """(e, f) with x = 2ᵉ·(1 + f); for 0, ∞, NaN and negative x, e is what their logarithm is."""
    normal, offset = normal_and_offset(x)
    field = exponent_field(normal)
    return exponent_of_field(field, x.format) + offset, significand(normal, field) - 1.0


def normal_and_offset(x: Float) -> tuple[Float, Float]:
    """(y, e) with x = 2ᵉ·y for a normal y > 0, behind a branch where any x is not such a number itself."""
    format = x.format
    least = 1 << format.mantissa  # the bits of the least normal number; those of ∞ are a multiple of it
    unusual = (x.bits() - least).unsigned_at_least((2 * format.bias) * least)

    def rare() -> tuple[Float, Float]:
        denormal = x < format.min_normal
        edge = x.equals(0.0).choose(-inf, (x < 0.0).choose(nan, denormal.choose(-float(format.precision), x)))
        return denormal.choose(x * 2.0**format.precision, x), unusual.choose(edge, 0.0)

    return x.body.rarely(unusual, rare, (x, x.lift(0.0)))


def exponent_field(x: Float) -> Int:
    """e in the place of the exponent's bits, for normal x = 2ᵉ·(1 + f)."""
    format = x.format
    least = ((format.bias - 1) << format.mantissa) + int((sqrt(2) - 1) * 2**format.mantissa)  # bits of √½
    return (x.bits() - least) & -(1 << format.mantissa)


def exponent_of_field(field: Int, format: Format) -> Float:
    return (field >> format.mantissa).to_float(format)


def significand(x: Float, field: Int) -> Float:
    """1 + f, which is in its range for any bits of x."""
    return (x.bits() - field).as_float(x.format)


def tail(f: Float) -> Float:
    """log(1 + f) - f = f²·(f·T(f) - ½)."""
    return f * f * fma(f, polynomial(f, coefficients.LOG[f.format.name]), -0.5)


def natural_logarithm(exponent: Float, f: Float, rest: Float | None = None) -> Float:
    """exponent·ln 2 + log(1 + f + rest), where rest is at most a last bit: log' = 1/(1 + f), about 1 - f."""
    high, *low = f.format.enough_words(LN2)
    small = tail(f) if rest is None else fma(rest, 1.0 - f, tail(f))
    for word in low:
        small = fma(exponent, word, small)
    return fma(exponent, high, f + small)


def scaled_logarithm(f: Float, factor: Fraction) -> tuple[float, Float]:
    """(c, s) with factor·log(1 + f) = c·f + s, where s is small."""
    high, low = f.format.words(factor, 2)
    return high, fma(f, low, tail(f) * high)


def log1p_scaled(x: Float, exponent: Float, rest: Float | None = None) -> Float:
    """log(1 + x + rest) + exponent·ln 2, where rest is at most a last bit of x.

    With e of the rounded sum u = 1 + x, f = 2⁻ᵉ·x + (2⁻ᵉ - 1) is rounded once and so has what u has lost.
    """
    format = x.format
    u = x + 1.0
    field = exponent_field(u)
    scale = ((format.bias << format.mantissa) - field).as_float(format)  # wrong where u is huge
    huge = x > 2.0**format.precision
    f = huge.choose(significand(u, field) - 1.0, fma(scale, x, scale - 1.0))
    f_rest = None if rest is None else huge.choose(0.0, scale * rest)
    _, offset = normal_and_offset(u)
    return natural_logarithm(exponent_of_field(field, format) + (exponent + offset), f, f_rest)

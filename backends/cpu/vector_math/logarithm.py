"""log, log2, log10, log1p and the inverse hyperbolic functions, which are logarithms.

All write x as 2ᵉ·(1 + f) with √½ ≤ 1 + f < √2 and take a polynomial in f, which needs no division.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, sqrt

from . import coefficients
from .algebra import Float, fma, polynomial
from .formats import LN2, LN10, Format


def log(x: Float) -> Float:
    exponent, fraction = exponent_and_fraction(x)
    return at_edges(x, natural_logarithm(exponent, fraction))


def log2(x: Float) -> Float:
    exponent, fraction = exponent_and_fraction(x)
    return at_edges(x, exponent + scaled_logarithm(fraction, 1 / LN2))


def log10(x: Float) -> Float:
    exponent, fraction = exponent_and_fraction(x)
    high, low = x.format.words(LN2 / LN10, 2)
    return at_edges(x, fma(exponent, high, scaled_logarithm(fraction, 1 / LN10, (exponent, low))))


def log1p(x: Float) -> Float:
    return log1p_scaled(x, x.lift(0.0)).with_sign_of(x)


def asinh(x: Float) -> Float:
    """log(a + √(a² + 1)) for a = |x|, as log1p(a + a²/(1 + √(a² + 1))); log(2a) where a² + 1 is a²."""
    size = abs(x)
    square = size * size
    argument = size + square / (fma(size, size, 1.0).sqrt() + 1.0)
    return log1p_or_log_of_twice(size, argument).with_sign_of(x)


def acosh(x: Float) -> Float:
    """log(x + √(x² - 1)) as log1p(t + √(t² + 2t)) with t = x - 1; log(2x) where x² - 1 is x²."""
    t = x - 1.0
    argument = t + fma(t, t, t + t).sqrt()
    return (x < 1.0).choose(nan, log1p_or_log_of_twice(x, argument))


def atanh(x: Float) -> Float:
    """½·log((1 + a)/(1 - a)) for a = |x|, as ½·log1p(2a + 2a²/(1 - a))."""
    size = abs(x)
    twice = size + size
    half = log1p_scaled(twice + twice * size / (1.0 - size), x.lift(0.0)) * 0.5
    return half.with_sign_of(x)


def log1p_or_log_of_twice(size: Float, argument: Float) -> Float:
    """log1p(argument), but log(2·size) where size is so large that 1 + size is size."""
    huge = size > 2.0 ** (size.format.precision + 1)
    return log1p_scaled(huge.choose(size, argument), huge.choose(size.lift(1.0), 0.0))


def exponent_and_fraction(x: Float) -> tuple[Float, Float]:
    """(e, f) with x = 2ᵉ·(1 + f), for finite x > 0, denormal too."""
    format = x.format
    tiny = x < format.min_normal
    normal = tiny.choose(x * 2.0**format.precision, x)
    exponent, fraction = split_normal(normal)
    return tiny.choose(exponent - float(format.precision), exponent), fraction


def split_normal(x: Float) -> tuple[Float, Float]:
    """(e, f) with x = 2ᵉ·(1 + f), for finite normal x > 0, from its bits."""
    format = x.format
    exponent = (x.bits() - least_significand(format)) >> format.mantissa
    significand = (x.bits() - (exponent << format.mantissa)).as_float(format)
    return exponent.to_float(format), significand - 1.0


def least_significand(format: Format) -> int:
    """The bits of √½, the least value of 1 + f."""
    return ((format.bias - 1) << format.mantissa) + int((sqrt(2) - 1) * 2**format.mantissa)


def tail(f: Float) -> Float:
    """log(1 + f) - f = f²·(f·T(f) - ½)."""
    return f * f * fma(f, polynomial(f, coefficients.LOG[f.format.name]), -0.5)


def natural_logarithm(exponent: Float, f: Float) -> Float:
    """exponent·ln 2 + log(1 + f)."""
    high, low = f.format.words(LN2, 2)
    return fma(exponent, high, f + fma(exponent, low, tail(f)))


def scaled_logarithm(f: Float, factor: Fraction, rest: tuple[Float, float] | None = None) -> Float:
    """factor·log(1 + f), plus the product of `rest`, which is small."""
    high, low = f.format.words(factor, 2)
    small = fma(f, low, tail(f) * high)
    return fma(f, high, small if rest is None else fma(*rest, small))


def at_edges(x: Float, logarithm: Float) -> Float:
    """`logarithm`, but -∞ at 0, NaN below, and x itself where that is ∞ or NaN."""
    edge = x.equals(0.0).choose(-inf, (x < 0.0).choose(nan, x))
    return ((x > 0.0) & (x < inf)).choose(logarithm, edge)


def log1p_scaled(x: Float, exponent: Float) -> Float:
    """log(1 + x) + exponent·ln 2.

    With e of the rounded sum u = 1 + x, f = 2⁻ᵉ·x + (2⁻ᵉ - 1) is rounded once and so has what u has lost.
    """
    format = x.format
    u = x + 1.0
    bits = u.bits()
    power = (bits - least_significand(format)) & -(1 << format.mantissa)
    scale = (((format.bias) << format.mantissa) - power).as_float(format)
    rounded = (bits - power).as_float(format) - 1.0
    f = (x > 2.0**format.precision).choose(rounded, fma(scale, x, scale - 1.0))
    sum_exponent = (power >> format.mantissa).to_float(format)
    return at_edges(u, natural_logarithm(sum_exponent + exponent, f))

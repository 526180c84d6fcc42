"""pow: 2^(y·log2|x|) with the logarithm and the product in two words, and the many special cases of C99."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

from . import coefficients
from .algebra import Float, exact_product, exact_sum, fma, polynomial
from .exponential import exp2_of_sum, limit_exponent
from .formats import LN2
from .logarithm import exponent_and_fraction

Words = tuple[Float, Float]  # an unevaluated sum, the second at most about a last bit of the first


def pow(x: Float, y: Float) -> Float:
    size = abs(x)
    magnitude = power_of_size(size, y)
    integer = y.to_nearest_integer().equals(y)
    half = y * 0.5
    odd = integer & half.to_nearest_integer().differs(half)
    sign = odd.choose(x.sign(), 0)
    undefined = (x < 0.0) & (size < inf) & y.to_nearest_integer().differs(y)
    result = undefined.choose(nan, magnitude.flipped_by(sign))
    result = (x.is_nan() | y.is_nan()).choose(nan, result)
    return (x.equals(1.0) | y.equals(0.0)).choose(1.0, result)


def power_of_size(size: Float, y: Float) -> Float:
    """size^y for size ≥ 0."""
    high, low = binary_logarithm(size)
    product, error = exact_product(y, high)
    exponent = limit_exponent(high.equals(0.0).choose(0.0, product), 1.0)
    rest = (abs(product) < 2.0 * size.format.bias).choose(fma(y, low, error), 0.0)
    return exp2_of_sum(exponent, rest)


def binary_logarithm(x: Float) -> Words:
    """log2(x) for x ≥ 0, with about half as many bits again as the format has.

    With x = 2ᵉ·m and s = (m - 1)/(m + 1) it is e + s·(c₀ + s²·(c₁ + s²·T(s²))), c₀ = 2/ln 2, c₁ = c₀/3. Each sum and
    product keeps its error as far as that still matters: s² is below 0.03, so inner terms need fewer bits.
    """
    exponent, fraction = exponent_and_fraction(x)
    s = over_two_more(fraction)
    square = product_of_words(s, s)
    (c0_high, c0_low), (c1_high, c1_low) = (x.format.words(c / LN2, 2) for c in (Fraction(2), Fraction(2, 3)))
    inner, inner_error = exact_sum(c1_high, square[0] * polynomial(square[0], coefficients.POWER[x.format.name]))
    term, term_error = product_of_words(square, (inner, inner_error + c1_low))
    factor, factor_error = exact_sum(c0_high, term)
    logarithm, error = product_of_words(s, (factor, factor_error + (term_error + c0_low)))
    high, low = exact_sum(exponent, logarithm)
    return high, low + error


def over_two_more(f: Float) -> Words:
    """f / (2 + f) for a 1 + f that the format holds."""
    significand = f + 1.0
    high, low = exact_sum(1.0, significand)
    reciprocal = 1.0 / high
    quotient = f * reciprocal
    return quotient, fma(-quotient, low, fma(-quotient, high, f)) * reciprocal


def product_of_words(x: Words, y: Words) -> Words:
    high, error = exact_product(x[0], y[0])
    return high, fma(x[0], y[1], fma(x[1], y[0], error))

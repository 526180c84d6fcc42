"""exp, exp2, expm1 and the hyperbolic functions sinh, cosh, tanh.

All reduce x to k·ln 2 + r, take a polynomial in r, and rebuild with a power of two that is made from the bits of k.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import coefficients
from .algebra import Float, Int, Mask, fma, polynomial
from .formats import LN2

TANH_SPLIT = 0.5625
LIFT = 64  # a denormal result is computed times 2^LIFT and then rounded once by a multiplication


def exp(x: Float) -> Float:
    """exp(r)·2ᵏ with x = k·ln 2 + r and |r| ≤ ln 2 / 2."""
    r, biased = reduce_by_ln2(x, offset=-1)
    usual = twice_exp(r) * power_of_two(biased, x)

    def rare() -> tuple[Float]:
        limited = limit_exponent(x, float(LN2))
        r, biased = reduce_by_ln2(limited, offset=-1)
        return (times_power(twice_exp(r), biased, tiny=limited < 0.0),)

    (result,) = x.body.rarely(beyond_normal(x, float(LN2)), rare, (usual,))
    return result


def exp2(x: Float) -> Float:
    k, biased = nearest_integer(x, 1.0, offset=-1)
    usual = twice_exp2(x - k) * power_of_two(biased, x)
    (result,) = x.body.rarely(beyond_normal(x, 1.0), lambda: (exp2_of_sum(limit_exponent(x, 1.0)),), (usual,))
    return result


def exp2_of_sum(x: Float, rest: Float | None = None) -> Float:
    """2^(x + rest) = (1 + r·T(r))·2ᵏ with x + rest = k + r, for x within `limit_exponent` and a small rest."""
    k, biased = nearest_integer(x, 1.0, offset=-1)
    r = x - k if rest is None else (x - k) + rest
    return times_power(twice_exp2(r), biased, tiny=x < 0.0)


def expm1(x: Float) -> Float:
    """2ᵏ·(exp(r) - 1) + (2ᵏ - 1), halved until the end, as 2ᵏ may overflow where the result does not."""
    format = x.format
    limited = x.at_most(format.round((format.bias + 1.4) * float(LN2))).at_least(-float(format.precision))
    k, biased = nearest_integer(limited, format.nearest(1 / LN2), offset=-1)
    r = subtract_multiple(limited, k, format.words(LN2, 2))
    excess = fma(r * r, polynomial(r, coefficients.EXPM1[format.name]), r)
    half_power = power_of_two(biased, x)
    half = fma(half_power, excess, half_power - 0.5)
    return k.equals(0.0).choose(excess, half + half).with_sign_of(x)


def sinh(x: Float) -> Float:
    """x + x³·T(x²) up to 1, else (exp(|x|) - 1/exp(|x|)) / 2."""
    square = x * x
    near_zero = fma(x * square, polynomial(square, coefficients.SINH[x.format.name]), x)
    half = half_exp_of_size(x)
    return (abs(x) < 1.0).choose(near_zero, (half - 0.25 / half).with_sign_of(x))


def cosh(x: Float) -> Float:
    half = half_exp_of_size(x)
    return half + 0.25 / half


def half_exp_of_size(x: Float) -> Float:
    """exp(|x|) / 2."""
    r, biased = reduce_by_ln2(limit_exponent(abs(x), float(LN2)), offset=-2)
    return twice_exp(r) * power_of_two(biased, x)


def tanh(x: Float) -> Float:
    """N / D for |x|, with N = (1 - exp(-2|x|)) / 2 and D = (1 + exp(-2|x|)) / 2.

    exp(-2|x|) = 2ᵏ - 2·2ᵏ·L, where L = (1 - exp(-2r)) / 2 keeps all bits of a small x. Falling exponentials leave D
    between ½ and 1: it has the more bits the smaller x is. f64 takes x + x³·T(x²) up to ½: it would just miss 2 units.
    """
    format = x.format
    size = abs(x).at_most(format.round(0.5 * (format.precision + 2) * float(LN2)))
    k, biased = nearest_integer(size, format.nearest(-2 / LN2))
    r = subtract_multiple(size, k, format.enough_words(-LN2 / 2))
    loss = fma(r * r, polynomial(r, coefficients.TANH[format.name]), r)
    power = power_of_two(biased, x)
    numerator = fma(power, loss, fma(power, -0.5, 0.5))
    denominator = fma(-power, loss, fma(power, 0.5, 0.5))
    quotient = numerator / denominator
    if format.name not in coefficients.TANH_NEAR:
        return quotient.with_sign_of(x)
    square = size * size
    near = fma(size * square, polynomial(square, coefficients.TANH_NEAR[format.name]), size)
    return (size < TANH_SPLIT).choose(near, quotient).with_sign_of(x)


def nearest_integer(x: Float, factor: float, offset: int = 0) -> tuple[Float, Int]:
    """k, the integer nearest to x·factor; and k + bias + offset, the exponent field of 2^(k + offset).

    Adding a number whose last bit weighs 1 rounds, and leaves the integer in the low bits (the high ones are junk).
    """
    format = x.format
    magic = format.magic + format.bias + offset
    shifted = fma(x, factor, magic)
    return shifted - magic, shifted.bits()


def subtract_multiple(x: Float, count: Float, words: Sequence[float]) -> Float:
    """x - count · (sum of words), the large words first so that cancellation loses nothing."""
    for word in words:
        x = fma(count, -word, x)
    return x


def reduce_by_ln2(x: Float, offset: int) -> tuple[Float, Int]:
    """r and the exponent field of 2^(k + offset), where x = k·ln 2 + r."""
    k, biased = nearest_integer(x, x.format.nearest(1 / LN2), offset)
    return subtract_multiple(x, k, x.format.words(LN2, 2)), biased


def twice_exp(r: Float, accuracy: str = "") -> Float:
    """2·exp(r): with the 2 here, the power of two beside it is in range whenever the result is.

    `accuracy` names a narrower format whose polynomial will do.
    """
    return polynomial(r, doubled((1.0, 1.0, *coefficients.EXP[accuracy or r.format.name])))


def twice_exp2(r: Float) -> Float:
    """2·2^r."""
    return polynomial(r, doubled((1.0, *coefficients.EXP2[r.format.name])))


def doubled(numbers: Sequence[float]) -> tuple[float, ...]:
    return tuple(2.0 * number for number in numbers)


def beyond_normal(x: Float, unit: float) -> Mask:
    """Is 2^(x / unit) or what it takes to compute it no normal number? False for NaN."""
    return abs(x) > x.format.round((x.format.bias - 2.0) * unit)


def limit_exponent(x: Float, unit: float) -> Float:
    """x limited to where 2^(x / unit) surely leaves the format's range; NaN stays NaN."""
    format = x.format
    greatest, least = format.bias + 2.4, -(format.bias + format.precision + 1.0)
    return x.at_most(format.round(greatest * unit)).at_least(format.round(least * unit))


def power_of_two(biased: Int, like: Float) -> Float:
    return (biased << like.format.mantissa).as_float(like.format)


def times_power(x: Float, biased: Int, tiny: Mask) -> Float:
    """x·2^(biased - bias), by way of a number 2^LIFT times as large in the lanes that `tiny` marks."""
    product = x * power_of_two(tiny.choose(biased + LIFT, biased), x)
    return tiny.choose(product * 2.0**-LIFT, product)

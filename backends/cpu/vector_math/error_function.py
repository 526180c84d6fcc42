"""erf and erfc."""

from __future__ import annotations

from math import pi, sqrt

from . import coefficients
from .algebra import Float, exact_product, exact_sum, fma, polynomial
from .exponential import reduce_by_ln2, times_power, twice_exp
from .formats import F64

ERF_ROOT_START = 0.564189612865448
"""1/√π rounded to f32."""

ERF_ROOT_END = 3.9375
"""Above, erf is 1 in f32."""

ERF_SPLIT = 1.1875
"""Below, an odd polynomial."""

ERF_END = 6.0
"""Above, erf is 1."""

ERFC_SHIFT = 3.0
"""Added to an operand, so that its reciprocal varies little."""

ERFC_CENTRE = 3.0 / 16.0
"""The middle of those reciprocals, from which the polynomial counts."""

ERFC_END = 27.3
"""Above, erfc is 0."""


def erf(x: Float) -> Float:
    return _erf_in_pieces(x) if x.format is F64 else _erf_by_root(x)


def _erf_by_root(x: Float) -> Float:
    """1 - (1 - d)² = 2d - d², where the root of erfc(x) is 1 - d and d = x/√π + x·T(x) for |x|.

    Near 0 the error is that of d, which the exact factor of its first term keeps small; further out d is near 1,
    where the square hides its error. For f64 the polynomial would be long and ill conditioned.
    """
    size = abs(x).at_most(ERF_ROOT_END)
    root = fma(size, ERF_ROOT_START, size * polynomial(size, coefficients.ERF_ROOT[x.format.name]))
    return fma(-root, root, root + root).with_sign_of(x)


def _erf_in_pieces(x: Float) -> Float:
    """x + x·T(x²) up to 1.19, else 1 - P(|x|)⁸: the eighth root of erfc is all but a polynomial."""
    size, key = abs(x).at_most(ERF_END), x.format.name
    square = x * x
    near_zero = fma(x, polynomial(square, coefficients.ERF[key]), x)
    root = polynomial(size, coefficients.ERFC_ROOT[key])
    fourth = (root * root) * (root * root)
    far = fma(-fourth, fourth, 1.0).with_sign_of(x)
    return (size < ERF_SPLIT).choose(near_zero, far)


def erfc(x: Float) -> Float:
    """exp(-x²) · (exp(x²)·erfc(x)) for |x|, and 2 minus that for negative x; in double for f32 too.

    x² needs two words, as its error is one of the result relative to itself.
    """
    key, wide = x.format.name, x.to_format(F64)
    size = abs(wide).at_most(ERFC_END)
    square, error = exact_product(size, size)
    r, biased = reduce_by_ln2(-square, offset=-1)
    tail = times_power(twice_exp(r - error, key) * scaled_erfc(size, key), biased, tiny=size > 1.0)
    return (wide < 0.0).choose(2.0 - tail, tail).to_format(x.format)


def scaled_erfc(x: Float, accuracy: str) -> Float:
    """F(x) = exp(x²)·erfc(x) = u·P(u - 3/16) with u = 1/(x + 3), for x ≥ 0; P about the centre is well conditioned.

    The error of u counts more than threefold near 0. So for f64 it is measured, as that of x it amounts to, and
    taken back by F' = 2x·F - 2/√π.
    """
    shifted, lost = exact_sum(ERFC_SHIFT, x)
    u = 1.0 / shifted
    scaled = u * polynomial(u - ERFC_CENTRE, coefficients.ERFC[accuracy])
    if accuracy != F64.name:
        return scaled
    x_error = shifted * fma(u, lost, fma(u, shifted, -1.0))
    return fma(x_error, fma((x + x), scaled, -2.0 / sqrt(pi)), scaled)

"""erf and erfc."""

from __future__ import annotations

from . import coefficients
from .algebra import Float, exact_product, fma, polynomial
from .exponential import reduce_by_ln2, times_power, twice_exp
from .formats import F64

ERF_SPLIT = 1.2  # below, an odd polynomial
ERF_END = 6.0  # above, erf is 1
ERFC_SHIFT = 3.0
ERFC_END = 27.3  # above, erfc is 0


def erf(x: Float) -> Float:
    """x + x·T(x²) up to 1.2, else 1 - P(|x|)⁸: the eighth root of erfc is all but a polynomial."""
    size, key = abs(x).at_most(ERF_END), x.format.name
    square = x * x
    near_zero = fma(x, polynomial(square, coefficients.ERF[key]), x)
    root = polynomial(size, coefficients.ERFC_ROOT[key])
    fourth = (root * root) * (root * root)
    far = fma(-fourth, fourth, 1.0).with_sign_of(x)
    return (size < x.format.round(ERF_SPLIT)).choose(near_zero, far)


def erfc(x: Float) -> Float:
    """exp(-x²)·u·P(u) with u = 1/(|x| + 3), or 2 minus that for negative x; in double for f32 too.

    x² needs two words, as its error is one of the result relative to itself.
    """
    key, wide = x.format.name, x.to_format(F64)
    size = abs(wide).at_most(ERFC_END)
    square, error = exact_product(size, size)
    r, biased = reduce_by_ln2(-square, offset=-1)
    u = 1.0 / (size + ERFC_SHIFT)
    significand = twice_exp(r - error, key) * (u * polynomial(u, coefficients.ERFC[key]))
    tail = times_power(significand, biased, tiny=size > 20.0)
    return (wide < 0.0).choose(2.0 - tail, tail).to_format(x.format)

"""sin, cos and tan.

Multiples of π are subtracted in three words, which is right for arguments of usual size; if any lane holds a larger
one, a branch leads to `large_remainder`.
"""

from __future__ import annotations

from . import coefficients
from .algebra import Float, Int, exact_product, exact_sum, fma, polynomial
from .exponential import subtract_multiple
from .formats import PI
from .large_remainder import Remainder, remainder_of_large

FLAT = {"f32": 2.0**-6, "f64": 2.0**-14}
"""Up to here c⁴/24, which is left out, is far below a unit in the last place."""

LARGE = {"f32": 2.0**17, "f64": 2.0**31}
"""From here on three words of π are too few."""


def sin(x: Float) -> Float:
    r, sign = reduce_by_pi(x)
    return sine(r).flipped_by(sign ^ x.sign())


def cos(x: Float) -> Float:
    r, sign = reduce_by_pi(x, quarter_turns=1)
    return sine(r).flipped_by(sign)


def tan(x: Float) -> Float:
    """tan(r) = r + r³·T(r²) for |x| = q·π/2 + r, |r| ≤ π/4, or -1/tan(r) if q is odd."""
    r, lost, quadrant = reduce_by_half_pi(abs(x))
    square = r * r
    tail = polynomial(square, coefficients.TAN[x.format.name])
    tangent = r + fma(r * square, tail, fma(lost, square, lost))  # tan' = 1 + tan², about 1 + r²
    odd = quadrant.has_bit(1)
    return (odd.choose(-1.0, tangent) / odd.choose(tangent, 1.0)).flipped_by(x.sign())


def sine(r: Float) -> Float:
    """sin(r) = r + r³·T(r²) for |r| ≤ π/2; near ±1, which the rounding of that may miss, 1 - c²/2 for c = π/2 - |r|."""
    square, size, format = r * r, abs(r), r.format
    steep = fma(r * square, polynomial(square, coefficients.SIN[format.name]), r)
    complement = format.nearest(PI / 2) - size
    flat = fma(complement * complement, -0.5, 1.0).flipped_by(r.sign())
    return (complement < FLAT[format.name]).choose(flat, steep)


def reduce_by_half_pi(size: Float) -> Remainder:
    """size as q·π/2 + r + l with |r| ≤ π/4, for size ≥ 0; only the low bits of q are right.

    The difference that gives r has an exact error: where the subtrahend is larger, the minuend has few bits.
    """
    format = size.format
    first, second, third = format.truncated_words(PI / 2, 3)
    q, bits = nearest_integer(size, format.nearest(2 / PI))
    product, error = exact_product(second, q)
    r, lost = exact_sum(fma(q, -first, size), -product)
    usual = r, lost - fma(q, third, error), bits
    large = size >= LARGE[format.name]

    def mixed() -> Remainder:
        r, lost, quadrant = remainder_of_large(size)
        return large.choose(r, usual[0]), large.choose(lost, usual[1]), large.choose(quadrant, usual[2])

    return size.body.rarely(large, mixed, usual)


def reduce_by_pi(x: Float, quarter_turns: int = 0) -> tuple[Float, Int]:
    """(r, sign) with sin(|x| + quarter_turns·π/2) = ±sin(r) and |r| ≤ π/2, for 0 or 1 quarter turns.

    The sine of such an r needs few more coefficients than sine and cosine of a |r| ≤ π/4 and no selection.
    """
    size, format = abs(x), x.format
    half = 0.5 * quarter_turns
    n, bits = nearest_integer(size, format.nearest(1 / PI), half)
    turns = n - half if half else n
    usual = subtract_multiple(size, turns, format.truncated_words(PI, 3)), sign_of_parity(bits)
    large = size >= LARGE[format.name]

    def mixed() -> tuple[Float, Int]:
        r, _, quadrant = remainder_of_large(size)
        turned = quadrant + quarter_turns
        high, low = format.words(PI / 2, 2)
        complement, error = exact_sum(high, -abs(r))
        folded = turned.has_bit(1).choose(complement + (error + low), r)
        sign = sign_of_parity(turned.logical_shift_right(1))
        return large.choose(folded, usual[0]), large.choose(sign, usual[1])

    return x.body.rarely(large, mixed, usual)


def nearest_integer(x: Float, factor: float, offset: float = 0.0) -> tuple[Float, Int]:
    """n, the integer nearest to x·factor + offset, and an integer with the low bits of n."""
    magic = x.format.magic
    shifted = fma(x, factor, offset) + magic if offset else fma(x, factor, magic)
    return shifted - magic, shifted.bits()


def sign_of_parity(n: Int) -> Int:
    """The sign bit set if n is odd."""
    return n << (n.width - 1)

"""sin, cos and tan.

Multiples of π are subtracted in three words, which is right for arguments of usual size; if any lane holds a larger
one, a branch leads to `large_remainder`.
"""

from __future__ import annotations

from collections.abc import Callable

from . import coefficients
from .algebra import Float, Int, fma, polynomial
from .exponential import subtract_multiple
from .formats import PI
from .large_remainder import remainder_of_large

LARGE = {"f32": 2.0**17, "f64": 2.0**31}  # from here on three words of π are too few


def sin(x: Float) -> Float:
    r, sign = reduce_by_pi(x)
    return sine(r).flipped_by(sign ^ x.sign())


def cos(x: Float) -> Float:
    r, sign = reduce_by_pi(x, quarter_turns=1)
    return sine(r).flipped_by(sign)


def tan(x: Float) -> Float:
    """tan(r) = r + r³·T(r²) for |x| = q·π/2 + r, |r| ≤ π/4, or -1/tan(r) if q is odd."""
    format = x.format
    r, quadrant = reduce_by_half_pi(abs(x))
    square = r * r
    tangent = fma(r * square, polynomial(square, coefficients.TAN[format.name]), r)
    odd = quadrant.has_bit(1)
    return (odd.choose(-1.0, tangent) / odd.choose(tangent, 1.0)).flipped_by(x.sign())


def sine(r: Float) -> Float:
    """sin(r) = r + r³·T(r²) for |r| ≤ π/2."""
    square = r * r
    return fma(r * square, polynomial(square, coefficients.SIN[r.format.name]), r)


def reduce_by_half_pi(size: Float) -> tuple[Float, Int]:
    """(r, q) with size = q·π/2 + r and |r| ≤ π/4, for size ≥ 0; only the low bits of q are right."""
    format = size.format
    q, bits = nearest_integer(size, format.nearest(2 / PI))
    usual = subtract_multiple(size, q, format.truncated_words(PI / 2, 3)), bits
    return unless_large(size, usual, lambda: remainder_of_large(size))


def reduce_by_pi(x: Float, quarter_turns: int = 0) -> tuple[Float, Int]:
    """(r, sign) with sin(|x| + quarter_turns·π/2) = ±sin(r) and |r| ≤ π/2, for 0 or 1 quarter turns.

    The sine of such an r needs few more coefficients than sine and cosine of a |r| ≤ π/4 and no selection.
    """
    size, format = abs(x), x.format
    half = 0.5 * quarter_turns
    n, bits = nearest_integer(size, format.nearest(1 / PI), half)
    turns = n - half if half else n
    usual = subtract_multiple(size, turns, format.truncated_words(PI, 3)), sign_of_parity(bits)

    def folded() -> tuple[Float, Int]:
        r, quadrant = remainder_of_large(size)
        turned = quadrant + quarter_turns
        complement = format.nearest(PI / 2) - abs(r)
        return turned.has_bit(1).choose(complement, r), sign_of_parity(turned.logical_shift_right(1))

    return unless_large(size, usual, folded)


def unless_large(
    size: Float, usual: tuple[Float, Int], slow: Callable[[], tuple[Float, Int]]
) -> tuple[Float, Int]:
    """`usual` in the lanes where size is not large, what `slow` computes in the others."""
    large = size >= LARGE[size.format.name]

    def mixed() -> tuple[Float, Int]:
        r, bits = slow()
        return large.choose(r, usual[0]), large.choose(bits, usual[1])

    return size.body.rarely(large, mixed, usual)


def nearest_integer(x: Float, factor: float, offset: float = 0.0) -> tuple[Float, Int]:
    """n, the integer nearest to x·factor + offset, and an integer with the low bits of n."""
    magic = x.format.magic
    shifted = fma(x, factor, offset) + magic if offset else fma(x, factor, magic)
    return shifted - magic, shifted.bits()


def sign_of_parity(n: Int) -> Int:
    """The sign bit set if n is odd."""
    return n << (n.width - 1)

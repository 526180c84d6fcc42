"""IEEE 754 formats and mathematical constants as exact rationals, from which every split constant is derived.

Constants are summed here in integers, so that no digit string has to be trusted. Nothing here prints code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, frexp, isfinite, ldexp, trunc

CONSTANT_BITS = 1400
"""Bits behind the point of constants: enough for 2/π times the largest double."""

_ONE = 1 << (CONSTANT_BITS + 32)


SPARE_BITS = 4
"""Bits behind the last one that a number alone must be right to."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: its LLVM spelling and the numbers that describe it."""

    name: str
    llvm: str
    bits: int
    precision: int

    @property
    def mantissa(self) -> int:
        """Stored significand bits."""
        return self.precision - 1

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.precision - 1)) - 1

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def min_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def magic(self) -> float:
        """Adding this rounds to an integer, and leaves that integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    def holds(self, number: float) -> bool:
        fraction, _ = frexp(number)
        return not isfinite(number) or ldexp(fraction, self.precision).is_integer()

    def nearest(self, value: Fraction) -> float:
        """`value` rounded to this format, ties to even; `value` must be in its normal range."""
        return self._rounded(value, round)

    def round(self, value: float) -> float:
        return self.nearest(Fraction(value))

    def words(self, value: Fraction, count: int) -> tuple[float, ...]:
        """`value` as an unevaluated sum of `count` numbers, each nearest to what is left."""
        return self._expansion(value, count, round)

    def enough_words(self, value: Fraction) -> tuple[float, ...]:
        """The nearest number alone where it is many times closer than half a last bit, else two words."""
        high, low = self.words(value, 2)
        return (high,) if abs(low) < abs(high) * 2.0 ** -(self.precision + SPARE_BITS) else (high, low)

    def truncated_words(self, value: Fraction, count: int) -> tuple[float, ...]:
        """The same with all words of one sign."""
        return self._expansion(value, count, trunc)

    def _expansion(self, value: Fraction, count: int, to_integer: Callable[[Fraction], int]) -> tuple[float, ...]:
        words = []
        for _ in range(count):
            words.append(self._rounded(value, to_integer))
            value -= Fraction(words[-1])
        return tuple(words)

    def _rounded(self, value: Fraction, to_integer: Callable[[Fraction], int]) -> float:
        unit = Fraction(2) ** (frexp(float(value))[1] - self.precision)
        return float(to_integer(value / unit) * unit)


F32 = Format("f32", "float", 32, 24)
F64 = Format("f64", "double", 64, 53)
FORMATS = {format.name: format for format in (F32, F64)}


def _inverse_series(inverse: int, sign: int) -> Fraction:
    """Σ signᵏ / ((2k+1) inverse²ᵏ⁺¹): atan(1/inverse) for sign -1, artanh(1/inverse) for sign 1."""
    total, power, k = 0, _ONE // inverse, 0
    while power:
        total += sign**k * (power // (2 * k + 1))
        power //= inverse * inverse
        k += 1
    return Fraction(total, _ONE)


PI = 16 * _inverse_series(5, -1) - 4 * _inverse_series(239, -1)  # Machin
LN2 = 2 * _inverse_series(3, 1)
LN10 = 3 * LN2 + 2 * _inverse_series(9, 1)  # 10 = 2³ · (1 + 1/9) / (1 - 1/9)


def scaled_integer(value: Fraction, bits: int) -> int:
    """floor(value · 2^bits)."""
    return floor(value * (1 << bits))

"""Derives the polynomials of `coefficients.py`: `python -m stepwell.backends.cpu.vector_math.minimax` writes that file.

A development tool (mpmath comes with torch); nothing imports it at run time. Remez' exchange finds the polynomial of
least weighted error; coefficients are rounded to the format one by one from the lowest, which matters most, and
the rest is fitted again around those already rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mpmath as mp

from .error_function import ERF_END, ERF_ROOT_END, ERF_ROOT_START, ERF_SPLIT, ERFC_CENTRE, ERFC_END, ERFC_SHIFT
from .exponential import TANH_SPLIT
from .formats import F32, F64, Format

Real = Any  # mpmath has no types
Function = Callable[[Real], Real]
GRID_POINTS = 800
mp.mp.dps = 60


@dataclass(frozen=True)
class Approximation:
    """A polynomial P on `interval` that keeps |P(t) - target(t)| · weight(t) least."""

    formula: str
    target: Function
    weight: Function
    interval: tuple[Real, Real]
    degrees: dict[Format, int]
    arithmetic: Format | None = None  # in which it is evaluated, if not in that of the result

    @cached_property
    def samples(self) -> list[tuple[Real, Real, Real]]:
        """(t, target, weight) at Chebyshev points, an even number, so that none is 0."""
        low, high = self.interval
        angles = (mp.pi * (2 * k + 1) / (2 * GRID_POINTS) for k in range(GRID_POINTS))
        points = [(low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles]
        return [(t, self.target(t), self.weight(t)) for t in points]

    def rounded(self, format: Format) -> tuple[float, ...]:
        """The coefficients from the lowest, each a number of the format."""
        fixed: list[float] = []
        while len(fixed) <= self.degrees[format]:
            fixed.append(nearest(self.arithmetic or format, self.fit(self.degrees[format], fixed)[0]))
        return tuple(fixed)

    def fit(self, degree: int, fixed: Sequence[float]) -> list[Real]:
        """The best coefficients above the fixed ones, by exchange of the points of greatest error."""
        unknowns, lowest = degree + 1 - len(fixed), len(fixed)
        rest = [
            (t, (value - mp.polyval(fixed[::-1], t) if fixed else value) / t**lowest, weight * abs(t) ** lowest)
            for t, value, weight in self.samples
        ]
        chosen = [round((GRID_POINTS - 1) * (1 - mp.cos(mp.pi * k / unknowns)) / 2) for k in range(unknowns + 1)]
        for _ in range(30):
            *coefficients, level = equioscillating([rest[k] for k in chosen])
            errors = [(mp.polyval(coefficients[::-1], t) - value) * weight for t, value, weight in rest]
            if max(map(abs, errors)) <= abs(level) * 1.001:
                break
            chosen = alternating_extrema(errors, unknowns + 1) or chosen
        return list(coefficients)


def equioscillating(points: Sequence[tuple[Real, Real, Real]]) -> list[Real]:
    """Coefficients, then the weighted error that alternates in sign at the points, one more than those."""
    size = len(points)
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, (t, value, weight) in enumerate(points):
        for column in range(size - 1):
            matrix[row, column] = t**column * weight
        matrix[row, size - 1] = (-1) ** row
        right[row] = value * weight
    return list(mp.lu_solve(matrix, right))


def alternating_extrema(errors: Sequence[Real], count: int) -> list[int] | None:
    """The places of `count` greatest errors of alternating sign; None if the sign alternates less often."""
    extrema: list[int] = []
    for place, error in enumerate(errors):
        if not extrema or (error >= 0) != (errors[extrema[-1]] >= 0):
            extrema.append(place)
        elif abs(error) > abs(errors[extrema[-1]]):
            extrema[-1] = place
    while len(extrema) > count:
        drop_least(extrema, [abs(errors[place]) for place in extrema], single=len(extrema) == count + 1)
    return extrema if len(extrema) == count else None


def drop_least(extrema: list[int], sizes: Sequence[Real], single: bool) -> None:
    """Drop the least extremum; inside, where that would join two of one sign, the lesser neighbour too."""
    last = len(sizes) - 1
    least = min((0, last) if single else range(last + 1), key=lambda place: sizes[place])
    if 0 < least < last:
        least -= sizes[least - 1] < sizes[least + 1]
        del extrema[least + 1]
    del extrema[least]


def nearest(format: Format, value: Real) -> float:
    with mp.workprec(format.precision):
        return float(+value)


def degrees(f32: int, f64: int) -> dict[Format, int]:
    return {F32: f32, F64: f64}


def odd_tail(name: str, function: Function, limit: Real, degrees: dict[Format, int]) -> Approximation:
    """T with function(x) = x + x³ · T(x²) for 0 ≤ x ≤ limit, to a relative error of the function."""
    return Approximation(
        f"{name}(x) = x + x³ T(x²)",
        lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)),
        (mp.mpf(0), mp.mpf(limit) ** 2),
        degrees,
    )


def exponential_tail(low: Real, high: Real, of: Function, f32: int, f64: int) -> Approximation:
    """T with exp(r) = 1 + r + r² · T(r), to an error relative to `of`."""
    return Approximation(
        "exp(r) = 1 + r + r² T(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: abs(r**2 / of(r)),
        (mp.mpf(low), mp.mpf(high)),
        degrees(f32, f64),
    )


def scaled_erfc(v: Real) -> tuple[Real, Real]:
    """u and exp(x²)·erfc(x), where v = u - ERFC_CENTRE and u = 1/(x + ERFC_SHIFT)."""
    u = v + ERFC_CENTRE
    x = 1 / u - ERFC_SHIFT
    return u, mp.exp(x**2) * mp.erfc(x)


SLACK = mp.mpf("1.0001")  # a rounded range reduction may end just outside its interval
APPROXIMATIONS = {
    "EXP": exponential_tail(-mp.ln2 / 2 * SLACK, mp.ln2 / 2 * SLACK, mp.exp, 4, 9),
    "EXPM1": exponential_tail(-mp.ln2 / 2 * SLACK, mp.ln2 / 2 * SLACK, mp.expm1, 5, 10),
    "TANH": Approximation(
        "(1 - exp(-2r)) / 2 = r + r² T(r)",
        lambda r: (-mp.expm1(-2 * r) / 2 - r) / r**2,
        lambda r: abs(2 * r**2 / mp.expm1(-2 * r)),
        (-mp.ln2 / 4 * SLACK, mp.ln2 / 4 * SLACK),
        degrees(4, 10),
    ),
    "TANH_NEAR": odd_tail("tanh", mp.tanh, TANH_SPLIT, {F64: 10}),
    "EXP2": Approximation(
        "2^r = 1 + r T(r)",
        lambda r: mp.expm1(r * mp.ln2) / r,
        lambda r: abs(r) / 2**r,
        (-SLACK / 2, SLACK / 2),
        degrees(5, 10),
    ),
    "LOG": Approximation(
        "log(1+f) = f - f²/2 + f³ T(f)",
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
        lambda f: abs(f**3 / mp.log1p(f)),
        (mp.sqrt(0.5) - 1, mp.sqrt(2) - 1),
        degrees(8, 19),
    ),
    "SIN": odd_tail("sin", mp.sin, mp.pi / 2 * SLACK, degrees(3, 7)),
    "TAN": odd_tail("tan", mp.tan, mp.pi / 4 * SLACK, degrees(6, 13)),
    "ATAN": odd_tail("atan", mp.atan, (mp.sqrt(2) - 1) * SLACK, degrees(4, 10)),
    "ASIN": odd_tail("asin", mp.asin, 0.5, degrees(5, 12)),
    "SINH": odd_tail("sinh", mp.sinh, 1, degrees(3, 7)),
    "ERF_ROOT": Approximation(
        f"erfc(x) = (1 - {ERF_ROOT_START} x - x T(x))²",
        lambda x: (1 - mp.sqrt(mp.erfc(x))) / x - ERF_ROOT_START,
        lambda x: 2 * mp.sqrt(mp.erfc(x)) * x / mp.erf(x),
        (mp.mpf(0), mp.mpf(ERF_ROOT_END)),
        {F32: 13},
    ),
    "ERF": Approximation(
        "erf(x) = x + x T(x²)",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        (mp.mpf(0), mp.mpf(ERF_SPLIT) ** 2),
        {F64: 13},
    ),
    "ERFC_ROOT": Approximation(
        "erfc(x) = P(x)⁸, to an absolute error",
        lambda x: mp.root(mp.erfc(x), 8),
        lambda x: 8 * mp.root(mp.erfc(x), 8) ** 7,
        (mp.mpf(ERF_SPLIT), mp.mpf(ERF_END)),
        {F64: 18},
    ),
    "ERFC": Approximation(
        f"erfc(x) = exp(-x²) u P(u - {ERFC_CENTRE}) with u = 1/(x + {ERFC_SHIFT}), computed in f64",
        lambda v: scaled_erfc(v)[1] / scaled_erfc(v)[0],
        lambda v: scaled_erfc(v)[0] / scaled_erfc(v)[1],
        (1 / mp.mpf(ERFC_END + ERFC_SHIFT) - ERFC_CENTRE, 1 / mp.mpf(ERFC_SHIFT) - ERFC_CENTRE),
        degrees(10, 22),
        arithmetic=F64,
    ),
    "POWER": Approximation(
        "log2(m) = s (c₀ + s² (c₁ + s² T(s²))), s = (m-1)/(m+1), c₀ = 2/ln 2, c₁ = c₀/3",
        lambda z: ((mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mp.mpf(1) / 3) / z * 2 / mp.ln2,
        lambda z: z**2 * mp.sqrt(z) / mp.atanh(mp.sqrt(z)) * mp.ln2 / 2,
        (mp.mpf(0), ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * SLACK),
        degrees(3, 7),
    ),
}
HEADER = '''"""Minimax polynomials by name and format, lowest coefficient first. Written by `minimax`; do not edit."""

# fmt: off
Polynomials = dict[str, tuple[float, ...]]

'''


def entry(name: str, approximation: Approximation) -> str:
    lines = [f"# {approximation.formula}", f"{name}: Polynomials = {{"]
    for format in approximation.degrees:
        lines.append(f'    "{format.name}": (')
        lines.extend(f"        {coefficient!r}," for coefficient in approximation.rounded(format))
        lines.append("    ),")
    return "\n".join([*lines, "}\n"])


def main() -> None:
    entries = "".join(entry(name, approximation) for name, approximation in APPROXIMATIONS.items())
    Path(__file__).with_name("coefficients.py").write_text(HEADER + entries)


if __name__ == "__main__":
    main()

"""The families of graph ops. Passes ask for these, not for names.

Commutativity, purity and effects are xDSL's own traits (`Commutative`, `Pure`, `MemoryEffect`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.traits import OpTrait


@dataclass(frozen=True)
class Elementwise(OpTrait):
    """Element i of the result depends on element i of each operand only; all shapes are equal."""


@dataclass(frozen=True)
class Reduction(OpTrait):
    """Combines the elements along `dims` of its first operand and drops those dims."""


@dataclass(frozen=True)
class View(OpTrait):
    """Every element of the result is one element of the first operand, found by an index map."""


@dataclass(frozen=True)
class Contraction(OpTrait):
    """Multiplies and sums over a shared dim."""


@dataclass(frozen=True)
class Creation(OpTrait):
    """Makes a tensor out of attributes alone, cheap enough to recompute at each use."""

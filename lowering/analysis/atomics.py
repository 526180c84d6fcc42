"""Which combiners of a scatter GPUs have as atomic operations on memory, and on what elements."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute

_INTEGERS = {
    "add": "add",
    "max": "max",
    "min": "min",
    "maxu": "umax",
    "minu": "umin",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_ATOMICS: dict[bool, tuple[dict[str, str], tuple[int, ...]]] = {
    False: (_INTEGERS, (32, 64)),
    True: ({"add": "fadd"}, (16, 32, 64)),
}
"""Whether elements are floats → kinds of atomic operations by combiner, and bits that an element may have."""


def atomic_kind(combiner: str, element: Attribute) -> str | None:
    """Triton's name of the atomic operation that combines elements so; None where there is none."""
    kinds, widths = _ATOMICS[isinstance(element, AnyFloat)]
    return kinds.get(combiner) if element.bitwidth in widths else None  # type: ignore[attr-defined]


__all__ = ["atomic_kind"]

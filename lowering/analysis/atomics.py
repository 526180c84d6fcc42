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
_KINDS = {False: _INTEGERS, True: {"add": "fadd"}}
"""Whether elements are floats → kinds of atomic operations by combiner."""

WIDTHS = {False: (32, 64), True: (16, 32, 64)}
"""Whether elements are floats → bits that an element may have, of which there are atomic operations."""


def atomic_kind(combiner: str, element: Attribute) -> str | None:
    """Triton's name of the atomic operation that combines elements so; None where there is none."""
    is_float = isinstance(element, AnyFloat)
    return _KINDS[is_float].get(combiner) if element.bitwidth in WIDTHS[is_float] else None  # type: ignore[attr-defined]


__all__ = ["atomic_kind"]

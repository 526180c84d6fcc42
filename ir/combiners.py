"""The associative operations that reductions of the loop and tile levels combine values with.

One row per name. `argmax` and `argmin` combine pairs (value, index): NaN wins over every number and, among
equal values, the smaller index wins, as eager does.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute


@dataclass(frozen=True)
class Combiner:
    """How many values one combination takes, on which element types, and its identity for floats and ints.

    `identity` is one of "zero", "one", "lowest", "highest", "ones" (all bits set).
    """

    name: str
    arity: int
    floats: bool
    integers: bool
    identity: str


COMBINERS: dict[str, Combiner] = {
    combiner.name: combiner
    for combiner in (
        Combiner("add", 1, floats=True, integers=True, identity="zero"),
        Combiner("mul", 1, floats=True, integers=True, identity="one"),
        Combiner("max", 1, floats=True, integers=True, identity="lowest"),
        Combiner("min", 1, floats=True, integers=True, identity="highest"),
        Combiner("maxu", 1, floats=False, integers=True, identity="zero"),
        Combiner("minu", 1, floats=False, integers=True, identity="ones"),
        Combiner("and", 1, floats=False, integers=True, identity="ones"),
        Combiner("or", 1, floats=False, integers=True, identity="zero"),
        Combiner("xor", 1, floats=False, integers=True, identity="zero"),
        Combiner("argmax", 2, floats=True, integers=True, identity="lowest"),
        Combiner("argmin", 2, floats=True, integers=True, identity="highest"),
    )
}


def last_index(element: Attribute) -> int:
    """The identity of the second value of a pair, of an integer type: no element has a greater index."""
    assert isinstance(element, IntegerType)
    return int((1 << (element.width.data - 1)) - 1)


def identity_value(combiner: Combiner, element: Attribute) -> int | float:
    """The neutral element of the combiner in a scalar type; integers are given signed."""
    if isinstance(element, IndexType):
        element = IntegerType(64)
    if isinstance(element, IntegerType):
        width: int = element.width.data
        if width == 1:  # a bool is 0 or 1, compared unsigned
            bools = {"zero": 0, "one": 1, "lowest": 0, "highest": 1, "ones": 1}
            return bools[combiner.identity]
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        integers = {"zero": 0, "one": 1, "lowest": low, "highest": high, "ones": -1}
        return integers[combiner.identity]
    assert isinstance(element, AnyFloat)
    infinity = float("inf")
    floats = {"zero": 0.0, "one": 1.0, "lowest": -infinity, "highest": infinity}
    return floats[combiner.identity]

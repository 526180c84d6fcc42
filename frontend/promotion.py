"""torch's type promotion: which element type several operands are computed in."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import torch


class Priority(IntEnum):
    """How much an operand decides: tensors with dims come first, then those of rank 0, then Python numbers."""

    TENSOR = 0
    SCALAR = 1
    NUMBER = 2


def promoted_type(operands: Iterable[tuple[Priority, torch.dtype]]) -> torch.dtype:
    """The type of the most deciding operands, unless others are of a higher kind (an integer meets a float)."""
    groups: dict[Priority, torch.dtype] = {}
    for priority, dtype in operands:
        groups[priority] = torch.promote_types(groups.get(priority, dtype), dtype)
    result, *others = (groups[priority] for priority in sorted(groups))
    for dtype in others:
        if _kind(dtype) > _kind(result):
            result = torch.promote_types(result, dtype)
    return result


def _kind(dtype: torch.dtype) -> int:
    """bool, integer, float, complex in ascending order."""
    if dtype == torch.bool:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1

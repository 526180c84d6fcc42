"""Strides as torch's C++ works them out: of a view, and of what an operator allocates for its operands.

Sizes and strides may be symbols. Python's own versions of this in torch differ along dims of size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_contiguous_for_memory_format_or_false, is_non_overlapping_and_dense_or_false
from torch.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

Sizes = Sequence[Any]


def ordered_strides(sizes: Sizes, order: Sequence[int]) -> tuple[Any, ...]:
    """Dense strides for the sizes; the order begins with the innermost dim."""
    found: list[Any] = [0] * len(sizes)
    step: Any = 1
    for dim in order:
        found[dim] = step
        step = step * sizes[dim]
    return tuple(found)


def row_major_strides(sizes: Sizes) -> tuple[Any, ...]:
    return ordered_strides(sizes, range(len(sizes) - 1, -1, -1))


def are_equal(first: Sizes, second: Sizes) -> bool:
    """Whether two lists of sizes are known to be equal."""
    return len(first) == len(second) and all(
        statically_known_true(one == other) for one, other in zip(first, second, strict=True)
    )


def view_strides(x: Tensor, sizes: Sizes) -> tuple[Any, ...] | None:
    """Those of `x.view(sizes)`; None where it copies, has no elements or symbols leave it open.

    Dims that lie in memory as one are a chunk, which the view's dims divide.
    """
    dim, strides = len(sizes) - 1, [0] * len(sizes)
    step: Any = None
    chunk: Any = 1
    for position in reversed(range(x.ndim)):
        step = x.stride(position) if step is None else step
        chunk = chunk * x.shape[position]
        if position > 0 and _continues(x, position - 1, chunk * step):
            continue
        seen: Any = 1
        while dim >= 0 and (statically_known_true(seen < chunk) or _is_one(sizes[dim])):
            strides[dim] = seen * step
            seen = seen * sizes[dim]
            dim -= 1
        if not statically_known_true(seen == chunk):
            return None
        step, chunk = None, 1
    return tuple(strides) if dim < 0 else None


def _continues(x: Tensor, outer: int, extent: Any) -> bool:
    """Whether one step of a dim goes just past what the dims inside of it cover, or the dim has none to take."""
    return _is_one(x.shape[outer]) or statically_known_true(x.stride(outer) == extent)


def _is_one(size: Any) -> bool:
    return statically_known_true(size == 1)


def iterator_strides(operands: Sequence[Tensor], sizes: Sizes, has_numbers: bool) -> tuple[Any, ...]:
    """Those of a result that an elementwise operator allocates for operands with dims; beside them it may have numbers,
    or tensors without dims, and then equal layouts are no reason to keep them."""
    if not has_numbers and all(are_equal(x.shape, sizes) for x in operands):
        kept = _kept_strides(operands, sizes)
        if kept is not None:
            return kept
    return ordered_strides(sizes, _inner_first([_steps(x, sizes) for x in operands], sizes))


def _kept_strides(operands: Sequence[Tensor], sizes: Sizes) -> tuple[Any, ...] | None:
    if all(_is_laid_out(x, torch.contiguous_format) for x in operands):
        return row_major_strides(sizes)
    if len(sizes) == 4 and all(_is_laid_out(x, torch.channels_last) for x in operands):
        return ordered_strides(sizes, (1, 3, 2, 0))
    first = operands[0].stride()
    if all(is_non_overlapping_and_dense_or_false(x) and are_equal(x.stride(), first) for x in operands):
        return tuple(first)
    return None


def _is_laid_out(x: Tensor, layout: torch.memory_format) -> bool:
    return bool(is_contiguous_for_memory_format_or_false(x, memory_format=layout))


def _steps(x: Tensor, sizes: Sizes) -> list[Any]:
    """The operand's strides along the result's dims: 0 where it repeats."""
    missing = len(sizes) - x.ndim
    own = [
        0 if _is_one(size) and not _is_one(wanted) else step
        for size, step, wanted in zip(x.shape, x.stride(), sizes[missing:], strict=True)
    ]
    return [0] * missing + own


def _inner_first(steps: Sequence[Sequence[Any]], sizes: Sizes) -> list[int]:
    """The dims sorted by the operands' strides, row-major where these say nothing: an insertion sort, since the
    comparison is not transitive."""
    order = [*reversed(range(len(sizes)))]
    for start in range(1, len(order)):
        place = start
        for before in reversed(range(start)):
            comparison = _compared(order[before], order[place], steps, sizes)
            if comparison < 0:
                break
            if comparison > 0:
                order[before], order[place] = order[place], order[before]
                place = before
    return order


def _compared(inner: int, outer: int, steps: Sequence[Sequence[Any]], sizes: Sizes) -> int:
    """1 if the first dim belongs outside of the second, -1 if it does not, 0 if no operand decides."""
    for strides in steps:
        one, other = strides[inner], strides[outer]
        if _is_zero(one) or _is_zero(other):
            continue
        if _is_below(one, other):
            return -1
        if _is_below(other, one):
            return 1
        if guard_or_false(one == other) and guard_or_false(sizes[inner] > sizes[outer]):
            return 1
    return 0


def _is_below(first: Any, second: Any) -> bool:
    """Of strides that depend on data, a multiple of another is taken for the greater one, as it is unless a size is 0
    or 1."""
    return guard_or_false(first < second) or (
        statically_known_true(second % first == 0) and not statically_known_true(first == second)
    )


def _is_zero(step: Any) -> bool:
    return type(step) is int and step == 0

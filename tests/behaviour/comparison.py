"""Runs a program eagerly and compiled, each on its own copy of everything, and holds all that a user sees equal."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

TOLERANCE = 1e-5
"""Relative and absolute, in f32: sums may be formed in another order."""


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    torch._dynamo.reset()
    made: Callable[..., Any] = torch.compile(function, backend="stepwell", options={"strict": True, **options})
    return made


def same(found: Any, expected: Any) -> None:
    """Values, types, sizes, strides, and whether gradients can flow."""
    for one, other in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        if not isinstance(other, Tensor):
            assert one == other
            continue
        torch.testing.assert_close(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        assert one.stride() == other.stride()
        assert one.requires_grad == other.requires_grad


def sharing(tensors: Sequence[Any]) -> list[tuple[int, int]]:
    """For each tensor the number of the first that shares its memory, and where it begins there."""
    seen: dict[int, int] = {}
    return [
        (seen.setdefault(tensor.untyped_storage()._cdata, number), int(tensor.storage_offset()))
        for number, tensor in enumerate(tensors)
        if isinstance(tensor, Tensor)
    ]


def check(function: Callable[..., Any], make: Callable[[], Sequence[Any]], calls: int = 2, **options: Any) -> None:
    """The results, what they alias, and the arguments after each of several calls equal eager's."""
    fast = compiled(function, **options)
    for _ in range(calls):
        torch.manual_seed(1)
        eager_arguments = make()
        torch.manual_seed(1)
        arguments = make()
        expected, found = function(*eager_arguments), fast(*arguments)
        same(found, expected)
        same(list(arguments), list(eager_arguments))
        everything = [*tree_leaves(list(arguments)), *tree_leaves(found)]
        assert sharing(everything) == sharing([*tree_leaves(list(eager_arguments)), *tree_leaves(expected)])


def copied(model: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(model)

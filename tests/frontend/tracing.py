"""FX graphs for tests: of a function, or of one call of an ATen overload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from stepwell.frontend.decompositions import decomposition_table
from stepwell.frontend.fakes import correct_fakes
from stepwell.frontend.import_fx import ImportedGraph, import_graph

LAYOUT_OPS = ("full", "broadcast", "reshape")
"""Ops that only give numbers and sizes; lists of op names leave them out."""


def trace(function: Callable[..., Any], *inputs: Any, dynamic: bool = False, decompose: bool = True) -> fx.GraphModule:
    """The function's graph of ATen ops over fake tensors; `dynamic` makes every size a symbol."""
    table = decomposition_table() if decompose else None
    mode: Literal["symbolic", "fake"] = "symbolic" if dynamic else "fake"
    graph: fx.GraphModule = make_fx(
        function, decomposition_table=table, tracing_mode=mode, _allow_non_fake_inputs=True
    )(*inputs)
    return graph


def import_function(function: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> ImportedGraph:
    graph = trace(function, *inputs, dynamic=dynamic)
    correct_fakes(graph)
    imported = import_graph(graph, inputs)
    imported.module.verify()
    return imported


def call_of(target: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[Callable[..., Any], list[Tensor]]:
    """The call as a function of its tensors, with a flat list of results, and the tensors."""
    leaves, structure = tree_flatten((list(arguments), keywords))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def function(*given: Tensor) -> list[Any]:
        rest = iter(given)
        filled = [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        positional, named = tree_unflatten(filled, structure)
        result = target(*positional, **named)
        return [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, Tensor)]

    return function, tensors


def op_names(imported: ImportedGraph) -> Iterator[str]:
    """The names of the function's ops in order, without those of `LAYOUT_OPS` and the return."""
    for op in imported.function.body.block.ops:
        name = op.name.removeprefix("graph.")
        if name not in (*LAYOUT_OPS, "func.return"):
            yield name


def same(expected: Tensor, found: Tensor, tolerance: float) -> bool:
    """Equal type, shape and values, up to the tolerance for floats."""
    if expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    if not expected.is_floating_point():
        return torch.equal(expected, found)
    return torch.allclose(expected.double(), found.double(), rtol=tolerance, atol=tolerance, equal_nan=True)

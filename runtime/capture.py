"""Compiles a function anew for given arguments while someone looks on; functions compiled before do not change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.exc import TorchRuntimeError
from torch.utils._pytree import tree_leaves

from ..ir.errors import OptionError
from .config import Settings
from .observers import Recorder


def capture(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    settings: Settings,
    *recorders: Recorder,
) -> Any:
    """Compiles a function or module for these arguments and calls it once: what eager would change, it changes.

    Where a result requires gradients, the backward graph runs too, but no `.grad` changes.
    """
    from .torch_backend import compile_captured

    compiled = torch.compile(
        fresh(function), backend=lambda gm, inputs: compile_captured(gm, inputs, settings, *recorders)
    )
    result = call(compiled, function, args, kwargs)
    run_backward(result)
    return result


def call(
    compiled: Callable[..., Any], function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What the compiled function gives; raises OptionError where the function itself does not take the arguments."""
    forward = function.forward if isinstance(function, nn.Module) else function
    subject = f"arguments of {getattr(function, '__name__', type(function).__name__)}"
    hint = "on the command line --shape 4x8xf32 gives one, once for each"
    try:
        signature = inspect.signature(forward)
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise OptionError(subject, expected=str(signature), got=str(error), hint=hint) from None
    except ValueError:
        pass  # a builtin has no signature; it says itself what it takes
    try:
        return compiled(*args, **kwargs)
    except TorchRuntimeError as error:
        cause = re.search(r"got (\w+\(.*\))$", str(error), re.MULTILINE)
        got = cause[1] if cause else str(error).partition("\n")[0]
        raise OptionError(subject, expected="sizes and types that eager takes", got=got, hint=hint) from error


def run_backward(result: Any) -> list[Tensor | None]:
    """The gradients of all leaves, computed once, which compiles the backward graph."""
    roots = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.grad_fn is not None]
    leaves = _leaves({root.grad_fn for root in roots})
    if not leaves:
        return []
    return [*torch.autograd.grad(roots, leaves, [_tangent(root) for root in roots], allow_unused=True)]


def _tangent(root: Tensor) -> Tensor:
    """Numbers that differ from each other: of equal ones, the gradient of a softmax or norm is nothing but rounding."""
    count = torch.arange(root.numel(), dtype=torch.float64, device=root.device)
    return (count + 1).cos().to(root.dtype).view(root.shape)


def _leaves(nodes: set[Any]) -> list[Tensor]:
    """The tensors whose gradients the autograd graph behind these nodes accumulates."""
    seen, stack = set(nodes), list(nodes)
    while stack:
        found = {node for node, _ in stack.pop().next_functions if node is not None} - seen
        seen |= found
        stack += found
    return [node.variable for node in seen if hasattr(node, "variable")]


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a code object of its own, to which Dynamo attaches what it compiles."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return FunctionType(call.__code__.replace(), call.__globals__, "call", None, call.__closure__)

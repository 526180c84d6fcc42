"""Externs: eager's operators by name, and what a call of one needs besides its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..ir.dtypes import dtype_name
from ..ir.errors import BackendError
from ..ir.graph.attributes import DataAttr, Named


def draw_seed(device: torch.device) -> Tensor:
    """What `stepwell.seed` does, without the 10 µs that a custom operator costs."""
    return torch.randint(-(2**63), 2**63 - 1, (), device=device)


DIRECT: dict[str, Callable[..., Any]] = {
    "aten.mm.out": torch.mm,
    "aten.addmm.out": torch.addmm,
    "aten.bmm.out": torch.bmm,
    "aten.baddbmm.out": torch.baddbmm,
    "aten.mv.out": torch.mv,
    "aten.addmv.out": torch.addmv,
    "aten.dot.out": torch.dot,
    "aten.convolution.default": torch.convolution,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": torch._scaled_dot_product_flash_attention_for_cpu,
    "stepwell.seed.default": draw_seed,
}
"""Overloads with a function of the same signature that skips torch's Python dispatch: 1.1 µs a call, not 2.5, and 7 µs
less with the lists of numbers that a convolution takes."""


def resolve(target: str) -> Callable[..., Any]:
    """What an extern calls: an operator of torch by `namespace.name.overload`, else a function of a module."""
    return DIRECT.get(target) or _named(target)


def _named(target: str) -> Callable[..., Any]:
    package, _, path = target.partition(".")
    found = _attribute(torch.ops, target) or _attribute(import_module(package), path)
    if found is None:
        hint = "the library that registers it must be imported first"
        raise BackendError("extern", expected="an operator of this torch", got=target, hint=hint)
    function: Callable[..., Any] = found
    return function


def _attribute(owner: Any, path: str) -> Any:
    """What `owner.path` names, or None."""
    try:
        return attrgetter(path)(owner)
    except (AttributeError, RuntimeError):
        return None


def result_shape(target: str, count: int) -> str:
    """How an extern gives its `count` tensors: "one", as a "tuple" of just these, or "mixed" with other things."""
    schema = getattr(_named(target), "_schema", None)
    if schema is None:
        return "mixed"
    kinds = [value.type.kind() for value in schema.returns]
    if kinds == ["TensorType"]:
        return "one"
    return "tuple" if kinds == ["TensorType"] * count else "mixed"


def tensors_of(results: Any) -> list[Tensor]:
    """The tensors among the results of an operator that may leave some out."""
    return [value for value in leaves_of(results) if isinstance(value, Tensor)]


def tensors_like(results: Any, wanted: Sequence[tuple[torch.dtype, int]]) -> list[Tensor | None]:
    """The tensors among the results, one for each wanted type and rank; None where the operator left one out that its
    meta function promised, as attention does with what only a backward needs."""
    found = tensors_of(results)
    if len(found) == len(wanted):
        return [*found]
    left = iter(found)
    value = next(left, None)
    fitted: list[Tensor | None] = []
    for dtype, rank in wanted:
        fits = value is not None and value.dtype == dtype and value.ndim == rank
        fitted.append(value if fits else None)
        value = next(left, None) if fits else value
    return fitted


def leaves_of(results: Any) -> list[Tensor | int]:
    """The tensors and the integers among the results of an operator, which may have names and lie in lists."""
    if isinstance(results, dict):
        return leaves_of([*results.values()])
    if isinstance(results, list | tuple):
        return [leaf for result in results for leaf in leaves_of(result)]
    return [results] if isinstance(results, Tensor | int) else []


_NAMED: dict[str, Callable[[str], Any]] = {
    "dtype": lambda name: getattr(torch, name),
    "layout": lambda name: getattr(torch, name),
    "memory_format": lambda name: getattr(torch, name),
    "device": torch.device,
}


def named_object(named: Named, objects: Mapping[str, Any]) -> Any:
    """The object that an argument names: one of torch's, or one that the graph holds."""
    return objects[named.name] if named.kind == "object" else _NAMED[named.kind](named.name)


def constant_tensor(value: DataAttr, sizes: Sequence[int]) -> Tensor:
    """A tensor of the given elements; a real one, although AOTAutograd compiles under a mode that makes fakes."""
    dtype = getattr(torch, dtype_name(value.element))
    with unset_fake_temporarily():
        if not value.data.data:
            return torch.empty(tuple(sizes), dtype=dtype)
        return torch.frombuffer(bytearray(value.data.data), dtype=dtype).reshape(tuple(sizes))


def as_promised(tensor: Tensor, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A copy with the strides and type that the operator's meta function promised and the operator did not keep; the
    tensor itself if it is quantized, or if only strides differ that address nothing, which the caller may see: those of
    dims of size 1, and of tensors without elements."""
    if tensor.is_quantized:
        return tensor
    steps = zip(tensor.shape, tensor.stride(), strides, strict=True)
    addressed = tensor.numel() and any(size != 1 and stride != wanted for size, stride, wanted in steps)
    if tensor.dtype is dtype and not addressed:
        return tensor
    promised = torch.empty_strided(sizes, strides, dtype=dtype, device=tensor.device)
    return promised.copy_(tensor)

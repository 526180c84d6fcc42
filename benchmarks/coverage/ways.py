"""Other ways in which programs call operators: with sizes that are symbols, under transforms, in types that eager may
refuse. Each makes cases of a sample of PyTorch's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.func import grad, jvp, vmap
from torch.utils._pytree import tree_leaves

from .cases import Call, Case, Extent, OpInfo, Samples, cases, name_of, plain_case

Way: TypeAlias = Callable[[OpInfo, Any, Case], Iterator[Case]]
"""Operator, sample, and the case of its plain call → cases."""


def cases_of(op: OpInfo, dtype: torch.dtype, extent: Extent, samples: Samples) -> Iterator[Case]:
    """The cases of those samples: plain ones and their variations, or in the ways that the extent names."""
    if not extent.ways:
        yield from cases(op, dtype, extent, samples)
    for number, sample in samples:
        for name in extent.ways:
            yield from WAYS[name](op, sample, plain_case(op, dtype, extent, number, sample))


def _dynamic(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """All sizes, and integers among the arguments, are symbols."""
    yield Case(f"{plain.name} dynamic", plain.call, plain.gradients, sizes="dynamic")


def _unbacked(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """Of sizes from 2 on nothing is known."""
    yield Case(f"{plain.name} unbacked", plain.call, plain.gradients, sizes="unbacked")


def _vmap(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """Of two samples at once, the first operand of one upside down."""
    if not isinstance(sample.input, Tensor):
        return
    first = sample.input.detach()
    batch = torch.stack([first, first.flip(0) if first.ndim else first]).requires_grad_(sample.input.requires_grad)

    def mapped(batch: Tensor, *args: Any, **kwargs: Any) -> Any:
        return vmap(lambda one: op(one, *args, **kwargs), randomness="same")(batch)

    call = Call.of(mapped, (batch, *sample.args), sample.kwargs, plain.call.process)
    yield Case(f"{plain.name} vmap", call, plain.gradients)


def _jvp(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """Forward mode by the first operand; the others have no tangent."""
    if not (isinstance(sample.input, Tensor) and plain.gradients and op.supports_forward_ad):
        return

    def pushed(x: Tensor, tangent: Tensor, *args: Any, **kwargs: Any) -> Any:
        return jvp(lambda one: op(one, *args, **kwargs), (x,), (tangent,))

    operands = (sample.input, torch.ones_like(sample.input), *sample.args)
    yield Case(f"{plain.name} jvp", Call.of(pushed, operands, sample.kwargs))


def _grad(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """The gradient inside of what is compiled."""
    if not (isinstance(sample.input, Tensor) and plain.gradients):
        return

    def pulled(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        def total(x: Tensor) -> Any:
            results = tree_leaves(op(x, *args, **kwargs))
            return sum(result.sum() for result in results if result.is_floating_point())

        return grad(total)(x)

    yield Case(f"{plain.name} grad", Call.of(pulled, (sample.input, *sample.args), sample.kwargs))


def _autocast(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    device = next((tensor.device.type for tensor in plain.call.tensors), "cpu")

    def cast(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device, dtype=torch.bfloat16):
            return op(*args, **kwargs)

    call = Call.of(cast, (sample.input, *sample.args), sample.kwargs, plain.call.process)
    yield Case(f"{plain.name} autocast", call, plain.gradients)


TYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool, torch.complex64,
)  # fmt: skip


def _types(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    """All operands of the first one's type in each type that the operator does not list, and one operand at a time in
    each other type: what eager refuses must be refused."""
    tensors = [tensor.detach() for tensor in plain.call.tensors]
    if not tensors:
        return
    own, listed = tensors[0].dtype, op.supported_dtypes(tensors[0].device.type)

    def converted(dtype: torch.dtype, which: Callable[[int], bool], label: str) -> Case:
        chosen = [tensor.to(dtype) if which(place) else tensor for place, tensor in enumerate(tensors)]
        return Case(f"{plain.name} {label} {name_of(dtype)}", plain.call.with_tensors(chosen))

    for dtype in TYPES:
        if dtype not in listed:
            yield converted(dtype, lambda place: tensors[place].dtype == own, "in")
        for place, tensor in enumerate(tensors[:3]):
            if len(tensors) > 1 and tensor.dtype != dtype:
                yield converted(dtype, lambda other, place=place: other == place, f"operand {place} in")  # type: ignore[misc]


WAYS: dict[str, Way] = {
    "dynamic": _dynamic,
    "unbacked": _unbacked,
    "vmap": _vmap,
    "jvp": _jvp,
    "grad": _grad,
    "autocast": _autocast,
    "types": _types,
}

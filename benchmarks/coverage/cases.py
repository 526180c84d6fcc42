"""What is tried: the operators of PyTorch's database, with its samples, in several memory layouts and call forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

OpInfo: TypeAlias = Any
"""`torch.testing._internal.opinfo.core.OpInfo`, which has no types."""

SEED = 20


# -- one call ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A function of tensors: an operator with all its other arguments."""

    function: Callable[..., Any]
    leaves: tuple[Any, ...]
    structure: TreeSpec
    process: Callable[[Any], Any] = field(default=lambda result: result)

    @staticmethod
    def of(
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        process: Callable[[Any], Any] = lambda result: result,
    ) -> Call:
        leaves, structure = tree_flatten((tuple(args), kwargs))
        return Call(function, tuple(leaves), structure, process)

    @cached_property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def with_tensors(self, tensors: Sequence[Tensor]) -> Call:
        """The same call on other tensors."""
        return Call(self.function, tuple(self.filled(tensors)), self.structure, self.process)

    def __call__(self, *tensors: Tensor) -> list[Any]:
        return self.of_leaves(*self.filled(tensors))

    def of_leaves(self, *leaves: Any) -> list[Any]:
        """The results for other arguments, not of tensors alone."""
        args, kwargs = tree_unflatten(list(leaves), self.structure)
        return tree_leaves(self.process(self.function(*args, **kwargs)))

    def filled(self, tensors: Sequence[Tensor]) -> list[Any]:
        rest = iter(tensors)
        return [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]


@dataclass(frozen=True)
class Case:
    """One call to compare; `gradients` asks for a backward pass, too. `sizes` are known, "dynamic" or "unbacked"."""

    name: str
    call: Call
    gradients: bool = False
    raises: type[Exception] | None = None
    sizes: str = ""


# -- memory layouts ----------------------------------------------------------------------------------

Layout: TypeAlias = Callable[[Tensor], Tensor | None]
"""The same elements (or some of them, or none) in other memory; None where the layout does not apply."""


def _transposed(x: Tensor) -> Tensor | None:
    if x.ndim < 2 or x.shape[0] == 1 or x.shape[-1] == 1:
        return None
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def _sliced(x: Tensor) -> Tensor | None:
    """Every second element along the last dim, from the second on."""
    if not x.ndim:
        return None
    base = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1] + 1)
    view = base[..., 1::2]
    view.copy_(x)
    return view


def _expanded(x: Tensor) -> Tensor | None:
    return x[:1].clone().expand_as(x) if x.ndim and x.shape[0] > 1 else None


def _channels_last(x: Tensor) -> Tensor | None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.ndim]) if x.ndim in formats else None


def _empty(x: Tensor) -> Tensor | None:
    return x[:0].clone() if x.ndim else None


LAYOUTS: dict[str, Layout] = {
    "transposed": _transposed,
    "sliced": _sliced,
    "expanded": _expanded,
    "channels last": _channels_last,
    "empty": _empty,
}


def laid_out(call: Call, layout: Layout) -> Call | None:
    """The call on tensors in that layout; None where it fits no tensor."""
    found = [None if tensor.layout != torch.strided else layout(tensor.detach()) for tensor in call.tensors]
    if not any(tensor is not None for tensor in found):
        return None
    return call.with_tensors(
        [
            old if new is None else new.requires_grad_(old.requires_grad)
            for old, new in zip(call.tensors, found, strict=True)
        ]
    )


EAGER_CRASHES = {("nn.functional.pdist", "empty")}
"""Operators and layouts that end eager's process."""


# -- samples -----------------------------------------------------------------------------------------


COMMON = ("float32", "bfloat16", "int64", "bool")
"""The types that models run in, in the order in which they are tried."""


@dataclass(frozen=True)
class Extent:
    """How much of the database is tried: so many samples of each operator and type (all if 0), and so many of them in
    every layout and form, in the common types and in others; or the samples in certain ways instead."""

    samples: int = 0
    varied: int = 1
    device: str = "cpu"
    other_samples: int = 0
    other_varied: int = 1
    ways: tuple[str, ...] = ()

    def of(self, dtype: torch.dtype) -> tuple[int, int]:
        """How many samples, and how many of them in every layout and form."""
        if name_of(dtype) in COMMON:
            return self.samples, self.varied
        return self.other_samples, self.other_varied

    def words(self) -> str:
        """As a phrase: which samples, where, and which of them in which forms."""
        common, other = _samples(self.samples, self.varied), _samples(self.other_samples, self.other_varied)
        types = f"{common} in {', '.join(COMMON)}, on {other} in other types" if common != other else common
        if self.ways:
            return f"{types}, on {self.device}, by the ways {', '.join(self.ways)}"
        return f"{types}, on {self.device}; in every form means also {', '.join(LAYOUTS)}, in place and into `out=`"


def _samples(count: int, varied: int) -> str:
    return f"{count or 'all'} samples of its own, {varied} of them in every form"


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def operators() -> list[OpInfo]:
    """The database in its order. Its module takes seconds to import."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def dtypes_of(op: OpInfo, device: str = "cpu") -> list[torch.dtype]:
    return sorted(op.supported_dtypes(device), key=str)


Samples: TypeAlias = Sequence[tuple[int, Any]]
"""Samples of an operator, each with its number."""


def samples_of(op: OpInfo, dtype: torch.dtype, extent: Extent) -> Samples:
    """At most as many as the extent allows, evenly from all that there are."""
    torch.manual_seed(SEED)
    made = op.sample_inputs(extent.device, dtype, requires_grad=_differentiable(op, dtype, extent.device))
    limit, _ = extent.of(dtype)
    samples = list(enumerate(islice(made, 1) if limit == 1 else made))
    step = max(1.0, len(samples) / limit) if limit else 1.0
    return [samples[int(number * step)] for number in range(int(len(samples) / step))]


def plain_case(op: OpInfo, dtype: torch.dtype, extent: Extent, number: int, sample: Any) -> Case:
    """The operator on a sample as it is."""
    call = Call.of(op, (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad)
    differentiable = _differentiable(op, dtype, extent.device)
    return Case(f"{number}", call, differentiable and any(tensor.requires_grad for tensor in call.tensors))


def cases(op: OpInfo, dtype: torch.dtype, extent: Extent, samples: Samples) -> Iterator[Case]:
    """The cases that those samples make. Those that eager refuses are among them, on the CPU: a GPU may be lost after
    them."""
    _, varied = extent.of(dtype)
    for number, sample in samples:
        plain = plain_case(op, dtype, extent, number, sample)
        yield plain
        if number < varied:
            yield from _variations(op, sample, plain)
    if extent.device == "cpu" and (not samples or samples[0][0] == 0):
        yield from _errors(op, dtype)


def _differentiable(op: OpInfo, dtype: torch.dtype, device: str) -> bool:
    return bool(op.supports_autograd and dtype in op.supported_backward_dtypes(device))


def _variations(op: OpInfo, sample: Any, plain: Case) -> Iterator[Case]:
    call, number, gradients = plain.call, plain.name, plain.gradients
    for name, layout in LAYOUTS.items():
        if (op.name, name) in EAGER_CRASHES:
            continue
        if (varied := laid_out(call, layout)) is not None:
            yield Case(f"{number} {name}", varied, gradients)
    args = (sample.input, *sample.args)
    if op.inplace_variant is not None and not sample.broadcasts_input:
        yield Case(f"{number} in place", Call.of(op.inplace_variant, args, sample.kwargs))
    if op.supports_out and "out" not in sample.kwargs:
        yield from _into_outputs(op, args, sample.kwargs, number)


def _into_outputs(op: OpInfo, args: Sequence[Any], kwargs: dict[str, Any], number: str) -> Iterator[Case]:
    """The form with `out=`, on results that are filled with another number before."""
    try:
        with torch.no_grad():
            result = op(*args, **kwargs)
    except Exception:
        return
    tensors = [result] if isinstance(result, Tensor) else list(result) if isinstance(result, tuple) else []
    if not tensors or not all(isinstance(value, Tensor) and value.layout == torch.strided for value in tensors):
        return
    outs = [torch.ones_like(value) for value in tensors]
    out = outs[0] if isinstance(result, Tensor) else tuple(outs)
    yield Case(f"{number} out=", Call.of(op, args, {**kwargs, "out": out}))


def _errors(op: OpInfo, dtype: torch.dtype) -> Iterator[Case]:
    """Inputs that eager refuses; they come in a type of their own choice, so only float32 asks for them."""
    if op.error_inputs_func is None or dtype != torch.float32:
        return
    torch.manual_seed(SEED)
    for number, error in enumerate(op.error_inputs("cpu")):
        sample = error.sample_input
        call = Call.of(op, (sample.input, *sample.args), sample.kwargs)
        yield Case(f"error {number}", call, raises=error.error_type)

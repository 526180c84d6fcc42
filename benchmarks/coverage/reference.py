"""A call in float64: its results, and what was added up to each of their elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from .cases import LAYOUTS, Call, Case, laid_out
from .running import Outcome, eagerly, run

SHAKEN = 2.0**-20
"""By which part of themselves numbers change to see what moves: far above float64's rounding, far below a result."""

SHAKES = 8
"""How often; the mean square of so many moves is seldom far below the true one."""

VARIANCE = 1 / 3
"""Of a number that is spread evenly over [-1, 1]."""

PRECISE = {
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


@dataclass(frozen=True)
class Reference:
    """The case in float64, computed when it is asked for."""

    case: Case

    @cached_property
    def call(self) -> Call:
        """The call with its tensors, and the types that it names, made precise."""
        return replace(self.case.call, leaves=tuple(map(_precise, self.case.call.leaves)))

    @cached_property
    def outcome(self) -> Outcome:
        with _double_by_default():
            return run(eagerly, self.call, gradients=self.case.gradients)

    @cached_property
    def finer(self) -> bool:
        """Whether a tensor that the call is given is more precise here; it may compute in float64 anyway."""
        return any(one is not other for one, other in zip(self.call.leaves, self.case.call.leaves, strict=True))

    def value(self, name: str, number: int) -> Tensor | None:
        """A result, input or gradient in float64."""
        return _tensor(self.outcome, name, number)

    def elsewhere(self, name: str, number: int) -> Tensor | None:
        """What eager gives in the case's own types where it cannot use vectors; some of its functions differ there."""
        return _tensor(self._apart, name, number)

    @cached_property
    def _apart(self) -> Outcome:
        call = laid_out(self.case.call, LAYOUTS["sliced"])
        return Outcome() if call is None else run(eagerly, call, gradients=self.case.gradients)

    def added(self, name: str, number: int) -> Tensor | None:
        """For each element of it, the root of the sum of squares of what was added up to it, infinite where unknown.

        Every input, and every number that one of eager's operators hands to the next, changes by a random part of
        about 1e-6; operators that add up what they make themselves are taken apart for that. A sum of terms then
        moves by that part of the root of the sum of their squares; so it does by eps of a type when each number is
        rounded to it. (Monte Carlo arithmetic, after Parker.)
        """
        value, others = self.value(name, number), [_tensor(outcome, name, number) for outcome in self._shaken]
        if value is None or any(other is None or other.shape != value.shape for other in others):
            return None
        moves = torch.stack([numbers(other) - numbers(value) for other in others if other is not None])
        return (moves.square().mean(0) / VARIANCE).sqrt().div(SHAKEN).nan_to_num(nan=torch.inf)

    @cached_property
    def _shaken(self) -> Sequence[Outcome]:
        return [self._shake(_Shaking(seed)) for seed in range(SHAKES)]

    def _shake(self, shaking: _Shaking) -> Outcome:
        tensors = [shaking.shaken(x.detach()).requires_grad_(x.requires_grad) for x in self.call.tensors]
        with _double_by_default(), shaking:
            return run(eagerly, self.call.with_tensors(tensors), gradients=self.case.gradients)


def _into(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The form with `out=` of a function."""
    return lambda *args, out, **kwargs: out.copy_(function(*args, **kwargs))


_aten = torch.ops.aten
_SUMS = (_aten._log_softmax, _aten._log_softmax_backward_data, _aten._softmax, _aten._softmax_backward_data)
STEPS: dict[Any, Callable[..., Any]] = {
    **{target: decomposition_table[target] for packet in _SUMS for target in (packet.default, packet.out)},
    _aten.log_softmax.int_out: _into(_aten.log_softmax.int.decompose),
    _aten.softmax.int_out: _into(_aten.softmax.int.decompose),
}
"""Operators that are taken apart: near a probability of 1 they add small numbers to 1, or subtract equal numbers, so
that what they give is far smaller than the unit in the last place of what they added up."""


class _Shaking(TorchDispatchMode):
    """Changes every result of an operator, but for those that share memory with its inputs, by random parts."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in STEPS:
            with self:
                return STEPS[func](*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if any(value.alias_info is not None for value in func._schema.returns):
            return result
        return tree_map_only(Tensor, self.shaken, result)

    def shaken(self, x: Tensor) -> Tensor:
        if x.layout != torch.strided or not (x.is_floating_point() or x.is_complex()) or x._is_zerotensor():
            return x  # a tensor of zeros may have no memory
        parts = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        noise = torch.empty(parts.shape, dtype=torch.float64).uniform_(-SHAKEN, SHAKEN, generator=self.generator)
        parts = parts * (1 + noise.to(x.device))
        return torch.view_as_complex(parts) if x.is_complex() else parts


def numbers(tensor: Tensor) -> Tensor:
    """The elements as plain numbers, floats in float64; of a complex one its two parts."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        return tensor.dequantize().double()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.double() if tensor.is_floating_point() else tensor


def _tensor(outcome: Outcome, name: str, number: int) -> Tensor | None:
    values: Sequence[Any] = getattr(outcome, name)
    value = values[number] if number < len(values) else None
    return value if isinstance(value, Tensor) else None


def _precise(leaf: Any) -> Any:
    """What is given for that argument; the same object if nothing is more precise."""
    if isinstance(leaf, torch.dtype):
        return PRECISE.get(leaf, leaf)
    if not isinstance(leaf, Tensor) or leaf.dtype not in PRECISE or leaf.layout != torch.strided:
        return leaf
    return leaf.detach().to(PRECISE[leaf.dtype]).requires_grad_(leaf.requires_grad)


@contextmanager
def _double_by_default() -> Iterator[None]:
    """Operators on integers, and those that make tensors, give float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)

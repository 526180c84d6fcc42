"""Runs one call: eagerly, through `torch.compile`, or by AOTAutograd without Dynamo, which is several times faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...frontend.autograd import stepwell_backend
from ...ir import host
from ...ir.expr import ZERO
from ...runtime.compiler import GraphCompiler
from ...runtime.config import config
from ...runtime.observers import CompiledGraph
from .cases import Call

Compiled: TypeAlias = Callable[..., Sequence[Any]]
Compiler: TypeAlias = Callable[[Call, Sequence[Tensor]], Compiled]
"""Makes of a call, and the tensors of its first use, what is run in its place."""


@dataclass(frozen=True)
class Outcome:
    """What a call gave: its results, its inputs after it, the gradients of these; or the error that it raised."""

    inputs: Sequence[Tensor] = ()
    results: Sequence[Any] = ()
    gradients: Sequence[Tensor | None] = ()
    error: Exception | None = None


# -- compilers ---------------------------------------------------------------------------------------


@dataclass
class Externs:
    """Collects the eager operators that compiled graphs call, each with the first case that calls it."""

    case: str = ""
    targets: dict[str, str] = field(default_factory=dict)

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None:
        """The outcome says enough."""

    def after(self, graph: str, stage: str, module: ModuleOp) -> None:
        """The outcome says enough."""

    def finished(self, graph: CompiledGraph) -> None:
        for op in graph.module.walk():
            if isinstance(op, host.ExternOp) and not _computes_nothing(op):
                self.targets.setdefault(op.target.data, self.case)


def _computes_nothing(op: host.ExternOp) -> bool:
    """Whether all that it gives, or what it works on, has no elements: it is eager's so that its layout is."""
    found = [_is_empty(value) for value in op.results]
    return (bool(found) and all(found)) or any(map(_is_empty, op.operands[:1]))


def _is_empty(value: SSAValue) -> bool:
    return isinstance(value.type, host.BufferType) and ZERO in value.type.sizes


class _Called(nn.Module):
    """The call as a module, which is what AOTAutograd takes."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call

    def forward(self, *tensors: Tensor) -> list[Any]:
        return self.call(*tensors)


def eagerly(call: Call, tensors: Sequence[Tensor]) -> Compiled:
    return call


def directly(externs: Externs, fallback_random: bool = False) -> Compiler:
    """By AOTAutograd and Stepwell, without Dynamo."""

    def compile(call: Call, tensors: Sequence[Tensor]) -> Compiled:
        with config.patch(strict=True):
            compiler = GraphCompiler(config.snapshot(), (externs,))
        module: Any = _Called(call)
        return stepwell_backend(module, tensors, compiler, fallback_random=fallback_random)

    return compile


def by_dynamo(backend: str, sizes: str = "", **options: Any) -> Compiler:
    """By `torch.compile`, as a user would; `sizes` are those of a case."""

    def compile(call: Call, tensors: Sequence[Tensor]) -> Compiled:
        torch._dynamo.reset()
        if sizes == "dynamic":
            whole = torch.compile(call.of_leaves, backend=backend, dynamic=True, options=options or None)
            return lambda *tensors: whole(*call.filled(tensors))
        compiled: Compiled = torch.compile(
            call.__call__, backend=backend, dynamic=None if sizes else False, options=options or None
        )
        return _on_unknown_sizes(compiled) if sizes else compiled

    return compile


def _on_unknown_sizes(compiled: Compiled) -> Compiled:
    """Compiled for tensors of whose sizes nothing is known, but that they are no 0 or 1 where they are none now."""

    def marked(*tensors: Tensor) -> Sequence[Any]:
        for tensor in (tensor for tensor in tensors if tensor.layout == torch.strided):
            for dim in (dim for dim, size in enumerate(tensor.shape) if size > 1):
                torch._dynamo.decorators.mark_unbacked(tensor, dim)
        return compiled(*tensors)

    return marked


# -- running -----------------------------------------------------------------------------------------


def copied(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies in the same layouts; what shared memory shares it again."""
    storages: dict[int, torch.UntypedStorage] = {}

    def copy(tensor: Tensor) -> Tensor:
        if tensor.layout != torch.strided or tensor.is_quantized or type(tensor) is not Tensor:
            return tensor.detach().clone().requires_grad_(tensor.requires_grad)
        storage = tensor.untyped_storage()
        known = storages.setdefault(storage._cdata, storage.clone())
        fresh = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
            known, tensor.storage_offset(), tensor.shape, tensor.stride()
        )
        for present, make in ((tensor.is_conj(), torch.conj), (tensor.is_neg(), torch._neg_view)):
            fresh = make(fresh) if present else fresh
        return fresh.requires_grad_(tensor.requires_grad)

    return [copy(tensor) for tensor in tensors]


def run(compiler: Compiler, call: Call, *, gradients: bool, seed: int = 0) -> Outcome:
    """The outcome on copies of the call's tensors. What is no error of the call (an interrupt, say) is raised."""
    tensors = copied(call.tensors)
    if not gradients:
        tensors = [tensor.requires_grad_(False) for tensor in tensors]
    try:
        with torch.set_grad_enabled(gradients):
            compiled = compiler(call, tensors)
            torch.manual_seed(seed)
            results = compiled(*tensors)
            return Outcome(tensors, results, _gradients(tensors, results) if gradients else ())
    except Exception as error:
        return Outcome(error=error)


def _gradients(tensors: Sequence[Tensor], results: Sequence[Any]) -> Sequence[Tensor | None]:
    """Gradients for random ones of the results, the same in each run."""
    roots = [value for value in results if isinstance(value, Tensor) and value.requires_grad]
    leaves = [tensor for tensor in tensors if tensor.requires_grad]
    if not roots or not leaves:
        return ()
    generator = torch.Generator().manual_seed(1)
    seeds = [_random_like(root, generator) for root in roots]
    return torch.autograd.grad(roots, leaves, seeds, allow_unused=True)


def _random_like(root: Tensor, generator: torch.Generator) -> Tensor:
    """Multiples of 1/64 up to 2, which are the same numbers in every type."""
    if root.layout != torch.strided:
        return torch.ones_like(root)
    real, imaginary = (torch.randint(-127, 128, root.shape, generator=generator) / 64 for _ in range(2))
    return (torch.complex(real, imaginary) if root.is_complex() else real).to(root)

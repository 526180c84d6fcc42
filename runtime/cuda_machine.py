"""One GPU as the target of a compile: its kernels from the tt dialect, its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from ..backends.native.object_cache import ObjectCache
from ..backends.triton.compiler import Job, compile_kernels
from ..backends.triton.cubin import Cubin
from ..backends.triton.cuda import CudaKernel, cuda_driver
from ..backends.triton.target import architecture, device_target
from ..frontend.import_fx import ImportedGraph
from ..ir import tt
from ..ir.shapes import SYMBOLS, MapAttr, SymbolAttr, symbol_ranges
from ..ir.target import Target
from ..ir.tt.ops import DIVISIBILITY, ERRORS, GRID, UNALIGNED
from .config import Settings
from .cuda_errors import ErrorSlot
from .cuda_graphs import GraphedPlan, launches, warn_refused, why_not
from .cuda_plan import CudaPlanWriter
from .cuda_stretch import CudaCode
from .observers import CompiledKernel
from .plan import Plan


@dataclass(frozen=True)
class CudaMachine:
    """A device that torch shows, by its number."""

    device: torch.device
    settings: Settings
    objects: ObjectCache | None

    @property
    def ordinal(self) -> int:
        return self.device.index or 0

    def target(self) -> Target:
        return device_target(self.ordinal)

    def kernels(self, module: ModuleOp) -> tuple[CompiledKernel, ...]:
        """The kernels of a module in the tt dialect, compiled in parallel and loaded."""
        known = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, tt.FuncOp)}
        spare = {op: known[name] for op in known.values() if (name := _unaligned_name(op)) is not None}
        functions = [op for op in known.values() if op not in spare.values()]
        arch = architecture(self.ordinal)
        jobs = [Job.of(function, arch) for function in functions]
        cubins = self._compile(jobs)
        relaxed = [
            Job.of(spare[function], arch) if function in spare else job.without_promises()
            for function, job in zip(functions, jobs, strict=True)
        ]
        return tuple(
            CompiledKernel(function, job.text, self._code(function, job, cubin, other))
            for function, job, cubin, other in zip(functions, jobs, cubins, relaxed, strict=True)
        )

    def _compile(self, jobs: Sequence[Job]) -> list[Cubin]:
        """The cubins; where one takes more shared memory than there is, of the job with fewer stages."""
        limit, found = self.target().l1_bytes, compile_kernels(jobs, objects=self.objects, dump=self.settings.dump)
        for position, job in enumerate(jobs):
            if found[position].shared > limit and job.num_stages > 1:
                (found[position],) = self._compile([replace(job, num_stages=job.num_stages - 1)])
        return found

    def _code(self, function: tt.FuncOp, job: Job, cubin: Cubin, relaxed: Job) -> CudaCode:
        """`relaxed` is what to compile for arguments that break the promises made of them."""
        kernel = CudaKernel(cuda_driver(), self.ordinal, cubin, lambda: self._compile([relaxed])[0])
        grid, symbols = function.attributes[GRID], function.attributes.get(SYMBOLS, ArrayAttr([]))
        assert isinstance(grid, MapAttr)
        assert isinstance(symbols, ArrayAttr)
        names = tuple(known.data.name for known in symbols if isinstance(known, SymbolAttr))
        table = _error_table(function)
        slot = ErrorSlot(job.name, table) if table else None
        return CudaCode(job.name, kernel, grid.results[0], names, _promised(function), slot)

    def plan(self, name: str, imported: ImportedGraph, inputs: int, kernels: Sequence[CompiledKernel]) -> Plan:
        codes = {kernel.name: kernel.code for kernel in kernels if isinstance(kernel.code, CudaCode)}
        plan = CudaPlanWriter(name, imported, inputs, codes, self.device).write()
        return self._graphed(plan, name, imported, codes) if self.settings.mode == "reduce-overhead" else plan

    def _graphed(self, plan: Plan, name: str, imported: ImportedGraph, codes: Mapping[str, CudaCode]) -> Plan:
        """The plan as one that replays CUDA graphs, where its ops allow that and gain from it."""
        if launches(imported) < 2:
            return plan
        if (reason := why_not(imported)) is not None:
            warn_refused(name, reason)
            return plan
        checks = [code.errors.check for code in codes.values() if code.errors is not None]
        fixed = not symbol_ranges(imported.function)
        return replace(plan, function=GraphedPlan(plan.function, name, self.device, checks, fixed=fixed))


def _unaligned_name(function: tt.FuncOp) -> str | None:
    """The function for unaligned addresses, if that is one of its own."""
    named = function.attributes.get(UNALIGNED)
    return named.data if isinstance(named, StringAttr) else None


def _promised(function: tt.FuncOp) -> tuple[int, ...]:
    """The positions of the arguments with a promise of divisibility."""
    given = () if function.arg_attrs is None else function.arg_attrs
    return tuple(position for position, known in enumerate(given) if DIVISIBILITY in known.data)


def _error_table(function: tt.FuncOp) -> tuple[tuple[str, str], ...]:
    """What the codes that a kernel records stand for: exceptions and messages."""
    declared = function.attributes.get(ERRORS)
    if not isinstance(declared, ArrayAttr):
        return ()
    texts = [known.data for known in declared if isinstance(known, StringAttr)]
    return tuple(zip(texts[::2], texts[1::2], strict=True))

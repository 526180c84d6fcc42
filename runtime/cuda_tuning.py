"""`mode="max-autotune"` on a GPU: times each product of matrices under several schedules, and by the library.

The winner is remembered on disk, for this device and this text of the kernel. Sizes must be known: products of others
keep the choice of the cost model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from statistics import median

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute

from ..backends.triton.compiler import triton_version
from ..frontend.import_fx import FunctionResult, ImportedGraph, TensorInput
from ..ir import loop
from ..ir.dtypes import dtype_name, element_of
from ..ir.product_schedule import LIBRARY, PRODUCT, ProductAttr
from ..ir.shapes import layout_of
from ..ir.target import TARGET, TargetAttr
from ..lowering.analysis.contractions import Contraction, contraction_of
from ..lowering.analysis.kernels import functions_with_kernels
from ..lowering.pipelines import GPU
from ..lowering.pipelines import run as run_pipeline
from ..lowering.schedule.model import KernelModel, captured
from ..lowering.schedule.product_costs import FEW_ROWS, candidates
from ..lowering.schedule.product_plan import epilogue_of
from .cuda_machine import CudaMachine
from .plan import BoxedCall

TUNED_AFTER = "fused"
"""The stage after which it is settled what joins a product."""

CALLS, REPEATS = 10, 5
"""Calls that are recorded and replayed at once, and how often they are; the median counts."""

_STAGES = GPU[[stage for stage, _ in GPU].index(TUNED_AFTER) + 1 :]


def tune_products(module: ModuleOp, machine: CudaMachine, context: Callable[[], Context]) -> None:
    """Gives the products of a module, whose kernels are fused, the fastest way of computing them.

    `context` makes one for the passes of a compile.
    """
    for _, kernels in functions_with_kernels(module):
        for kernel in kernels:
            contraction = contraction_of(kernel)
            if contraction is not None and is_tunable(kernel, contraction):
                kernel.attributes[PRODUCT] = Tuner(kernel, contraction, machine, context).choice()


def is_tunable(kernel: loop.KernelOp, contraction: Contraction) -> bool:
    """Whether all sizes are known, there are rows enough for a choice, and the factors are narrow."""
    layouts = [layout_of(value.type) for value in (*captured(kernel), *kernel.results)]
    numbers = [size for layout in layouts for size in (*layout.sizes, *layout.strides)]
    rows = contraction.nest.sizes[list(contraction.nest.indices).index(contraction.rows[-1])]
    known = all(size.is_constant for size in numbers) and not contraction.is_wide
    return known and not kernel.operands and rows.constant > FEW_ROWS


@dataclass(frozen=True)
class Tuner:
    """Finds the best choice for one kernel."""

    kernel: loop.KernelOp
    contraction: Contraction
    machine: CudaMachine
    context: Callable[[], Context]

    def choice(self) -> Attribute:
        """The schedule, or the mark of the library."""
        offered = self.offered()
        objects, key = self.machine.objects, self.key(offered)
        stored = None if objects is None else objects.get(key)
        if stored is None:
            stored = self.best(offered).encode()
            if objects is not None:
                objects.put(key, stored)
        return offered[stored.decode()]

    def offered(self) -> dict[str, Attribute]:
        """All choices by their text."""
        epilogue = epilogue_of(KernelModel(self.kernel), self.contraction)
        schedules = {str(one): ProductAttr(one) for one in candidates(epilogue, self.machine.target())}
        return {**schedules, LIBRARY: StringAttr(LIBRARY)}

    def key(self, offered: dict[str, Attribute]) -> str:
        name = torch.cuda.get_device_name(self.machine.device)
        text = str(self.alone(None))  # without source lines
        parts = (name, torch.__version__, triton_version(), text, *offered)
        return sha256("\0".join(parts).encode()).hexdigest()

    def alone(self, choice: Attribute | None) -> ModuleOp:
        """A module with a function that runs the kernel alone, under a choice."""
        tensors = captured(self.kernel)
        function = FuncOp("main", FunctionType.from_lists([one.type for one in tensors], self.kernel.result_types))
        block = function.body.block
        kernel = self.kernel.clone(dict(zip(tensors, block.args, strict=True)))
        if choice is not None:
            kernel.attributes[PRODUCT] = choice
        block.add_ops([kernel, ReturnOp(*kernel.results)])
        module = ModuleOp([function])
        module.attributes[TARGET] = TargetAttr(self.machine.target())
        return module

    # -- measuring -------------------------------------------------------------------------------

    def best(self, offered: dict[str, Attribute]) -> str:
        """The text of the choice that takes the least time; compiles them all at once."""
        with unset_fake_temporarily(), torch.no_grad(), torch.cuda.device(self.machine.device):
            with ThreadPoolExecutor(len(offered), "stepwell-tuning") as pool:
                calls = dict(zip(offered, pool.map(self.call, offered.values()), strict=True))
            inputs = [self.tensor(value.type) for value in captured(self.kernel)]
            times = {name: seconds(lambda call=call: call([*inputs])) for name, call in calls.items()}  # type: ignore[misc]
        return min(times, key=lambda name: times[name])

    def call(self, choice: Attribute) -> BoxedCall:
        """The kernel under a choice, as a compiled graph."""
        module = self.alone(choice)
        run_pipeline(self.context(), module, _STAGES)
        count, results = len(captured(self.kernel)), len(self.kernel.results)
        imported = ImportedGraph(
            module,
            tuple(TensorInput(position) for position in range(count)),
            tuple(FunctionResult(position) for position in range(results)),
            device=self.machine.device,
        )
        machine = replace(self.machine, settings=replace(self.machine.settings, mode="default"))
        return machine.plan("tuned", imported, count, machine.kernels(module)).function

    def tensor(self, type_: Attribute) -> torch.Tensor:
        """An input of that type: random numbers, or zeros where a number could be an index."""
        layout = layout_of(type_)
        sizes, strides = ([one.constant for one in exprs] for exprs in (layout.sizes, layout.strides))
        dtype = getattr(torch, dtype_name(element_of(type_)))
        made = torch.empty_strided(sizes, strides, dtype=dtype, device=self.machine.device)
        return made.normal_() if dtype.is_floating_point else made.zero_()


def seconds(call: Callable[[], Sequence[object]]) -> float:
    """The time of a call on the device, without what the host takes to queue it."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    samples = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(float(start.elapsed_time(end)) / 1e3 / CALLS)
    return median(samples)


__all__ = ["TUNED_AFTER", "tune_products"]

"""The Python function of a graph on a GPU: the same as on the CPU but for memory, streams and the current device."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch._C._dynamo import guards
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..frontend.import_fx import ImportedGraph
from ..ir import host
from ..ir.expr import ZERO
from .cuda_errors import ErrorSlot, launches_block
from .cuda_stretch import CudaCode, CudaStretchCall
from .plan import PlanWriter
from .python_text import expr_text

empty_strided_cuda = guards._empty_strided_cuda  # type: ignore[attr-defined]
"""On the current device, through torch's allocator: 1.2 µs, a third of what `torch.empty` takes."""


class CudaPlanWriter(PlanWriter):
    """Writes a function whose kernels run on `device`, which need not be the current one."""

    def __init__(
        self, name: str, imported: ImportedGraph, input_count: int, codes: Mapping[str, CudaCode], device: torch.device
    ) -> None:
        super().__init__(name, imported, input_count, {}, reserved=("stream", "scratch", "scratch_memory", "previous"))
        self.kernels = codes
        self.device = device
        self.error_slots: dict[ErrorSlot, None] = {}

    def finished_lines(self) -> list[str]:
        """The lines with the stream before them, within a guard of the device if there are several."""
        lines = super().finished_lines()
        if self.native_calls:
            stream = self.bind("current_stream", torch._C._cuda_getCurrentRawStream)
            lines.insert(0, f"stream = {stream}({self.device.index})")
            lines[:0] = [f"{self.bind('check_errors', slot.check, slot)}()" for slot in self.error_slots]
        if torch.cuda.device_count() < 2:
            return lines
        exchange = self.bind("exchange_device", torch.cuda._exchange_device)
        return [
            f"previous = {exchange}({self.device.index})",
            "try:",
            *(f"    {line}" for line in lines),
            "finally:",
            f"    {exchange}(previous)",
        ]

    # -- memory -----------------------------------------------------------------------------------

    def number_device(self) -> str:
        return f", device={self.bind('device', self.device)}"

    def maker(self, type_: host.BufferType) -> str:
        return self.bind("empty_strided_cuda", empty_strided_cuda)

    def workspace(self, op: host.WorkspaceOp) -> None:
        self.emit(f"{self.define(op.workspace, 'workspace')} = {self._bytes(expr_text(op.byte_size))}")

    def _bytes(self, size: str) -> str:
        make = self.bind("empty_strided_cuda", empty_strided_cuda)
        return f"{make}(({size},), (1,), {self.bind('uint8', torch.uint8)})"

    def constant_value(self, op: host.ConstantOp) -> Tensor:
        value = super().constant_value(op)
        with unset_fake_temporarily():
            return value.to(self.device)

    # -- calls ------------------------------------------------------------------------------------

    def stretch(self, op: host.StretchOp) -> None:
        call = CudaStretchCall.of(op, self.kernels, self.addresses.keys())
        run, profiled, go_on = self.bind_call(call.native.call, call.run_profiled, call.go_on)
        arguments = "".join(f", {text}" for text in call.argument_texts(self.values | self.addresses))
        if call.scratch_bytes != ZERO:
            self.emit(f"scratch_memory = {self._bytes(expr_text(call.scratch_bytes))}")
            self.emit("scratch = scratch_memory.data_ptr()")
        self.emit(f"error = ({profiled} if profiling else {run})(0, {call.count}{arguments})")
        self.emit(f"if error is not None: {go_on}(error, {call.count}{arguments})")
        for slot in call.errors:
            self.error_slots[slot] = None
            if launches_block():
                self.emit(f"{self.bind('wait_for_errors', slot.check_after, ('wait', slot))}({self.device.index})")

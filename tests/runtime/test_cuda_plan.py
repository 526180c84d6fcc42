"""Plans for a GPU, run without one: a driver that records stands for CUDA, memory of the host for the device's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from stepwell.backends.triton.cubin import Cubin
from stepwell.backends.triton.cuda import CudaDriver, CudaKernel
from stepwell.frontend.import_fx import ArgumentSource, ImportedGraph, TensorInput
from stepwell.frontend.symbols import SizeSource
from stepwell.ir.errors import BackendError
from stepwell.ir.expr import ceildiv, const, symbol
from stepwell.ir.host import BufferType
from stepwell.ir.tt.ops import ERROR_SHIFT
from stepwell.lowering.pipelines import HOST, run
from stepwell.runtime import cuda_errors, cuda_plan
from stepwell.runtime.compiler import make_context
from stepwell.runtime.cuda_errors import recorded_error
from stepwell.runtime.cuda_plan import CudaPlanWriter
from stepwell.runtime.cuda_stretch import CudaCode
from stepwell.runtime.plan import Plan
from stepwell.tests.native.stub_cuda import FIRST_CONTEXT, FIRST_FUNCTION, StubCuda
from stepwell.tests.runtime.plans import KERNELS

STREAM = 0x57
ONE = """
func.func @main(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0), (1)>>)
    -> tensor<?xf32, #stepwell.layout<(s0), (1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>]} {
  %y = host.launch @add_one ins(%x : tensor<?xf32, #stepwell.layout<(s0), (1)>>)
    outs(tensor<?xf32, #stepwell.layout<(s0), (1)>>) symbols (s0)
  func.return %y : tensor<?xf32, #stepwell.layout<(s0), (1)>>
}
"""


class Slot:
    """An error slot in plain memory."""

    def __init__(self, word: int = 0) -> None:
        self.word = ctypes.c_int64(word)
        self.address = ctypes.addressof(self.word)

    def check(self) -> None:
        if self.word.value:
            raise recorded_error(self.word.value, "add_one", [("IndexError", "index {} is out of range")])

    def check_after(self, ordinal: int) -> None:
        self.check()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> StubCuda:
    """A driver without a GPU, and a torch that believes in one device."""
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: STREAM + device, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(cuda_plan, "empty_strided_cuda", torch._C._dynamo.guards._empty_strided_cpu)  # type: ignore[attr-defined]
    return StubCuda()


def plan_of(
    cuda: StubCuda,
    text: str = ONE,
    *,
    scratch_bytes: int = 0,
    errors: Any = None,
    relaxed: Callable[[], Cubin] | None = None,
    device: int = 0,
) -> Plan:
    """The plan of a function that launches `add_one`, of which no code is ever run."""
    module = Parser(make_context(), text + KERNELS).parse_module()
    run(make_context(), module, (HOST,))
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    cubin = Cubin(b"", "add_one", 3, 2, 128, 0, scratch_bytes)
    driver = CudaDriver(cuda)
    driver.launch_addresses = lambda: cuda.addresses  # type: ignore[method-assign]
    kernel = CudaKernel(driver, device, cubin, relaxed or (lambda: cubin))
    cuda.parameter_counts |= dict.fromkeys(range(FIRST_FUNCTION, FIRST_FUNCTION + 4), 5 + (errors is not None))
    code = CudaCode("add_one", kernel, ceildiv(symbol("s0"), const(8)), ("s0",), (0, 1), errors)
    buffers = [value for value in function.body.block.args if isinstance(value.type, BufferType)]
    sources: list[ArgumentSource] = [SizeSource(0, 0), *(TensorInput(at) for at in range(len(buffers)))]
    imported = ImportedGraph(module, tuple(sources), ())
    return CudaPlanWriter("inference", imported, len(buffers), {"add_one": code}, torch.device("cuda", device)).write()


def aligned(size: int, offset: int = 0) -> Tensor:
    """A tensor of which the address is `offset` elements above a multiple of 64 bytes."""
    whole = torch.zeros(size + 32)
    start = -whole.data_ptr() // 4 % 16 + offset
    return whole[start : start + size]


def test_a_call_launches_on_the_current_stream(cuda: StubCuda) -> None:
    plan, x = plan_of(cuda), aligned(20)
    address = x.data_ptr()
    (y,) = plan.function([x])
    (launched,) = cuda.launched
    assert launched.parameters == [address, y.data_ptr(), 20, 0, 0]
    assert (launched.function, launched.grid, launched.block) == (FIRST_FUNCTION, (3, 1, 1), (128, 1, 1))
    assert (launched.stream, launched.context) == (STREAM, FIRST_CONTEXT)
    assert y.shape == (20,)


def test_an_unaligned_input_takes_the_kernel_without_promises(cuda: StubCuda) -> None:
    asked: list[int] = []

    def relaxed() -> Cubin:
        asked.append(1)
        return Cubin(b"", "add_one", 3, 2, 64, 0)

    function = plan_of(cuda, relaxed=relaxed).function
    for offset in (0, 1, 2, 4):
        function([aligned(20, offset)])
    assert [one.block[0] for one in cuda.launched] == [128, 64, 64, 128]
    assert asked == [1]


def test_an_empty_grid_launches_nothing(cuda: StubCuda) -> None:
    (y,) = plan_of(cuda).function([torch.zeros(0)])
    assert y.shape == (0,)
    assert not cuda.launched


def test_scratch_memory_is_as_large_as_the_grid_asks(cuda: StubCuda) -> None:
    plan = plan_of(cuda, scratch_bytes=384)
    plan.function([aligned(20)])
    assert "scratch_memory = empty_strided_cuda(((-(-s0 // 8)) * 384,), (1,), uint8)" in plan.source
    assert cuda.launched[0].parameters[3] != 0
    assert cuda.launched[0].parameters[4] == 0


def test_a_refused_launch_names_the_kernel(cuda: StubCuda) -> None:
    function = plan_of(cuda).function
    cuda.failures["cuLaunchKernel"] = 701
    with pytest.raises(BackendError, match="launch of add_one: expected success, got CUDA error 701"):
        function([aligned(20)])


def test_a_bad_index_is_raised_by_the_next_call(cuda: StubCuda) -> None:
    slot = Slot()
    function = plan_of(cuda, errors=slot).function
    function([aligned(20)])
    assert cuda.launched[0].parameters[3] == slot.address
    slot.word.value = (1 << ERROR_SHIFT) | 77
    with pytest.raises(IndexError, match="index 77 is out of range"):
        function([aligned(20)])
    assert len(cuda.launched) == 1


def test_a_bad_index_is_raised_at_once_where_launches_block(cuda: StubCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_plan, "launches_block", lambda: True)
    slot = Slot()
    function = plan_of(cuda, errors=slot).function
    function([aligned(20)])
    slot.word.value = (1 << ERROR_SHIFT) | ((1 << ERROR_SHIFT) - 3)
    with pytest.raises(IndexError, match="index -3 is out of range"):
        function([aligned(20)])


@pytest.mark.parametrize(("value", "blocks"), [("1", True), ("0", False), ("", False)])
def test_whether_launches_block_is_cudas_own_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, blocks: bool
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
    assert cuda_errors.launches_block.__wrapped__() is blocks


def test_another_device_is_current_only_within_the_call(cuda: StubCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged: list[int] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    def exchange(device: int) -> int:
        exchanged.append(device)
        return 1 - device

    monkeypatch.setattr(torch.cuda, "_exchange_device", exchange)
    function = plan_of(cuda, device=1).function
    function([aligned(20)])
    assert exchanged == [1, 0]
    assert (cuda.launched[0].stream, cuda.launched[0].context) == (STREAM + 1, FIRST_CONTEXT + 1)
    cuda.failures["cuLaunchKernel"] = 701
    with pytest.raises(BackendError):
        function([aligned(20)])
    assert exchanged == [1, 0, 1, 0]


def test_the_profiler_sees_one_range_per_kernel(cuda: StubCuda) -> None:
    function = plan_of(cuda).function
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        function([aligned(20, 1)])
    assert [event.name for event in profile.events() if event.name.startswith("stepwell::")] == ["stepwell::add_one"]
    assert [one.function for one in cuda.launched] == [FIRST_FUNCTION + 1]

"""Modules, contexts and errors of the CUDA driver, against one that only records."""

from __future__ import annotations

import ctypes
import gc

import pytest

from stepwell.backends.triton.cubin import Cubin, parameter_count
from stepwell.backends.triton.cuda import CudaDriver, CudaKernel
from stepwell.ir.errors import BackendError
from stepwell.tests.native.stub_cuda import FIRST_CONTEXT, FIRST_FUNCTION, FIRST_MODULE, StubCuda

CUBIN = Cubin(b"code", "k", 3, 2, 128, 0)
RELAXED = Cubin(b"other", "k", 3, 2, 64, 60 << 10)


def words(kernel: CudaKernel) -> list[int]:
    return list((ctypes.c_int64 * 6).from_address(kernel.cell))


def test_a_kernel_is_loaded_on_its_device_and_relaxed_once() -> None:
    cuda, asked = StubCuda(), []

    def relaxed() -> Cubin:
        asked.append(1)
        return RELAXED

    kernel = CudaKernel(CudaDriver(cuda), 1, CUBIN, relaxed)
    assert (cuda.loaded, asked) == ([b"code"], [])
    assert words(kernel) == [FIRST_FUNCTION, 128, 0, 0, 0, 0]
    assert kernel.driver.context(1) == FIRST_CONTEXT + 1
    kernel.relax()
    kernel.relax()
    assert asked == [1]
    assert words(kernel) == [FIRST_FUNCTION, 128, 0, FIRST_FUNCTION + 1, 64, 60 << 10]
    assert cuda.limits == {FIRST_FUNCTION + 1: 60 << 10}
    assert not cuda.contexts


def test_modules_go_with_the_kernel() -> None:
    cuda = StubCuda()
    kernel = CudaKernel(CudaDriver(cuda), 0, CUBIN, lambda: RELAXED)
    del kernel
    gc.collect()
    assert cuda.unloaded == [FIRST_MODULE]


def test_a_relaxed_kernel_may_not_need_more_scratch_memory() -> None:
    kernel = CudaKernel(CudaDriver(StubCuda()), 0, CUBIN, lambda: Cubin(b"", "k", 3, 2, 128, 0, scratch_bytes=128))
    with pytest.raises(BackendError, match="expected at most 0 bytes of scratch memory, as with them, got 128 bytes"):
        kernel.relax()


@pytest.mark.parametrize("name", ["cuDevicePrimaryCtxRetain", "cuModuleLoadData"])
def test_a_failure_names_the_call_and_the_error(name: str) -> None:
    cuda = StubCuda(failures={name: 2})
    with pytest.raises(BackendError, match=f"{name}: expected success, got CUDA error 2 CUDA_ERROR_2"):
        CudaKernel(CudaDriver(cuda), 0, CUBIN, lambda: RELAXED)
    assert not cuda.contexts


def test_a_driver_without_devices_is_refused() -> None:
    with pytest.raises(BackendError, match="cuInit: expected success, got CUDA error 100"):
        CudaDriver(StubCuda(failures={"cuInit": 100}))


def test_a_cubin_survives_the_disk() -> None:
    assert Cubin.from_bytes(RELAXED.to_bytes()) == RELAXED
    with pytest.raises(BackendError, match="expected 5 bytes of code, got 4"):
        Cubin.from_bytes(RELAXED.to_bytes()[:-1])


def test_parameters_are_counted_in_the_entry_of_that_name() -> None:
    ptx = ".visible .entry k1(.param .u64 k1_0) {}\n.visible .entry k(\n .param .u64 .ptr k_0,\n .param .u32 k_1\n)"
    assert (parameter_count(ptx, "k1"), parameter_count(ptx, "k")) == (1, 2)
    with pytest.raises(BackendError, match="expected an entry of that name, got k1, k"):
        parameter_count(ptx, "other")

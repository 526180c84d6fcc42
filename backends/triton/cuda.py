"""The CUDA driver through ctypes: contexts, modules, functions, and what a device is.

The library is looked up when a GPU is first used, never before: nothing here needs one to be imported.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from typing import Any

from ...ir.errors import BackendError
from .cubin import Cubin

LIBRARY = "libcuda.so.1"

LAUNCH_SYMBOLS = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel")
"""What native launch code calls."""

_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_UNASKED_SHARED_BYTES = 48 << 10
"""More shared memory than this a kernel gets only after its limit is raised."""

ATTRIBUTES = {
    "multiprocessors": 16,
    "l2_bytes": 38,
    "major": 75,
    "minor": 76,
    "shared_bytes": 97,
}
"""Name → CUdevice_attribute; shared memory is what a block may ask for."""


class CudaDriver:
    """The driver library, every call checked; raises BackendError with CUDA's own name for what went wrong."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._contexts: dict[int, int] = {}
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise self.error(name, status)

    def error(self, subject: str, status: int) -> BackendError:
        """What a status other than 0 means."""
        name, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(c_int(status), byref(name))
        self._library.cuGetErrorString(c_int(status), byref(text))
        said = " ".join((value.value or b"").decode() for value in (name, text)).strip()
        return BackendError(subject, expected="success", got=f"CUDA error {status} {said}".strip())

    def launch_addresses(self) -> dict[str, int]:
        """Addresses by name of LAUNCH_SYMBOLS."""
        return {name: ctypes.cast(getattr(self._library, name), c_void_p).value or 0 for name in LAUNCH_SYMBOLS}

    def attribute(self, ordinal: int, name: str) -> int:
        """One of ATTRIBUTES of a device."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(ATTRIBUTES[name]), c_int(ordinal))
        return value.value

    def context(self, ordinal: int) -> int:
        """The handle of a device's primary context, which torch uses too; held from the first call on."""
        if ordinal not in self._contexts:
            handle = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(handle), c_int(ordinal))
            self._contexts[ordinal] = handle.value or 0
        return self._contexts[ordinal]

    def within(self, ordinal: int, work: Callable[[], None]) -> None:
        """Does the work with that device's context current on this thread."""
        self.call("cuCtxPushCurrent_v2", c_void_p(self.context(ordinal)))
        try:
            work()
        finally:
            self.call("cuCtxPopCurrent_v2", byref(c_void_p()))


@cache
def cuda_driver() -> CudaDriver:
    """The one of this process; raises BackendError where there is none."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise BackendError(
            "CUDA", expected=f"the driver library {LIBRARY}", got=str(error), hint="is a GPU driver installed?"
        ) from None
    return CudaDriver(library)


class CudaFunction:
    """A cubin loaded on one device: the module goes with the object."""

    def __init__(self, driver: CudaDriver, ordinal: int, cubin: Cubin) -> None:
        self.cubin = cubin
        module, function = c_void_p(), c_void_p()

        def load() -> None:
            driver.call("cuModuleLoadData", byref(module), cubin.code)
            driver.call("cuModuleGetFunction", byref(function), module, cubin.name.encode())
            if cubin.shared > _UNASKED_SHARED_BYTES:
                driver.call("cuFuncSetAttribute", function, c_int(_SHARED_BYTES), c_int(cubin.shared))

        driver.within(ordinal, load)
        self.handle = function.value or 0
        weakref.finalize(self, _unload, driver, ordinal, module).atexit = False

    @property
    def words(self) -> tuple[int, int, int]:
        """The function and the shape of its blocks, as the launch code reads them."""
        return self.handle, self.cubin.threads, self.cubin.shared


def _unload(driver: CudaDriver, ordinal: int, module: c_void_p) -> None:
    driver.within(ordinal, lambda: driver.call("cuModuleUnload", module))


class CudaKernel:
    """A kernel on one device, and the same kernel without promises about its arguments, made when first needed.

    `cell` holds the words of both in memory that launch code reads, those of the second 0 until `relax` is called.
    """

    def __init__(self, driver: CudaDriver, ordinal: int, cubin: Cubin, relaxed: Callable[[], Cubin]) -> None:
        self.driver, self.ordinal, self.cubin = driver, ordinal, cubin
        self._relaxed = relaxed
        self._functions = [CudaFunction(driver, ordinal, cubin)]
        self._cell = (c_int64 * 6)(*self._functions[0].words)

    @property
    def cell(self) -> int:
        return ctypes.addressof(self._cell)

    def relax(self) -> None:
        """Compiles and loads the kernel without promises, once."""
        if self._cell[3]:
            return
        cubin = self._relaxed()
        if cubin.scratches != self.cubin.scratches or cubin.scratch_bytes > self.cubin.scratch_bytes:
            raise BackendError(
                f"kernel @{cubin.name} without promises",
                expected=f"at most {self.cubin.scratch_bytes} bytes of scratch memory, as with them",
                got=f"{cubin.scratch_bytes} bytes",
            )
        function = CudaFunction(self.driver, self.ordinal, cubin)
        self._functions.append(function)
        self._cell[4], self._cell[5], self._cell[3] = (*function.words[1:], function.handle)

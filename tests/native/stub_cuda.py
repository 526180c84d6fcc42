"""A CUDA driver without a GPU: records what it is asked for, fails where it is told to."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_int, c_uint, c_void_p
from dataclasses import dataclass, field
from typing import Any

FIRST_CONTEXT = 0xC0
FIRST_MODULE, FIRST_FUNCTION = 0xA00, 0xF00


@dataclass
class Launched:
    """One launch as CUDA sees it; the parameters are read as 64 bits each."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    parameters: list[int]
    context: int


@dataclass
class StubCuda:
    """Stands for the library: the functions that `backends` calls through ctypes, and those that native code calls.

    `parameter_counts` says how many parameters each function has, by its handle; `failures` gives a status to the
    functions that shall fail, by name.
    """

    parameter_counts: dict[int, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    launched: list[Launched] = field(default_factory=list)
    loaded: list[bytes] = field(default_factory=list)
    unloaded: list[int] = field(default_factory=list)
    limits: dict[int, int] = field(default_factory=dict)
    contexts: list[int] = field(default_factory=list)
    current: int = 0
    attributes: dict[int, int] = field(default_factory=lambda: {16: 132, 38: 50 << 20, 75: 9, 76: 0, 97: 232448})

    def __post_init__(self) -> None:
        self.cuLaunchKernel = CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p)(self._launch)
        self.cuCtxGetCurrent = CFUNCTYPE(c_int, c_void_p)(self._get_current)
        self.cuCtxSetCurrent = CFUNCTYPE(c_int, c_void_p)(self._set_current)

    @property
    def addresses(self) -> dict[str, int]:
        names = ("cuLaunchKernel", "cuCtxGetCurrent", "cuCtxSetCurrent")
        return {name: ctypes.cast(getattr(self, name), c_void_p).value or 0 for name in names}

    # -- called by native code --------------------------------------------------------------------

    def _launch(self, function: int, *rest: int) -> int:
        grid, block, (shared, stream, parameters, _) = rest[:3], rest[3:6], rest[6:]
        count = self.parameter_counts[function]
        places = ctypes.cast(parameters, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))
        values = [places[position][0] for position in range(count)]
        self.launched.append(
            Launched(function, grid, block, shared, stream or 0, values, self.current)  # type: ignore[arg-type]
        )
        return self.failures.get("cuLaunchKernel", 0)

    def _get_current(self, place: int) -> int:
        ctypes.c_void_p.from_address(place).value = self.current
        return 0

    def _set_current(self, context: int) -> int:
        self.current = context
        return self.failures.get("cuCtxSetCurrent", 0)

    # -- called through ctypes --------------------------------------------------------------------

    def cuInit(self, flags: int) -> int:
        return self.failures.get("cuInit", 0)

    def cuDeviceGetAttribute(self, place: Any, attribute: Any, ordinal: Any) -> int:
        place._obj.value = self.attributes[attribute.value]
        return 0

    def cuDevicePrimaryCtxRetain(self, place: Any, ordinal: Any) -> int:
        place._obj.value = FIRST_CONTEXT + ordinal.value
        return self.failures.get("cuDevicePrimaryCtxRetain", 0)

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.contexts.append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, place: Any) -> int:
        self.contexts.pop()
        return 0

    def cuModuleLoadData(self, place: Any, code: bytes) -> int:
        assert self.contexts, "a module is loaded into the current context"
        place._obj.value = FIRST_MODULE + len(self.loaded)
        self.loaded.append(code)
        return self.failures.get("cuModuleLoadData", 0)

    def cuModuleGetFunction(self, place: Any, module: Any, name: bytes) -> int:
        place._obj.value = FIRST_FUNCTION + module.value - FIRST_MODULE
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: Any) -> int:
        assert attribute.value == 8
        self.limits[function.value] = value.value
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        self.unloaded.append(module.value)
        return 0

    def cuGetErrorName(self, status: Any, place: Any) -> int:
        place._obj.value = b"CUDA_ERROR_" + str(status.value).encode()
        return 0

    def cuGetErrorString(self, status: Any, place: Any) -> int:
        return self.cuGetErrorName(status, place)

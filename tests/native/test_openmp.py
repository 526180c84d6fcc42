"""The OpenMP runtime that kernels use is the one torch computes with."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
import torch

from stepwell.backends.native import openmp
from stepwell.ir.errors import BackendError


def _max_threads() -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(openmp.addresses()["omp_get_max_threads"])())


def test_it_counts_threads_as_torch_does() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert _max_threads() == 3
        torch.set_num_threads(1)
        assert _max_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_every_symbol_has_an_address() -> None:
    assert set(openmp.addresses()) == set(openmp.SYMBOLS)
    assert all(openmp.addresses().values())


def test_finding_it_does_not_import_torch() -> None:
    script = "import sys\nfrom stepwell.backends.native import openmp\nopenmp._mapped_libraries()\n"
    subprocess.run([sys.executable, "-c", script + "assert 'torch' not in sys.modules"], check=True)


def test_torch_is_asked_before_any_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = ["/lib/libc.so.6", "/usr/lib/libgomp.so.1", "/x/torch/lib/libtorch_cpu.so", "/x/torch/lib/libgomp-a1.so.1"]
    monkeypatch.setattr(openmp, "_mapped_libraries", lambda: mapped)
    candidates = list(openmp._candidates())
    assert candidates[:3] == ["/x/torch/lib/libtorch_cpu.so", "/usr/lib/libgomp.so.1", "/x/torch/lib/libgomp-a1.so.1"]
    assert "/lib/libc.so.6" not in candidates


def test_without_proc_the_folder_of_torch_is_searched() -> None:
    assert any(path.endswith(("libtorch_cpu.so", "libtorch_cpu.dylib")) for path in openmp._libraries_of_torch())


def test_without_any_runtime_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp, "_candidates", lambda: iter(["libnothing.so", "libm.so.6"]))
    openmp.addresses.cache_clear()
    try:
        with pytest.raises(BackendError, match=r"none of libnothing\.so, libm\.so\.6; import torch first"):
            openmp.addresses()
    finally:
        openmp.addresses.cache_clear()

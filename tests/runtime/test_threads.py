"""Native code uses as many threads as eager would, in every Python thread and in forked children."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest
import torch

from stepwell.backends.native import openmp
from stepwell.backends.native.jit import compile_module
from stepwell.backends.native.launcher import Launch, Stretch
from stepwell.runtime.threads import adopt_thread_count

SHARE = """
; x[0] = programs of the last call, x[1] += 1
define void @share(ptr %words, i64 %lo, i64 %hi) nounwind {
  %at = getelementptr i64, ptr %words, i64 1
  %address = load i64, ptr %at
  %x = inttoptr i64 %address to ptr
  %n = sub i64 %hi, %lo
  store atomic i64 %n, ptr %x monotonic, align 8
  %calls = getelementptr i64, ptr %x, i64 1
  %old = atomicrmw add ptr %calls, i64 1 monotonic
  ret void
}
"""


@pytest.mark.usefixtures("thread_count")
@pytest.mark.parametrize("count", [1, 3])
def test_a_new_python_thread_adopts_torchs_count(count: int) -> None:
    torch.set_num_threads(count)
    max_threads = ctypes.CFUNCTYPE(ctypes.c_int)(openmp.addresses()["omp_get_max_threads"])
    seen = []
    thread = threading.Thread(target=lambda: seen.extend([adopt_thread_count(), max_threads()]))
    thread.start()
    thread.join()
    assert seen == [count, count]


@pytest.mark.usefixtures("thread_count")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_with_one_thread_runs_kernels() -> None:
    """Even after the parent's OpenMP has run with several, whose threads the child has not got."""
    module = compile_module(SHARE)
    stretch = Stretch("P", [Launch(module.address("share"), (0,), static_grid=8)], owners=[module])
    torch.set_num_threads(2)
    stretch.call(0, 1, torch.zeros(2, dtype=torch.int64))
    if (child := os.fork()) == 0:
        torch.set_num_threads(1)
        x = torch.zeros(2, dtype=torch.int64)
        stretch.call(0, 1, x)
        os._exit(0 if x.tolist() == [8, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0

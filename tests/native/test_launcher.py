"""Stretches unbox their arguments, launch kernels in order over all programs, and stop at the first error."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from stepwell.backends.native import driver, openmp
from stepwell.backends.native.jit import NativeModule, compile_module
from stepwell.backends.native.launcher import Launch, Stretch, prepare
from stepwell.ir.errors import BackendError

KERNELS = """
define internal ptr @operand(ptr %words, i64 %k) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %k
  %address = load i64, ptr %at
  %pointer = inttoptr i64 %address to ptr
  ret ptr %pointer
}
define internal i64 @index(ptr %words, i64 %k) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %k
  %value = load i64, ptr %at
  ret i64 %value
}

; x[i] += k for each program i, atomically, so that a program that ran twice shows
define void @add(ptr %words, i64 %lo, i64 %hi) nounwind {
entry:
  %x = call ptr @operand(ptr %words, i64 1)
  %k = call i64 @index(ptr %words, i64 2)
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %at = getelementptr i64, ptr %x, i64 %i
  %old = atomicrmw add ptr %at, i64 %k monotonic
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}
define i64 @add.grid(ptr %words) nounwind {
  %n = call i64 @index(ptr %words, i64 3)
  ret i64 %n
}
define void @add.finish(ptr %words) nounwind {
  %x = call ptr @operand(ptr %words, i64 1)
  %v = load i64, ptr %x
  %w = mul i64 %v, 100
  store i64 %w, ptr %x
  ret void
}

; x[0] = 10 x[0] + k
define void @append(ptr %words, i64 %lo, i64 %hi) nounwind {
  %x = call ptr @operand(ptr %words, i64 1)
  %k = call i64 @index(ptr %words, i64 2)
  %v = load i64, ptr %x
  %t = mul i64 %v, 10
  %w = add i64 %t, %k
  store i64 %w, ptr %x
  ret void
}

; x[thread] = hi - lo
define void @share(ptr %words, i64 %lo, i64 %hi) nounwind {
  %x = call ptr @operand(ptr %words, i64 1)
  %thread = call i32 @omp_get_thread_num()
  %at = getelementptr i64, ptr %x, i32 %thread
  %n = sub i64 %hi, %lo
  %old = atomicrmw add ptr %at, i64 %n monotonic
  ret void
}
declare i32 @omp_get_thread_num()

; records (k, 7)
define void @fail(ptr %words, i64 %lo, i64 %hi) nounwind {
  %error = call ptr @operand(ptr %words, i64 0)
  %k = call i64 @index(ptr %words, i64 1)
  %exchange = cmpxchg ptr %error, i64 0, i64 %k monotonic monotonic
  %first = extractvalue { i64, i1 } %exchange, 1
  br i1 %first, label %record, label %done
record:
  %value = getelementptr i64, ptr %error, i64 1
  store i64 7, ptr %value
  br label %done
done:
  ret void
}

; wait until somebody sets x[0]
define void @wait(ptr %words, i64 %lo, i64 %hi) nounwind {
entry:
  %x = call ptr @operand(ptr %words, i64 1)
  br label %loop
loop:
  %v = load atomic i64, ptr %x monotonic, align 8
  %set = icmp ne i64 %v, 0
  br i1 %set, label %done, label %loop
done:
  ret void
}
"""


@pytest.fixture(scope="module")
def kernels() -> NativeModule:
    imports = {"omp_get_thread_num": openmp.addresses()["omp_get_thread_num"]}
    return compile_module(KERNELS, imports=imports)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def zeros(n: int = 1) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int64)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("programs", [1, 2, 3, 1000])
def test_every_program_runs_once(kernels: NativeModule, programs: int, serial: bool) -> None:
    x = zeros(programs + 1)
    launch = Launch(kernels.address("add"), (0, 1), static_grid=programs)
    stretch = Stretch("Pi", [launch], owners=[kernels], serial=serial)
    assert stretch.call(0, 1, x, 5) is None
    assert x.tolist() == [5] * programs + [0]


@pytest.mark.usefixtures("two_threads")
def test_the_programs_are_split_evenly_among_threads(kernels: NativeModule) -> None:
    x = zeros(2)
    Stretch("P", [Launch(kernels.address("share"), (0,), static_grid=9)], owners=[kernels]).call(0, 1, x)
    assert x.tolist() == [4, 5]


@pytest.mark.usefixtures("two_threads")
def test_small_grids_stay_on_the_calling_thread(kernels: NativeModule) -> None:
    x = zeros(2)
    launch = Launch(kernels.address("share"), (0,), static_grid=9, serial_below=10)
    Stretch("P", [launch], owners=[kernels]).call(0, 1, x)
    assert x.tolist() == [9, 0]


def test_one_thread_is_one_call(kernels: NativeModule) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        x = zeros(2)
        Stretch("P", [Launch(kernels.address("share"), (0,), static_grid=9)], owners=[kernels]).call(0, 1, x)
    finally:
        torch.set_num_threads(before)
    assert x.tolist() == [9, 0]


@pytest.mark.usefixtures("two_threads")
def test_within_a_parallel_region_a_stretch_is_serial(kernels: NativeModule) -> None:
    x = zeros(2)
    stretch = Stretch("P", [Launch(kernels.address("share"), (0,), static_grid=9)], owners=[kernels])
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: stretch.call(0, 1, x) and None)
    address = openmp.addresses()["GOMP_parallel"]
    parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(address)
    parallel(ctypes.cast(body, ctypes.c_void_p), None, 2, 0)
    assert x.tolist() == [9, 9]


@pytest.mark.parametrize("programs", [0, 1, 6])
def test_a_grid_function_gives_the_number_of_programs(kernels: NativeModule, programs: int) -> None:
    x = zeros(7)
    launch = Launch(kernels.address("add"), (0, 1, 2), grid=kernels.address("add.grid"))
    Stretch("Pii", [launch], owners=[kernels]).call(0, 1, x, 2, programs)
    assert x.tolist() == [2] * programs + [0] * (7 - programs)


@pytest.mark.parametrize("programs", [0, 2])
def test_finish_runs_once_after_all_programs(kernels: NativeModule, programs: int) -> None:
    x = zeros(2) + 1
    finish = kernels.address("add.finish")
    launch = Launch(kernels.address("add"), (0, 1), static_grid=programs, finish=finish)
    Stretch("Pi", [launch], owners=[kernels]).call(0, 1, x, 3)
    assert x.tolist() == ([400, 4] if programs else [100, 1])


def test_a_range_of_launches_runs_in_order(kernels: NativeModule) -> None:
    append = kernels.address("append")
    launches = [Launch(append, (0, 1 + k)) for k in range(4)]
    stretch = Stretch("P", launches, constants=(1, 2, 3, 4), owners=[kernels])

    def result(first: int, last: int) -> int:
        x = zeros()
        stretch.call(first, last, x)
        return int(x.item())

    assert [result(*span) for span in ((0, 4), (1, 3), (2, 2), (4, 4))] == [1234, 23, 0, 0]


def test_derived_slots_are_addresses_within_a_workspace(kernels: NativeModule) -> None:
    workspace = zeros(8)
    launches = [Launch(kernels.address("append"), (slot, 1)) for slot in (4, 5)]
    stretch = Stretch("Pii", launches, constants=(16,), derived=((0, 2), (0, 3)), owners=[kernels])
    stretch.call(0, 2, workspace, 9, 40)
    assert workspace.tolist() == [0, 0, 9, 0, 0, 9, 0, 0]


@pytest.mark.usefixtures("two_threads")
def test_the_first_error_comes_back_and_ends_the_stretch(kernels: NativeModule) -> None:
    x = zeros()
    launches = [
        Launch(kernels.address("append"), (0, 2)),
        Launch(kernels.address("fail"), (1,), static_grid=8),
        Launch(kernels.address("append"), (0, 2)),
    ]
    stretch = Stretch("Pi", launches, constants=(1,), owners=[kernels])
    assert stretch.call(0, 3, x, -3) == (-3, 7)
    assert x.item() == 1
    assert stretch.call(0, 1, x, -3) is None, "the error slot is the call's own"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), TypeError, "expected 4 arguments, got 0"),
        ((0, 1, zeros()), TypeError, "expected 4 arguments, got 3"),
        ((0, 1, None, 3), AttributeError, "'NoneType' object has no attribute 'data_ptr'"),
        ((0, 1, zeros(), "3"), TypeError, "'str' object cannot be interpreted as an integer"),
        ((0, 1, zeros(), 2**70), OverflowError, "too big"),
        (("0", 1, zeros(), 3), TypeError, "'str' object"),
        ((0, None, zeros(), 3), TypeError, "'NoneType' object"),
        ((0, 2, zeros(), 3), IndexError, "within 0:1, got 0:2"),
        ((1, 0, zeros(), 3), IndexError, "within 0:1, got 1:0"),
        ((-1, 1, zeros(), 3), IndexError, "within 0:1, got -1:1"),
    ],
)
def test_wrong_arguments_raise(
    kernels: NativeModule, arguments: tuple[object, ...], error: type[Exception], message: str
) -> None:
    stretch = Stretch("Pi", [Launch(kernels.address("append"), (0, 1))], owners=[kernels])
    with pytest.raises(error, match=message):
        stretch.call(*arguments)


class Unpointed:
    """Hands out one and the same object as its data pointer."""

    def __init__(self, pointer: object) -> None:
        self.pointer = pointer

    def data_ptr(self) -> object:
        return self.pointer


@pytest.mark.parametrize("pointer", ["no number", 2**40])
def test_no_reference_is_lost_or_kept(kernels: NativeModule, pointer: object) -> None:
    stretch = Stretch("PP", [], owners=[kernels])
    x, other = zeros(), Unpointed(pointer)
    before = sys.getrefcount(x), sys.getrefcount(other), sys.getrefcount(pointer)
    for _ in range(3):
        with contextlib.suppress(TypeError):
            assert stretch.call(0, 0, x, other) is None
    assert (sys.getrefcount(x), sys.getrefcount(other), sys.getrefcount(pointer)) == before


def test_minus_one_is_an_int_like_any_other(kernels: NativeModule) -> None:
    x = zeros()
    Stretch("Pi", [Launch(kernels.address("append"), (0, 1))], owners=[kernels]).call(0, 1, x, -1)
    assert x.item() == -1


def test_parameters_and_empty_tensors_have_pointers_too(kernels: NativeModule) -> None:
    stretch = Stretch("PP", [Launch(kernels.address("append"), (0, 2))], constants=(4,), owners=[kernels])
    x = torch.nn.Parameter(zeros(), requires_grad=False)
    assert stretch.call(0, 1, x, torch.empty(0)) is None
    assert x.item() == 4


@pytest.mark.parametrize(
    ("kinds", "slots", "derived", "message"),
    [
        ("Px", (0,), (), "argument kinds: expected only P, i, got x"),
        ("P", (2,), (), "kernel operands: expected slots below 1, got 2"),
        ("P", (-1,), (), "kernel operands: expected slots below 1, got -1"),
        ("P", (0,), ((0, 1),), "derived slots: expected slots below 1, got 1"),
    ],
)
def test_a_slot_that_nothing_fills_is_refused(
    kinds: str, slots: tuple[int, ...], derived: tuple[tuple[int, int], ...], message: str
) -> None:
    with pytest.raises(BackendError, match=message):
        Stretch(kinds, [Launch(0, slots)], derived=derived)


def test_other_python_threads_run_while_a_kernel_does(kernels: NativeModule) -> None:
    flag = zeros()
    stretch = Stretch("P", [Launch(kernels.address("wait"), (0,))], owners=[kernels])
    threading.Timer(0.05, flag.fill_, (1,)).start()
    assert stretch.call(0, 1, flag) is None


@pytest.mark.usefixtures("two_threads")
def test_many_threads_may_be_in_one_stretch(kernels: NativeModule) -> None:
    launches = [Launch(kernels.address("append"), (0, 1)), Launch(kernels.address("fail"), (1,))]
    stretch = Stretch("Pi", launches, owners=[kernels])

    def run(k: int) -> bool:
        results = [(zeros(), stretch.call) for _ in range(200)]
        return all(call(0, 2, x, k) == (k, 7) and x.item() == k for x, call in results)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(1, 9)))


def test_the_callable_alone_keeps_the_code_alive() -> None:
    module = compile_module(KERNELS.replace("call i32 @omp_get_thread_num()", "add i32 0, 0"))
    alive = weakref.ref(module)
    call = Stretch("Pi", [Launch(module.address("append"), (0, 1))], owners=[module]).call
    del module
    gc.collect()
    x = zeros()
    call(0, 1, x, 3)
    assert x.item() == 3
    assert alive() is not None
    del call
    gc.collect()
    assert alive() is None


def test_the_driver_is_compiled_once() -> None:
    assert prepare() is prepare()
    assert prepare(serial=True) is not prepare()


def test_a_serial_driver_needs_no_openmp() -> None:
    assert not any(f"declare void @{name}" in driver.text(serial=True) for name in openmp.SYMBOLS)
    script = (
        "from stepwell.backends.native import openmp, launcher\n"
        "openmp.addresses = None\n"
        "assert launcher.Stretch('', [], serial=True).call(0, 0) is None\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

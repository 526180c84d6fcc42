"""Launches of CUDA kernels through the native thunk, against a driver that only records."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from stepwell.backends.native.cuda_driver import UNMADE
from stepwell.backends.native.cuda_launcher import CudaLaunch, CudaStretch
from stepwell.tests.native.stub_cuda import Launched, StubCuda

ALIGNED, RELAXED, CONTEXT, STREAM = 0xF0, 0xF1, 0xC7, 0x57


class Tensor:
    """Something with an address."""

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


@pytest.fixture
def cuda() -> StubCuda:
    return StubCuda({ALIGNED: 3, RELAXED: 3})


@pytest.fixture
def cell() -> Any:
    return (ctypes.c_int64 * 6)(ALIGNED, 128, 4096, RELAXED, 64, 0)


def launch(cell: Any, **changes: Any) -> CudaLaunch:
    """Slots: a stream, two tensors, an int, and the constants 7 (a grid) and 0."""
    whole = CudaLaunch(ctypes.addressof(cell), CONTEXT, stream=0, grid=4, parameters=(1, 2, 3), checked=(1, 2))
    return whole._replace(**changes)


def stretch(cuda: StubCuda, *launches: CudaLaunch) -> CudaStretch:
    return CudaStretch("iPPi", launches, cuda.addresses, constants=[7, 0])


def test_a_launch_passes_everything(cuda: StubCuda, cell: Any) -> None:
    call = stretch(cuda, launch(cell)).call
    assert call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), -5) is None
    expected = Launched(ALIGNED, (7, 1, 1), (128, 1, 1), 4096, STREAM, [0x1000, 0x2000, -5], CONTEXT)
    assert cuda.launched == [expected]


@pytest.mark.parametrize(("x", "y"), [(0x1008, 0x2000), (0x1000, 0x2001)])
def test_an_unaligned_argument_gets_the_other_function(cuda: StubCuda, cell: Any, x: int, y: int) -> None:
    assert stretch(cuda, launch(cell)).call(0, 1, STREAM, Tensor(x), Tensor(y), 1) is None
    expected = Launched(RELAXED, (7, 1, 1), (64, 1, 1), 0, STREAM, [x, y, 1], CONTEXT)
    assert cuda.launched == [expected]


def test_an_unchecked_argument_may_be_anything(cuda: StubCuda, cell: Any) -> None:
    stretch(cuda, launch(cell, checked=(1,))).call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2001), 1)
    assert cuda.launched[0].function == ALIGNED


def test_a_promised_size_is_checked(cuda: StubCuda, cell: Any) -> None:
    call = stretch(cuda, launch(cell, checked=(1, 3))).call
    for size in (32, 33):
        call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2001), size)
    assert [one.function for one in cuda.launched] == [ALIGNED, RELAXED]


def test_a_function_that_is_not_made_stops_there(cuda: StubCuda, cell: Any) -> None:
    cell[3] = 0
    call = stretch(cuda, launch(cell, checked=()), launch(cell), launch(cell, checked=())).call
    assert call(0, 3, STREAM, Tensor(0x1008), Tensor(0x2000), 1) == (UNMADE, 1)
    assert len(cuda.launched) == 1
    cell[3] = RELAXED
    assert call(1, 3, STREAM, Tensor(0x1008), Tensor(0x2000), 1) is None
    assert [one.function for one in cuda.launched] == [ALIGNED, RELAXED, ALIGNED]


def test_a_grid_of_none_launches_nothing(cuda: StubCuda, cell: Any) -> None:
    call = stretch(cuda, launch(cell, grid=3)).call
    assert call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), 0) is None
    assert not cuda.launched
    call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), 2)
    assert cuda.launched[0].grid == (2, 1, 1)


def test_a_refused_launch_is_reported(cuda: StubCuda, cell: Any) -> None:
    cuda.failures["cuLaunchKernel"] = 700
    call = stretch(cuda, launch(cell), launch(cell)).call
    assert call(0, 2, STREAM, Tensor(0x1000), Tensor(0x2000), 1) == (700, 0)
    assert len(cuda.launched) == 1


def test_a_context_is_made_current_only_where_it_is_not(cuda: StubCuda, cell: Any) -> None:
    cuda.failures["cuCtxSetCurrent"] = 201
    call = stretch(cuda, launch(cell)).call
    assert call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), 1) == (201, 0)
    assert cuda.current == CONTEXT
    assert call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), 1) is None


def test_wrong_arguments_raise_and_launch_nothing(cuda: StubCuda, cell: Any) -> None:
    call = stretch(cuda, launch(cell)).call
    with pytest.raises(TypeError, match="expected 6 arguments, got 5"):
        call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000))
    with pytest.raises(AttributeError):
        call(0, 1, STREAM, Tensor(0x1000), object(), 1)
    with pytest.raises(IndexError):
        call(0, 2, STREAM, Tensor(0x1000), Tensor(0x2000), 1)
    assert not cuda.launched


def test_an_address_within_a_workspace_is_a_sum(cuda: StubCuda, cell: Any) -> None:
    inside = CudaStretch(
        "iPPi", [launch(cell, parameters=(1, 6, 3))], cuda.addresses, constants=[7, 64], derived=[(2, 5)]
    )
    inside.call(0, 1, STREAM, Tensor(0x1000), Tensor(0x2000), 1)
    assert cuda.launched[0].parameters == [0x1000, 0x2040, 1]

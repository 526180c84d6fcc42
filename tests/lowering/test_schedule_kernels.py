"""Kernels from loop level to machine code, against torch in float64: masked tails, dynamic and empty sizes, all types.

Programs also run as several threads would take them; no kernel may write outside of its results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch

from stepwell.backends.cpu.target import host_target
from stepwell.tests.lowering import schedule_cases as cases
from stepwell.tests.lowering.compiled import Compiled
from stepwell.tests.lowering.schedule_cases import Case

pytestmark = pytest.mark.filterwarnings("ignore:var_mean")  # of nothing

KERNELS: dict[str, Callable[..., Case]] = {
    "chain": cases.chain,
    "gelu": cases.gelu,
    "gelu_tanh": partial(cases.gelu, tanh=True),
    "not_and": cases.not_and,
    "softmax": cases.softmax,
    "softmax_backward": cases.softmax_backward,
    "layer_norm": cases.layer_norm,
    "layer_norm_backward": cases.layer_norm_backward,
    "affine_gradients": cases.affine_gradients,
    "rows_and_columns": cases.rows_and_columns,
    "points_and_columns": cases.points_and_columns,
    "rms_norm": cases.rms_norm,
    "rms_norm_backward": cases.rms_norm_backward,
    "cross_entropy": cases.cross_entropy,
    "cross_entropy_backward": cases.cross_entropy_backward,
    "total": cases.total,
    "row_sums": cases.sums,
    "column_sums": partial(cases.sums, along=0),
    "row_argmax": cases.argmax,
    "column_argmax": partial(cases.argmax, along=0),
    "batch_norm_statistics": cases.batch_norm_statistics,
    "max_pool": cases.max_pool,
    "transpose_add": cases.transpose_add,
    "permute": cases.permute,
    "permute_to_last": partial(cases.permute, order=(0, 2, 3, 1)),
    "permute_reversed": partial(cases.permute, order=(3, 2, 1, 0)),
    "flip": cases.flip,
    "concatenate": cases.concatenate,
    "pad": cases.pad,
    "embedding": cases.embedding,
    "embedding_backward": cases.embedding_backward,
    "row_cumsum": cases.cumsum,
    "column_cumsum": partial(cases.cumsum, along=0),
    "centered": cases.centered,
}

FLOAT_KERNELS = ("gelu", "softmax", "layer_norm", "layer_norm_backward", "affine_gradients", "rows_and_columns",
                 "rms_norm", "rms_norm_backward", "cross_entropy", "cross_entropy_backward", "total", "row_sums",
                 "column_sums", "batch_norm_statistics", "centered")  # fmt: skip


def check(case: Case) -> None:
    """As one thread and as three; twice, so that what a program leaves behind is seen."""
    compiled = Compiled(case.text)
    for parts in (1, 3):
        results, error = compiled.run(case.inputs, case.symbols, parts)
        assert error == (0, 0)
        case.check(results)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("shape", [(3, 5), (67, 130), (300, 1000)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees_with_torch(kernel: str, shape: tuple[int, int], dynamic: bool) -> None:
    check(KERNELS[kernel](*shape, dynamic=dynamic))


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16"])
@pytest.mark.parametrize("kernel", FLOAT_KERNELS)
def test_float_types(kernel: str, dtype: str) -> None:
    check(KERNELS[kernel](19, 130, dtype=dtype))


@pytest.mark.parametrize("dtype", ["i1", "i8", "i64"])
@pytest.mark.parametrize("kernel", ["not_and", "permute", "transpose_add", "embedding"])
def test_integer_types(kernel: str, dtype: str) -> None:
    if kernel == "transpose_add":
        pytest.skip("adds floats")
    check(KERNELS[kernel](19, 130, dtype=dtype))


@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (2, 1), (1, 4099)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_single_rows_and_columns(kernel: str, shape: tuple[int, int]) -> None:
    check(KERNELS[kernel](*shape))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)], ids=str)
@pytest.mark.parametrize("kernel", [name for name in KERNELS if not name.startswith("cross_entropy")])
def test_empty(kernel: str, shape: tuple[int, int]) -> None:
    if "argmax" in kernel and 0 in (shape[0 if kernel.startswith("column") else 1],):
        pytest.skip("torch has no argmax of nothing")
    for dynamic in (False, True):
        check(KERNELS[kernel](*shape, dynamic=dynamic))


def test_a_compiled_kernel_serves_all_sizes() -> None:
    compiled = Compiled(cases.layer_norm(64, 256, dynamic=True).text)
    for shape in ((1, 1), (7, 33), (200, 1030)):
        case = cases.layer_norm(*shape, dynamic=True)
        results, error = compiled.run(case.inputs, case.symbols, 2)
        assert error == (0, 0)
        case.check(results)


@pytest.mark.parametrize(("rows", "columns"), [(1021, 1031), (1, 1021 * 1031)])
def test_a_chain_takes_enough_programs_and_few_more(rows: int, columns: int) -> None:
    """Enough to balance on any number of threads; each begins its loops anew."""
    case = cases.chain(rows, columns)
    target = replace(host_target(), cores=2)
    compiled = Compiled(case.text, target)
    calls, *_ = compiled.bind(case.inputs)
    assert [32 <= call.grid <= 64 for call in calls] == [True]


def test_large_sums_are_as_accurate_as_torch() -> None:
    rows, columns = 1000, 4000
    for along, kernel in ((None, cases.total), (1, cases.sums), (0, partial(cases.sums, along=0))):
        case = kernel(rows, columns)
        results, _ = Compiled(case.text).run(case.inputs)
        (expected,) = case.expected()
        (x,) = case.inputs
        eager = x.mean() if along is None else x.sum(along)
        ours, theirs = ((value.double() - expected).abs().max() for value in (results[0], eager))
        assert ours <= 2 * theirs + torch.finfo(torch.float32).eps * expected.abs().max()


@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("shape", [(700, 130), (130, 700)], ids=str)
def test_argmax_of_nan_ties_and_infinities(shape: tuple[int, int], along: int) -> None:
    """The first NaN wins, then the first of equal values, also where all are -inf."""
    case = cases.argmax(*shape, along=along)
    x = case.inputs[0].round()
    lines = x.unbind(1 - along)
    lines[0].fill_(-torch.inf)
    lines[1][:-1] = -torch.inf
    lines[2][[3, 70, 129]] = torch.nan
    lines[3][-1] = torch.nan
    lines[4][[5, 6]] = torch.inf
    (result,), _ = Compiled(case.text).run((x,))
    assert torch.equal(result, x.argmax(along))


def test_index_out_of_range_is_recorded_and_nothing_else_is_touched() -> None:
    case = cases.embedding(40, 70)
    ids, table = case.inputs
    ids[17] = 1000
    _, (code, value) = Compiled(case.text).run((ids, table))
    assert (code, value) == (1, 1000)

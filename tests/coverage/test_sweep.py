"""A part of the sweep over torch's operators, which `python -m stepwell.benchmarks.coverage` makes over all of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

pytest.importorskip("expecttest", reason="torch's operator database needs it")

from stepwell.benchmarks.coverage.cases import Extent, dtypes_of, operators
from stepwell.benchmarks.coverage.report import NO_COMPUTATION
from stepwell.benchmarks.coverage.sweep import tried

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool)

NATIVE = (
    "add", "sub", "mul", "div.no_rounding_mode", "div.floor_rounding", "remainder", "fmod", "pow", "clamp", "where",
    "exp", "log1p", "rsqrt", "erf", "tanh", "sigmoid", "floor", "sign", "eq", "lt", "bitwise_and", "logical_not",
    "sum", "mean", "amax", "argmax", "any", "var_mean", "cumsum", "permute", "cat", "index_select", "gather",
    "scatter_add", "index_put", "slice_scatter", "nn.functional.pad.constant", "tril", "nn.functional.layer_norm",
)  # fmt: skip
"""Operators that models run hot: none of them may call eager, but for the reasons in `REVIEWED`."""

REVIEWED = {
    ("index_put", "aten.index.Tensor"): "a mask that selects by position gives a size that only the data knows",
    ("index_put", "aten.index_put.default"): "the same, written",
}
"""Operator and the eager one that it may call, with the reason."""


@cache
def by_name() -> dict[str, Any]:
    return {op.full_name: op for op in operators()}


def check(name: str, dtype: torch.dtype) -> None:
    op = by_name()[name]
    if dtype not in dtypes_of(op):
        pytest.skip("eager has no such form")
    result = tried(op, dtype, Extent(samples=1, varied=1))
    assert not result.wrong
    assert result.passed
    assert {target for target in result.externs if (name, target) not in REVIEWED} <= {*NO_COMPUTATION}


@pytest.mark.parametrize("dtype", DTYPES[1:3], ids=str)
@pytest.mark.parametrize("name", NATIVE[::4])
def test_a_hot_operator_is_native_and_equals_eager(name: str, dtype: torch.dtype) -> None:
    check(name, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NATIVE)
def test_every_hot_operator_is_native_and_equals_eager(name: str, dtype: torch.dtype) -> None:
    check(name, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_operator_equals_eager(dtype: torch.dtype) -> None:
    wrong: dict[tuple[str, str], str] = {}
    for op in operators():
        if dtype in dtypes_of(op):
            wrong |= {(op.full_name, case): text for case, text in tried(op, dtype, Extent(2)).wrong.items()}
    assert not wrong

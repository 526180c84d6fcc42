"""No call of an operator that has a row becomes an extern, in the common types and layouts, but for reviewed ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from stepwell.frontend.import_fx import import_graph
from stepwell.tests.frontend.samples import SAMPLES
from stepwell.tests.frontend.test_rows import target_of, with_floats
from stepwell.tests.frontend.tracing import call_of, op_names, trace

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int64": torch.int64, "bool": torch.bool}

MEMORY = "reads memory in the order that eager's strides give, which is known for static layouts without gaps alone"
WINDOWS = "windows are reduced as floats; no model pools integers"
COUNTS = "sums of bools in place are no number that a combiner has"

REVIEWED: dict[str, tuple[str, str]] = {
    "aten._reshape_alias": ("strided", MEMORY),
    "aten.as_strided": ("dynamic", MEMORY),
    "aten.as_strided_copy": ("dynamic", MEMORY),
    "aten.as_strided_scatter": ("strided dynamic", MEMORY),
    "aten.roll": ("dynamic", "the shift is taken modulo a size that is not known"),
    "aten.view.dtype": ("int64 bfloat16", "elements of another width; of the same width it is a bitcast"),
    "aten.avg_pool2d": ("int64 dynamic", WINDOWS + "; with ceil_mode the windows past the end need static sizes"),
    "aten.avg_pool2d_backward": ("int64", WINDOWS),
    "aten.max_pool2d_with_indices": ("int64", WINDOWS),
    "aten.baddbmm": ("bfloat16", "eager rounds the product before it adds, as the library does in one call"),
    "aten.index_add": ("bool", COUNTS),
    "aten.scatter_add": ("bool", COUNTS),
    "aten.scatter_reduce.two": ("bool", COUNTS),
    "aten.mse_loss_backward": ("int64", "the factor is a float; nothing differentiates integers"),
    "prims.div": ("bool", "a division of bools is none in eager either"),
}
"""Operator → the types and layouts in which it is an extern, and why."""


def strided(value: Any) -> Any:
    """Every second element along the last dim of a wider tensor."""
    if not isinstance(value, Tensor) or not value.ndim:
        return value
    base = value.new_zeros(*value.shape[:-1], 2 * value.shape[-1] + 1)
    view = base[..., 1::2]
    view.copy_(value)
    return view


CASES = [
    pytest.param(dtype, layout, marks=() if layout == "contiguous" or dtype == "float32" else pytest.mark.slow)
    for layout in ("contiguous", "strided", "dynamic")
    for dtype in DTYPES
]


@pytest.mark.parametrize(("dtype", "layout"), CASES)
def test_rows_are_native(dtype: str, layout: str) -> None:
    externs = []
    for name in SAMPLES:
        call = with_floats(DTYPES[dtype], SAMPLES[name][0]())
        call = tree_map(strided, call) if layout == "strided" else call
        excused = REVIEWED.get(name, ("", ""))[0].split()
        if dtype not in excused and layout not in excused and is_extern(name, call, layout == "dynamic"):
            externs.append(name)
    assert not externs


def is_extern(name: str, call: Any, dynamic: bool) -> bool:
    """Whether the call, if eager takes it at all, is not native."""
    function, tensors = call_of(target_of(name), *call)
    try:
        function(*tensors)
        graph = trace(function, *tensors, dynamic=dynamic, decompose=False)
    except Exception:  # in such a type there is no such call
        return False
    return "extern" in op_names(import_graph(graph, tensors))

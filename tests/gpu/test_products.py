"""Products of matrices on a GPU, in kernels of ours and by the library, next to float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import stepwell
from stepwell.runtime import cuda_tuning

BF16, F16 = torch.bfloat16, torch.float16


def error(found: Tensor, exact: Tensor) -> float:
    return float(((found.double() - exact).norm() / exact.norm()).item())


def check(function: Callable[..., Tensor], *inputs: Tensor, **options: Any) -> Callable[..., Tensor]:
    """Compiles, and compares with float64 as eager does."""
    torch._dynamo.reset()
    compiled: Callable[..., Tensor] = torch.compile(function, backend="stepwell", fullgraph=True, **options)
    compare(compiled, function, *inputs)
    return compiled


def compare(compiled: Callable[..., Tensor], function: Callable[..., Tensor], *inputs: Tensor) -> None:
    with stepwell.config.patch(strict=True):
        found = compiled(*inputs)
    eager, exact = function(*inputs), function(*(value.double() for value in inputs))
    assert (found.dtype, found.stride()) == (eager.dtype, eager.stride())
    assert error(found, exact) <= 1.25 * error(eager, exact) + 1e-7


def randn(*shape: int, dtype: torch.dtype = BF16) -> Tensor:
    return torch.randn(shape, device="cuda").to(dtype)


def gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b))


def with_residual(x: Tensor, w: Tensor, b: Tensor, r: Tensor) -> Tensor:
    return gelu(x, w, b) + r


@pytest.mark.parametrize("dtype", [BF16, F16])
@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(4096, 4096, 1024), (1000, 520, 264), (17, 48, 64), (1, 1024, 512)]
)
def test_linear_gelu(rows: int, columns: int, depth: int, dtype: torch.dtype, gpu: torch.device) -> None:
    inputs = ((rows, depth), (columns, depth), (columns,))
    check(gelu, *(randn(*shape, dtype=dtype) for shape in inputs))


@pytest.mark.parametrize(("rows", "columns", "depth"), [(256, 128, 64), (256, 16, 128), (100, 72, 256)])
def test_small_products_of_f32(rows: int, columns: int, depth: int, gpu: torch.device) -> None:
    check(gelu, *(randn(*shape, dtype=torch.float32) for shape in ((rows, depth), (columns, depth), (columns,))))


def test_rows_in_two_dims_and_a_residual(gpu: torch.device) -> None:
    check(with_residual, randn(8, 128, 512), randn(1024, 512), randn(1024), randn(8, 128, 1024))


LAYOUTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "nn": lambda x, y: torch.relu(x @ y),
    "tn": lambda x, y: x.t() @ y,
    "tt": lambda x, y: x.t() @ y.t(),
    "sliced": lambda x, y: torch.relu(x[:, 64:328] @ y),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_factors(name: str, gpu: torch.device) -> None:
    shapes = {"nn": ((1000, 264), (264, 520)), "tn": ((264, 1000), (264, 520)), "tt": ((264, 1000), (520, 264))}
    left, right = shapes.get(name, ((1000, 640), (264, 520)))
    check(LAYOUTS[name], randn(*left), randn(*right))


@pytest.mark.parametrize("rows", [1000, 16384])
def test_masks(rows: int, gpu: torch.device) -> None:
    """One is read before what follows a product, one is written with it."""
    x, y, mask = randn(rows, 256), randn(256, 512), randn(rows, 512) > 0

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        product = x @ y
        return product.masked_fill(mask, 0), product, product <= 0

    compiled = torch.compile(function, backend="stepwell")
    compare(lambda *inputs: compiled(*inputs)[0], lambda *inputs: function(*inputs)[0], x, y)
    _, product, negative = compiled(x, y)
    assert torch.equal(negative, product <= 0)


def test_batches(gpu: torch.device) -> None:
    check(lambda x, y: torch.bmm(x, y) * 2, randn(6, 200, 136), randn(6, 136, 264))


@pytest.mark.parametrize("rows", [512, 16384])
def test_factors_that_are_not_aligned(rows: int, gpu: torch.device) -> None:
    """Without and with descriptors, which need aligned addresses."""
    x, w, b = randn(rows * 1024 + 1), randn(4096, 1024), randn(4096)
    compiled = check(gelu, x[1:].view(rows, 1024), w, b)
    compare(compiled, gelu, x[:-1].view(rows, 1024), w, b)


def test_any_number_of_rows(gpu: torch.device) -> None:
    torch._dynamo.reset()
    compiled, w, b = torch.compile(gelu, backend="stepwell"), randn(1024, 512), randn(1024)
    for rows in (777, 1024, 300, 4096, 16):
        x = randn(rows, 512)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        compare(compiled, gelu, x, w, b)


def test_what_was_measured_is_remembered(gpu: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = randn(512, 512), randn(1024, 512), randn(1024)
    with stepwell.config.patch(cache_dir=tmp_path, disable_cache=False):
        check(gelu, *inputs, mode="max-autotune")
        monkeypatch.setattr(cuda_tuning, "seconds", lambda call: pytest.fail("it is measured again"))
        check(gelu, *inputs, mode="max-autotune")


def test_the_library_may_win(gpu: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tuning.Tuner, "best", lambda self, offered: "library")
    with stepwell.config.patch(cache_dir=tmp_path, disable_cache=False):
        check(
            with_residual, randn(8, 128, 512), randn(1024, 512), randn(1024), randn(8, 128, 1024), mode="max-autotune"
        )

"""Strides that torch's fake tensors promise and eager's kernels do not give."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.backends import mkl
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from stepwell.frontend.fakes import correct_fakes
from stepwell.frontend.stride_arithmetic import iterator_strides, view_strides

Strides: TypeAlias = list[tuple[int, ...]]


def gradients_of_attention(*, shared: bool) -> tuple[Strides, Strides]:
    """Strides of the results of attention's backward op, as fake and as corrected, where heads lie before rows."""
    target = torch.ops.aten._efficient_attention_backward.default
    graph = fx.Graph()
    with FakeTensorMode():
        heads = [torch.empty(2, 4, 16, 8).transpose(1, 2) for _ in range(4)]
        sums, seed = torch.empty(2, 4, 32), torch.empty((), dtype=torch.int64)
        values: list[Any] = [*heads, None, heads[0], None, None, 16, 16, sums, 0.0, seed, seed, 0, False]
        # the op's order: gradient, query, key, value, bias, result, lengths, …
    operands: list[Any] = []
    for number, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            node = graph.placeholder(f"x{number}")
            node.meta["val"] = value
            operands.append(node)
        else:
            operands.append(value)
    node = graph.call_function(target, tuple(operands), {"shared_storage_dqdkdv": shared})
    with heads[0].fake_mode:  # type: ignore[attr-defined]
        node.meta["val"] = target(*values, shared_storage_dqdkdv=shared)
    before = [value.stride() for value in node.meta["val"][:3]]
    graph.output(node)
    correct_fakes(fx.GraphModule({}, graph))
    return before, [value.stride() for value in node.meta["val"][:3]]


def test_gradients_of_attention_are_row_major() -> None:
    promised, corrected = gradients_of_attention(shared=False)
    assert promised == [(512, 8, 128, 1)] * 3
    assert corrected == [(512, 32, 8, 1)] * 3


def test_gradients_of_attention_may_share_memory() -> None:
    promised, corrected = gradients_of_attention(shared=True)
    assert corrected == promised


CHANNELS_LAST = torch.channels_last


@pytest.mark.usefixtures("thread_count")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("groups", "channels", "width"), [(16, 1, 7), (1, 16, 1), (1, 16, 3)])
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("samples", [1, 2, 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_gradient_of_a_weight_lies_as_eager_has_it(
    threads: int,
    samples: int,
    dynamic: bool,
    transposed: bool,
    groups: int,
    channels: int,
    width: int,
    dtype: torch.dtype,
) -> None:
    """Of a weight with one channel, or one tap, both row-major and channels-last describe the same memory."""
    torch.set_num_threads(threads)
    target = torch.ops.aten.convolution_backward.default
    options = ([16], [1, 1], [width // 2] * 2, [1, 1], transposed, [0, 0], groups, [True, True, True])
    x = torch.randn(samples, 16, 8, 8).to(dtype, memory_format=CHANNELS_LAST)
    weight = torch.randn(16, channels, width, width).to(dtype)
    expected = [value.stride() for value in target(x, x, weight, *options)]
    graph, mode = fx.Graph(), FakeTensorMode(shape_env=ShapeEnv())
    sizes = [DimDynamic.DYNAMIC if dynamic else DimDynamic.STATIC, *[DimDynamic.STATIC] * 3]
    batch: StatelessSymbolicContext[Any, Any] = StatelessSymbolicContext(sizes)
    nodes = [graph.placeholder(name) for name in ("gradient", "x", "weight")]
    for node, value, context in zip(nodes, (x, x, weight), (batch, batch, None), strict=True):
        node.meta["val"] = mode.from_tensor(value, symbolic_context=context)
    result = graph.call_function(target, (*nodes, *options))
    with mode:
        result.meta["val"] = target(*(node.meta["val"] for node in nodes), *options)
    graph.output(result)
    correct_fakes(fx.GraphModule({}, graph))
    assert [value.stride() for value in result.meta["val"]] == expected


@pytest.mark.skipif(not mkl.is_available(), reason="other libraries lay results out row by row")
@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 2], [2, 0, 1]], ids=str)
@pytest.mark.parametrize("name", ["_fft_c2c", "_fft_c2r", "_fft_r2c"])
def test_transforms_lie_as_eager_has_them(name: str, dims: list[int]) -> None:
    x = torch.randn(3, 4, 6, dtype=torch.float32 if name == "_fft_r2c" else torch.complex64).transpose(0, 1)
    last = {"_fft_c2c": True, "_fft_c2r": 2 * x.shape[dims[-1]] - 2, "_fft_r2c": True}[name]
    target = getattr(torch.ops.aten, name).default
    result = target(x, dims, 0, last)
    graph = fx.Graph()
    operand = graph.placeholder("x")
    node = graph.call_function(target, (operand, dims, 0, last))
    mode = FakeTensorMode()
    operand.meta["val"] = mode.from_tensor(x)
    with mode:
        node.meta["val"] = torch.empty(result.shape, dtype=result.dtype)
    graph.output(node)
    correct_fakes(fx.GraphModule({}, graph))
    assert node.meta["val"].stride() == result.stride()


def test_a_view_with_a_dim_of_size_1_has_the_strides_of_torchs_own_arithmetic() -> None:
    graph = fx.Graph()
    operand = graph.placeholder("x")
    node = graph.call_function(torch.ops.aten.view.default, (operand, [1, 2, 4]))
    with FakeTensorMode():
        operand.meta["val"] = torch.empty_strided((1, 2, 4, 1), (4, 4, 1, 4))
        node.meta["val"] = operand.meta["val"].view(1, 2, 4)
    graph.output(node)
    correct_fakes(fx.GraphModule({}, graph))
    assert node.meta["val"].stride() == torch.empty_strided((1, 2, 4, 1), (4, 4, 1, 4)).view(1, 2, 4).stride()


SIZES = [(2, 3), (1, 4), (4, 1), (1, 3, 1), (2, 1, 3), (1, 1, 2), (3, 4, 1, 2)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_views_are_laid_out_as_by_torch(sizes: tuple[int, ...]) -> None:
    x = torch.randn(sizes)
    count, checked = x.numel(), 0
    for order in itertools.permutations(range(x.ndim)):
        for wanted in ((count,), (1, count), (count, 1), (1, count, 1), x.shape, x.shape[::-1], (1, *x.shape)):
            seen = x.permute(order)
            try:
                expected = seen.view(wanted).stride()
            except RuntimeError:
                assert view_strides(seen, wanted) is None
            else:
                assert view_strides(seen, wanted) == expected
                checked += 1
    assert checked > 5


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_results_are_laid_out_as_by_torch(sizes: tuple[int, ...]) -> None:
    x = torch.randn(sizes)
    for order in itertools.permutations(range(x.ndim)):
        seen = x.permute(order)
        assert iterator_strides([seen], seen.shape, has_numbers=True) == (seen + 1).stride()
        assert iterator_strides([seen], seen.shape, has_numbers=False) == seen.sin().stride()
        for other in (torch.randn(seen.shape), seen[:1], torch.randn(seen.shape[-1]), seen.clone()):
            wanted = (seen * other).stride()
            assert iterator_strides([seen, other], seen.shape, has_numbers=False) == wanted

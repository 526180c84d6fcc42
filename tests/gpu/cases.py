"""Functions over every kind of kernel, with inputs that are drawn on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Case(NamedTuple):
    """A function, and what makes its inputs."""

    function: Callable[..., Any]
    inputs: Callable[[], Sequence[Tensor]]


def randn(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], Sequence[Tensor]]:
    return lambda: [torch.randn(shape).to(dtype) for shape in shapes]


def integers(*shapes: tuple[int, ...], low: int = -100, high: int = 100) -> Callable[[], Sequence[Tensor]]:
    return lambda: [torch.randint(low, high, shape) for shape in shapes]


def indices_into(size: int, *shapes: tuple[int, ...]) -> Callable[[], Sequence[Tensor]]:
    """Indices of the first shape, then data of the others."""
    return lambda: [torch.randint(0, size, shapes[0]), *(torch.randn(shape) for shape in shapes[1:])]


def _group_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, 8, w, b))


def _batch_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, w, b, training=True))


def _rms_norm(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    residual = x + r
    return residual, F.rms_norm(residual, (x.shape[-1],), w)


def _masked_softmax(x: Tensor) -> Tensor:
    return F.softmax(x.masked_fill(torch.ones(x.shape[-2:], device=x.device).tril() == 0, -torch.inf), -1)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64


def _written_and_summed(x: Tensor) -> tuple[Tensor, Tensor]:
    y = F.relu(x) * 2
    return y, y.sum()


CASES: dict[str, Case] = {
    "written and summed": Case(_written_and_summed, randn((1024, 1024))),
    "written and summed, of prime sizes": Case(_written_and_summed, randn((1021, 1031))),
    "rows written and summed": Case(lambda x: (torch.softmax(x, -1), torch.logsumexp(x, -1).sum()), randn((777, 1000))),
    "entropy": Case(lambda x: -(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1).mean(), randn((600, 1500))),
    "few long rows": Case(lambda x, s: torch.relu(x) * torch.exp(s)[:, None], randn((3, 100000), (3,))),
    "softmax of pairs of rows": Case(lambda x: F.softmax(x, -1), randn((601, 2048))),
    "log softmax of long rows bf16": Case(lambda x: F.log_softmax(x, -1), randn((300, 16384), dtype=BF16)),
    "labels": Case(
        lambda y, x: F.cross_entropy(x, y, ignore_index=3),
        lambda: [torch.randint(0, 900, (700,)), torch.randn(700, 900)],
    ),
    "pointwise": Case(lambda x, y: torch.relu(x * y + 1) * torch.sigmoid(y) - x, randn((1000, 33), (1000, 33))),
    "broadcast": Case(lambda x, y: x * y + y, randn((64, 1, 65), (7, 65))),
    "one element": Case(lambda x: x * 2 + 1, randn(())),
    "gelu": Case(F.gelu, randn((123, 457))),
    "gelu bf16": Case(F.gelu, randn((123, 457), dtype=BF16)),
    "tanh gelu f16": Case(lambda x: F.gelu(x, approximate="tanh"), randn((64, 1024), dtype=F16)),
    "functions": Case(
        lambda x: torch.stack([torch.exp(x), torch.tanh(x), torch.sin(x), torch.erf(x), torch.atan(x)]), randn((999,))
    ),
    "more functions": Case(
        lambda x: torch.log1p(x.abs()) + torch.expm1(x) + torch.rsqrt(x * x + 1) + torch.cosh(x), randn((999,))
    ),
    "rounding": Case(
        lambda x: torch.round(x * 10) + torch.floor(x) + torch.ceil(x) + torch.trunc(x * 3), randn((999,))
    ),
    "power": Case(lambda x, y: (x.abs() + 0.1) ** y, randn((999,), (999,))),
    "f64": Case(lambda x: torch.exp(x) * torch.sqrt(x.abs()) / (1 + x * x), randn((999,), dtype=F64)),
    "divide bf16": Case(lambda x, y: x / (y.abs() + 1), randn((999,), (999,), dtype=BF16)),
    "where": Case(lambda x, y: torch.where(x > y, x, -y), randn((50, 51), (50, 51))),
    "compare": Case(lambda x, y: (x > y) & (x < 1) | (y == x), randn((50, 51), (50, 51))),
    "integers": Case(lambda x, y: (x * y + x // 7 - y % 5) ^ (x << 2), integers((500,), (500,))),
    "integers to floats": Case(lambda x: x.float() / 3 + x.double().sqrt().nan_to_num().float(), integers((500,))),
    "softmax": Case(lambda x: F.softmax(x, -1), randn((37, 1000))),
    "short softmax": Case(lambda x: F.softmax(x, -1), randn((1000, 5))),
    "long softmax": Case(lambda x: F.softmax(x, -1), randn((3, 50001))),
    "softmax bf16": Case(lambda x: F.softmax(x, -1), randn((64, 2048), dtype=BF16)),
    "log softmax along 0": Case(lambda x: F.log_softmax(x, 0), randn((100, 65))),
    "masked softmax": Case(_masked_softmax, randn((2, 3, 65, 65))),
    "layer norm": Case(lambda x, w, b: F.layer_norm(x, (768,), w, b), randn((65, 768), (768,), (768,))),
    "layer norm bf16": Case(
        lambda x, w, b: F.layer_norm(x, (1024,), w, b), randn((65, 1024), (1024,), (1024,), dtype=BF16)
    ),
    "rms norm": Case(_rms_norm, randn((33, 1000), (33, 1000), (1000,), dtype=BF16)),
    "batch norm": Case(_batch_norm, randn((8, 16, 14, 14), (16,), (16,))),
    "group norm": Case(_group_norm, randn((4, 32, 9, 9), (32,), (32,))),
    "long group norm": Case(_group_norm, randn((4, 64, 56, 56), (64,), (64,))),
    "group norm of neighbours": Case(
        lambda x, w, b: _group_norm(x.to(memory_format=torch.channels_last), w, b), randn((4, 64, 28, 28), (64,), (64,))
    ),
    "batch norm + silu": Case(
        lambda x, w, b: F.silu(F.batch_norm(x, None, None, w, b, training=True)), randn((8, 16, 14, 14), (16,), (16,))
    ),
    "sum": Case(torch.sum, randn((301, 403))),
    "row sum": Case(lambda x: x.sum(1), randn((301, 403))),
    "column sum": Case(lambda x: x.sum(0), randn((301, 403))),
    "middle sum": Case(lambda x: x.sum(1), randn((30, 40, 50))),
    "long sum": Case(torch.sum, randn((1 << 20,))),
    "tall column sum": Case(lambda x: x.sum(0), randn((50000, 3))),
    "mean bf16": Case(lambda x: x.mean(-1), randn((100, 1000), dtype=BF16)),
    "variance": Case(lambda x: torch.var_mean(x, -1), randn((100, 1000))),
    "extrema": Case(lambda x: (x.amax(0), x.amin(1), x.max(), x.min()), randn((100, 101))),
    "argmax": Case(lambda x: (x.argmax(-1), x.argmin(0), x.argmax()), randn((100, 1001))),
    "any": Case(lambda x: ((x > 3).any(-1), (x > -3).all(0)), randn((100, 101))),
    "product": Case(lambda x: (x + 1).prod(-1), randn((100, 21))),
    "integer sum": Case(lambda x: (x.sum(), x.sum(0)), integers((100, 101))),
    "cumsum": Case(lambda x: x.cumsum(-1), randn((33, 1025))),
    "cumsum of integers": Case(lambda x: x.cumsum(0), integers((333, 5))),
    "transpose": Case(lambda x, y: x.t() + y, randn((130, 257), (257, 130))),
    "permute": Case(lambda x: x.permute(2, 0, 1).contiguous() * 2, randn((17, 18, 19))),
    "cat": Case(lambda x, y: torch.cat([x, y * 2], 1), randn((33, 20), (33, 31))),
    "pad and slice": Case(lambda x: F.pad(x[:, 3:20], (1, 2)) + 1, randn((33, 40))),
    "flip and roll": Case(lambda x: x.flip(1) + x.roll(3, 0), randn((33, 40))),
    "embedding": Case(lambda i, w: F.embedding(i, w).sum(1), indices_into(100, (8, 16), (100, 64))),
    "gather": Case(lambda i, x: x.gather(1, i), indices_into(30, (10, 7), (10, 30))),
    "index": Case(lambda i, x: x[i] * 2, indices_into(30, (77,), (30, 9))),
    "scatter": Case(lambda i, x: x.new_zeros(30, 9).index_add(0, i, x), indices_into(30, (77,), (77, 9))),
    "greatest of a scatter": Case(
        lambda i, x: x.new_zeros(30).scatter_reduce(0, i, x, "amax"), indices_into(30, (77,), (77,))
    ),
    "cross entropy": Case(lambda i, x: F.cross_entropy(x, i), indices_into(1000, (64,), (64, 1000))),
    "product of matrices": Case(lambda x, y: x @ y + 1, randn((65, 130), (130, 33))),
    "linear gelu bf16": Case(
        lambda x, w, b: F.gelu(F.linear(x, w, b)), randn((64, 128), (256, 128), (256,), dtype=BF16)
    ),
    "attention": Case(_attention, randn((2, 4, 33, 32), (2, 4, 33, 32), (2, 4, 33, 32))),
    "convolution": Case(lambda x, w: F.relu(F.conv2d(x, w, padding=1)), randn((2, 3, 16, 16), (8, 3, 3, 3))),
    "pooling": Case(lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), randn((2, 8, 16, 16))),
    "topk": Case(lambda x: torch.topk(x * 2, 5)[0] + 1, randn((20, 100))),
    "several results": Case(lambda x: (x + 1, x.sum(), x.t(), x[1:] * 2), randn((20, 100))),
    "created": Case(
        lambda x: x + torch.arange(100, device=x.device) * torch.full((), 0.5, device=x.device), randn((20, 100))
    ),
    "number on the CPU": Case(lambda x: x * torch.tensor(3.0) + torch.tensor(2), randn((20, 100))),
}

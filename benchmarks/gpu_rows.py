"""The rows of the benchmark on a GPU: functions, sizes, and the fewest bytes or operations that each needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .workloads import Block

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
BF16 = torch.bfloat16


@dataclass(frozen=True)
class Row:
    """`call` makes, for a way of compiling, a call of no arguments; what bounds the row may be neither of the two.

    `tolerance` is how far, relative to its norm, a result may be from eager's.
    """

    name: str
    call: Callable[[Compile], Callable[[], Any]]
    bytes: int = 0
    operations: int = 0
    tolerance: float = 1e-2

    @property
    def is_bound_by_host(self) -> bool:
        return not (self.bytes or self.operations)


def of(function: Callable[..., Any], *makers: Callable[[], Tensor]) -> Callable[[Compile], Callable[[], Any]]:
    """Calls of one function without gradients."""

    def call(compile: Compile) -> Callable[[], Any]:
        inputs, compiled = [make() for make in makers], compile(function)

        def run() -> Any:
            with torch.no_grad():
                return compiled(*inputs)

        return run

    return call


def trained(function: Callable[..., Tensor], *makers: Callable[[], Tensor]) -> Callable[[Compile], Callable[[], Any]]:
    """Calls of one function, and its gradients for all inputs that are floats; the result is the first gradient."""

    def call(compile: Compile) -> Callable[[], Any]:
        inputs, compiled = [make() for make in makers], compile(function)
        varied = [value.requires_grad_() for value in inputs if value.is_floating_point()]
        with torch.no_grad():
            direction = torch.randn_like(function(*inputs))

        def run() -> Any:
            return torch.autograd.grad(compiled(*inputs), varied, direction)[0]

        return run

    return call


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], Tensor]:
    return lambda: torch.randn(shape, device="cuda").to(dtype)


def randint(high: int, *shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(high, shape, device="cuda")


# -- functions ---------------------------------------------------------------------------------------


def pointwise(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.relu(x * y + z) * torch.sigmoid(y) - x


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return F.softmax(x.masked_fill(mask, -torch.inf), -1)


def residual_rms_norm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    total = x + residual
    return F.rms_norm(total, (x.shape[-1],), weight), total


def batch_norm_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.batch_norm(x, None, None, weight, bias, training=True))


def group_norm_silu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.silu(F.group_norm(x, 32, weight, bias))


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.linear(x, weight, bias))


def swiglu(x: Tensor, y: Tensor) -> Tensor:
    return F.silu(x) * y


def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def bias_residual_relu(x: Tensor, residual: Tensor, bias: Tensor) -> Tensor:
    return F.relu(x + bias + residual)


# -- training ----------------------------------------------------------------------------------------


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 128), nn.LayerNorm(128), nn.Linear(128, 16))


def blocks() -> nn.Module:
    return nn.Sequential(*(Block(512, 8) for _ in range(4)))


def forward(make: Callable[[], nn.Module], *shape: int, dtype: torch.dtype = torch.float32) -> Any:
    def call(compile: Compile) -> Callable[[], Any]:
        model = make().to("cuda", dtype)
        x = torch.randn(shape, device="cuda", dtype=dtype)
        compiled = compile(model)

        def run() -> Any:
            with torch.no_grad():
                return compiled(x)

        return run

    return call


def training(make: Callable[[], nn.Module], *shape: int, dtype: torch.dtype = torch.float32) -> Any:
    """Forward, backward and a step of SGD."""

    def call(compile: Compile) -> Callable[[], Any]:
        model = make().to("cuda", dtype)
        x = torch.randn(shape, device="cuda", dtype=dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        loss_of = compile(lambda x: model(x).float().square().mean())

        def run() -> Tensor:
            loss: Tensor = loss_of(x)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return run

    return call


def adam(compile: Compile) -> Callable[[], Any]:
    """One step over 40 tensors."""
    parameters = [torch.randn(256, 256, device="cuda", requires_grad=True) for _ in range(40)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.Adam(parameters, lr=1e-3, foreach=True, capturable=True)
    step = compile(optimizer.step)

    def run() -> Any:
        with torch.no_grad():
            step()
        return parameters[0].detach().clone()

    return run


# -- rows --------------------------------------------------------------------------------------------

MiB = 1 << 20
ROWS = (
    Row("pointwise, 3 × 128 MiB", of(pointwise, *[randn(32 * MiB)] * 3), 4 * 128 * MiB),
    Row("gelu f32, 512 MiB", of(F.gelu, randn(128 * MiB)), 2 * 512 * MiB),
    Row("softmax f32 32768×2048", of(lambda x: F.softmax(x, -1), randn(32768, 2048)), 2 * 256 * MiB),
    Row("softmax bf16 65536×1024", of(lambda x: F.softmax(x, -1), randn(65536, 1024, dtype=BF16)), 2 * 128 * MiB),
    Row(
        "masked softmax 16×16×1024×1024",
        of(masked_softmax, randn(16, 16, 1024, 1024), lambda: torch.ones(1024, 1024, device="cuda").triu(1) > 0),
        2 * 1024 * MiB,
    ),
    Row(
        "layer norm f32 65536×1024",
        of(lambda x, w, b: F.layer_norm(x, (1024,), w, b), randn(65536, 1024), randn(1024), randn(1024)),
        2 * 256 * MiB,
    ),
    Row(
        "residual + rms norm bf16 32768×4096",
        of(residual_rms_norm, randn(32768, 4096, dtype=BF16), randn(32768, 4096, dtype=BF16), randn(4096, dtype=BF16)),
        4 * 256 * MiB,
    ),
    Row("sum, 512 MiB", of(torch.sum, randn(128 * MiB)), 512 * MiB),
    Row("column sum 32768×4096", of(lambda x: x.sum(0), randn(32768, 4096)), 512 * MiB),
    Row("row argmax 32768×4096", of(lambda x: x.argmax(1), randn(32768, 4096)), 512 * MiB),
    Row("transpose + add, 512 MiB", of(lambda x, y: x.t() + y, randn(8192, 16384), randn(16384, 8192)), 3 * 512 * MiB),
    Row(
        "batch norm + relu 64×256×56×56",
        of(batch_norm_relu, randn(64, 256, 56, 56), randn(256), randn(256)),
        3 * 4 * 64 * 256 * 56 * 56,
    ),
    Row(
        "group norm + silu 64×256×56×56",
        of(group_norm_silu, randn(64, 256, 56, 56), randn(256), randn(256)),
        2 * 4 * 64 * 256 * 56 * 56,
    ),
    Row("cross entropy 4096×32000", of(F.cross_entropy, randn(4096, 32000), randint(32000, 4096)), 4 * 4096 * 32000),
    Row(
        "embedding + sum 8192×64 of 100000×256",
        of(lambda i, w: F.embedding(i, w).sum(1), randint(100000, 8192, 64), randn(100000, 256)),
        4 * 8192 * 64 * 256,
    ),
    Row(
        "tanh gelu bf16, 256 MiB", of(lambda x: F.gelu(x, approximate="tanh"), randn(128 * MiB, dtype=BF16)), 512 * MiB
    ),
    Row("swiglu bf16, 3 × 256 MiB", of(swiglu, *[randn(16384, 8192, dtype=BF16)] * 2), 3 * 256 * MiB),
    Row(
        "rotary embedding bf16 16×32×2048×128",
        of(rotary, randn(16, 32, 2048, 128, dtype=BF16), *[randn(2048, 128, dtype=BF16)] * 2),
        2 * 256 * MiB,
    ),
    Row(
        "bias + residual + relu bf16 32768×4096",
        of(bias_residual_relu, *[randn(32768, 4096, dtype=BF16)] * 2, randn(4096, dtype=BF16)),
        3 * 256 * MiB,
    ),
    Row("softmax f32 16384×4096", of(lambda x: F.softmax(x, -1), randn(16384, 4096)), 2 * 256 * MiB),
    Row("log softmax bf16 8192×16384", of(lambda x: F.log_softmax(x, -1), randn(8192, 16384, dtype=BF16)), 512 * MiB),
    Row(
        "layer norm bf16 16384×4096",
        of(
            lambda x, w, b: F.layer_norm(x, (4096,), w, b),
            randn(16384, 4096, dtype=BF16),
            *[randn(4096, dtype=BF16)] * 2,
        ),
        2 * 128 * MiB,
    ),
    Row(
        "rms norm f32 32768×2048",
        of(lambda x, w: F.rms_norm(x, (2048,), w), randn(32768, 2048), randn(2048)),
        512 * MiB,
    ),
    Row("row sum 32768×4096", of(lambda x: x.sum(1), randn(32768, 4096)), 512 * MiB),
    Row("row maximum bf16 65536×4096", of(lambda x: x.amax(1), randn(65536, 4096, dtype=BF16)), 512 * MiB),
    Row("row variance 32768×4096", of(lambda x: x.var(1), randn(32768, 4096)), 512 * MiB),
    Row("channel mean 64×512×56×56", of(lambda x: x.mean((2, 3)), randn(64, 512, 56, 56)), 4 * 64 * 512 * 56 * 56),
    Row("mean squared error, 2 × 512 MiB", of(F.mse_loss, *[randn(128 * MiB)] * 2), 1024 * MiB),
    Row(
        "cat + relu bf16 2 × 32768×4096",
        of(lambda x, y: F.relu(torch.cat([x, y], 1)), *[randn(32768, 4096, dtype=BF16)] * 2),
        1024 * MiB,
    ),
    Row(
        "permute NCHW to NHWC 64×256×56×56",
        of(lambda x: x.permute(0, 2, 3, 1).contiguous(), randn(64, 256, 56, 56)),
        8 * 64 * 256 * 56 * 56,
    ),
    Row("running sum 32768×4096", of(lambda x: x.cumsum(1), randn(32768, 4096)), 1024 * MiB),
    Row(
        "linear + gelu bf16 16384×1024×4096",
        of(linear_gelu, randn(16384, 1024, dtype=BF16), randn(4096, 1024, dtype=BF16), randn(4096, dtype=BF16)),
        operations=2 * 16384 * 1024 * 4096,
    ),
    Row(
        "product bf16 4096³",
        of(torch.mm, randn(4096, 4096, dtype=BF16), randn(4096, 4096, dtype=BF16)),
        operations=2 * 4096**3,
    ),
    Row("softmax f32 32768×2048, trained", trained(lambda x: F.softmax(x, -1), randn(32768, 2048)), 5 * 256 * MiB),
    Row(
        "layer norm f32 65536×1024, trained",
        trained(lambda x, w, b: F.layer_norm(x, (1024,), w, b), randn(65536, 1024), randn(1024), randn(1024)),
        5 * 256 * MiB,
    ),
    Row(
        "rms norm bf16 32768×4096, trained",
        trained(lambda x, w: F.rms_norm(x, (4096,), w), randn(32768, 4096, dtype=BF16), randn(4096, dtype=BF16)),
        5 * 256 * MiB,
    ),
    Row("gelu bf16, 256 MiB, trained", trained(F.gelu, randn(128 * MiB, dtype=BF16)), 5 * 256 * MiB),
    Row(
        "swiglu bf16, 2 × 256 MiB, trained",
        trained(swiglu, *[randn(16384, 8192, dtype=BF16)] * 2),
        8 * 256 * MiB,
    ),
    Row(
        "cross entropy 4096×32000, trained",
        trained(F.cross_entropy, randn(4096, 32000), randint(32000, 4096)),
        3 * 4 * 4096 * 32000,
    ),
    Row(
        "batch norm + relu 64×256×56×56, trained",
        trained(batch_norm_relu, randn(64, 256, 56, 56), randn(256), randn(256)),
        8 * 4 * 64 * 256 * 56 * 56,
    ),
    Row(
        "group norm + silu 64×256×56×56, trained",
        trained(group_norm_silu, randn(64, 256, 56, 56), randn(256), randn(256)),
        5 * 4 * 64 * 256 * 56 * 56,
    ),
    Row(
        "max pool 3×3 64×64×112×112, trained",
        trained(lambda x: F.max_pool2d(x, 3, 2, 1), randn(64, 64, 112, 112)),
        4 * 64 * 64 * (2 * 112 * 112 + 2 * 56 * 56),
    ),
    Row(
        "linear + gelu bf16 16384×1024×4096, trained",
        trained(linear_gelu, randn(16384, 1024, dtype=BF16), randn(4096, 1024, dtype=BF16), randn(4096, dtype=BF16)),
        operations=3 * 2 * 16384 * 1024 * 4096,
    ),
    Row(
        "linear bf16, batch 1", of(F.linear, *(randn(n, 1024, dtype=BF16) for n in (1, 1024)), randn(1024, dtype=BF16))
    ),
    Row("linear bf16, batch 2048", of(F.linear, *(randn(n, 1024, dtype=BF16) for n in (2048, 1024)))),
    Row("64 elements", of(lambda x: x + 1, randn(64))),
    Row("mlp forward", forward(mlp, 256, 64)),
    Row("mlp training step", training(mlp, 256, 64)),
    Row("4 blocks bf16 forward", forward(blocks, 32, 128, 512, dtype=BF16), tolerance=3e-2),
    Row("4 blocks bf16 training step", training(blocks, 32, 128, 512, dtype=BF16), tolerance=3e-2),
    Row("adam, 40 tensors", adam),
)

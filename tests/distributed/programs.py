"""What each of the processes of a group runs: the same programs compiled and eager, for the test to compare.

Every program is a function of its rank; it gives named tensors. The test process runs none of this.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

WORLD = 2
ROWS, FEATURES = 8, 16

Program = Callable[[int, str], dict[str, Tensor]]
"""(rank, backend) → what the rank computed."""


def network() -> nn.Sequential:
    """The same weights in every process."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, FEATURES))


def batch() -> Tensor:
    """All rows, of which rank r has every other one from r on."""
    return torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(1))


def loss_of(output: Tensor) -> Tensor:
    return output.square().mean()


def single_process() -> dict[str, Tensor]:
    """Two steps of SGD on the whole batch, in eager."""
    model, x = network(), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results: dict[str, Tensor] = {}
    for step in range(2):
        optimizer.zero_grad()
        output = model(x)
        loss_of(output).backward()
        results[f"output {step}"] = output.detach()
        results |= {f"grad {step} {name}": value.clone() for name, value in _gradients(model)}
        optimizer.step()
    return results


def _gradients(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, value.grad) for name, value in model.named_parameters() if value.grad is not None]


def _whole(value: Tensor) -> Tensor:
    """A plain tensor: gathered, and arrived."""
    value = value.full_tensor() if isinstance(value, DTensor) else value
    return value.wait() if isinstance(value, collectives.AsyncCollectiveTensor) else value


def _train(model: nn.Module, run: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, Tensor]:
    """The same two steps; gradients and outputs are gathered."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results: dict[str, Tensor] = {}
    for step in range(2):
        optimizer.zero_grad()
        output = run(x)
        loss_of(output).backward()
        results[f"output {step}"] = _whole(output.detach())
        for name, value in _gradients(model):
            results[f"grad {step} {name.removeprefix('module.')}"] = _whole(value).clone()
        optimizer.step()
    return results


# -- programs ----------------------------------------------------------------------------------------


def data_parallel(rank: int, backend: str) -> dict[str, Tensor]:
    model = DistributedDataParallel(network())
    return _train(model, torch.compile(model, backend=backend), batch()[rank::WORLD])


def fully_sharded(rank: int, backend: str) -> dict[str, Tensor]:
    model, mesh = network(), init_device_mesh("cpu", (WORLD,))
    for layer in (model[0], model[3]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return _train(model, torch.compile(model, backend=backend), batch()[rank::WORLD])


def tensor_parallel(rank: int, backend: str) -> dict[str, Tensor]:
    """The first layer split by columns, the last one by rows; every rank has all of the batch."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.GELU(), nn.Linear(32, FEATURES))
    mesh = init_device_mesh("cpu", (WORLD,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    return _train(model, torch.compile(model, backend=backend), batch())


def distributed_tensors(rank: int, backend: str) -> dict[str, Tensor]:
    """Pointwise ops, a product and a softmax on sharded tensors, gathered inside."""
    mesh = init_device_mesh("cpu", (WORLD,))
    x = distribute_tensor(batch(), mesh, [Shard(0)])
    weight = distribute_tensor(network()[0].get_parameter("weight").detach(), mesh, [Replicate()])

    def function(x: Tensor, weight: Tensor) -> Tensor:
        y = torch.softmax(torch.tanh(x @ weight.t()) * 2, -1)
        assert isinstance(y, DTensor)
        return y.redistribute(mesh, [Replicate()]).to_local() + 1

    return {"output": torch.compile(function, backend=backend, fullgraph=True)(x, weight)}


def functional_collectives(rank: int, backend: str) -> dict[str, Tensor]:
    group = dist.group.WORLD

    def function(x: Tensor) -> tuple[Tensor, ...]:
        total = collectives.all_reduce(torch.exp(x), "sum", group)  # type: ignore[arg-type]
        rows = collectives.all_gather_tensor(x * 2, 0, group)  # type: ignore[arg-type]
        part = collectives.reduce_scatter_tensor(rows.sin(), "sum", 0, group)  # type: ignore[arg-type]
        swapped = collectives.all_to_all_single(x + 1, None, None, group)  # type: ignore[arg-type]
        return total / 2, rows.relu(), part + 1, swapped.cos()

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    found = compiled(batch()[rank::WORLD])
    again = compiled(batch()[rank::WORLD] + 1)  # while the first results live
    return {f"{call} {k}": value for call, values in enumerate((found, again)) for k, value in enumerate(values)}


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (data_parallel, fully_sharded, tensor_parallel, distributed_tensors, functional_collectives)
}

# -- a process ---------------------------------------------------------------------------------------


def run_rank(rank: int, folder: str, backends: tuple[str, ...]) -> None:
    """Runs every program under every backend; what it computed, or its error, goes to a file of the folder."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    warnings.filterwarnings("error", message="stepwell")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    for name, program in PROGRAMS.items():
        for backend in backends:
            torch._dynamo.reset()
            torch.save(program(rank, backend), Path(folder) / f"{name}-{backend}-{rank}.pt")
            dist.barrier()
    dist.destroy_process_group()

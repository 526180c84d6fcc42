"""Losses and layers that are trained: what a GPU runs of them is shared out over its programs, whatever was fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, fx
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.nn import functional as F
from xdsl.dialects.builtin import ModuleOp

from stepwell.backends.triton.target import H100
from stepwell.frontend.autograd import BoxedCallable, GraphRole, stepwell_backend
from stepwell.frontend.import_fx import import_graph
from stepwell.ir import loop
from stepwell.ir.target import TARGET, TargetAttr
from stepwell.lowering.pipelines import GPU, run
from stepwell.lowering.schedule.grid_plan import GridPlanner
from stepwell.lowering.schedule.model import KernelModel
from stepwell.runtime.compiler import make_context

LEAST_SHARE = 1 << 18
"""Scalar operations that one program may have while others have none: some 10 µs of a multiprocessor."""

MATRIX = (1024, 4096)


def _labels(x: Tensor) -> Tensor:
    return torch.arange(x.shape[0]) % x.shape[1]


def _written_and_summed(x: Tensor) -> tuple[Tensor, Tensor]:
    y = F.relu(x) * 2
    return y, y.sum()


def _norm_and_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    y = F.layer_norm(x, x.shape[-1:])
    return y, y.square().mean()


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "cross entropy": lambda x: F.cross_entropy(x, _labels(x)),
    "cross entropy of smoothed labels": lambda x: F.cross_entropy(x, _labels(x), label_smoothing=0.1),
    "divergence": lambda x: F.kl_div(x.log_softmax(-1), x.flip(0).softmax(-1), reduction="batchmean"),
    "entropy": lambda x: -(x.softmax(-1) * x.log_softmax(-1)).sum(-1).mean(),
    "written and summed": _written_and_summed,
    "norm and mean": _norm_and_mean,
    "dropped out and squared": lambda x: F.dropout(x, 0.5).square().mean(),
    "distance": lambda x: F.cosine_similarity(x, x.flip(0)).mean(),
    "over the greatest": lambda x: x / x.abs().max(),
    "standardized": lambda x: (x - x.mean()) / x.std(),
}


class Shares:
    """The kernels of every graph that it is given, as a GPU would run them: programs, and scalar operations of each."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, int]] = []

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any], role: GraphRole) -> BoxedCallable:
        module = import_graph(gm, inputs).module
        module.attributes[TARGET] = TargetAttr(H100)
        run(make_context(), module, GPU, after=self.note)
        return make_boxed_func(gm.forward)

    def note(self, stage: str, module: ModuleOp) -> None:
        if stage != "split":
            return
        for kernel in (op for op in module.walk() if isinstance(op, loop.KernelOp)):
            model = KernelModel(kernel)
            programs = model.sizes.volume([GridPlanner(model, H100).plan().grid])
            self.found.append((kernel.kernel_name.data, programs, model.work // programs))


@pytest.mark.parametrize("sizes", [MATRIX, (1021, 4093)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_program_has_all_the_work(name: str, sizes: tuple[int, int]) -> None:
    shares = Shares()
    compiled = torch.compile(FUNCTIONS[name], backend=lambda gm, inputs: stepwell_backend(gm, inputs, shares))
    found = compiled(torch.randn(sizes, requires_grad=True))
    results = found if isinstance(found, tuple) else (found,)
    torch.autograd.backward(results, [torch.ones_like(value) for value in results])
    assert len(shares.found) >= 2
    assert not [one for one in shares.found if one[1] < H100.cores and one[2] > LEAST_SHARE]

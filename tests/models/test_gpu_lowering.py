"""Every graph of the zoo becomes Triton's IR for an H100, so that what a GPU refuses is found without one.

Graphs are those of a CPU: what they leave to libraries is called otherwise on a GPU, and the kernels are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import fx
from torch._functorch._aot_autograd.utils import make_boxed_func

pytest.importorskip("transformers", reason="most models are those of transformers")

from stepwell.backends.triton.target import H100
from stepwell.frontend.autograd import BoxedCallable, GraphRole, stepwell_backend
from stepwell.frontend.import_fx import import_graph
from stepwell.ir import tt
from stepwell.ir.target import TARGET, TargetAttr
from stepwell.ir.tt.text import ttir
from stepwell.lowering.pipelines import GPU, run
from stepwell.runtime.compiler import make_context
from stepwell.tests.models.accuracy import outputs_of
from stepwell.tests.models.cases import cases
from stepwell.tests.models.zoo import ZOO, build


class Lowering:
    """Lowers each graph that it is given for an H100, and has eager run it."""

    def __init__(self) -> None:
        self.kernels: dict[GraphRole, int] = {}

    def __call__(self, gm: fx.GraphModule, inputs: Sequence[Any], role: GraphRole) -> BoxedCallable:
        module = import_graph(gm, inputs).module
        module.attributes[TARGET] = TargetAttr(H100)
        run(make_context(), module, GPU, after=lambda stage, lowered: lowered.verify())
        texts = [ttir(op) for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
        self.kernels[role] = self.kernels.get(role, 0) + len(texts)
        return make_boxed_func(gm.forward)

    def backend(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return stepwell_backend(gm, inputs, self)


def _compiled(module: torch.nn.Module, lowering: Lowering, **options: Any) -> Any:
    return torch.compile(module, backend=lowering.backend, **options)


@cases(ZOO, "unet")
def test_inference(name: str) -> None:
    module, inputs = build(name)
    lowering = Lowering()
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        _compiled(module.eval(), lowering)(**inputs)
    assert lowering.kernels[GraphRole.INFERENCE]


@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.slow)])
@cases(ZOO, "nerf", "mlp", "gnn")
def test_training(name: str, dynamic: bool) -> None:
    module, inputs = build(name)
    lowering = Lowering()
    with torch._dynamo.config.patch(allow_rnn=True):
        outputs = outputs_of(_compiled(module.train(), lowering, dynamic=dynamic)(**inputs)).values()
        losses = [value.float().square().mean() for value in outputs if value.is_floating_point()]
        torch.stack(losses).sum().backward()
    assert lowering.kernels[GraphRole.FORWARD]
    assert lowering.kernels[GraphRole.BACKWARD]

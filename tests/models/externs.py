"""Which operators the zoo may leave to eager, each with the reason; an extern outside of this list fails a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx
from xdsl.dialects.builtin import ModuleOp

from stepwell.ir import host
from stepwell.runtime.config import config
from stepwell.runtime.observers import CompiledGraph
from stepwell.runtime.torch_backend import compile_captured

LIBRARY = "a product: the library's, with its surroundings fused"
CONVOLUTION = "a convolution: the library's, in the layout that it likes"
ATTENTION = "attention: the library's, in blocks that stay in the cache"
RECURRENT = "a recurrent layer, the products of all of its steps: the library's"

REVIEWED: dict[str, str] = {
    **dict.fromkeys(("aten.mm.out", "aten.addmm.out", "aten.bmm.out", "aten.baddbmm.out"), LIBRARY),
    **dict.fromkeys(("aten.mv.out", "aten.addmv.out", "aten.dot.out"), LIBRARY),
    **dict.fromkeys(("aten.convolution.default", "aten.convolution_backward.default"), CONVOLUTION),
    "aten._scaled_dot_product_flash_attention_for_cpu.default": ATTENTION,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default": ATTENTION,
    "aten._transformer_encoder_layer_fwd.default": "eager's fast path through a whole layer, which torch chose",
    "aten.mkldnn_rnn_layer.default": RECURRENT,
    "aten._embedding_bag.default": "sums over bags of any length, which are given by where they begin",
    "aten._embedding_bag_backward.default": "the same, backward",
    "aten.topk.default": "selects by partial sorting, which is no loop over indices",
    "aten.triu_indices.default": "a table of integers with one row per element above a diagonal",
}


def is_library(target: str) -> bool:
    """Whether it is a product, a layer of products, a convolution or attention, which libraries exist for."""
    return REVIEWED.get(target) in {LIBRARY, CONVOLUTION, ATTENTION, RECURRENT}


@dataclass
class ExternRecorder:
    """Notes the externs of every graph that it sees compiled."""

    targets: set[str] = field(default_factory=set)
    graphs: int = 0

    def before(self, graph: str, pass_name: str, module: ModuleOp) -> None: ...

    def after(self, graph: str, stage: str, module: ModuleOp) -> None: ...

    def finished(self, graph: CompiledGraph) -> None:
        self.graphs += 1
        self.targets |= {op.target.data for op in graph.module.walk() if isinstance(op, host.ExternOp)}

    def backend(self, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """A backend of `torch.compile` that tells this recorder."""
        return compile_captured(gm, example_inputs, config.snapshot(), self)

    @property
    def unexpected(self) -> set[str]:
        return self.targets - REVIEWED.keys()

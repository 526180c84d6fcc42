"""Registers Stepwell under a name of one's own through torch's hook, as other compilers do.

python examples/register_backend.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import register_backend

from stepwell.runtime.torch_backend import stepwell


@register_backend(name="counting")
def counting(gm: torch.fx.GraphModule, sample_inputs: list[Any]) -> Callable[..., Any]:
    """Counts the nodes of each graph that Dynamo captures, then compiles it with Stepwell."""
    calls = [node for node in gm.graph.nodes if node.op in ("call_function", "call_method", "call_module")]
    print(f"captured a graph of {len(calls)} calls for {len(sample_inputs)} inputs")
    compiled: Callable[..., Any] = stepwell(gm, sample_inputs)
    return compiled


def main() -> None:
    compiled = torch.compile(lambda x, y: torch.softmax(x @ y, dim=-1), backend="counting")
    x, y = torch.randn(8, 16), torch.randn(16, 4)
    torch.testing.assert_close(compiled(x, y), torch.softmax(x @ y, dim=-1))
    print("equal to eager")


if __name__ == "__main__":
    main()

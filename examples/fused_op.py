"""Adds an op of one's own: soft capping as one graph op, from ATen to machine code, in five rows.

A package puts the rows into modules that its entry points name (docs/extending.md); a script adds them itself.

python examples/fused_op.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition

import stepwell
from stepwell.frontend.aten.registry import imports
from stepwell.frontend.builder import GraphBuilder, Value
from stepwell.ir.dtypes import compute_type
from stepwell.ir.graph.elementwise import FloatUnaryOp
from stepwell.ir.graph.evaluate import FUNCTIONS
from stepwell.lowering.convert.graph.elementwise import FLOAT
from stepwell.lowering.convert.graph.scalars import Scalars

CAP = 30.0

# 1. The operator, as torch knows it: what eager computes, what shape it gives, and its derivative.


@torch.library.custom_op("example::softcap", mutates_args=())
def softcap(x: Tensor) -> Tensor:
    return torch.tanh(x / CAP) * CAP


softcap.register_fake(torch.empty_like)


def _backward(context: Any, gradient: Tensor) -> Tensor:
    result: Tensor = context.saved_tensors[0]
    return gradient * (1 - (result / CAP) ** 2)


softcap.register_autograd(_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))

# 2. The graph op. It inherits syntax, verifier and the trait Elementwise, for which passes ask.


@irdl_op_definition
class SoftCapOp(FloatUnaryOp):
    """tanh(x / 30) * 30, rounded once."""

    name = "example.softcap"


# 3. The import: overload → graph op, computed in f32 for bf16 and f16.


@imports("example.softcap")
def import_softcap(builder: GraphBuilder, x: Value) -> Value:
    return builder.unary(SoftCapOp, x.to(compute_type(builder.element)))


# 4. What it means, for the reference interpreter and constant folding.

FUNCTIONS[SoftCapOp] = lambda x: np.tanh(x.astype(np.float64) / CAP) * CAP

# 5. The conversion to a scalar of a loop; from there on it fuses like any other op.


def expand_softcap(s: Scalars, x: SSAValue) -> SSAValue:
    cap = s.constant(CAP, x.type)
    return s.apply(arith.MulfOp, s.apply(math.TanhOp, s.apply(arith.DivfOp, x, cap)), cap)


FLOAT[SoftCapOp] = expand_softcap


def scores(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(softcap(x + y) * 2, -1)


def main() -> None:
    x, y = torch.randn(64, 256, requires_grad=True), torch.randn(64, 256)
    compiled = torch.compile(scores, backend="stepwell")
    torch.testing.assert_close(compiled(x, y), scores(x, y))
    found, expected = (torch.autograd.grad(f(x, y).square().sum(), x) for f in (compiled, scores))
    torch.testing.assert_close(found, expected)
    forward = stepwell.explain(scores, x, y).graphs[0]
    (kernel,) = forward.kernels
    assert not forward.externs
    print(f"softcap is one of {len(kernel.ops)} ops of one kernel: {', '.join(kernel.ops)}")


if __name__ == "__main__":
    main()

"""Adds a pass of one's own to the pipeline: it replaces a sigmoid by a cheaper function.

python examples/user_pass.py
"""

from __future__ import annotations

from typing import Any

import torch
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern

from stepwell.ir import graph


class HardenSigmoid(RewritePattern):
    """sigmoid(x) → minimum(maximum(x / 6 + 0.5, 0), 1)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SigmoidOp, rewriter: PatternRewriter) -> None:
        sixth, half, zero, one = (graph.FullOp.make(v, op.element, op.sizes, op.type) for v in (1 / 6, 0.5, 0.0, 1.0))
        scaled = graph.MulOp.make(op.operand, sixth.result)
        shifted = graph.AddOp.make(scaled.results[0], half.result)
        low = graph.MaximumOp.make(shifted.results[0], zero.result)
        rewriter.replace(
            op, (sixth, half, zero, one, scaled, shifted, low, graph.MinimumOp.make(low.results[0], one.result))
        )


class HardenSigmoids(ModulePass):
    """Replace every sigmoid by its piecewise linear approximation."""

    name = "graph-harden-sigmoids"  # the prefix says after which stage it runs

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(HardenSigmoid()).rewrite_module(op)


def main() -> None:
    x = torch.linspace(-6, 6, 25)
    options: dict[str, Any] = {"passes": [HardenSigmoids()]}
    compiled = torch.compile(lambda x: torch.sigmoid(x) * 2, backend="stepwell", options=options)
    expected = torch.clamp(x / 6 + 0.5, 0, 1) * 2
    torch.testing.assert_close(compiled(x), expected)
    print("sigmoid became", compiled(x)[::6].tolist())


if __name__ == "__main__":
    main()

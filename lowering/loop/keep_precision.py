"""`loop-keep-precision`: keeps narrow floats in the wider type in which they are computed, within one kernel.

Not part of the default pipeline, because results then differ from eager's; `excess_precision` asks for it.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .moves import erase


class LoopKeepPrecision(ModulePass):
    """Drop the rounding between fused ops on bf16 and f16, as other compilers always do."""

    name = "loop-keep-precision"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.ExtFOp):
                _drop_rounding(inner)


def _drop_rounding(op: arith.ExtFOp) -> None:
    """
    extf(truncf(x : f32) : bf16) : f32 → x

    Does not fire when the value was wider than what it is extended to, or was read from memory.
    """
    rounding = op.input.owner
    if not isinstance(rounding, arith.TruncFOp) or rounding.input.type != op.result.type:
        return
    op.result.replace_all_uses_with(rounding.input)
    erase(op)
    if not any(rounding.result.uses):
        erase(rounding)

"""Gives one kernel a schedule of one's own, as a pass: each program takes one row, in blocks of 32 lanes.

The pass runs before the one that schedules every kernel, and turns the kernel it is for into tile IR itself.

python examples/kernel_schedule.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import stepwell
from stepwell.ir import loop, tile
from stepwell.ir.expr import ONE
from stepwell.ir.target import target_of
from stepwell.lowering.convert.loop_to_tile import KernelConverter, replace_by_launch
from stepwell.lowering.schedule.plan import ParallelPlan, Plan, Planner


class RowPlanner(Planner):
    """One program per row, where the kernel has rows; one register of lanes."""

    def plan(self) -> Plan:
        plan = super().plan()
        return replace(plan, rows=ONE) if isinstance(plan, ParallelPlan) and plan.prefix else plan


@dataclass(frozen=True)
class RowSchedule(ModulePass):
    """Schedule the kernels that compute these ops with one row per program and vectors of so many bits."""

    name = "loop-row-schedule"
    stage = "fused"  # the last stage before every kernel that is left gets a schedule

    kernels: tuple[str, ...] = ()
    vector_bits: int = 256

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = replace(target_of(op), vector_bits=self.vector_bits)
        chosen = [k for k in op.walk() if isinstance(k, loop.KernelOp) and k.kernel_name.data in self.kernels]
        for number, kernel in enumerate(chosen):
            converter = KernelConverter(kernel, f"{kernel.kernel_name.data}_by_row_{number}", target)
            converter.planner = RowPlanner(converter.model, target)
            converted = converter.convert()
            op.body.block.add_op(converted.kernel)
            replace_by_launch(kernel, converted)


def norms(x: Tensor) -> Tensor:
    return (x * x).sum(-1).sqrt()


def grids(x: Tensor) -> dict[str, str]:
    """The programs of each kernel."""
    ops = [kernel.compiled.op for kernel in stepwell.explain(norms, x).kernels]
    return {op.sym_name.data: str(op.grid_size) for op in ops if isinstance(op, tile.KernelOp)}


def main() -> None:
    x = torch.randn(100, 300)
    before = grids(x)
    with stepwell.config.patch(passes=[RowSchedule(("mul_sum_sqrt",))], strict=True):
        after = grids(x)
        torch.testing.assert_close(torch.compile(norms, backend="stepwell")(x), norms(x))
    assert after == {"mul_sum_sqrt_by_row_0": "100"}
    print(f"programs of the kernel: {before} by default, {after} by row")


if __name__ == "__main__":
    main()

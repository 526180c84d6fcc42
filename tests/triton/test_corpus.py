"""Every program of the golden corpus for a GPU becomes Triton's IR: nothing but what GPUs lack is refused."""

from __future__ import annotations

import pytest

from stepwell.ir import tile, tt
from stepwell.ir.errors import LoweringError
from stepwell.ir.target import TARGET, TargetAttr
from stepwell.ir.tt.text import ttir
from stepwell.lowering.pipelines import GPU, run
from stepwell.runtime.compiler import make_context
from stepwell.tests.golden.corpus import TARGETS
from stepwell.tests.golden.programs import KINDS, Program

ROWS = [
    pytest.param(kind, name, marks=() if kind == "norms" else pytest.mark.slow)
    for kind, rows in KINDS.items()
    for name in rows
]

REFUSED = ("a combiner that GPUs have", "an atomic operation")
"""What no kernel of a GPU can do: such operators stay eager's."""


def texts(program: Program) -> list[str]:
    """The kernels as Triton reads them."""
    module = program.make()
    module.attributes[TARGET] = TargetAttr(TARGETS["gpu"])
    try:
        run(make_context(), module, GPU)
    except LoweringError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        return []
    module.verify()
    assert not any(isinstance(op, tile.KernelOp) for op in module.walk())
    return [ttir(op) for op in module.body.block.ops if isinstance(op, tt.FuncOp)]


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_kernels(kind: str, name: str) -> None:
    for program in KINDS[kind][name].programs(name):
        if program.target == "gpu" and program.first == "graph":
            texts(program)

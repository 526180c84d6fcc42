"""Random graph programs, lowered for a GPU, mean what they meant."""

from __future__ import annotations

from hypothesis import assume, given
from xdsl.dialects.builtin import ModuleOp

from stepwell.ir import graph
from stepwell.ir.errors import LoweringError
from stepwell.ir.interpret import interpret
from stepwell.lowering.pipelines import GPU
from stepwell.tests.interpreters.lowered_triton import lower
from stepwell.tests.interpreters.support import eager_extern
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import Program, programs

PASSES = [name for stage, names in GPU if stage != "host" for name in names]

REFUSED = ("a combiner that GPUs have",)
"""What kernels of GPUs cannot do: such graphs run eagerly."""


def lowered(module: ModuleOp) -> ModuleOp:
    """A copy of the module for a GPU, in which tensors still are values."""
    module = module.clone()
    try:
        lower(module, *PASSES)
    except LoweringError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        assume(False)
    return module


def stores_in_any_order(module: ModuleOp) -> bool:
    """Whether several values may be for one place, of which any may stay on a GPU, as in eager."""
    return any(isinstance(op, graph.ScatterOp | graph.IndexPutOp) and op.combiner is None for op in module.walk())


@given(programs())
def test_lowering_for_a_gpu_keeps_the_meaning(program: Program) -> None:
    assume(not stores_in_any_order(program.module))
    reference = Reference(program)
    reference.check(interpret(lowered(program.module), program.arguments, extern=eager_extern))

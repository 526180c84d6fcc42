"""Laws that hold for random graph programs: text says everything, and no pass changes what a program means.

Runs derandomised in CI; `--hypothesis-profile=long` looks further. A counterexample becomes a test of its own.
"""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.printer import Printer

from stepwell.ir import loop
from stepwell.ir.host import LaunchOp
from stepwell.ir.interpret import Interpretation, interpret
from stepwell.lowering.analysis.accesses import extent_of
from stepwell.lowering.analysis.costs import LAUNCH_BYTES, bytes_moved
from stepwell.lowering.analysis.sizes import Sizes
from stepwell.lowering.pipelines import CPU, PASSES, make_pass
from stepwell.tests.interpreters.support import context, parse
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import Program, programs

GRAPH_PASSES = [name for name in PASSES if name.startswith("graph-")]
LOOP_PASSES = [name for name in PASSES if name.startswith("loop-")]
FUSION = next(names for stage, names in CPU if stage == "fused")


def text_of(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def after(module: ModuleOp, *passes: str) -> ModuleOp:
    """A copy of the module after passes, verified after each."""
    module = module.clone()
    for name in passes:
        make_pass(name).apply(context(), module)
        module.verify()
    return module


def check(reference: Reference, program: Program, module: ModuleOp, *passes: str) -> ModuleOp:
    """The module after further passes, which must mean what the program does."""
    try:
        module = after(module, *passes)
        reference.check(interpret(module, program.arguments))
    except Exception as error:
        error.add_note(f"after {', '.join(passes)} of\n{text_of(module)}")
        raise
    return module


def cost(module: ModuleOp) -> int:
    """Bytes that kernels move, with a launch as many bytes as it lasts."""
    return sum(bytes_moved(op) + LAUNCH_BYTES for op in module.walk() if isinstance(op, loop.KernelOp))


def moves_what_the_model_says(kernel: loop.KernelOp) -> bool:
    """Whether the model is exact: each tensor read by one map of plain indices, without guard, nothing copied, no nest
    empty (which counts as a point)."""
    sizes, maps = Sizes.at(kernel), dict[SSAValue, set[object]]()
    for op in kernel.walk():
        if isinstance(op, loop.NestOp) and any(sizes.likely(size) == 0 for size in op.sizes):
            return False
        if isinstance(op, loop.ReadOp) and isinstance(op.source.type, TensorType):
            plain = [expr for expr in op.map.results if not expr.is_constant]
            distinct = len({str(expr) for expr in plain}) == len(plain) and all(expr.is_leaf for expr in plain)
            if op.guard is not None or not distinct or any(extent_of(index) is None for index in op.indices):
                return False
            maps.setdefault(op.source, set()).add(op.access)
    return not kernel.operands and all(len(found) == 1 for found in maps.values())


@given(programs())
def test_text_says_everything(program: Program) -> None:
    program.module.verify()
    for module in (program.module, after(program.module, "convert-graph-to-loop")):
        text = text_of(module)
        assert text_of(parse(text)) == text


@given(programs())
def test_a_graph_pass_keeps_the_meaning(program: Program) -> None:
    reference = Reference(program)
    for name in GRAPH_PASSES:
        check(reference, program, program.module, name)


@given(programs())
def test_a_loop_pass_keeps_the_meaning(program: Program) -> None:
    reference = Reference(program)
    module = check(reference, program, program.module, "convert-graph-to-loop")
    for name in LOOP_PASSES:
        check(reference, program, module, name)


@given(programs())
def test_fusion_keeps_the_meaning_and_costs_no_more(program: Program) -> None:
    module = after(program.module, "convert-graph-to-loop")
    fused = check(Reference(program), program, module, *FUSION)
    assert cost(fused) <= cost(module)


@given(programs())
def test_tiles_move_the_bytes_that_the_model_says(program: Program) -> None:
    module = after(program.module, "convert-graph-to-loop", *FUSION)
    tiles = after(module, "convert-loop-to-tile")
    run = Interpretation(tiles)
    run.call(program.arguments)
    kernels = [op for op in module.walk() if isinstance(op, loop.KernelOp)]
    launches = [op for op in tiles.walk() if isinstance(op, LaunchOp)]
    for kernel, launch, traffic in zip(kernels, launches, run.traffic, strict=True):
        inputs = len(launch.inputs)
        outputs = slice(inputs, inputs + len(kernel.results))
        moved = sum(traffic.read[:inputs]) + sum(traffic.written[outputs])
        assert moved <= bytes_moved(kernel)
        assert moved == bytes_moved(kernel) or not moves_what_the_model_says(kernel)


@given(programs())
def test_lowering_to_tiles_keeps_the_meaning(program: Program) -> None:
    reference = Reference(program)
    module = after(program.module, "convert-graph-to-loop")
    check(reference, program, module, "convert-loop-to-tile")
    check(reference, program, module, *FUSION, "convert-loop-to-tile")

"""Laws that hold for random graph programs: text says everything, and no pass changes what a program means.

Runs derandomised in CI; `--hypothesis-profile=long` looks further. A counterexample becomes a test of its own.
"""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from stepwell.ir import loop
from stepwell.ir.interpret import interpret
from stepwell.lowering.analysis.costs import bytes_moved
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


def traffic(module: ModuleOp) -> int:
    return sum(bytes_moved(op) for op in module.walk() if isinstance(op, loop.KernelOp))


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
def test_fusion_keeps_the_meaning_and_moves_no_more_bytes(program: Program) -> None:
    module = after(program.module, "convert-graph-to-loop")
    fused = check(Reference(program), program, module, *FUSION)
    assert traffic(fused) <= traffic(module)


@given(programs())
def test_lowering_to_tiles_keeps_the_meaning(program: Program) -> None:
    reference = Reference(program)
    module = after(program.module, "convert-graph-to-loop")
    check(reference, program, module, "convert-loop-to-tile")
    check(reference, program, module, *FUSION, "convert-loop-to-tile")

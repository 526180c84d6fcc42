"""How LLVM is used: what it must not undo, and what of the process it must leave as it was."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from stepwell.backends.native.codegen import Job, assembly
from stepwell.backends.native.processor import Processor, named


@pytest.fixture
def narrow() -> Processor:
    """A processor with 16 registers, of 8 elements."""
    return named("znver3", triple="x86_64-unknown-linux-gnu")


COEFFICIENTS = [1.5 + step for step in range(14)]


def polynomial() -> str:
    """In a loop, a block of four registers, whose polynomial has about as many coefficients as there are registers."""
    terms, total = [], "%size"
    for position, coefficient in enumerate(COEFFICIENTS):
        operands = f"<32 x float> {total}, <32 x float> %size, <32 x float> splat (float {coefficient})"
        total = f"%t{position}"
        terms.append(f"  {total} = call <32 x float> @llvm.fma.v32f32({operands})")
    return "\n".join([
        "define void @f(ptr %p, i64 %end) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        "  %place = getelementptr float, ptr %p, i64 %i",
        "  %x = load <32 x float>, ptr %place, align 4",
        "  %size = call <32 x float> @llvm.fabs.v32f32(<32 x float> %x)",
        *terms,
        f"  %y = call <32 x float> @llvm.copysign.v32f32(<32 x float> {total}, <32 x float> %x)",
        "  %z = fmul <32 x float> %y, %x",
        "  store <32 x float> %z, ptr %place, align 4",
        "  %next = add nsw i64 %i, 32",
        "  %more = icmp slt i64 %next, %end",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
        "declare <32 x float> @llvm.fma.v32f32(<32 x float>, <32 x float>, <32 x float>)",
        "declare <32 x float> @llvm.copysign.v32f32(<32 x float>, <32 x float>)",
        "declare <32 x float> @llvm.fabs.v32f32(<32 x float>)",
    ])  # fmt: skip


def plain_assembly(text: str, processor: Processor) -> str:
    """What LLVM makes of it by itself."""
    module = llvm.parse_assembly(text, llvm.create_context())
    target = llvm.Target.from_triple(processor.triple)
    return str(target.create_target_machine(cpu=processor.name, opt=1).emit_assembly(module))


def test_the_registers_of_a_block_go_side_by_side(narrow: Processor) -> None:
    """So that each constant is at hand for all four, and nothing is put on the stack."""
    text = polynomial()
    assert "(%rsp)" not in assembly(Job(text, narrow))
    assert "(%rsp)" in plain_assembly(text, narrow)  # or the line above says nothing


def test_others_find_llvm_as_it_was(narrow: Processor) -> None:
    text = polynomial()
    before = plain_assembly(text, narrow)
    assembly(Job(text, narrow))
    assert plain_assembly(text, narrow) == before

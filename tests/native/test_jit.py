"""LLVM IR text becomes functions in memory, whose memory goes back with the module that owns it."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from llvmlite.binding import ffi

from stepwell.backends.native.codegen import Job, object_code
from stepwell.backends.native.jit import compile_module, compile_modules, emit_assembly
from stepwell.backends.native.processor import Processor, host
from stepwell.ir.errors import BackendError


def avx512(text: str, opt_level: int = 2) -> str:
    """Assembly of one and the same processor, on whichever this runs."""
    return emit_assembly(text, "skylake-avx512", triple="x86_64-unknown-linux-gnu", opt_level=opt_level)


def adder(increment: int) -> str:
    return f"define i64 @add(i64 %x) nounwind {{ %y = add i64 %x, {increment}\n ret i64 %y }}"


def call(address: int, argument: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(argument))


def test_a_function_runs() -> None:
    module = compile_module(adder(5))
    assert call(module.address("add"), 2) == 7


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_optimisation_level_computes_the_same(opt_level: int) -> None:
    module = compile_module(adder(5), opt_level=opt_level)
    assert call(module.address("add"), 2) == 7


def test_imports_give_addresses_to_what_is_only_declared() -> None:
    triple = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 3 * x)
    text = "declare i64 @triple(i64)\ndefine i64 @f(i64 %x) { %y = call i64 @triple(i64 %x)\n ret i64 %y }"
    module = compile_module(text, imports={"triple": ctypes.cast(triple, ctypes.c_void_p).value or 0})
    assert call(module.address("f"), 4) == 12


def test_the_c_library_needs_no_import() -> None:
    text = "declare i64 @labs(i64)\ndefine i64 @f(i64 %x) { %y = call i64 @labs(i64 %x)\n ret i64 %y }"
    assert call(compile_module(text).address("f"), -4) == 4


def test_equal_texts_share_a_module_and_keep_their_places() -> None:
    texts = [adder(1), adder(2), adder(1), adder(3)]
    modules = compile_modules(texts)
    assert [call(module.address("add"), 0) for module in modules] == [1, 2, 1, 3]
    assert modules[0] is modules[2]
    assert compile_modules([]) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("define nonsense", "expected type"),
        ("define i64 @f(i64 %x) { %y = add i64 %z, 1\n %z = add i64 %y, 1\n ret i64 %z }", "dominate"),
    ],
)
def test_invalid_text_is_an_error_of_ours(text: str, complaint: str) -> None:
    with pytest.raises(BackendError, match=f"LLVM: expected valid IR, got (.|\n)*{complaint}"):
        compile_module(text)


def test_an_invalid_text_among_many_is_an_error_of_ours() -> None:
    with pytest.raises(BackendError, match="valid IR"):
        compile_modules([adder(1), "define nonsense", adder(2)])


def test_an_absent_function_is_an_error_of_ours() -> None:
    with pytest.raises(BackendError, match="expected a function 'subtract'"):
        compile_module(adder(1)).address("subtract")


def test_an_unknown_callee_is_an_error_of_ours() -> None:
    text = "declare void @no_such_function()\ndefine void @f() { call void @no_such_function()\n ret void }"
    with pytest.raises(BackendError, match="function 'f' of which every callee is known"):
        compile_module(text).address("f")


def test_modules_do_not_see_each_other() -> None:
    first, second = compile_module(adder(1)), compile_module(adder(2))
    assert (call(first.address("add"), 0), call(second.address("add"), 0)) == (1, 2)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_recompiling_gives_the_memory_back() -> None:
    trim = ctypes.CDLL(None).malloc_trim

    def after_compiling(count: int, first: int) -> int:
        for increment in range(first, first + count):
            compile_module(adder(increment)).address("add")
        gc.collect()
        trim(0)
        return _resident_bytes()

    before = after_compiling(70, first=0)
    growth = after_compiling(200, first=70) - before
    assert growth < 4 << 20  # LLVM itself keeps some 2 KB of each


def test_llvmlite_offers_its_functions_without_their_lock() -> None:
    """A private attribute: kernels compile in parallel only as long as it is there and typed."""
    for name in ("RunNewModulePassManager", "RunNewFunctionPassManager", "TargetMachineEmitToMemory"):
        assert getattr(ffi.lib, f"LLVMPY_{name}")._cfn.argtypes


SCALED = """
define internal <16 x float> @scale(<16 x float> %v, float %s) alwaysinline {
  %i = insertelement <16 x float> poison, float %s, i32 0
  %b = shufflevector <16 x float> %i, <16 x float> poison, <16 x i32> zeroinitializer
  %r = fmul <16 x float> %v, %b
  ret <16 x float> %r
}
define void @f(ptr noalias %x, ptr noalias %s, ptr noalias %y, i64 %n, i64 %m) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %base = mul i64 %n, %m
  %offset = add i64 %base, %i
  %from = getelementptr float, ptr %x, i64 %offset
  %v = load <16 x float>, ptr %from, align 4
  %factor = load float, ptr %s
  %w = call <16 x float> @scale(<16 x float> %v, float %factor)
  %again = load float, ptr %s
  %u = call <16 x float> @scale(<16 x float> %w, float %again)
  %to = getelementptr float, ptr %y, i64 %i
  store <16 x float> %u, ptr %to, align 4
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def _loop_body(assembly: str) -> list[str]:
    """The instructions from the label that the last backward branch goes to, up to that branch."""
    lines = [line.strip() for line in assembly.splitlines()]
    branch = max(i for i, line in enumerate(lines) if line.startswith("jb"))
    label = lines.index(lines[branch].split()[1] + ":", 0)
    return [line for line in lines[label + 1 : branch] if not line.startswith(("#", "."))]


@pytest.mark.parametrize("opt_level", [1, 2])
def test_the_default_pipeline_inlines_hoists_and_shares(opt_level: int) -> None:
    assembly = avx512(SCALED, opt_level)
    body = _loop_body(assembly)
    assert "callq" not in assembly
    assert not any("imul" in line or "broadcast" in line for line in body), body
    assert sum("vmulps" in line for line in body) == 2


def test_vectors_of_sixteen_floats_use_whole_registers() -> None:
    assembly = avx512(SCALED)
    assert "zmm" in assembly
    assert "ymm" not in assembly


def test_constants_are_reached_without_an_absolute_address() -> None:
    text = (
        "define <16 x float> @f(<16 x float> %x) { %y = fadd <16 x float> %x, "
        f"<{', '.join(f'float {i}.0' for i in range(16))}>\n ret <16 x float> %y }}"
    )
    assert "(%rip)" in avx512(text)


def test_assembly_is_the_hosts_unless_a_processor_is_named() -> None:
    module = compile_module(SCALED)
    assert module.assembly() == emit_assembly(SCALED)
    assert "fmul" in emit_assembly(SCALED, "neoverse-v1", triple="aarch64-unknown-linux-gnu")


@pytest.mark.parametrize(
    ("processor", "complaint"),
    [
        (("no-such-cpu", "", "x86_64-unknown-linux-gnu"), "'no-such-cpu' is not a recognized processor"),
        (("skylake", "+no-such-feature", "x86_64-unknown-linux-gnu"), "not a recognized feature"),
        (("generic", "", "no-such-family"), "No available targets"),
    ],
)
def test_an_unknown_processor_says_what_to_do(processor: tuple[str, str, str], complaint: str) -> None:
    cpu, features, triple = processor
    with pytest.raises(BackendError, match=f"processor '{cpu}'(.|\n)*{complaint}(.|\n)*llc -mcpu=help"):
        emit_assembly(SCALED, cpu, features, triple=triple)


def test_the_host_has_a_name_and_features() -> None:
    assert host().name
    assert host().triple == llvm.get_process_triple()


def test_equal_jobs_have_equal_keys_and_code_in_every_process() -> None:
    script = (
        "from stepwell.backends.native.codegen import Job, object_code\n"
        "from stepwell.backends.native.processor import host\n"
        "import hashlib\n"
        f"job = Job({SCALED!r}, host())\n"
        "print(job.key, hashlib.sha256(object_code(job)).hexdigest())\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert said.pop().split()[0] == Job(SCALED, host()).key


def test_keys_tell_apart_what_code_depends_on() -> None:
    processor = host()
    other = Processor(processor.triple, processor.name, processor.features + ",-sse4.2")
    jobs = [Job("a", processor), Job("b", processor), Job("a", processor, 3), Job("a", other)]
    assert len({job.key for job in jobs}) == len(jobs)


def test_code_does_not_depend_on_what_the_thread_compiled_before() -> None:
    alone = object_code(Job(SCALED, host()))
    object_code(Job(adder(1), host()))
    assert object_code(Job(SCALED, host())) == alone

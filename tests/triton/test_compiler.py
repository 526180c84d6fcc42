"""TTIR to cubins, where Triton is installed; no GPU is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepwell.backends.native.object_cache import ObjectCache
from stepwell.backends.triton import compiler
from stepwell.backends.triton.compiler import Job, compile_kernels, triton_version
from stepwell.backends.triton.cubin import Cubin
from stepwell.ir.errors import BackendError

TEXT = """
module {
  tt.func public @double(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                         %n: i32) {
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %s = tt.splat %n : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %r, %s : tensor<1024xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %xp : tensor<1024x!tt.ptr<f32>>
    %w = arith.addf %v, %v : tensor<1024xf32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %yp, %w, %m : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"""
JOB = Job("double", TEXT, parameters=3, num_warps=4, num_stages=2, arch=90)


@pytest.fixture(autouse=True)
def _needs_triton() -> None:
    pytest.importorskip("triton", reason="Triton is not installed")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that reached Triton."""
    jobs: list[Job] = []
    compile_one = compiler._compile

    def counted(job: Job, dump: Path | None) -> Cubin:
        jobs.append(job)
        return compile_one(job, dump)

    monkeypatch.setattr(compiler, "_compile", counted)
    return jobs


def test_a_thread_gets_no_more_registers_than_asked_for() -> None:
    few = replace(JOB, registers=32)
    assert few.key != JOB.key
    assert ".maxnreg 32" in compiler.ptx(few)
    assert ".maxnreg" not in compiler.ptx(JOB)


def test_a_kernel_becomes_a_cubin() -> None:
    (cubin,) = compile_kernels([JOB])
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.name, cubin.parameters, cubin.threads, cubin.shared) == ("double", 3, 128, 0)
    assert 0 < cubin.scratches <= 2


def test_equal_jobs_are_compiled_once_and_results_keep_their_order(compiled: list[Job]) -> None:
    other = replace(JOB, num_warps=8)
    assert [cubin.threads for cubin in compile_kernels([JOB, other, JOB])] == [128, 256, 128]
    assert len(compiled) == 2


def test_the_cache_holds_cubins(compiled: list[Job], tmp_path: Path) -> None:
    objects = ObjectCache(tmp_path)
    first, second = (compile_kernels([JOB], objects=objects) for _ in range(2))
    assert first == second
    assert len(compiled) == 1


def test_without_promises_loads_are_narrower() -> None:
    wide, narrow = compiler.ptx(JOB), compiler.ptx(JOB.without_promises())
    assert "ld.global.v4" in wide
    assert "ld.global.v4" not in narrow
    assert "tt.divisibility" not in JOB.without_promises().text


def test_text_that_triton_refuses_is_left_in_the_dump(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = replace(JOB, text=TEXT.replace("arith.addf", "arith.addq"))
    with pytest.raises(BackendError, match=f"Triton {triton_version()}, stage parse of kernel @double") as caught:
        compile_kernels([wrong], dump=tmp_path)
    assert (tmp_path / "double.ttir").read_text() == wrong.text
    assert str(tmp_path / "double.ttir") in str(caught.value)
    assert "arith.addq" in capfd.readouterr().err


@pytest.mark.parametrize("parameters", [0, 2, 6])
def test_another_kernel_abi_is_refused(parameters: int) -> None:
    with pytest.raises(BackendError, match=f"expected {parameters} parameters and at most 2 pointers"):
        compile_kernels([replace(JOB, parameters=parameters)])


def test_only_loops_around_matrix_units_are_kept_from_being_unrolled() -> None:
    def loop_of(instruction: str) -> str:
        return f"$L__BB0_1:  // =>Loop Header\n\t{instruction}\n\t@%p1 bra \t$L__BB0_1;\n$L__BB0_2:\n\tret;\n"

    adds, sums = loop_of("add.f32 %f1, %f1, %f2;"), loop_of("wgmma.mma_async.sync.aligned.m64n64k16 {%r1};")
    assert compiler.kept_rolled(adds) == adds
    assert compiler.kept_rolled(sums) == sums.replace("BB0_1:", 'BB0_1:\n\t.pragma "nounroll";', 1)

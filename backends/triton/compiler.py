"""TTIR text → cubin, by the stages of Triton's own NVIDIA backend, in parallel threads.

No `@triton.jit`, no C compiler, no GPU. Loads nothing and launches nothing. triton is imported by the first kernel
that the cache does not hold.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import IntegerAttr

from ...ir import tt
from ...ir.errors import BackendError
from ...ir.tile.ops import REGISTERS, STAGES, WARPS
from ...ir.tt.text import ttir
from ..native.object_cache import ObjectCache
from .cubin import Cubin, parameter_count

DEFAULT_WARPS, DEFAULT_STAGES = 4, 2
"""What a kernel without a schedule for GPUs is compiled with."""

MAX_SCRATCHES = 2
"""Triton appends pointers to global scratch and to profile scratch memory to a kernel's own parameters."""

_PROMISE = re.compile(r"tt\.divisibility = \d+ : i32(, )?")

_DESCRIPTOR = re.compile(r"!tt\.tensordesc<tensor<([^<>]*)>>")

_LABEL = re.compile(r"^(\$L__BB\w+):", re.MULTILINE)

MATRIX_UNITS = ("wgmma.mma_async", "mma.sync")
"""Instructions in the text of a loop that sums up products."""

SKIPPED_STAGES = ("glir",)
"""Triton 3.9 has a stage for a language of its own, which does not start at TTIR."""


@dataclass(frozen=True)
class Job:
    """What a cubin depends on besides Triton and this file: a module with one `tt.func`, and how to compile it.

    `parameters` is how many arguments that function has; a thread gets at most `registers`, if that is a number.
    """

    name: str
    text: str
    parameters: int
    num_warps: int
    num_stages: int
    arch: int
    registers: int | None = None

    @property
    def key(self) -> str:
        """Names the cubin: equal keys, equal code, in whatever process."""
        parts = (self.name, self.text, self.parameters, self.num_warps, self.num_stages, self.arch, self.registers)
        return sha256("\0".join(map(str, (*parts, triton_version(), _fingerprint()))).encode()).hexdigest()

    @staticmethod
    def of(function: tt.FuncOp, arch: int) -> Job:
        """What a kernel asks for, for an architecture."""
        warps, stages = number(function, WARPS) or DEFAULT_WARPS, number(function, STAGES) or DEFAULT_STAGES
        parameters, registers = len(function.block.args), number(function, REGISTERS)
        return Job(function.sym_name.data, ttir(function), parameters, warps, stages, arch, registers)

    def without_promises(self) -> Job:
        """The same kernel for arguments of any alignment."""
        return replace(self, text=_PROMISE.sub("", self.text))


def number(function: tt.FuncOp, name: str) -> int | None:
    """An integer attribute of a kernel, if it has that."""
    attribute = function.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


@cache
def triton_version() -> str:
    """The version of the installed Triton, found without importing it; raises BackendError where there is none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        raise BackendError(
            "triton", expected="an installed package", got="none", hint="pip install 'stepwell[gpu]' for code on GPUs"
        ) from None


@cache
def _fingerprint() -> str:
    """Of this file: other options make other code from the same text."""
    return sha256((files(__package__) / "compiler.py").read_bytes()).hexdigest()


def compile_kernels(
    jobs: Sequence[Job], *, objects: ObjectCache | None = None, dump: Path | None = None
) -> list[Cubin]:
    """One cubin per job, in order, compiled in parallel; equal jobs share one.

    Raises BackendError for text that Triton refuses, which is then left in `dump` or a folder for temporary files.
    """

    def compile_one(job: Job) -> Cubin:
        return _cached(job, objects, dump)

    distinct = list(dict.fromkeys(jobs))
    if len(distinct) == 1:
        cubins = {distinct[0]: compile_one(distinct[0])}
    else:
        with ThreadPoolExecutor(os.cpu_count(), "stepwell-triton") as pool:
            cubins = dict(zip(distinct, pool.map(compile_one, distinct), strict=True))
    return [cubins[job] for job in jobs]


def _cached(job: Job, objects: ObjectCache | None, dump: Path | None) -> Cubin:
    stored = None if objects is None else objects.get(job.key)
    if stored is not None:
        return Cubin.from_bytes(stored)
    cubin = _compile(job, dump)
    if objects is not None:
        objects.put(job.key, cubin.to_bytes())
    return cubin


def ptx(job: Job) -> str:
    """The kernel in portable assembly, which needs no assembler; raises BackendError for text that Triton refuses."""
    produced, _ = _run_stages(job, None, last="ptx")
    return str(produced["ptx"])


def _compile(job: Job, dump: Path | None) -> Cubin:
    return _checked(job, *_run_stages(job, dump))


def _run_stages(job: Job, dump: Path | None, last: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """What each stage produced, up to the last one that is wanted, and what the stages found."""
    code: Any = job.text
    metadata: dict[str, Any] = {}
    produced: dict[str, Any] = {}
    stage = "parse"
    try:
        stages, code, metadata = _begin(job)
        for stage, run in stages.items():
            if stage not in SKIPPED_STAGES:
                code = run(code, metadata)
                produced[stage] = code = kept_rolled(code) if stage == "ptx" else code
            if stage == last:
                break
    except BackendError:
        raise
    except Exception as error:
        path = _leave(job, dump)
        raise BackendError(
            f"Triton {triton_version()}, stage {stage} of kernel @{job.name}",
            expected=f"code for sm_{job.arch}",
            got=f"{type(error).__name__}: {str(error).strip() or 'no message'}",
            hint=f"its messages are on stderr, the kernel is in {path}",
        ) from error
    return produced, metadata


def _begin(job: Job) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """The stages of the backend, the parsed module, and the dictionary in which the stages leave what they find."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler.compiler import make_backend

    target = GPUTarget("cuda", job.arch, 32)
    backend = make_backend(target)
    # No contraction: eager rounds after each operator.
    options = backend.parse_options(
        {
            "num_warps": job.num_warps,
            "num_stages": job.num_stages,
            "maxnreg": job.registers,
            "enable_fp_fusion": False,
        }
    )
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with _as_file(_spelled(job.text, triton_version())) as path:
        module = ir.parse_mlir_module(path, context)
    module.context = context
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    return stages, module, {"target": target, **options.__dict__}


def kept_rolled(assembly: str) -> str:
    """PTX in which loops around matrix units stay loops.

    The assembler would write out all steps of a sum, since their number is known: seconds of work, for nothing that
    the matrix units do not already hide.
    """

    def marked(label: re.Match[str]) -> str:
        last_branch = assembly.rfind(f"{label[1]};", label.end())
        inside = assembly[label.end() : max(last_branch, 0)]
        return f'{label[0]}\n\t.pragma "nounroll";' if any(name in inside for name in MATRIX_UNITS) else label[0]

    return _LABEL.sub(marked, assembly)


def _spelled(text: str, release: str) -> str:
    """The text as that release of Triton reads it: from 3.8 on, descriptors name the shape of a box without a type."""
    major, minor = (int(number) for number in release.split(".")[:2])
    return text if (major, minor) < (3, 8) else _DESCRIPTOR.sub(r"!tt.tensordesc<\1>", text)


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path in memory, because Triton parses files only."""
    descriptor = os.memfd_create("kernel.ttir")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _leave(job: Job, dump: Path | None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stepwell-")) if dump is None else dump
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{job.name}.ttir"
    path.write_text(job.text)
    return path


def _checked(job: Job, produced: dict[str, Any], metadata: dict[str, Any]) -> Cubin:
    """The cubin, if its entry takes the parameters that a launch will pass."""
    found = parameter_count(produced["ptx"], job.name)
    scratches = found - job.parameters
    if not 0 <= scratches <= MAX_SCRATCHES or metadata.get("profile_scratch_size"):
        raise BackendError(
            f"Triton {triton_version()}, kernel @{job.name}",
            expected=f"{job.parameters} parameters and at most {MAX_SCRATCHES} pointers to scratch memory",
            got=f"{found} parameters, {metadata.get('profile_scratch_size') or 0} bytes of profile scratch memory",
            hint="this release of Triton has another kernel ABI",
        )
    return Cubin(
        produced["cubin"],
        job.name,
        job.parameters,
        scratches,
        32 * int(metadata["num_warps"]),
        int(metadata["shared"]),
        int(metadata.get("global_scratch_size") or 0),
    )

"""LLVM IR text → object code or assembly, in as many threads at once as there are cores.

Makes code and does not load it. Every compile has an LLVM context of its own; of the process's state one option
is set while any runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import string_at
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager

from ...ir.errors import BackendError
from .processor import Processor


class Pipeline(NamedTuple):
    """How much LLVM does: its level, whole module or function by function, and its own loop transformations."""

    level: int
    whole_module: bool
    loops: bool


PIPELINES = (
    Pipeline(level=0, whole_module=False, loops=False),
    Pipeline(level=1, whole_module=False, loops=False),
    Pipeline(level=2, whole_module=False, loops=False),
    Pipeline(level=3, whole_module=True, loops=True),
)
"""By `opt_level`. Kernels are single functions of explicit, unrolled vectors: for these the whole-module pipeline with
its vectorisers and unrollers takes 1.5 to 3 times as long, for code that is no faster (GELU, softmax, product of
matrices). 1 has LICM and CSE; 2 adds GVN. Kernels arrive with both done: of 25 none runs faster than at 0, where a
compile takes two thirds of the time."""


@dataclass(frozen=True)
class Job:
    """What object code depends on besides LLVM and this file."""

    text: str
    processor: Processor
    opt_level: int = 0

    @property
    def key(self) -> str:
        """Names the object code: equal keys, equal code, in whatever process."""
        parts = (self.text, *vars(self.processor).values(), self.opt_level, llvm.llvm_version_info, _fingerprint())
        return sha256("\0".join(map(str, parts)).encode()).hexdigest()


@cache
def _fingerprint() -> str:
    """Of this file: another pipeline makes other code from the same text."""
    return sha256((files(__package__) / "codegen.py").read_bytes()).hexdigest()


def object_code(job: Job) -> bytes:
    """Raises BackendError for text that is not LLVM IR."""
    return _compile(job, as_object=True)


def assembly(job: Job) -> str:
    """Raises BackendError for text that is not LLVM IR."""
    return _compile(job, as_object=False).decode()


def _compile(job: Job, as_object: bool) -> bytes:
    machine = _target_machine(job.processor, job.opt_level)
    module = _parse(job.text)
    module.triple = job.processor.triple
    _optimize(module, machine, PIPELINES[job.opt_level])
    with _in_source_order:
        return _emit(module, machine, as_object)


class _SourceOrder:
    """A context in which LLVM does not reorder instructions before it allocates registers.

    It cuts an operation of a wide block into those of single registers, side by side, so that a constant is loaded once
    for all of them. Its scheduler would have one register's operations after the other's, each with constants of its
    own where there are but 16 registers: without it GELU takes 0.76 of the time on AVX2, erf and log 0.85; AVX-512 code
    is as long with it as without. The option is one of the whole process, so others have it back between compiles.
    """

    OPTION = "enable-misched"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                llvm.set_option("", f"-{self.OPTION}=false")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                llvm.set_option("", f"-{self.OPTION}=true")


_in_source_order = _SourceOrder()

_machines = threading.local()


def _target_machine(processor: Processor, opt_level: int) -> llvm.TargetMachine:
    """One per thread: making it and its tables anew for each kernel is a sixth of a small kernel's time."""
    made = vars(_machines)
    key = f"{processor} {opt_level}"
    if key not in made:
        target = llvm.Target.from_triple(processor.triple)
        # Position-independent small code reaches constants in one instruction; the default here is absolute.
        made[key] = target.create_target_machine(
            cpu=processor.name,
            features=processor.features,
            opt=max(opt_level, 1),
            reloc="pic",
            codemodel="small",
        )
    return made[key]


def _unlocked(name: str) -> Callable[..., Any]:
    """A C function of LLVM without llvmlite's process-wide lock, which lets in one thread at a time.

    Legitimate only for calls that touch one context and nothing else; they are where the time goes.
    """
    function: Callable[..., Any] = getattr(ffi.lib, name)._cfn
    return function


def _parse(text: str) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise BackendError("LLVM", expected="valid IR", got=str(error).strip()) from None
    return module


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, pipeline: Pipeline) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=pipeline.level)
    options.loop_vectorization = options.slp_vectorization = pipeline.loops
    options.loop_unrolling = options.loop_interleaving = pipeline.loops
    builder = llvm.create_pass_builder(machine, options)
    if pipeline.whole_module:
        _run_on_module(builder.getModulePassManager(), module, builder)
        return
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    _run_on_module(inliner, module, builder)
    if pipeline.level > 0:
        _run_on_functions(builder.getFunctionPassManager(), module, builder)


def _run_on_module(manager: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    _dispose(manager)


def _run_on_functions(manager: llvm.FunctionPassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    run = _unlocked("LLVMPY_RunNewFunctionPassManager")
    for function in module.functions:
        if not function.is_declaration:
            run(manager, function, builder)
    _dispose(manager)


def _dispose(manager: NewPassManager) -> None:
    """llvmlite never does: its managers inherit an empty `_dispose` first, which loses 52 KB per compile."""
    NewPassManager._dispose(manager)
    manager.detach()


def _emit(module: llvm.ModuleRef, machine: llvm.TargetMachine, as_object: bool) -> bytes:
    with ffi.OutputString() as message:
        emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        buffer = emit(machine, module, int(as_object), message)
        if not buffer:
            raise BackendError("LLVM", expected="code for the module", got=str(message))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)

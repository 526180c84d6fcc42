"""The processors that machine code can be made for: the one this process runs on, or one that is named.

LLVM answers an unknown name with a line on stderr, and on x86 by ending the process; so names are tried elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from ...ir.errors import BackendError


@dataclass(frozen=True)
class Processor:
    """LLVM's words for a processor: the triple, the name, and features as `+avx2,-avx512f`."""

    triple: str
    name: str
    features: str


@cache
def host() -> Processor:
    """The processor of this process, with every feature that it and the operating system support."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return Processor(llvm.get_process_triple(), llvm.get_host_cpu_name(), _tuned(features))


def _tuned(features: str) -> str:
    """Vectors of 512 bits where LLVM would rather use 256: of use to its own vectoriser only."""
    return f"{features},-prefer-256-bit" if "+avx512f" in features else features


def core_count() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@cache
def named(name: str, features: str = "", triple: str | None = None) -> Processor:
    """Another processor, to look at its code; of this machine's family unless a triple says otherwise.

    Raises BackendError where LLVM does not know the triple, the name or a feature.
    """
    processor = Processor(triple or llvm.get_process_triple(), name, features)
    if complaint := _complaint(processor):
        raise BackendError(
            f"processor {name!r}",
            expected=f"a processor and features that LLVM knows for {processor.triple}",
            got=complaint,
            hint="see `llc -mcpu=help` for the names; another family needs its triple",
        )
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return processor


_TRIAL = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
triple, name, features = sys.argv[1:]
machine = llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=features)
machine.emit_assembly(llvm.parse_assembly("define void @f() { ret void }"))
"""


def _complaint(processor: Processor) -> str:
    """The last line that LLVM says in another process when it makes code for this processor; empty if it is content."""
    command = [sys.executable, "-c", _TRIAL, processor.triple, processor.name, processor.features]
    lines = subprocess.run(command, capture_output=True, text=True).stderr.splitlines()
    unknown = [line for line in lines if "not a recognized" in line]
    return (unknown or lines[-1:] or [""])[0]

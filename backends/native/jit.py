"""LLVM IR text → functions in memory, through the object cache where there is one.

A `NativeModule` owns its code: the memory goes back when it is collected, so whoever holds an address holds it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import llvmlite.binding as llvm

from ...ir.errors import BackendError
from .codegen import Job, assembly, object_code
from .object_cache import ObjectCache
from .processor import core_count, host, named


class NativeModule:
    """Machine code in memory. `imports` gives addresses to symbols that the text only declares."""

    def __init__(self, job: Job, code: bytes, imports: Mapping[str, int] | None = None) -> None:
        self._job = job
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol, address in (imports or {}).items():
            builder.import_symbol(symbol, address)
        self._linker, self._library = _linkers.next()
        self._owner = builder.link(self._linker, self._library)
        self._found: dict[str, llvm.ResourceTracker] = {}

    def address(self, symbol: str) -> int:
        """Of a function, for as long as this object lives; raises BackendError if it cannot be had."""
        if symbol not in self._found:
            self._found[symbol] = self._look_up(symbol)
        return int(self._found[symbol][symbol])

    def _look_up(self, symbol: str) -> llvm.ResourceTracker:
        try:
            return self._linker.lookup(self._library, symbol)
        except RuntimeError as error:
            raise BackendError(
                "native module",
                expected=f"a function {symbol!r} of which every callee is known",
                got=str(error),
                hint="the text must define it and all that it calls, except imports and the C library",
            ) from None

    def assembly(self) -> str:
        """The code as text, made anew from the LLVM IR."""
        return assembly(self._job)


class _Linkers:
    """Hands out a linker and a fresh library name; now and then a new linker.

    LLVM keeps 9 KB of each unloaded library until its linker goes, and a linker goes with its last library.
    """

    LIBRARIES_PER_LINKER = 64

    def __init__(self) -> None:
        self._numbers = count()
        self._linker: llvm.LLJIT | None = None

    def next(self) -> tuple[llvm.LLJIT, str]:
        number = next(self._numbers)
        if self._linker is None or number % self.LIBRARIES_PER_LINKER == 0:
            self._linker = _make_linker()
        return self._linker, f"stepwell.{number}"


def _make_linker() -> llvm.LLJIT:
    """JITLink puts a module's code and constants side by side, as code of the small model needs."""
    target = llvm.Target.from_triple(host().triple)
    machine = target.create_target_machine(reloc="pic", codemodel="small", jit=True)
    return llvm.create_lljit_compiler(machine, use_jit_link=True)


_linkers = _Linkers()


def compile_module(
    text: str,
    *,
    opt_level: int = 0,
    objects: ObjectCache | None = None,
    imports: Mapping[str, int] | None = None,
) -> NativeModule:
    """Machine code of the host for LLVM IR; raises BackendError for text that is not LLVM IR."""
    job = Job(text, host(), opt_level)
    return NativeModule(job, _cached_code(job, objects), imports)


def compile_modules(
    texts: Sequence[str], *, opt_level: int = 0, objects: ObjectCache | None = None
) -> list[NativeModule]:
    """One module per text, in order, compiled in parallel; equal texts share one."""

    def compile_one(text: str) -> NativeModule:
        return compile_module(text, opt_level=opt_level, objects=objects)

    distinct = list(dict.fromkeys(texts))
    with ThreadPoolExecutor(core_count(), "stepwell-compile") as pool:
        modules = dict(zip(distinct, pool.map(compile_one, distinct), strict=True))
    return [modules[text] for text in texts]


def _cached_code(job: Job, objects: ObjectCache | None) -> bytes:
    if objects is None:
        return object_code(job)
    key = job.key
    code = objects.get(key)
    if code is None:
        code = object_code(job)
        objects.put(key, code)
    return code


def emit_assembly(
    text: str, cpu: str | None = None, features: str = "", *, triple: str | None = None, opt_level: int = 0
) -> str:
    """Assembly for the host or for a named processor; raises BackendError if LLVM does not know it."""
    processor = host() if cpu is None else named(cpu, features, triple)
    return assembly(Job(text, processor, opt_level))

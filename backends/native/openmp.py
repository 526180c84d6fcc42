"""The OpenMP runtime of this process: the one torch computes with, so that there is one pool and one thread count.

Looks it up where it is mapped already. Never imports torch, and loads a runtime only where none is there.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ...ir.errors import BackendError

SYMBOLS = (
    "GOMP_parallel",
    "omp_get_max_threads",
    "omp_get_num_threads",
    "omp_get_thread_num",
    "omp_in_parallel",
)
"""What the driver calls; LLVM's and Intel's runtimes offer the first one too, for GNU's sake."""

_TORCH = re.compile(r"(lib)?torch_cpu\.(so|dylib|dll)$")
_RUNTIME = re.compile(r"lib(gomp|omp|iomp5)[^/]*\.so[^/]*$")
_WELL_KNOWN = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so", "libomp.dylib", "libiomp5md.dll")


@cache
def addresses() -> dict[str, int]:
    """Address by name of all of SYMBOLS; raises BackendError where no library offers them."""
    tried = []
    for name in _candidates():
        tried.append(name)
        if found := _addresses_in(name):
            return found
    raise BackendError(
        "OpenMP",
        expected=f"a library with {', '.join(SYMBOLS)}",
        got=f"none of {', '.join(tried)}",
        hint="import torch first, or install libgomp; serial=True does without",
    )


def _candidates() -> Iterator[str]:
    """torch's own library first: a lookup in it also searches the runtime that it was linked with."""
    mapped = _mapped_libraries()
    yield from (path for path in mapped if _TORCH.search(path))
    yield from (path for path in mapped if _RUNTIME.search(path))
    yield from _WELL_KNOWN


def _mapped_libraries() -> list[str]:
    """Files mapped into this process, in order; without /proc, the libraries in the folder of an imported torch."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return _libraries_of_torch()
    paths = (line.split(maxsplit=5)[5:] for line in lines)
    return list(dict.fromkeys(path[0] for path in paths if path and path[0].startswith("/")))


def _libraries_of_torch() -> list[str]:
    file = getattr(sys.modules.get("torch"), "__file__", None)
    return sorted(str(path) for path in (Path(file).parent / "lib").iterdir()) if file else []


def _addresses_in(name: str) -> dict[str, int] | None:
    """The addresses of SYMBOLS as this library sees them; None if it cannot be loaded or lacks one."""
    try:
        library = ctypes.CDLL(name)
        functions = {symbol: getattr(library, symbol) for symbol in SYMBOLS}
    except (OSError, AttributeError):
        return None
    return {symbol: ctypes.cast(f, ctypes.c_void_p).value or 0 for symbol, f in functions.items()}

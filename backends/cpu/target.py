"""The processor of this process as a target: vectors from LLVM's feature list, caches from the operating system."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ...ir.target import GENERIC, Target
from ..native.processor import host

_VECTORS = (("+avx512f", 512, 32), ("+avx", 256, 16), ("+neon", 128, 32), ("+sse2", 128, 16))
"""Feature, bits of its vectors, number of its registers; the first one present counts."""

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

_UNITS = {"K": 10, "M": 20, "G": 30}


@cache
def host_target() -> Target:
    processor = host()
    features = processor.features.split(",")
    vector_bits, registers = _vectors(features)
    l1, l2, l3 = (
        _cache_bytes(level, default)
        for level, default in ((1, GENERIC.l1_bytes), (2, GENERIC.l2_bytes), (3, GENERIC.l3_bytes))
    )
    return Target(
        processor.name, vector_bits, registers, _cores(), l1, l2, l3, rounds_to_bf16="+avx512bf16" in features
    )


def _vectors(features: Iterable[str]) -> tuple[int, int]:
    present = set(features)
    for feature, bits, registers in _VECTORS:
        if feature in present:
            return bits, registers
    return 128, 16


def _cores() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_bytes(level: int, default: int) -> int:
    """The size of the data cache of that level, as Linux tells it."""
    for entry in sorted(_CACHES.glob("index*")):
        kind, found, size = ((entry / name).read_text().strip() for name in ("type", "level", "size"))
        if kind != "Instruction" and int(found) == level:
            return int(size[:-1]) << _UNITS[size[-1]]
    return default

"""A GPU as a target: what the CUDA driver says of a device, in the words that schedule passes read."""

from __future__ import annotations

from functools import cache

from ...ir.target import Target
from .cuda import cuda_driver

H100 = Target("sm_90", vector_bits=128, registers=255, cores=132, l1_bytes=232448, l2_bytes=50 << 20, l3_bytes=50 << 20)
"""An H100 or H200 (SXM): vectors are a thread's widest load, registers its own, cores the multiprocessors, L1 the
shared memory that a block may ask for, and L2 the cache of all."""


@cache
def device_target(ordinal: int) -> Target:
    """The device of that number in CUDA's order."""
    driver = cuda_driver()
    return Target(
        f"sm_{architecture(ordinal)}",
        vector_bits=H100.vector_bits,
        registers=H100.registers,
        cores=driver.attribute(ordinal, "multiprocessors"),
        l1_bytes=driver.attribute(ordinal, "shared_bytes"),
        l2_bytes=driver.attribute(ordinal, "l2_bytes"),
        l3_bytes=driver.attribute(ordinal, "l2_bytes"),
    )


@cache
def architecture(ordinal: int) -> int:
    """The compute capability as Triton counts it: 90 for 9.0."""
    driver = cuda_driver()
    return 10 * driver.attribute(ordinal, "major") + driver.attribute(ordinal, "minor")

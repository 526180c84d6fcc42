"""The loop dialect: index spaces with define-by-run bodies, in which views are index maps and cost nothing."""

from __future__ import annotations

from xdsl.ir import Dialect

from .ops import (
    AssertOp,
    ForOp,
    IndexOp,
    KernelOp,
    LocalOp,
    NestOp,
    ParallelOp,
    PhiloxOp,
    ReadOp,
    ReduceOp,
    WriteOp,
    YieldOp,
    scalar_type,
)

Loop = Dialect(
    "loop",
    [KernelOp, ParallelOp, ReduceOp, ForOp, LocalOp, ReadOp, WriteOp, IndexOp, AssertOp, PhiloxOp, YieldOp],
)

__all__ = [
    "AssertOp", "ForOp", "IndexOp", "KernelOp", "LocalOp", "Loop", "NestOp", "ParallelOp", "PhiloxOp",
    "ReadOp", "ReduceOp", "WriteOp", "YieldOp", "scalar_type",
]  # fmt: skip

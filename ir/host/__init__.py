"""The host dialect: what the calling thread does between kernels, and with which memory."""

from __future__ import annotations

from xdsl.ir import Dialect

from .ops import (
    AllocOp,
    ConstantOp,
    CopyOp,
    ExternOp,
    FreeOp,
    LaunchOp,
    ReturnOp,
    RunOp,
    SeparateOp,
    SlotOp,
    StretchOp,
    ViewOp,
    WeightOp,
    WorkspaceOp,
)
from .types import BufferType, WorkspaceType

Host = Dialect(
    "host",
    [
        LaunchOp,
        RunOp,
        StretchOp,
        AllocOp,
        WorkspaceOp,
        SlotOp,
        ViewOp,
        CopyOp,
        SeparateOp,
        FreeOp,
        ConstantOp,
        WeightOp,
        ExternOp,
        ReturnOp,
    ],
    [BufferType, WorkspaceType],
)

__all__ = [
    "AllocOp", "BufferType", "ConstantOp", "CopyOp", "ExternOp", "FreeOp", "Host", "LaunchOp", "ReturnOp", "RunOp",
    "SeparateOp", "SlotOp", "StretchOp", "ViewOp", "WeightOp", "WorkspaceOp", "WorkspaceType",
]  # fmt: skip

"""The tile dialect: one program instance of a kernel, on blocks of values, for any target."""

from __future__ import annotations

from xdsl.ir import Dialect

from .batches import ChooseOp
from .ops import (
    AssertOp,
    BroadcastOp,
    CompareOp,
    ConvertOp,
    ForOp,
    GatherOp,
    GridSizeOp,
    IndexOp,
    IotaOp,
    KernelOp,
    LoadOp,
    PhiloxOp,
    PrefetchOp,
    ProgramIdOp,
    ReduceOp,
    ScanOp,
    ScatterOp,
    ScratchOp,
    SelectOp,
    StoreOp,
    TransposeOp,
    YieldOp,
)

Tile = Dialect(
    "tile",
    [
        KernelOp,
        ProgramIdOp,
        GridSizeOp,
        ChooseOp,
        ForOp,
        YieldOp,
        ScratchOp,
        LoadOp,
        StoreOp,
        GatherOp,
        ScatterOp,
        PrefetchOp,
        IndexOp,
        IotaOp,
        BroadcastOp,
        TransposeOp,
        CompareOp,
        SelectOp,
        ConvertOp,
        ReduceOp,
        ScanOp,
        AssertOp,
        PhiloxOp,
    ],
)

__all__ = [
    "AssertOp", "BroadcastOp", "ChooseOp", "CompareOp", "ConvertOp", "ForOp", "GatherOp", "GridSizeOp", "IndexOp", "IotaOp",
    "KernelOp", "LoadOp", "PhiloxOp", "PrefetchOp", "ProgramIdOp", "ReduceOp", "ScanOp", "ScatterOp", "ScratchOp",
    "SelectOp", "StoreOp", "Tile", "TransposeOp", "YieldOp",
]  # fmt: skip

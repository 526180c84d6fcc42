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
from .products import BoxOp, DotOp, HalvesOp, LoadBoxOp, StoreBoxOp

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
        LoadBoxOp,
        StoreBoxOp,
        DotOp,
        HalvesOp,
    ],
)

__all__ = [
    "AssertOp", "BoxOp", "BroadcastOp", "ChooseOp", "CompareOp", "ConvertOp", "DotOp", "ForOp", "GatherOp",
    "GridSizeOp", "HalvesOp", "IndexOp", "IotaOp", "KernelOp", "LoadBoxOp", "LoadOp", "PhiloxOp", "PrefetchOp",
    "ProgramIdOp", "ReduceOp", "ScanOp", "ScatterOp", "ScratchOp", "SelectOp", "StoreBoxOp", "StoreOp", "Tile",
    "TransposeOp", "YieldOp",
]  # fmt: skip

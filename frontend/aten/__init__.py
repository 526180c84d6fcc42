"""The tables of ATen ops by family: overload → graph ops. A row is one function; adding an op adds a row."""

from __future__ import annotations

from ...ir import plugins
from . import (
    activations,
    creation,
    indexing,
    losses,
    normalization,
    pointwise,
    pooling,
    products,
    random,
    reductions,
    views,
)
from .registry import TABLE

plugins.load("stepwell.imports")

__all__ = [
    "TABLE", "activations", "creation", "indexing", "losses", "normalization", "pointwise", "pooling", "products",
    "random", "reductions", "views",
]  # fmt: skip

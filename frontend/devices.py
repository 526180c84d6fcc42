"""Which device the kernels of a graph run on, and which of its ops that device can run.

A graph has one home; an op with a tensor elsewhere stays an extern. Never asks torch which devices there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx

CPU = torch.device("cpu")


def leaves_of(value: Any) -> list[Any]:
    """The parts of what a node stands for: of lists, of values by name, or just itself."""
    parts = value.values() if isinstance(value, dict) else value
    return [leaf for part in parts for leaf in leaves_of(part)] if isinstance(value, dict | tuple | list) else [value]


def tensors_of(node: fx.Node) -> Iterator[Tensor]:
    """The fake tensors that a node stands for."""
    return (leaf for leaf in leaves_of(node.meta.get("val")) if isinstance(leaf, Tensor))


def home_device(graph: fx.Graph) -> torch.device:
    """The GPU on which most tensors of the graph lie, else the CPU."""
    counts = Counter(value.device for node in graph.nodes for value in tensors_of(node) if value.is_cuda)
    return counts.most_common(1)[0][0] if counts else CPU


def runs_at(home: torch.device, node: fx.Node) -> bool:
    """Whether a kernel can compute the node: all tensors are at home, operands of rank 0 on the CPU aside, which eager
    takes as numbers."""
    operands = (value for operand in node.all_input_nodes for value in tensors_of(operand))
    return all(value.device == home for value in tensors_of(node)) and all(
        value.device == home or is_number(value) for value in operands
    )


def is_number(value: Tensor) -> bool:
    """Whether it may be mixed with tensors of any device."""
    return value.ndim == 0 and value.device.type == "cpu"


def is_away(home: torch.device, value: Any) -> bool:
    """Whether a value in the graph is a tensor elsewhere."""
    return isinstance(value, Tensor) and value.device != home

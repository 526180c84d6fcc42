"""The element types of results where torch's fake tensors promise others than eager's kernels give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx

from .aten.registry import overload

Types: TypeAlias = Mapping[int, torch.dtype]
"""By the position of a result."""

TypeRule: TypeAlias = Callable[[fx.Node], Types]


def _tensors(node: fx.Node) -> list[Tensor]:
    values = (operand.meta.get("val") for operand in node.args if isinstance(operand, fx.Node))
    return [value for value in values if isinstance(value, Tensor)]


def _of_statistics(node: fx.Node) -> Types:
    """Mean and deviation of bf16 and f16 stay f32 beside parameters of f32, as under autocast: rounded to bf16, they
    would leave two digits of the gradients."""
    x, *parameters = _tensors(node)
    if x.device.type != "cpu" or not parameters or parameters[0].dtype == x.dtype:
        return {}
    return {1: torch.float32, 2: torch.float32}


def _of_running_statistics(position: int) -> TypeRule:
    """The same, and from that result on the running mean and variance, which keep their types."""

    def rule(node: fx.Node) -> Types:
        mean, variance = _tensors(node)[-2:]
        return {**_of_statistics(node), position: mean.dtype, position + 1: variance.dtype}

    return rule


def _like(position: int) -> TypeRule:
    """The (first) result is of an operand's type."""
    return lambda node: {0: _tensors(node)[position].dtype}


def _of_places(node: fx.Node) -> Types:
    """Places and counts are int64; fakes of torch 2.11 make them of the operand's type."""
    return {1: torch.int64, 2: torch.int64}


def _of_attention(node: fx.Node) -> Types:
    """The logarithms of sums are as wide as they are summed up; fakes of torch 2.11 make those of float64 narrower."""
    return {1: torch.promote_types(_tensors(node)[0].dtype, torch.float32)}


TYPES: dict[Any, TypeRule] = {
    target: rule
    for name, rule in {
        "aten._batch_norm_no_update.default": _of_statistics,
        "aten._batch_norm_with_update_functional.default": _of_running_statistics(4),
        "aten._native_batch_norm_legit.no_stats": _of_statistics,
        "aten._native_batch_norm_legit_functional.default": _of_running_statistics(3),
        "aten._native_batch_norm_legit_no_training.default": _of_statistics,
        "aten._scaled_dot_product_flash_attention_for_cpu.default": _of_attention,
        "aten.huber_loss.default": _like(0),
        "aten.native_group_norm.default": _of_statistics,
        "aten.native_layer_norm.default": _of_statistics,
        "aten.native_group_norm_backward.default": _like(1),
        "aten.soft_margin_loss.default": _like(0),
        "aten._unique2.default": _of_places,
        "aten.unique_consecutive.default": _of_places,
        "aten.unique_dim.default": _of_places,
    }.items()
    if (target := overload(name)) is not None
}

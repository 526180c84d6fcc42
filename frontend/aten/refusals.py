"""Operators that eager refuses in some types or with some numbers: such calls stay eager's, which says why.

torch's fake tensors let them pass, so that nothing else would stop a row from computing something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import SymFloat, SymInt
from xdsl.ir import Attribute

from ...ir import graph
from ...ir.dtypes import BFLOAT16, BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT8, compute_type, is_float
from ...ir.expr import Expr
from ..builder import GraphBuilder, Operand, Value, torch_dtype
from .registry import overload

# -- types -------------------------------------------------------------------------------------------

Elements = Sequence[Attribute]
"""The element types of a call's tensors, in the order in which they stand."""


def _is_one(elements: Elements) -> bool:
    return all(element == elements[0] for element in elements)


def _are_classes(elements: Elements) -> bool:
    """Floats, the numbers of classes, perhaps weights like the first."""
    first, classes, *weights = elements
    return is_float(first) and classes in (INT64, UINT8) and _is_one([first, *weights])


def _are_parameters_as_wide(elements: Elements) -> bool:
    """Weights and statistics are of the input's type, or of the type in which that is computed."""
    return all(element in (elements[0], compute_type(elements[0])) for element in elements)


_ACCEPTED_BY: dict[Callable[[Elements], bool], tuple[str, ...]] = {
    lambda elements: is_float(elements[0]): (
        "aten._weight_norm_interface_backward.default", "aten.hardsigmoid_backward.default",
        "aten.hardtanh_backward.default", "aten.leaky_relu_backward.default", "aten.lerp.Scalar", "aten.lerp.Tensor",
        "aten.mse_loss.default", "aten.sigmoid_backward.default", "aten.tanh_backward.default",
    ),
    lambda elements: elements[0] != BOOL: (
        "aten.__lshift__.Scalar", "aten.__lshift__.Tensor", "aten.__rshift__.Scalar", "aten.__rshift__.Tensor",
        "aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar", "aten.bitwise_right_shift.Tensor",
        "aten.bitwise_right_shift.Tensor_Scalar", "aten.argmax.default", "aten.argmin.default", "aten.ceil.default",
        "aten.clamp.Tensor", "aten.floor.default", "aten.pow.Tensor_Tensor", "aten.round.default",
        "aten.rsub.Scalar", "aten.sub.Scalar", "aten.threshold.default", "aten.threshold_backward.default",
        "aten.trunc.default",
    ),
    lambda elements: is_float(elements[0]) and _is_one(elements): (
        "aten._log_softmax_backward_data.default", "aten._prelu_kernel.default", "aten._prelu_kernel_backward.default",
        "aten._softmax_backward_data.default", "aten.binary_cross_entropy.default",
        "aten.binary_cross_entropy_backward.default", "aten.binary_cross_entropy_with_logits.default",
        "aten.log_sigmoid_backward.default",
    ),
    _is_one: (
        "aten.addmm.default", "aten.avg_pool2d_backward.default", "aten.baddbmm.default", "aten.heaviside.default",
        "aten.mv.default",
    ),
    lambda elements: elements[1] in (INT32, INT64): ("aten.embedding.default", "aten.index_select.default"),
    lambda elements: BOOL not in elements: ("aten.rsub.Tensor", "aten.sub.Tensor"),
    lambda elements: elements[-1] == BOOL: ("aten.native_dropout_backward.default",),
    _are_classes: ("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default"),
    _are_parameters_as_wide: (
        "aten._native_batch_norm_legit.no_stats", "aten._native_batch_norm_legit_functional.default",
        "aten._native_batch_norm_legit_no_training.default", "aten.native_group_norm.default",
        "aten.native_layer_norm.default",
    ),
}  # fmt: skip
"""What eager asks of the types, and the operators of which it asks that."""

_ACCEPTED = {overload(name): accepts for accepts, names in _ACCEPTED_BY.items() for name in names}


def refuses(target: Any, elements: Elements) -> bool:
    """Whether eager raises for the operator on tensors of these types."""
    accepts = _ACCEPTED.get(target)
    return accepts is not None and not accepts(elements)


# -- numbers -----------------------------------------------------------------------------------------

_FILLED = {
    "aten._unsafe_masked_index.default": "fill",
    "aten.constant_pad_nd.default": "value",
    "aten.fill.Scalar": "value",
    "aten.full.default": "fill_value",
    "aten.full_like.default": "fill_value",
    "aten.index_fill.int_Scalar": "value",
    "aten.index_fill.int_Tensor": "value",
    "aten.masked_fill.Scalar": "value",
    "aten.masked_fill.Tensor": "value",
    "aten.new_full.default": "fill_value",
    "aten.scatter.value": "value",
    "prims.full.default": "fill_value",
    "prims.full_like.default": "fill_value",
}
_BOUNDS = {
    "aten.clamp.default": "min max",
    "aten.clamp_max.default": "max",
    "aten.clamp_min.default": "min",
    "aten.hardtanh.default": "min_val max_val",
    "aten.threshold.default": "threshold value",
}
_FACTORS = {
    "aten.add.Scalar": "alpha",
    "aten.add.Tensor": "alpha",
    "aten.index_add.default": "alpha",
    "aten.pow.Tensor_Scalar": "exponent",
    "aten.rsub.Scalar": "alpha",
    "aten.rsub.Tensor": "alpha",
    "aten.sub.Scalar": "alpha",
    "aten.sub.Tensor": "alpha",
}
_COMPUTED = {
    "aten.addcdiv.default": "value",
    "aten.addcmul.default": "value",
    "aten.addmm.default": "beta alpha",
    "aten.baddbmm.default": "beta alpha",
    "aten.elu.default": "alpha scale input_scale",
    "aten.leaky_relu.default": "negative_slope",
    "aten.lerp.Scalar": "weight",
    "aten.scalar_tensor.default": "s",
    "aten.softplus.default": "beta threshold",
    "prims.scalar_tensor.default": "s",
}
"""Numbers that eager converts to the type in which it computes, where the others are converted to the result's."""


_WIDE = (INT64, BFLOAT16, FLOAT32, FLOAT64)
"""Types that are taken to have a number in their range of which nothing is known: no program comes near their ends."""


def places(target: Any, names: str) -> list[tuple[int, str]]:
    """Where a call has these arguments: by position or by name."""
    arguments = [argument.name for argument in target._schema.arguments]
    return [(arguments.index(name), name) for name in names.split()]


_NUMBERS = {
    target: (places(target, names), name in _COMPUTED)
    for name, names in (_FILLED | _BOUNDS | _FACTORS | _COMPUTED).items()
    if (target := overload(name)) is not None
}


def overflows(builder: GraphBuilder, target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the operator may have a number that eager cannot convert to the type of the result that is wanted."""
    places, is_computed = _NUMBERS.get(target, ((), False))
    for position, name in places:
        number = arguments[position] if position < len(arguments) else keywords.get(name)
        if number is not None:
            element = compute_type(builder.element) if is_computed else builder.element
            if not _holds(element, number, builder):
                return True
    return False


def holds(element: Attribute, number: Any) -> bool:
    """Whether the type has the number in its range, as eager asks before it converts one, or else raises."""
    if isinstance(number, complex):
        return False
    if isinstance(number, SymInt | SymFloat):
        return element in _WIDE
    low, high = _range(element)
    return element == BOOL or low <= number <= high or (is_float(element) and not math.isfinite(number))


def _holds(element: Attribute, number: Operand, builder: GraphBuilder) -> bool:
    """The same for what is known of a number."""
    if isinstance(number, Expr):
        low, high = builder.symbols.domain.interval(number)
        least, most = _range(INT64)
        return holds(element, least if low is None else low) and holds(element, most if high is None else high)
    if not isinstance(number, Value):
        return holds(element, number)
    if number.element == element or (is_float(number.element) and is_float(element) and element in _WIDE):
        return True
    known = _known(number)
    return all(holds(element, one) for one in (_range(number.element) if known is None else (known,)))


def _known(number: Value) -> Any:
    """What a tensor of rank 0 holds, if it is a constant."""
    owner = number.ssa.owner
    while isinstance(owner, graph.CopyOp | graph.ConvertOp):
        owner = owner.operands[0].owner
    return owner.value.scalar if isinstance(owner, graph.FullOp | graph.ConstantOp) else None


@lru_cache(maxsize=16)
def _range(element: Attribute) -> tuple[float, float]:
    """The least and the largest number that eager converts to a type; negative ones wrap in one without a sign."""
    if element == BOOL:
        return 0, 1
    limits = (torch.finfo if is_float(element) else torch.iinfo)(torch_dtype(element))
    return limits.min or -limits.max, limits.max

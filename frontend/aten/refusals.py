"""Operators that eager refuses in some types: such calls stay eager's, which then says what it has to say.

torch's fake tensors let them pass, so that nothing else would stop a row from computing something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute

from ...ir.dtypes import BOOL, INT32, INT64, UINT8, compute_type, is_float
from .registry import overload

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

"""Operators that eager refuses in some types: such calls stay eager's, which then says what it has to say.

torch's fake tensors let them pass, so that nothing else would stop a row from computing something.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Attribute

from ...ir.dtypes import BOOL, is_float
from .registry import overload

_FLOATS = (
    "aten._prelu_kernel.default", "aten._prelu_kernel_backward.default", "aten._softmax_backward_data.default",
    "aten.hardsigmoid_backward.default", "aten.hardtanh_backward.default", "aten.leaky_relu_backward.default",
    "aten._weight_norm_interface_backward.default", "aten.lerp.Scalar", "aten.lerp.Tensor",
    "aten.sigmoid_backward.default", "aten.tanh_backward.default",
)  # fmt: skip
"""Operators that work on floats alone."""

_NUMBERS = (
    "aten.argmax.default", "aten.argmin.default", "aten.ceil.default", "aten.clamp.Tensor", "aten.floor.default",
    "aten.pow.Tensor_Tensor", "aten.round.default", "aten.rsub.Scalar", "aten.sub.Scalar", "aten.threshold.default",
    "aten.threshold_backward.default", "aten.trunc.default",
)  # fmt: skip
"""Operators that work on all types but bool."""

_ACCEPTED: dict[Any, Callable[[Attribute], bool]] = {
    overload(name): accepts
    for names, accepts in ((_FLOATS, is_float), (_NUMBERS, lambda element: element != BOOL))
    for name in names
}


def refuses(target: Any, element: Attribute) -> bool:
    """Whether eager raises for the operator on (first) operands of that type."""
    accepts = _ACCEPTED.get(target)
    return accepts is not None and not accepts(element)

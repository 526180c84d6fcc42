"""Which ATen ops torch's own decompositions take apart before import.

An op with a row in `frontend.aten` stays whole: the row is its decomposition, with one rounding at the end. What
has a fast native kernel and no row (convolutions, attention, sorting, linear algebra, resampling) stays whole too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch._ops import OpOverload
from torch._prims_common import suggest_memory_format
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, statically_known_true

from ..ir.dtypes import is_native
from .aten import TABLE
from .aten.refusals import holds, places
from .builder import element_for
from .import_fx import is_empty
from .strides import has_unit, is_row_major

_NAMES = [
    "_euclidean_dist", "_fused_dropout", "_fused_rms_norm", "_fused_rms_norm_backward",
    "_prelu_kernel", "_prelu_kernel_backward", "_safe_softmax",
    "_unsafe_index", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate",
    "_weight_norm_interface", "addr", "affine_grid_generator", "all", "aminmax", "arange", "baddbmm",
    "celu", "clamp_max", "clamp_min", "col2im", "count_nonzero", "cross", "cumsum_backward", "deg2rad",
    "diag_embed", "diagonal_backward", "dist", "dot", "elu_backward", "embedding_dense_backward",
    "expand_copy", "eye", "fill", "frac", "gelu_backward", "glu", "glu_backward", "hardshrink",
    "hardsigmoid", "hardsigmoid_backward", "hardswish", "hardswish_backward", "hardtanh_backward",
    "heaviside", "huber_loss", "huber_loss_backward", "im2col", "index_add", "index_copy", "index_fill",
    "isin", "isneginf", "isposinf", "kl_div", "l1_loss", "leaky_relu_backward", "lerp", "linspace",
    "log_sigmoid_backward", "log_sigmoid_forward", "logaddexp", "logaddexp2", "logit", "logit_backward",
    "logspace", "logsumexp", "masked_fill", "mish", "mish_backward", "mse_loss", "mse_loss_backward",
    "multi_margin_loss", "mv", "nan_to_num", "nansum", "narrow_copy", "native_dropout",
    "native_group_norm_backward", "new_empty", "new_full", "new_ones",
    "new_zeros", "nll_loss2d_backward", "nll_loss2d_forward", "nll_loss_backward", "nll_loss_forward",
    "norm", "ones", "ones_like", "permute_copy", "pixel_shuffle", "pixel_unshuffle", "rad2deg",
    "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "reflection_pad1d_backward",
    "reflection_pad2d_backward", "reflection_pad3d_backward", "renorm", "replication_pad1d",
    "replication_pad2d", "replication_pad3d", "roll", "rot90", "rrelu_with_noise", "rsub",
    "select_backward", "select_scatter", "sgn", "sigmoid_backward", "silu", "silu_backward", "sinc",
    "slice_backward", "smooth_l1_loss", "smooth_l1_loss_backward", "soft_margin_loss",
    "softplus", "softplus_backward", "softshrink", "softshrink_backward",
    "special_bessel_j0", "special_entr", "special_log_ndtr", "special_xlog1py", "split_with_sizes_copy",
    "squeeze_copy", "stack", "std", "std_mean", "sum", "t_copy", "take", "tanh_backward", "threshold",
    "threshold_backward", "trace", "transpose_copy", "tril", "triu", "unfold_backward", "unfold_copy",
    "unsqueeze_copy", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
    "upsample_nearest2d_backward", "value_selecting_reduction_backward", "var", "vdot", "view_copy",
    "xlogy", "zero", "zeros", "zeros_like",
]  # fmt: skip
"""Packets whose every overload torch takes apart, unless it has a row."""


_RANDOM = {"_fused_dropout", "native_dropout", "rrelu_with_noise"}
"""Of these, those that draw random numbers in another way than eager once they are taken apart."""


@lru_cache(maxsize=2)
def decomposition_table(fallback_random: bool = False) -> dict[Any, Callable[..., Any]]:
    """The table for AOTAutograd: overload → torch's decomposition. With `fallback_random` random ops stay whole."""
    names = [name for name in _NAMES if not (fallback_random and name in _RANDOM)]
    packets = [packet for name in names if (packet := getattr(torch.ops.aten, name, None)) is not None]
    found = get_decompositions(packets)
    taken = {
        target: _of_elements(_of_numbers(_of_types(rule, target), target))
        for target, rule in found.items()
        if _is_taken_apart(target)
    }
    padded = {target: _like_operand(taken[target]) for target in _PADDED}
    spaced = {target: _of_floats(rule) for target, rule in taken.items() if target in _LINSPACES}
    dropped = {target: _of_probabilities(rule) for target, rule in taken.items() if target in _DROPOUTS}
    alike = {target: _of_one_type(taken[target]) for target in _HUBER}
    plain = {target: _of_plain_layouts(taken[target]) for target in _LAYING_OUT}
    own = {
        torch.ops.aten._efficientzerotensor.default: _zeros_in_memory,
        torch.ops.aten._unique.default: _unique,
        torch.ops.aten.threshold_backward.default: _masked_gradient,
    }
    return taken | padded | spaced | dropped | alike | plain | own


def _is_taken_apart(target: Any) -> bool:
    return isinstance(target, OpOverload) and target not in TABLE


Decomposition: TypeAlias = Callable[..., Any]


def _of_elements(rule: Decomposition) -> Decomposition:
    """The rule for operands with elements; what has none stays whole, as eager's own kernel lays its results out. So
    does that of which the rule must know more than is known of sizes that depend on data."""

    @wraps(rule)
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        if is_empty(args[0] if args else None):
            return NotImplemented
        try:
            return rule(*args, **kwargs)
        except GuardOnDataDependentSymNode:
            return NotImplemented

    return decomposed


_IS_TAKEN: dict[Callable[[Sequence[torch.dtype]], bool], tuple[str, ...]] = {
    lambda types: types[0].is_floating_point: ("celu", "glu", "huber_loss", "im2col", "logaddexp2"),
    lambda types: types[0].itemsize != 2: ("special_bessel_j0", "special_log_ndtr", "trace"),
    lambda types: torch.bool not in types: ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "trace"),
    lambda types: not any(type_.is_complex for type_ in types): ("linspace", "logspace", "special_xlog1py"),
}  # fmt: skip
"""Types of the tensors that eager takes (`trace` and `im2col` also some others), and the packets of which it asks that:
torch's rules would compute something of all."""


def _of_types(rule: Decomposition, target: Any) -> Decomposition:
    """The rule for types that eager takes. Calls on others stay whole, for eager to refuse."""
    asked = [accepts for accepts, names in _IS_TAKEN.items() if target.overloadpacket.__name__ in names]
    if not asked:
        return rule

    @wraps(rule)
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        types = [operand.dtype for operand in args if isinstance(operand, Tensor)]
        taken = not types or all(accepts(types) for accepts in asked)
        return rule(*args, **kwargs) if taken else NotImplemented

    return decomposed


_CONVERTED = {
    "addr": "beta alpha",
    "celu": "alpha",
    "linspace": "start end",
    "logit": "eps",
    "logspace": "start end",
}
"""Packets, and their numbers that eager converts to the type of the result; torch's rules do not."""


def _of_numbers(rule: Decomposition, target: Any) -> Decomposition:
    """The rule for numbers in the range of the type. Calls with others stay whole, for eager to refuse."""
    converted = places(target, _CONVERTED.get(target.overloadpacket.__name__, ""))
    if not converted:
        return rule

    @wraps(rule)
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        types = [operand.dtype for operand in args if isinstance(operand, Tensor)]
        element = element_for(kwargs.get("dtype") or (types[0] if types else torch.get_default_dtype()))
        given = (args[place] if place < len(args) else kwargs.get(name) for place, name in converted)
        numbers = [number for number in given if number is not None and not isinstance(number, Tensor)]
        taken = not is_native(element) or all(holds(element, number) for number in numbers)
        return rule(*args, **kwargs) if taken else NotImplemented

    return decomposed


def _zeros_in_memory(size: Any, **options: Any) -> Tensor:
    """As a tangent of forward mode may be; what has no memory a kernel cannot read."""
    return torch.zeros(size, **options)


def _unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    """By the operator whose fake knows that its size depends on data; that of `_unique` gives some size."""
    return torch.ops.aten._unique2(self, sorted, return_inverse)[:2]


def _masked_gradient(grad_output: Tensor, self: Tensor, threshold: Any) -> Any:
    """A relu's by a mask, of which the forward then saves a byte an element, and not its result. The operator stays
    whole where eager refuses, and where layouts or types differ: the result would be laid out like the mask."""
    strides = zip(grad_output.stride(), self.stride(), strict=True)
    alike = grad_output.dtype == self.dtype and all(statically_known_true(one == other) for one, other in strides)
    if threshold != 0 or not alike or is_empty(self) or self.dtype == torch.bool or self.is_complex():
        return NotImplemented
    return torch.where(self <= threshold, 0, grad_output)


_LINSPACES = [getattr(torch.ops.aten.linspace, name) for name in torch.ops.aten.linspace.overloads()]
_HUBER = (torch.ops.aten.huber_loss.default, torch.ops.aten.huber_loss_backward.default)
_DROPOUTS = (torch.ops.aten.native_dropout.default,)
_LAYING_OUT = [getattr(torch.ops.aten, name).default for name in ("deg2rad", "isneginf", "isposinf", "rad2deg", "sinc")]
_PADDED = (torch.ops.aten.replication_pad2d.default, torch.ops.aten.replication_pad3d.default)


def _like_operand(rule: Decomposition) -> Decomposition:
    """The result channels-last like the operand, also where padding is negative and torch's rule forgets it."""

    @wraps(rule)
    def decomposed(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        result, wanted = rule(self, *args, **kwargs), suggest_memory_format(self)
        if result is NotImplemented or suggest_memory_format(result) is wanted:
            return result
        return result.clone(memory_format=wanted)

    return decomposed


def _of_floats(rule: Decomposition) -> Decomposition:
    """The rule for results of floats. For integers eager cuts the bounds to integers first; torch's does not."""

    @wraps(rule)
    def decomposed(*args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        exact = dtype is not None and not (dtype.is_floating_point or dtype.is_complex)
        return NotImplemented if exact else rule(*args, dtype=dtype, **kwargs)

    return decomposed


def _of_plain_layouts(rule: Decomposition) -> Decomposition:
    """The rule for operands whose dims of size 1 lie as those of a fresh tensor. What the rule makes of others lies in
    another way than eager's own result, which follows them."""

    @wraps(rule)
    def decomposed(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        plain = not has_unit(self.shape) or is_row_major(self)
        return rule(self, *args, **kwargs) if plain else NotImplemented

    return decomposed


def _of_one_type(rule: Decomposition) -> Decomposition:
    """The rule for operands of one type. Of several, eager's kernel gives the first one's, or refuses them."""

    @wraps(rule)
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        types = {operand.dtype for operand in args if isinstance(operand, Tensor)}
        return rule(*args, **kwargs) if len(types) == 1 else NotImplemented

    return decomposed


def _of_probabilities(rule: Decomposition) -> Decomposition:
    """The rule for probabilities from 0 to 1. Others stay whole, for eager to refuse."""

    @wraps(rule)
    def decomposed(self: Tensor, p: float, train: bool | None) -> Any:
        return rule(self, p, train) if 0 <= p <= 1 else NotImplemented

    return decomposed

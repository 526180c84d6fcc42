"""The strides of results where torch's fake tensors promise others than eager's CPU kernels give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch._prims_common import (
    compute_elementwise_output_strides,
    is_non_overlapping_and_dense_or_false,
    suggest_memory_format,
)
from torch.backends import mkl
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from .aten.registry import overload
from .stride_arithmetic import are_equal, iterator_strides, ordered_strides, row_major_strides, view_strides

Rule = Callable[[fx.Node], torch.memory_format | tuple[Any, ...] | None]
"""The memory format, or the strides, of a node's first result, or of those that `POSITIONS` names; None leaves what the
fake has."""


def _value(node: fx.Node, position: int = 0) -> Tensor:
    operand = node.args[position]
    assert isinstance(operand, fx.Node)
    value: Tensor = operand.meta["val"]
    return value


def _suggested(position: int = 0) -> Rule:
    """Channels-last like the operand, else row-major."""
    return lambda node: suggest_memory_format(_value(node, position))


def _contiguous(_: fx.Node) -> torch.memory_format:
    """Row-major, whatever the operand."""
    return torch.contiguous_format


def _preserved(node: fx.Node) -> tuple[Any, ...] | None:
    """The operand's own strides, also along dims of size 1, unless a memory format is asked for."""
    x = _value(node)
    if node.kwargs.get("memory_format") not in (None, torch.preserve_format):
        return None
    return x.stride() if x.layout == torch.strided and is_non_overlapping_and_dense_or_false(x) else None


def _expanded(node: fx.Node) -> tuple[Any, ...] | None:
    """A scalar expands with strides of 0 alone, also along dims of size 1."""
    return None if _value(node).ndim else (0,) * node.meta["val"].ndim


def _viewed(node: fx.Node) -> tuple[Any, ...] | None:
    """As torch's own arithmetic has it, which Python's repeats, but for the strides of dims of size 1."""
    sizes = node.meta["val"].shape
    return view_strides(_value(node), sizes) if has_unit(sizes) else None


def _transformed(node: fx.Node) -> tuple[Any, ...] | None:
    """MKL's transforms lay out what they do not transform first, by its strides in the operand, then the dims that
    they transform, the last of them innermost."""
    x, sizes = _value(node), node.meta["val"].shape
    named: Any = node.args[1]
    dims = [dim % x.ndim for dim in named]
    strides = x.stride()
    if x.device.type != "cpu" or not mkl.is_available() or not dims or free_unbacked_symbols([*x.shape, *strides]):
        return None
    if node.target is torch.ops.aten._fft_c2r.default:  # the others by a complex transform before, which sorts them
        if len(dims) > 1:
            strides = _ordered_strides(x.shape, strides, _outermost_first(strides, dims[:-1]))
        dims = dims[-1:]
    elif node.target is torch.ops.aten._fft_r2c.default:
        dims = [*_outermost_first(strides, dims[:-1]), dims[-1]]
    else:
        dims = _outermost_first(strides, dims)
    return _ordered_strides(sizes, strides, dims)


def _outermost_first(strides: Sequence[Any], dims: Iterable[int]) -> list[int]:
    return sorted(dims, key=lambda dim: -strides[dim])


def _ordered_strides(sizes: Sequence[Any], strides: Sequence[Any], last: Sequence[int]) -> tuple[Any, ...]:
    """Dense strides for the sizes: the dims ordered by the given strides, but for some that come last."""
    order = [*_outermost_first(strides, (dim for dim in range(len(sizes)) if dim not in last)), *last]
    return ordered_strides(sizes, order[::-1])


def has_unit(sizes: Sequence[Any]) -> bool:
    return any(type(size) is int and size == 1 for size in sizes)


def is_row_major(x: Tensor) -> bool:
    """Whether its strides are known to be those of a fresh tensor, also along dims of size 1."""
    return x.layout == torch.strided and are_equal(x.stride(), row_major_strides(x.shape))


def _cloned(node: fx.Node) -> tuple[Any, ...] | None:
    """Those of a clone that is written into: an operand that repeats elements is spread out."""
    x = _value(node)
    if not _is_expanded(x):
        return None
    with x.fake_mode:  # type: ignore[attr-defined]
        return x.clone().stride()


def _combined(node: fx.Node) -> tuple[Any, ...] | None:
    """An operator of two operands, one of which may be a number, where a dim of size 1, or of a size that depends on
    data, leaves the order open."""
    result, operands = node.meta["val"], node.args[:2]
    tensors = [value for value in map(_meta, operands) if isinstance(value, Tensor) and value.ndim]
    is_open = has_unit(result.shape) or free_unbacked_symbols(result.shape)
    if not is_open or all(map(is_row_major, tensors)):
        return None
    return iterator_strides(tensors, result.shape, has_numbers=len(tensors) < len(operands))


def _elementwise(node: fx.Node) -> tuple[Any, ...]:
    """What all operands lead to, the first of them before the others; decompositions look at another first."""
    tensors = [value for operand in node.args if isinstance(value := _meta(operand), Tensor)]
    with tensors[0].fake_mode:  # type: ignore[attr-defined]
        return tuple(compute_elementwise_output_strides(*torch.broadcast_tensors(*tensors)))


def _meta(operand: Any) -> Any:
    return operand.meta.get("val") if isinstance(operand, fx.Node) else None


def _unary(node: fx.Node) -> tuple[Any, ...]:
    """An operator of one operand."""
    return iterator_strides([_value(node)], node.meta["val"].shape, has_numbers=False)


def _indexed(node: fx.Node) -> tuple[Any, ...]:
    """As for an elementwise operator of the source, which repeats along the indices' dims, and the indices, which do
    along the others. Masks stand for indices of one dim, and such say nothing of the order."""
    x, sizes = _value(node), node.meta["val"].shape
    indices: Any = node.args[1]
    given: list[Tensor | None] = []
    for index in map(_meta, indices):
        is_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        given += [x.new_empty(1)] * index.ndim if is_mask else [index]
    given += [None] * (x.ndim - len(given))
    places = [dim for dim, index in enumerate(given) if index is not None]
    before = places[0] if places[-1] - places[0] < len(places) else 0
    steps = [step for step, index in zip(x.stride(), given, strict=True) if index is None]
    after = len(steps) - before
    rank = len(sizes) - len(steps)
    common = sizes[before : before + rank]
    with x.fake_mode:  # type: ignore[attr-defined]
        source = x.as_strided(sizes, (*steps[:before], *[0] * rank, *steps[before:]))
        tensors = [_among(index.expand(common), before, after) for index in given if index is not None]
        if x.device.type == "cuda" and any(index.stride() != tensors[0].stride() for index in tensors):
            tensors = [index.contiguous() for index in tensors]
    return iterator_strides([source, *tensors], sizes, has_numbers=False)


def _among(index: Tensor, before: int, after: int) -> Tensor:
    """The index between dims of size 1."""
    sizes = (*[1] * before, *index.shape, *[1] * after)
    strides = view_strides(index, sizes) or (*[0] * before, *index.stride(), *[0] * after)
    return index.as_strided(sizes, strides)


def _apart(node: fx.Node) -> torch.memory_format | None:
    """Gradients of attention: row-major, unless they are to lie in one piece of memory."""
    return None if node.kwargs.get("shared_storage_dqdkdv") else torch.contiguous_format


def _like_weight(node: fx.Node) -> tuple[Any, ...] | None:
    """The gradient of a convolution's weight that is both row-major and channels-last: oneDNN's, and fakes, are
    channels-last; that of torch's own kernels keeps the weight's strides."""
    grad, x, weight = (_value(node, position) for position in range(3))
    if grad.device.type != "cpu" or weight.ndim != 4 or not weight.is_contiguous(memory_format=torch.channels_last):
        return None
    options = fx.map_arg(node.args[3:10], lambda operand: _hint(operand.meta["val"]))
    operands = [_typical(x), _typical(weight)]
    if any(operand is None for operand in operands):
        return None
    # torch's own choice, which hangs on the processor, the sizes and the number of threads
    backend = torch._C._select_conv_backend(*operands, None, *options[1:], options[0]).name
    return weight.stride() if backend == "Empty" or backend.startswith("Slow") else None


def _typical(x: Tensor) -> Tensor | None:
    """A fake whose sizes and strides are numbers: those that were traced, None if they are only known at run time."""
    numbers: Any = [[_hint(number) for number in part] for part in (x.shape, x.stride())]
    if None in itertools.chain(*numbers):
        return None
    with x.fake_mode:  # type: ignore[attr-defined]
        return torch.empty_strided(*numbers, dtype=x.dtype)


def _hint(number: Any) -> int | None:
    return number if isinstance(number, int) else number.node.hint


def _rolled(node: fx.Node) -> torch.memory_format:
    """Two slices, joined; without dims a roll of the flat tensor."""
    along = node.args[2] if len(node.args) > 2 else ()
    return suggest_memory_format(_value(node)) if along else torch.contiguous_format


RULES: dict[Any, Rule] = {
    target: rule
    for name, rule in {
        "aten._batch_norm_with_update_functional.default": _suggested(),
        "aten._efficient_attention_backward.default": _apart,
        "aten._native_batch_norm_legit.no_stats": _suggested(),
        "aten._native_batch_norm_legit_functional.default": _suggested(),
        "aten.batch_norm_backward.default": _suggested(1),
        "aten.convolution_backward.default": _like_weight,
        "aten.channel_shuffle.default": _suggested(),
        "aten.native_channel_shuffle.default": _suggested(),
        "aten.max_unpool2d.default": _suggested(),
        "aten.native_batch_norm_backward.default": _suggested(1),
        "aten.empty_like.default": _preserved,
        "aten.deg2rad.default": _preserved,
        "aten.diagonal_scatter.default": _cloned,
        "aten.select_scatter.default": _cloned,
        "aten.slice_scatter.default": _cloned,
        "aten._fft_c2c.default": _transformed,
        "aten._fft_c2r.default": _transformed,
        "aten._fft_r2c.default": _transformed,
        "aten.expand.default": _expanded,
        "aten.flip.default": _preserved,
        "aten.floor_divide.default": _combined,
        "aten.hardswish_backward.default": _elementwise,
        "aten.hardtanh.default": _preserved,
        "aten.hardtanh_backward.default": _elementwise,
        "aten.heaviside.default": _combined,
        "aten._unsafe_index.Tensor": _indexed,
        "aten.index.Tensor": _indexed,
        "aten.isneginf.default": _unary,
        "aten.isposinf.default": _unary,
        "aten.log_sigmoid_forward.default": _contiguous,
        "aten.logit_backward.default": _elementwise,
        "aten.nan_to_num.default": _preserved,
        "aten.view.default": _viewed,
        "aten.full_like.default": _preserved,
        "aten.native_dropout_backward.default": _preserved,
        "aten.ones_like.default": _preserved,
        "aten.rad2deg.default": _preserved,
        "aten.sinc.default": _unary,
        "aten.zeros_like.default": _preserved,
        "aten.replication_pad2d_backward.default": _suggested(1),
        "aten.replication_pad3d_backward.default": _suggested(1),
        "aten.roll.default": _rolled,
    }.items()
    if (target := overload(name)) is not None
}

POSITIONS: dict[Any, range] = {
    overload("aten._efficient_attention_backward.default"): range(3),
    overload("aten.convolution_backward.default"): range(1, 2),
    overload("aten.log_sigmoid_forward.default"): range(2),
}
"""Which of an operator's results a rule speaks of, where it is not the first alone."""


def _pointwise(node: fx.Node) -> tuple[Any, ...] | None:
    """What the operands' own strides lead to. Fakes widen bf16 and f16 first, and lose that an operand is expanded,
    whose order of dims says nothing."""
    operands = [operand.meta.get("val") for operand in node.all_input_nodes]
    tensors = [value for value in operands if isinstance(value, Tensor) and value.layout is torch.strided]
    result = node.meta.get("val")
    if not isinstance(result, Tensor) or result.dtype not in _WIDENED or not any(map(_is_expanded, tensors)):
        return None
    with result.fake_mode:  # type: ignore[attr-defined]
        return tuple(compute_elementwise_output_strides(*(value.expand(result.shape) for value in tensors)))


def _binary(node: fx.Node) -> tuple[Any, ...] | None:
    return _pointwise(node) or _combined(node)


_OPERANDS = ["self", "other"]
"""How the schemas of operators of two operands call them."""

_WIDENED = (torch.bfloat16, torch.float16)


def _is_expanded(value: Tensor) -> bool:
    """Whether a dim of a static size repeats one element."""
    steps = zip(value.shape, value.stride(), strict=True)
    return any(type(size) is int and type(step) is int and step == 0 and size > 1 for size, step in steps)


def layout_rule(target: Any) -> Rule | None:
    if target in RULES or not isinstance(target, OpOverload) or torch.Tag.pointwise not in target.tags:
        return RULES.get(target)
    return _binary if [argument.name for argument in target._schema.arguments[:2]] == _OPERANDS else _pointwise

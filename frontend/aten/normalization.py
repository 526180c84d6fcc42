"""Softmax and the norms with their gradients, in f32 throughout for bf16 and f16.

Statistics are formed over whole dims at once; each formula is the closed form of the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...ir.dtypes import FLOAT64, compute_type
from ...ir.expr import ONE, ZERO, ExprLike, product
from ...ir.shapes import dense_order, layout_of, sizes_of
from ..builder import Declined, GraphBuilder, Value, absolute, exp, log, maximum, reciprocal, rsqrt, where
from .reductions import degrees_of_freedom, moments, widened
from .registry import imports


def _up(value: Value | None) -> Value | None:
    return None if value is None else value.up()


def _scaled(x: Value, weight: Value | None, bias: Value | None) -> Value:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


# -- softmax -----------------------------------------------------------------------------------------


def _in_compute_type(builder: GraphBuilder, value: Value) -> Value:
    return value.to(compute_type(builder.element))


def _row_dims(x: Value, dim: int) -> list[int]:
    if not x.rank or x.sizes[x.dim(dim)] == ZERO:
        raise Declined
    return [x.dim(dim)]


@imports("aten._softmax")
def softmax(builder: GraphBuilder, self: Value, dim: int, half_to_float: bool) -> Value:
    x = _in_compute_type(builder, self)
    dims = _row_dims(x, dim)
    e = exp(x - x.max(dims, keep=True))
    return e * reciprocal(e.sum(dims, keep=True))  # one division a row; the sum is 1 at least, so this is safe


@imports("aten._log_softmax")
def log_softmax(builder: GraphBuilder, self: Value, dim: int, half_to_float: bool) -> Value:
    x = _in_compute_type(builder, self)
    dims = _row_dims(x, dim)
    shifted = x - x.max(dims, keep=True)
    return shifted - log(exp(shifted).sum(dims, keep=True))


@imports("aten._softmax_backward_data")
def softmax_backward(builder: GraphBuilder, grad_output: Value, output: Value, dim: int, input_dtype: Any) -> Value:
    grad, y = grad_output.up(), output.up()
    return (grad - (grad * y).sum(y.dims(dim), keep=True)) * y


@imports("aten._log_softmax_backward_data")
def log_softmax_backward(builder: GraphBuilder, grad_output: Value, output: Value, dim: int, input_dtype: Any) -> Value:
    grad, y = grad_output.up(), output.up()
    return grad - exp(y) * grad.sum(y.dims(dim), keep=True)


# -- layer norm --------------------------------------------------------------------------------------


def _normalized_dims(x: Value, normalized_shape: Sequence[Any]) -> list[int]:
    return [*range(x.rank - len(normalized_shape), x.rank)]


@imports("aten.native_layer_norm")
def layer_norm(
    builder: GraphBuilder,
    input: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value, Value, Value]:
    x = input.up()
    variance, mean = moments(x, _normalized_dims(x, normalized_shape))
    scale = rsqrt(variance + eps)
    return _scaled((x - mean) * scale, _up(weight), _up(bias)), mean, scale


@imports("aten.native_layer_norm_backward")
def layer_norm_backward(
    builder: GraphBuilder,
    grad_out: Value,
    input: Value,
    normalized_shape: Sequence[Any],
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Sequence[bool],
) -> tuple[Value | None, Value | None, Value | None]:
    grad, x = grad_out.up(), input.up()
    inner = _normalized_dims(x, normalized_shape)
    outer = [*range(x.rank - len(inner))]
    normalized = (x - mean.to(x.element)) * rstd.to(x.element)
    want_input, want_weight, want_bias = output_mask
    grad_input = None
    if want_input:
        scaled = grad if weight is None else grad * weight.up()
        centred = scaled - scaled.mean(inner, keep=True)
        projection = (scaled * normalized).mean(inner, keep=True)
        grad_input = (centred - normalized * projection) * rstd.to(x.element)
    return (
        grad_input,
        (grad * normalized).sum(outer) if want_weight and weight is not None else None,
        grad.sum(outer) if want_bias and bias is not None else None,
    )


# -- batch norm --------------------------------------------------------------------------------------


def _per_channel(value: Value, rank: int) -> Value:
    """A vector over channels, shaped to broadcast along dim 1 of a tensor of that rank."""
    sizes: list[ExprLike] = [ONE] * rank
    sizes[1] = value.count
    return value.up().reshape(sizes)


def _channel_dims(x: Value) -> list[int]:
    return [dim for dim in range(x.rank) if dim != 1]


def _batch_affine(centred: Value, scale: Value, weight: Value | None, bias: Value | None) -> Value:
    """One factor by channel, so that each element is multiplied once."""
    rank = centred.rank
    factor = scale if weight is None else scale * _per_channel(weight, rank)
    return _scaled(centred, factor, None if bias is None else _per_channel(bias, rank))


@imports("aten._native_batch_norm_legit_no_training")
def batch_norm_inference(
    builder: GraphBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    x = input.up()
    scale = _per_channel(rsqrt(running_var.up() + eps), x.rank)
    output = _batch_affine(x - _per_channel(running_mean, x.rank), scale, weight, bias)
    saved = builder.results[1]
    if saved is None or sizes_of(saved) == (ZERO,):  # on the CPU
        nothing = builder.full(0, builder.element, [0])
        return output, nothing, nothing
    return output, running_mean, rsqrt(running_var.up() + eps)


def _updated(running: Value, momentum: float, statistic: Value) -> Value:
    old = running.up()
    return old * (1 - momentum) + statistic.to(old.element) * momentum


FEW = 64
"""Elements of a channel of which all may happen to be near to each other."""


def _may_be_near(x: Value, dims: Sequence[int]) -> bool:
    """Whether the elements of a channel may differ by less than rounding their mean loses: the mean of what is left of
    them is then taken out, too (T. F. Chan, G. H. Golub, R. J. LeVeque, Algorithms for computing the sample variance,
    1983). Of many elements some are far from the mean, and a third sum takes registers. On the CPU moments are in f64,
    as eager's."""
    count = product(x.sizes[dim] for dim in dims)
    return not x.builder.is_on_cpu and count.is_constant and count.constant <= FEW


def _batch_norm_training(
    input: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value, Value]:
    """Output, mean, 1/deviation and unbiased variance, the last three by channel."""
    x, dims, wide = input.up(), _channel_dims(input), widened(input)
    variance, mean = moments(wide, dims)
    centred = x - mean.to(x.element)
    if _may_be_near(x, dims):
        left = centred.mean(dims, keep=True)
        variance, centred = maximum(variance - left * left, 0.0), centred - left
    scale = rsqrt((variance.to(FLOAT64) if x.builder.is_on_cpu else variance) + eps)
    output = _batch_affine(centred, scale.to(x.element), weight, bias)
    count = product(x.sizes[dim] for dim in dims)
    unbiased = variance * x.builder.full(count, wide.element) / degrees_of_freedom(wide, dims, 1)
    channels = [x.sizes[1]]
    return output, mean.reshape(channels), scale.reshape(channels), unbiased.reshape(channels)


@imports("aten._native_batch_norm_legit_functional")
def batch_norm_functional(
    builder: GraphBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, ...]:
    if not training:
        output, *nothing = batch_norm_inference(builder, input, weight, bias, running_mean, running_var, momentum, eps)
        return output, *nothing, running_mean, running_var
    output, mean, scale, unbiased = _batch_norm_training(input, weight, bias, eps)
    return (
        output,
        mean,
        scale,
        _updated(running_mean, momentum, mean),
        _updated(running_var, momentum, unbiased),
    )


@imports("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    builder: GraphBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    return _batch_norm_training(input, weight, bias, eps)[:3]


LOST_BY_ROUNDING = 2.0**-16
"""The share of a saved mean that computing and saving it may have lost: one that is further off was meant to be."""


@imports("aten.native_batch_norm_backward")
def batch_norm_backward(
    builder: GraphBuilder,
    grad_out: Value,
    input: Value,
    weight: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    save_mean: Value | None,
    save_invstd: Value | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Value | None, ...]:
    grad, x = grad_out.up(), input.up()
    dims = _channel_dims(x)
    mean, scale = save_mean, save_invstd
    if not train:
        assert running_mean is not None
        assert running_var is not None
        mean, scale = running_mean, rsqrt(running_var.up() + eps)
    assert mean is not None
    assert scale is not None
    factor = _per_channel(scale, x.rank)
    about = _per_channel(mean, x.rank)
    centred = x - about  # not yet scaled: what all summands share loses nothing to rounding
    grad_bias, projection = (value.sum(dims, keep=True) for value in (grad, grad * centred))
    if train and _may_be_near(x, dims):
        left = centred.mean(dims, keep=True)
        left = where(absolute(left) <= absolute(about) * LOST_BY_ROUNDING, left, 0.0)
        projection, centred = projection - left * grad_bias, centred - left
    grad_weight = projection * factor
    varying = grad
    if train:
        count = product(x.sizes[dim] for dim in dims)
        varying = grad - grad_bias / count - centred * (grad_weight * factor / count)
    grad_input = varying * (factor if weight is None else factor * _per_channel(weight, x.rank))
    channels = [x.sizes[1]]
    wanted = (grad_input, grad_weight.reshape(channels), grad_bias.reshape(channels))
    return tuple(value if want else None for value, want in zip(wanted, output_mask, strict=True))


# -- group norm --------------------------------------------------------------------------------------


def _is_row_major_or_channels_last(x: Value) -> bool:
    order = dense_order(layout_of(x.type))
    channels_last = [dim for dim in (0, *range(2, x.rank), 1) if dim in (order or ())]
    return order is not None and (order == sorted(order) or (x.rank > 3 and order == channels_last))


ANY_LAYOUT = torch.__version__ >= "2.15"
"""Whether eager normalises groups of tensors of any layout."""


LEAST_PLACES = 32
"""Elements of a channel from which on its own moments are worth their loops."""


@dataclass(frozen=True)
class Groups:
    """How the `[batch, channels, places]` of a group norm are looked at: with a dim of groups, unless channels are
    neighbours in memory. Then a loop over groups would go through it in pieces of a few channels."""

    batch: Any
    channels: Any
    places: Any
    count: int
    are_neighbours: bool

    @staticmethod
    def of(x: Value, batch: Any, channels: Any, places: Any, count: int) -> Groups:
        return Groups(batch, channels, places, count, x.rank > 2 and x.strides[1] == ONE)

    @property
    def grouped(self) -> list[ExprLike]:
        return [self.batch, self.count, self.channels // self.count]

    def arranged(self, x: Value) -> Value:
        leading = [self.batch, self.channels] if self.are_neighbours else self.grouped
        return x.up().reshape([*leading, self.places])

    def of_channels(self, parameter: Value) -> Value:
        """A parameter as what is arranged takes it."""
        return parameter.up().reshape([self.channels, 1] if self.are_neighbours else [*self.grouped[1:], 1])

    def of_groups(self, statistic: Value) -> Value:
        """A statistic of `[batch, groups, 1, 1]` as what is arranged takes it."""
        if not self.are_neighbours:
            return statistic
        return statistic.broadcast([*self.grouped, 1]).reshape([self.batch, self.channels, 1])

    def by_group(self, value: Value) -> Value:
        """A number for each channel as `[batch, groups, channels of one, 1]`."""
        return value.reshape([*self.grouped, 1])

    def moments(self, x: Value) -> tuple[Value, Value]:
        """Variance and mean of what is arranged, as `[batch, groups, 1, 1]`: of a group in one go, or what its channels
        vary by and what their means do. A channel stays in a core's nearest cache where a group does not."""
        if not self.are_neighbours and (not x.builder.is_on_cpu or self._is_short(x)):
            return moments(x, [2, 3])
        variances, means = (self.by_group(value) for value in moments(x, [x.rank - 1]))
        mean = means.mean([2], keep=True)
        apart = means - mean
        return (variances + apart * apart).mean([2], keep=True), mean

    def _is_short(self, x: Value) -> bool:
        return x.sizes[-1].is_constant and x.sizes[-1].constant < LEAST_PLACES


@imports("aten.native_group_norm")
def group_norm(
    builder: GraphBuilder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    if not ANY_LAYOUT and not _is_row_major_or_channels_last(input):  # which eager refuses
        raise Declined
    groups = Groups.of(input, N, C, HxW, group)
    x = groups.arranged(input)
    variance, mean = groups.moments(x)
    scale = rsqrt(variance + eps)
    parameters = (None if value is None else groups.of_channels(value) for value in (weight, bias))
    output = _scaled((x - groups.of_groups(mean)) * groups.of_groups(scale), *parameters)
    return output.reshape(input.sizes), mean.reshape([N, group]), scale.reshape([N, group])


@imports("aten.native_group_norm_backward")
def group_norm_backward(
    builder: GraphBuilder,
    grad_out: Value,
    input: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Value | None, ...]:
    groups = Groups.of(input, N, C, HxW, group)
    grad, x = groups.arranged(grad_out), groups.arranged(input)
    centre, scale = (value.to(x.element).reshape([N, group, 1, 1]) for value in (mean, rstd))
    normalized = (x - groups.of_groups(centre)) * groups.of_groups(scale)
    # Sums by channel serve all three gradients.
    shifts, projections = (groups.by_group(value.sum([x.rank - 1], keep=True)) for value in (grad, grad * normalized))
    shift, projection, factor = shifts, projections, groups.of_groups(scale)
    if weight is not None:
        of_group = weight.up().reshape([group, C // group, 1])
        shift, projection, factor = shifts * of_group, projections * of_group, factor * groups.of_channels(weight)
    count = product([C // group, HxW])
    shift, projection = (groups.of_groups(value.sum([2], keep=True) * scale / count) for value in (shift, projection))
    grad_input = grad * factor - shift - normalized * projection
    wanted = (grad_input.reshape(input.sizes), projections.sum([0]).reshape([C]), shifts.sum([0]).reshape([C]))
    return tuple(value if want else None for value, want in zip(wanted, output_mask, strict=True))


# -- weight norm -------------------------------------------------------------------------------------


@imports("aten._weight_norm_interface_backward")
def weight_norm_backward(
    builder: GraphBuilder, grad_w: Value, saved_v: Value, saved_g: Value, saved_norms: Value, dim: int
) -> tuple[Value, Value]:
    grad, v = grad_w.up(), saved_v.up()
    if dim not in (0, v.rank - 1):  # which eager refuses
        raise Declined
    norms = saved_norms.to(v.element)
    factor = saved_g.up() / norms
    projection = (grad * v).sum([other for other in range(v.rank) if other != dim], keep=True)
    return factor * grad - factor * projection / (norms * norms) * v, projection / norms

"""Losses. Their reductions, like all sums, run in f32 for bf16 and f16."""

from __future__ import annotations

from ...ir import graph
from ...ir.dtypes import FLOAT64, INT64, compute_type
from ...ir.expr import ONE, Expr
from ..builder import Declined, GraphBuilder, Value, absolute, exp, log, log1p, maximum, minimum, where
from .registry import imports

NONE, MEAN, SUM = 0, 1, 2
"""How a loss is reduced, as eager numbers it."""


def _reduced(loss: Value, reduction: int) -> Value:
    if reduction == NONE:
        return loss
    dims = loss.dims(None)
    return loss.mean(dims) if reduction == MEAN else loss.sum(dims)


# -- negative log likelihood -------------------------------------------------------------------------


def _class_index(target: Value, ignore_index: int, rank: int) -> tuple[Value, Value]:
    """The target as an index along dim 1 (0 where it is ignored), and where it counts."""
    index = target.to(INT64).unsqueeze(1) if rank > 1 else target.to(INT64).reshape([1])
    counts = index.differs(ignore_index)
    return where(counts, index, 0), counts


def _class_weights(x: Value, weight: Value | None, index: Value, counts: Value, dim: int) -> Value:
    """The weight of each target's class, 0 where it is ignored."""
    if weight is None:
        return counts.to(x.element)
    sizes = [ONE] * x.rank
    sizes[dim] = weight.count
    table = weight.to(x.element).reshape(sizes).broadcast(x.sizes)
    return where(counts, _gather(table, index, dim), 0)


def _gather(x: Value, index: Value, dim: int) -> Value:
    return x.builder.emit(graph.GatherOp.make(x.ssa, index.ssa, dim, "target"))


@imports("aten.nll_loss_forward", "aten.nll_loss2d_forward")
def nll_loss_forward(
    builder: GraphBuilder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> tuple[Value, Value]:
    x = self.up()
    dim = 1 if x.rank > 1 else 0
    index, counts = _class_index(target, ignore_index, x.rank)
    weights = _class_weights(x, weight, index, counts, dim)
    losses = -_gather(x, index, dim) * weights
    losses = where(counts, losses, 0)
    if reduction == NONE:
        return losses.reshape(builder.sizes), builder.full(0, x.element)
    dims = losses.dims(None)
    total, total_weight = losses.sum(dims), weights.sum(dims)
    return (total if reduction == SUM else total / total_weight), total_weight


@imports("aten.nll_loss_backward", "aten.nll_loss2d_backward")
def nll_loss_backward(
    builder: GraphBuilder,
    grad_output: Value,
    self: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    total_weight: Value,
) -> Value:
    """Each element compares its class with the target, so that nothing is scattered."""
    grad = grad_output.up()
    dim = 1 if self.rank > 1 else 0
    index, counts = _class_index(target, ignore_index, self.rank)
    if reduction == MEAN:
        grad = grad / total_weight.to(grad.element)
    elif reduction == NONE and self.rank > 1:
        grad = grad.unsqueeze(1)
    scaled = where(counts, -grad, 0)
    if weight is not None:
        sizes = [ONE] * self.rank
        sizes[dim] = weight.count
        scaled = scaled * weight.up().reshape(sizes)
    chosen = builder.index_along(dim, self.sizes).equals(index)
    return where(chosen, scaled, 0)


# -- regression --------------------------------------------------------------------------------------


@imports("aten.mse_loss")
def mse_loss(builder: GraphBuilder, self: Value, target: Value, reduction: int = MEAN) -> Value:
    element = compute_type(builder.element)
    difference = self.to(element) - target.to(element)
    return _reduced(difference * difference, reduction)


@imports("aten.mse_loss_backward")
def mse_loss_backward(builder: GraphBuilder, grad_output: Value, self: Value, target: Value, reduction: int) -> Value:
    if self.element != target.element:
        raise Declined  # torch 2.11 refuses two types
    element = compute_type(builder.element)
    grad, x, y = (value.to(element) for value in (grad_output, self, target))
    difference = x - y
    scaled = difference * 2.0 * grad
    return scaled / difference.count if reduction == MEAN else scaled


@imports("aten.smooth_l1_loss")
def smooth_l1_loss(
    builder: GraphBuilder, self: Value, target: Value, reduction: int = MEAN, beta: float = 1.0
) -> Value:
    element = compute_type(builder.element)
    distance = absolute(self.to(element) - target.to(element))
    if beta == 0:
        return _reduced(distance, reduction)
    loss = where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)
    return _reduced(loss, reduction)


# -- soft margin -------------------------------------------------------------------------------------


def _step(builder: GraphBuilder, value: Value) -> Value:
    """The value as eager hands it from one operator to the next, rounded to the result's type, to compute with."""
    return value.to(builder.element).up()


def _share(builder: GraphBuilder, count: Expr, reduction: int) -> Value:
    """What each element contributes to the reduced loss, in f64."""
    whole = builder.full(1.0, FLOAT64)
    return whole / count if reduction == MEAN else whole


@imports("aten.soft_margin_loss")
def soft_margin_loss(builder: GraphBuilder, self: Value, target: Value, reduction: int = MEAN) -> Value:
    """Eager's composite rounds after every operator, so that in f16 it overflows where `exp` does."""
    x, y = _step(builder, self), _step(builder, target)
    decay = _step(builder, exp(_step(builder, -x * y)))
    return _reduced(_step(builder, log1p(decay)), reduction)


@imports("aten.soft_margin_loss_backward")
def soft_margin_loss_backward(
    builder: GraphBuilder, grad_output: Value, self: Value, target: Value, reduction: int = MEAN
) -> Value:
    """Likewise, operator by operator."""
    grad, x, y = (_step(builder, value) for value in (grad_output, self, target))
    decay = _step(builder, exp(_step(builder, -y * x)))
    result = _step(builder, y * decay) * _step(builder, -_share(builder, x.count, reduction))
    return _step(builder, _step(builder, result) / _step(builder, decay + 1)) * grad


# -- binary cross entropy ----------------------------------------------------------------------------

_LOWEST_LOG = -100.0
"""Eager clamps logarithms there, so that a saturated prediction has a finite loss."""

_SMALLEST_VARIANCE = 1e-12


@imports("aten.binary_cross_entropy")
def binary_cross_entropy(
    builder: GraphBuilder, self: Value, target: Value, weight: Value | None = None, reduction: int = MEAN
) -> Value:
    element = compute_type(builder.element)
    x, y = builder.emit(graph.ProbabilityOp.make(self.to(element).ssa)), target.to(element)
    loss = (y - 1) * maximum(log1p(-x), _LOWEST_LOG) - y * maximum(log(x), _LOWEST_LOG)
    return _reduced(loss if weight is None else loss * weight.to(element), reduction)


@imports("aten.binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    builder: GraphBuilder,
    grad_output: Value,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    element = compute_type(builder.element)
    grad, x, y = grad_output.to(element), self.to(element), target.to(element)
    result = grad * (x - y) / maximum((1 - x) * x, _SMALLEST_VARIANCE)
    result = result if weight is None else result * weight.to(element)
    return result / x.count if reduction == MEAN else result


@imports("aten.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    builder: GraphBuilder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = MEAN,
) -> Value:
    element = compute_type(builder.element)
    x, y = self.to(element), target.to(element)
    log_sigmoid = minimum(x, 0) - log1p(exp(-absolute(x)))
    if pos_weight is None:
        loss = (1 - y) * x - log_sigmoid
    else:
        loss = (1 - y) * x - ((pos_weight.to(element) - 1) * y + 1) * log_sigmoid
    return _reduced(loss if weight is None else loss * weight.to(element), reduction)

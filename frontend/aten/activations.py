"""Activation functions and their gradients, in f32 throughout for bf16 and f16."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...ir.dtypes import compute_type
from ..builder import (
    GraphBuilder,
    Operand,
    Value,
    absolute,
    erf,
    exp,
    expm1,
    fma,
    log1p,
    maximum,
    minimum,
    tanh,
    where,
)
from .registry import imports

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_INVERSE_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_CUBIC = 0.044715
_SIXTH = torch.tensor(1 / 6, dtype=torch.float32).item()
"""Of f32 also where the gradient is of f64, as in eager."""


def _up(builder: GraphBuilder, *values: Value) -> list[Value]:
    """The values in the type that eager computes the result in."""
    element = compute_type(builder.element)
    return [value.to(element) for value in values]


# -- gelu --------------------------------------------------------------------------------------------


def _gelu_inner(x: Value) -> Value:
    """The argument of tanh in the approximation."""
    return _SQRT_2_OVER_PI * (x + _GELU_CUBIC * (x * x * x))


def _half_of_one_more(x: Value) -> Value:
    """½(1 + x) for |x| ≤ 1, in one operation: it does not matter whether one halves before or after the sum."""
    return fma(x, 0.5, 0.5)


@imports("aten.gelu")
def gelu(builder: GraphBuilder, self: Value, *, approximate: str = "none") -> Value:
    (x,) = _up(builder, self)
    if approximate == "tanh":
        return x * _half_of_one_more(tanh(_gelu_inner(x)))
    return x * _half_of_one_more(erf(x * _SQRT_HALF))


@imports("aten.gelu_backward")
def gelu_backward(builder: GraphBuilder, grad_output: Value, self: Value, *, approximate: str = "none") -> Value:
    grad, x = _up(builder, grad_output, self)
    if approximate == "tanh":
        t = tanh(_gelu_inner(x))
        inner = _SQRT_2_OVER_PI * (1 + 3 * _GELU_CUBIC * (x * x))
        return grad * (_half_of_one_more(t) + 0.5 * x * (1 - t * t) * inner)
    cumulative = _half_of_one_more(erf(x * _SQRT_HALF))
    density = exp(x * x * -0.5) * _INVERSE_SQRT_2PI
    return grad * (cumulative + x * density)


# -- sigmoid family ----------------------------------------------------------------------------------


@imports("aten.silu")
def silu(builder: GraphBuilder, self: Value) -> Value:
    (x,) = _up(builder, self)
    return x / (1 + exp(-x))


@imports("aten.sigmoid_backward")
def sigmoid_backward(builder: GraphBuilder, grad_output: Value, output: Value) -> Value:
    grad, y = _up(builder, grad_output, output)
    return grad * (1 - y) * y


@imports("aten.logit_backward")
def logit_backward(builder: GraphBuilder, grad_output: Value, self: Value, eps: Operand | None = None) -> Value:
    """Infinite at 0 and 1, times the gradient's sign."""
    grad, x = _up(builder, grad_output, self)
    low, high, beyond = (0.0, 1.0, math.nan) if eps is None else (eps, 1 - eps, 0.0)
    return where((x < low) | (x > high), beyond, grad / (x * (1 - x)))


@imports("aten.tanh_backward")
def tanh_backward(builder: GraphBuilder, grad_output: Value, output: Value) -> Value:
    grad, y = _up(builder, grad_output, output)
    return grad * (1 - y * y)


@imports("aten.log_sigmoid_forward")
def log_sigmoid_forward(builder: GraphBuilder, self: Value) -> tuple[Value, Value]:
    """On the CPU the buffer holds exp(-|x|), elsewhere nothing."""
    (x,) = _up(builder, self)
    decay = exp(-absolute(x))
    kept = builder.result_sizes(1) == x.sizes
    return minimum(x, 0) - log1p(decay), decay if kept else builder.full(0, x.element, [0])


@imports("aten.log_sigmoid_backward")
def log_sigmoid_backward(builder: GraphBuilder, grad_output: Value, self: Value, buffer: Value) -> Value:
    grad, x = _up(builder, grad_output, self)
    decay = exp(-absolute(x))
    fraction = decay / (1 + decay)
    return grad * where(x < 0, 1 - fraction, fraction)


@imports("aten.softplus")
def softplus(builder: GraphBuilder, self: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    (x,) = _up(builder, self)
    scaled = x * beta
    return where(scaled > threshold, x, log1p(exp(scaled)) / beta)


@imports("aten.softplus_backward")
def softplus_backward(builder: GraphBuilder, grad_output: Value, self: Value, beta: Any, threshold: Any) -> Value:
    grad, x = _up(builder, grad_output, self)
    scaled = x * beta
    z = exp(scaled)
    return where(scaled > threshold, grad, grad * z / (z + 1))


@imports("aten.mish")
def mish(builder: GraphBuilder, self: Value) -> Value:
    (x,) = _up(builder, self)
    return x * tanh(log1p(exp(x)))


# -- piecewise linear --------------------------------------------------------------------------------


@imports("aten.leaky_relu")
def leaky_relu(builder: GraphBuilder, self: Value, negative_slope: Any = 0.01) -> Value:
    (x,) = _up(builder, self)
    return where(x > 0, x, x * negative_slope)


@imports("aten.leaky_relu_backward")
def leaky_relu_backward(
    builder: GraphBuilder, grad_output: Value, self: Value, negative_slope: Any, self_is_result: bool
) -> Value:
    grad, x = _up(builder, grad_output, self)
    return where(x > 0, grad, grad * negative_slope)


def _compared(builder: GraphBuilder, value: Value) -> Value:
    """A value in the type in which eager compares it with a number: on a GPU in its own, to which that is rounded."""
    return value.up() if builder.is_on_cpu else value


@imports("aten.threshold_backward")
def threshold_backward(builder: GraphBuilder, grad_output: Value, self: Value, threshold: Operand) -> Value:
    """NaN passes the gradient, as it does in eager."""
    grad, x = grad_output.to(builder.element), self.to(builder.element)
    return where(_compared(builder, x) <= threshold, 0, grad)


@imports("aten.threshold")
def threshold(builder: GraphBuilder, self: Value, threshold: Operand, value: Operand) -> Value:
    return where(_compared(builder, self) <= threshold, value, self)


@imports("aten.hardtanh_backward")
def hardtanh_backward(
    builder: GraphBuilder, grad_output: Value, self: Value, min_val: Operand, max_val: Operand
) -> Value:
    x = self.up()
    return where((x <= min_val) | (x >= max_val), 0, grad_output)


@imports("aten.hardsigmoid")
def hardsigmoid(builder: GraphBuilder, self: Value) -> Value:
    (x,) = _up(builder, self)
    return minimum(maximum(x + 3, 0), 6) / 6


@imports("aten.hardsigmoid_backward")
def hardsigmoid_backward(builder: GraphBuilder, grad_output: Value, self: Value) -> Value:
    grad, x = _up(builder, grad_output, self)
    return where((x > -3) & (x < 3), grad * _SIXTH, 0)


@imports("aten.hardswish")
def hardswish(builder: GraphBuilder, self: Value) -> Value:
    (x,) = _up(builder, self)
    return x * minimum(maximum(x + 3, 0), 6) / 6


@imports("aten.hardswish_backward")
def hardswish_backward(builder: GraphBuilder, grad_output: Value, self: Value) -> Value:
    grad, x = _up(builder, grad_output, self)
    return where(x <= -3, 0, where(x < 3, grad * (x / 3 + 0.5), grad))


# -- exponential -------------------------------------------------------------------------------------


@imports("aten.elu")
def elu(builder: GraphBuilder, self: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    (x,) = _up(builder, self)
    return where(x > 0, x * scale, expm1(x * input_scale) * (alpha * scale))


@imports("aten.elu_backward")
def elu_backward(
    builder: GraphBuilder,
    grad_output: Value,
    alpha: Any,
    scale: Any,
    input_scale: Any,
    is_result: bool,
    self_or_result: Value,
) -> Value:
    grad, x = _up(builder, grad_output, self_or_result)
    if is_result:
        below = grad * input_scale * (x + alpha * scale)
    else:
        below = grad * (input_scale * alpha * scale) * exp(x * input_scale)
    return where(x <= 0, below, grad * scale)


@imports("aten._prelu_kernel")
def prelu(builder: GraphBuilder, self: Value, weight: Value) -> Value:
    x, slope = _up(builder, self, weight)
    return where(x > 0, x, x * slope)


@imports("aten._prelu_kernel_backward")
def prelu_backward(builder: GraphBuilder, grad_output: Value, self: Value, weight: Value) -> tuple[Value, Value]:
    grad, x, slope = _up(builder, grad_output, self, weight)
    positive = x > 0
    return where(positive, grad, grad * slope), where(positive, 0, grad * x)

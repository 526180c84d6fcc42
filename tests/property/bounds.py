"""How far two correct evaluations of a graph program may be apart, element by element: textbook error analysis.

A bound is the greatest distance of any correct evaluation from the reference one. Sums of n terms in any order lie
within n eps Σ|terms| of each other; other ops carry the distances of their operands on and add one rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation, SSAValue

from stepwell.ir import graph
from stepwell.ir.arithmetic import Array, DType, is_float, wide_dtype
from stepwell.ir.graph.base import integer_of
from stepwell.ir.interpret import Interpretation
from stepwell.tests.property.programs import APPROXIMATE, Program, Trust

FUNCTION_ULPS = 8
"""Roundings in a function that one level computes in one step and another one in several."""


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number."""
    return float(ml_dtypes.finfo(dtype).eps)


def rounding(result: Array) -> Array:
    """One rounding of numbers as large as the result."""
    limits = ml_dtypes.finfo(result.dtype)
    size = np.abs(result.astype("f8"))
    bound = epsilon(result.dtype) * size + float(limits.smallest_subnormal)
    return np.where(size > float(limits.max) / 2, np.inf, bound)  # another evaluation may overflow


class Run:
    """One op with its operands, their bounds and its result."""

    def __init__(
        self, interpreter: Interpreter, op: Operation, args: PythonValues, bounds: Sequence[Array], result: Array
    ) -> None:
        self.interpreter = interpreter
        self.op: Any = op
        self.args = args
        self.bounds = bounds
        self.result = result

    def on(self, *floats: Array) -> Array:
        """The op on other floats in place of its float operands, which come first."""
        values = iter(floats)
        args = tuple(next(values) if is_float(arg.dtype) else arg for arg in self.args)
        return self.interpreter.run_op(self.op, args)[0]

    @property
    def accumulating(self) -> float:
        return epsilon(wide_dtype(self.result.dtype))

    def floats(self, source: Sequence[Array]) -> list[Array]:
        return [value for value, arg in zip(source, self.args, strict=True) if is_float(arg.dtype)]


def _carried(run: Run) -> Array:
    return run.on(*run.floats(run.bounds))


def _same(run: Run) -> Array:
    return run.bounds[0]


def _sum(run: Run) -> Array:
    return run.bounds[0] + run.bounds[1] + rounding(run.result)


def _product(run: Run) -> Array:
    (x, y), (dx, dy) = (np.abs(arg.astype("f8")) for arg in run.args), run.bounds
    return x * dy + y * dx + dx * dy + rounding(run.result)


def _larger(run: Run) -> Array:
    return np.maximum(*run.bounds)


def _chosen(run: Run) -> Array:
    return np.where(run.args[0], run.bounds[1], run.bounds[2])


def _converted(run: Run) -> Array:
    return run.bounds[0] + rounding(run.result)


def _greatest(run: Run) -> Array:
    return np.max(run.bounds[0], axis=run.op.reduced, initial=0.0)


def _total(run: Run) -> Array:
    terms, dims = np.abs(run.args[0].astype("f8")), run.op.reduced
    count = np.prod([terms.shape[dim] for dim in dims])
    return run.bounds[0].sum(axis=dims) + _spread(run, count, terms.sum(axis=dims)) + rounding(run.result)


def _spread(run: Run, count: float, total: Array) -> Array:
    """What the order of adding makes of a sum, given the sum of the magnitudes."""
    return np.where(total > _half(run), np.inf, count * run.accumulating * total)


def _half(run: Run) -> float:
    return float(ml_dtypes.finfo(run.result.dtype).max) / 2


def _running_total(run: Run) -> Array:
    terms, dim = np.abs(run.args[0].astype("f8")), integer_of(run.op.dim)
    spread = _spread(run, terms.shape[dim], terms.cumsum(axis=dim))
    return run.bounds[0].cumsum(axis=dim) + spread + rounding(run.result)


def _total_product(run: Run) -> Array:
    """Where no order of multiplying leaves the range of the type."""
    factors, dims = run.args[0].astype("f8"), run.op.reduced
    count = np.prod([factors.shape[dim] for dim in dims])
    exponents = np.abs(np.log2(np.abs(np.where(factors == 0, 1, factors)))).sum(axis=dims)
    fits = exponents < np.log2(_half(run)) - 1
    return np.where(fits, count * run.accumulating * np.abs(run.result.astype("f8")), np.inf) + rounding(run.result)


def _contraction(run: Run) -> Array:
    (x, y), (dx, dy) = (np.abs(arg.astype("f8")) for arg in run.args), run.bounds
    spread = _spread(run, x.shape[-1], x @ y) + _underflow(run, x, y)
    return spread + x @ dy + dx @ y + dx @ dy + rounding(run.result)


def _underflow(run: Run, x: Array, y: Array) -> Array:
    """What terms below the least normal number add: each may be rounded to a multiple of the least number by itself.
    The instructions of processors for bf16 take such operands for zeros and make zeros of such sums."""
    limits = ml_dtypes.finfo(wide_dtype(run.result.dtype))
    if run.result.dtype != ml_dtypes.bfloat16:
        return np.asarray(x.shape[-1] * float(limits.smallest_subnormal))
    normal = float(limits.smallest_normal)
    u, v = np.where(x < normal, x, 0), np.where(y < normal, y, 0)
    return u @ y + (x - u) @ v + x.shape[-1] * normal


def _scattered(run: Run) -> Array:
    carried = _carried(run)
    if run.op.combiner is None or run.op.combiner.data != "add":
        return carried
    sizes = [np.abs(arg.astype("f8")) for arg in run.floats(run.args)]
    totals, count = run.on(*sizes), sizes[1].size + 1
    return carried + np.where(totals > _half(run), np.inf, count * epsilon(run.result.dtype) * totals)


def _function(run: Run) -> Array:
    return FUNCTION_ULPS * rounding(run.result)


RULES: dict[type[Operation], Callable[[Run], Array]] = {
    **dict.fromkeys(
        (
            graph.PermuteOp, graph.ReshapeOp, graph.BroadcastOp, graph.SliceOp, graph.FlipOp, graph.WindowOp,
            graph.AsStridedOp, graph.CatOp, graph.InsertSliceOp, graph.GatherOp, graph.IndexOp,
        ),
        _carried,
    ),
    **dict.fromkeys((graph.CopyOp, graph.NegOp, graph.AbsOp, graph.ReluOp), _same),
    graph.AddOp: _sum,
    graph.SubOp: _sum,
    graph.MulOp: _product,
    graph.MaximumOp: _larger,
    graph.MinimumOp: _larger,
    graph.SelectOp: _chosen,
    graph.ConvertOp: _converted,
    graph.MaxOp: _greatest,
    graph.MinOp: _greatest,
    graph.SumOp: _total,
    graph.ScanOp: _running_total,
    graph.ProdOp: _total_product,
    graph.MatmulOp: _contraction,
    graph.ScatterOp: _scattered,
    graph.IndexPutOp: _scattered,
    graph.SigmoidOp: _function,
    graph.PowOp: _function,
    **dict.fromkeys(APPROXIMATE, _function),
}  # fmt: skip

INEXACT: tuple[type[Operation], ...] = (
    graph.SumOp, graph.ScanOp, graph.ProdOp, graph.MatmulOp, graph.ScatterOp, graph.IndexPutOp, graph.SigmoidOp,
    graph.PowOp,
)  # fmt: skip
"""Ops whose results may differ although their operands do not."""


class Bounds(Interpreter.Listener):
    """Follows a run of a graph program and notes the bound of each float value that has one above 0."""

    def __init__(self, interpreter: Interpreter, inexact: tuple[type[Operation], ...]) -> None:
        self.interpreter = interpreter
        self.inexact = inexact
        self.known: dict[SSAValue, Array] = {}
        self.args: PythonValues = ()
        self.busy = False

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        if not self.busy:
            self.args = args

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        if self.busy or not results or not is_float(results[0].dtype):
            return
        if isinstance(op, self.inexact) or any(operand in self.known for operand in op.operands):
            bounds = [self.known.get(o, np.zeros(np.shape(arg))) for o, arg in zip(op.operands, self.args, strict=True)]
            self.busy = True
            bound = RULES[type(op)](Run(self.interpreter, op, self.args, bounds, results[0]))
            self.busy = False
            if bound.any():
                self.known[op.results[0]] = np.where(np.isnan(bound), np.inf, bound)


class Reference:
    """What a program gives, and how far anything that means the same may be from it."""

    def __init__(self, program: Program) -> None:
        run = Interpretation(program.module)
        inexact = INEXACT if program.exact_functions else (*INEXACT, *APPROXIMATE)
        listener = Bounds(run.interpreter, inexact)
        run.interpreter.listeners = (listener,)
        self.results = run.call(program.arguments)
        self.trusts = program.trusts
        function = next(iter(program.module.ops))
        returned = function.regions[0].block.last_op
        assert returned is not None
        self.bounds = [listener.known.get(operand, np.zeros(())) for operand in returned.operands]

    def check(self, results: Sequence[Array]) -> None:
        for result, expected, trust, bound in zip(results, self.results, self.trusts, self.bounds, strict=True):
            assert result.dtype == expected.dtype
            assert result.shape == expected.shape
            if not is_float(result.dtype):
                np.testing.assert_array_equal(result, expected)
            elif trust < Trust.BOUND:
                _assert_equal(result, expected, zeros=trust < Trust.NUMBERS)
            else:
                _assert_within(result, expected, bound)


def _assert_equal(result: Array, expected: Array, *, zeros: bool) -> None:
    np.testing.assert_array_equal(result.astype("f8"), expected.astype("f8"))
    if zeros:
        number = ~np.isnan(expected.astype("f8"))
        np.testing.assert_array_equal(np.signbit(result)[number], np.signbit(expected)[number])


def _assert_within(result: Array, expected: Array, bound: Array) -> None:
    result, expected = result.astype("f8"), expected.astype("f8")
    with np.errstate(invalid="ignore"):
        certain = np.isfinite(expected) & np.isfinite(bound)
        wrong = certain & ~(np.abs(result - expected) <= bound)
    allowed = np.broadcast_to(bound, wrong.shape)[wrong]
    assert not wrong.any(), f"got {result[wrong]}, expected {expected[wrong]} within {allowed}"


__all__ = ["Reference"]

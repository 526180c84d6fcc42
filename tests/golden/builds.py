"""Builds the programs whose code is kept, of the shape and element that a builder has: see `programs.py` for which.

A function here adds ops to a builder and gives the results of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from stepwell.ir import graph
from stepwell.ir.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
)  # fmt: skip
from stepwell.ir.expr import Expr, as_expr, contiguous_strides
from stepwell.ir.graph import Arguments, OperandRef
from stepwell.ir.graph.attributes import DataAttr
from stepwell.ir.product_schedule import MEASURE
from stepwell.ir.shapes import tensor_type
from stepwell.tests.golden.builder import Builder, Sizes

Results = Sequence[SSAValue]
Build = Callable[[Builder], Results]

FLOATS = (FLOAT32, FLOAT64, BFLOAT16, FLOAT16)
INTEGERS = (INT64, INT32, INT16, INT8, UINT8)
ELEMENTS = (*FLOATS, *INTEGERS, BOOL)

# -- pointwise ---------------------------------------------------------------------------------------

ROUNDED = (
    graph.ExpOp, graph.Exp2Op, graph.Expm1Op, graph.LogOp, graph.Log2Op, graph.Log10Op, graph.Log1pOp, graph.SqrtOp,
    graph.RsqrtOp, graph.ReciprocalOp, graph.SinOp, graph.CosOp, graph.TanOp, graph.AsinOp, graph.AcosOp, graph.AtanOp,
    graph.SinhOp, graph.CoshOp, graph.TanhOp, graph.AsinhOp, graph.AcoshOp, graph.AtanhOp, graph.ErfOp, graph.ErfcOp,
    graph.SigmoidOp, graph.FloorOp, graph.CeilOp, graph.RoundOp, graph.TruncOp,
)  # fmt: skip
"""Functions of floats alone."""

NUMBERS = (graph.NegOp, graph.AbsOp, graph.SignOp, graph.ReluOp)
TESTS = (graph.IsNanOp, graph.IsInfOp, graph.SignBitOp)

ARITHMETIC = (
    graph.AddOp, graph.SubOp, graph.MulOp, graph.FloorDivOp, graph.TruncDivOp, graph.RemainderOp, graph.FmodOp,
    graph.PowOp, graph.MaximumOp, graph.MinimumOp,
)  # fmt: skip
OF_FLOATS = (graph.DivOp, graph.Atan2Op, graph.CopySignOp)
OF_BITS = (graph.AndOp, graph.OrOp, graph.XorOp, graph.ShlOp, graph.ShrOp)
ODD = (-0.0, 0.5, -1.0, 3.0, 1e4, float("inf"), float("nan"))

PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def unary(op: type[graph.UnaryOp]) -> Build:
    return lambda b: [b.add(op.make(b.input()))]


def functions_of_one(b: Builder) -> Results:
    """All functions at once, of a number instead of a block."""
    x = b.input()
    return [b.add(op.make(x)) for op in (*ROUNDED, *NUMBERS, *TESTS)]


def binary(op: type[graph.BinaryOp]) -> Build:
    return lambda b: [b.add(op.make(b.input(), b.input()))]


def comparisons(b: Builder) -> Results:
    x, y = b.input(), b.input()
    tests = [b.add(graph.CompareOp.make(predicate, x, y)) for predicate in PREDICATES]
    return [b.add(graph.SelectOp.make(test, x, y)) for test in tests]


def with_numbers(op: type[graph.BinaryOp], *numbers: float) -> Build:
    """An operand with each number, and each number with it."""

    def build(b: Builder) -> Results:
        x = b.input()
        known = [b.number(number, x) for number in numbers]
        return [b.add(op.make(*pair)) for n in known for pair in ((x, n), (n, x))]

    return build


def conversions(b: Builder) -> Results:
    x = b.input()
    return [b.add(graph.ConvertOp.make(x, element)) for element in ELEMENTS]


def fma(b: Builder) -> Results:
    return [b.add(graph.FmaOp.make(b.input(), b.input(), b.input()))]


def chain(b: Builder) -> Results:
    """Many ops on few operands, with two results."""
    x, y = b.input(), b.input()
    value = x
    for k in range(12):
        value = b.add(graph.MulOp.make(value, y)) if k % 2 else b.add(graph.AddOp.make(value, x))
    return [value, b.add(graph.SubOp.make(value, y))]


def gelu(b: Builder) -> Results:
    x = b.input()
    wide = b.wide(x)
    root = b.add(graph.MulOp.make(wide, b.number(0.5**0.5, wide)))
    more = b.add(graph.AddOp.make(b.add(graph.ErfOp.make(root)), b.number(1.0, wide)))
    half = b.add(graph.MulOp.make(wide, b.number(0.5, wide)))
    return [b.narrow(b.add(graph.MulOp.make(half, more)))]


def dropout(b: Builder) -> Results:
    x = b.input()
    bits = b.add(graph.RandomOp.make(b.input((), INT64), b.sizes, 3))
    kept = b.add(graph.CompareOp.make("lt", bits, b.number(1 << 30, bits)))
    scaled = b.add(graph.MulOp.make(x, b.number(1.25, x)))
    return [b.add(graph.SelectOp.make(kept, scaled, b.number(0.0, x)))]


def in_place(b: Builder) -> Results:
    """An argument that the call overwrites."""
    x, y = b.input(), b.input()
    total = b.add(graph.AddOp.make(b.add(graph.MulOp.make(x, y)), y))
    b.block.add_op(graph.CopyIntoOp.make(total, x))
    return [b.add(graph.SubOp.make(total, y))]


# -- layouts -----------------------------------------------------------------------------------------


def transposed(b: Builder) -> Results:
    x, order = b.input(), [*range(len(b.sizes))][::-1]
    return [b.add(graph.CopyOp.make(b.add(graph.PermuteOp.make(x, order))))]


def transposed_sum(b: Builder) -> Results:
    """A tensor and another one, whose memory runs the other way."""
    strides = contiguous_strides(b.sizes[::-1])[::-1]
    return [b.add(graph.AddOp.make(b.input(), b.input(strides=strides)))]


def partly_transposed(b: Builder) -> Results:
    """Tensors whose memory runs the other way, and others that are strided in both, repeated in rows, or as they are
    read."""
    sizes, along_rows = b.sizes, len(b.sizes) - 2
    turned = b.input(strides=[*contiguous_strides(sizes)[:along_rows], as_expr(1), sizes[-2]])
    apart = b.input(strides=[stride * 2 for stride in contiguous_strides(sizes)])
    rows = b.spread(b.input(sizes[:-1]), len(sizes) - 1, sizes)
    total = b.input()
    for other in (turned, apart, rows):
        total = b.add(graph.AddOp.make(total, other))
    return [total]


def gathered_transposed(b: Builder) -> Results:
    """Matrices at computed places whose memory runs the other way."""
    _, rows, columns = b.sizes
    table = b.input((as_expr(97), rows, columns), strides=(rows * columns, as_expr(1), rows))
    return [b.add(graph.IndexOp.make(table, [b.places(b.sizes[:1])], [0]))]


def row_sum(b: Builder) -> Results:
    """A vector for every row, and one for every column."""
    row = b.spread(b.input(b.sizes[:-1]), len(b.sizes) - 1, b.sizes)
    column = b.add(graph.BroadcastOp.make(b.input(b.sizes[-1:]), b.sizes))
    return [b.add(graph.AddOp.make(b.add(graph.MulOp.make(b.input(), row)), column))]


def strided(b: Builder) -> Results:
    """Every other element of wider rows."""
    strides = contiguous_strides([*b.sizes[:-1], b.sizes[-1] * 2])
    return [b.add(graph.ExpOp.make(b.input(strides=[*strides[:-1], as_expr(2)])))]


def channels_last(b: Builder) -> Results:
    """A factor for every channel, where channels are the nearest in memory."""
    _, c, h, w = b.sizes
    strides = [c * h * w, as_expr(1), w * c, c]
    x = b.input(strides=strides)
    scale = b.add(graph.BroadcastOp.make(b.input((as_expr(1), c, as_expr(1), as_expr(1))), b.sizes))
    return [b.add(graph.MulOp.make(x, scale)), b.add(graph.SumOp.make(x, [0, 2, 3]))]


def channels(b: Builder) -> Results:
    x = b.input()
    scale = b.add(graph.BroadcastOp.make(b.input((as_expr(1), b.sizes[1], as_expr(1), as_expr(1))), b.sizes))
    return [b.add(graph.MulOp.make(x, scale)), b.add(graph.SumOp.make(x, [0, 2, 3]))]


def split_heads(b: Builder) -> Results:
    """(rows, heads × columns) → (heads, rows, columns), copied."""
    rows, columns = b.sizes
    parts = b.add(graph.ReshapeOp.make(b.input(), [rows, as_expr(4), columns // as_expr(4)]))
    return [b.add(graph.CopyOp.make(b.add(graph.PermuteOp.make(parts, [1, 0, 2]))))]


def joined(b: Builder) -> Results:
    parts = [b.input(), b.input((*b.sizes[:-1], as_expr(3))), b.input()]
    return [b.add(graph.NegOp.make(b.add(graph.CatOp.make(parts, len(b.sizes) - 1))))]


def joined_rows(b: Builder) -> Results:
    return [b.add(graph.CatOp.make([b.input(), b.input((as_expr(2), *b.sizes[1:]))], 0))]


def padded(b: Builder) -> Results:
    count, value = len(b.sizes), DataAttr.of(b.element, [1])
    return [b.add(graph.PadOp.make(b.input(), [1] * count, [2] * count, value))]


def parts(b: Builder) -> Results:
    """A part of a tensor, one turned around, and windows over one."""
    x = b.input()
    sizes = [*b.sizes[:-1], (b.sizes[-1] - 1) // as_expr(2)]
    part = b.add(graph.SliceOp.make(x, [*[0] * (len(sizes) - 1), 1], sizes, [*[1] * (len(sizes) - 1), 2]))
    turned = b.add(graph.FlipOp.make(b.add(graph.ExpOp.make(x)), [len(sizes) - 1]))
    return [b.add(graph.NegOp.make(part)), b.add(graph.AddOp.make(turned, x))]


def inserted(b: Builder) -> Results:
    x, starts = b.input(), [0] * (len(b.sizes) - 1)
    value = b.input((*b.sizes[:-1], as_expr(3)))
    return [b.add(graph.InsertSliceOp.make(b.add(graph.NegOp.make(x)), value, [*starts, 1]))]


def known(b: Builder) -> Results:
    """A table of numbers, and one computed from it."""
    table = DataAttr.of(b.element, range(b.sizes[0].constant))
    x = b.add(graph.ConstantOp.make(table, tensor_type(b.element, b.sizes)))
    return [b.add(graph.AddOp.make(x, b.number(1, x)))]


def called(b: Builder) -> Results:
    """Calls of the library: one into memory of ours, and one with two results."""
    rows, width = b.sizes[0], as_expr(16)
    inputs = (b.add(graph.NegOp.make(b.input())), b.input((b.sizes[1], width)))
    both = Arguments((OperandRef(0), OperandRef(1)))
    made = b.add(graph.ExternOp.make("aten.mm.default", inputs, both, [tensor_type(b.element, (rows, width))]))
    types = [tensor_type(element, (rows, as_expr(3))) for element in (b.element, INT64)]
    best = graph.ExternOp.make("aten.topk.default", [made], Arguments((OperandRef(0), 3)), types)
    b.block.add_op(best)
    return [made, *best.results, b.add(graph.ExpOp.make(best.results[0]))]


def pooled(b: Builder) -> Results:
    """The greatest of every window, and where it is."""
    windows = b.add(graph.WindowOp.make(b.input(), [3], [2], [1]))
    return [b.add(graph.MaxOp.make(windows, [len(b.sizes)])), b.add(graph.ArgMaxOp.make(windows, [len(b.sizes)]))]


# -- indexing ----------------------------------------------------------------------------------------


def embedding(b: Builder) -> Results:
    table = b.input((as_expr(50257), b.sizes[-1]))
    return [b.add(graph.IndexOp.make(table, [b.places(b.sizes[:1])], [0]))]


def embedding_backward(b: Builder) -> Results:
    zero = b.add(graph.FullOp.make(0, b.element, (as_expr(97), b.sizes[-1])))
    return [b.add(graph.IndexPutOp.make(zero, b.input(), [b.places(b.sizes[:1])], [0], combiner="add"))]


def gathered(b: Builder) -> Results:
    return [b.add(graph.GatherOp.make(b.input(), b.places((*b.sizes[:-1], as_expr(5))), len(b.sizes) - 1))]


def scattered(b: Builder) -> Results:
    places = b.places(b.sizes)
    made = [
        b.add(graph.ScatterOp.make(b.input(), places, b.input(), len(b.sizes) - 1, combiner=combiner))
        for combiner in (None, "add", "max")
    ]
    return made


def indexed_twice(b: Builder) -> Results:
    x, at = b.input((*b.sizes, as_expr(6))), as_expr(5)
    both = b.add(graph.IndexOp.make(x, [b.places((at,)), b.places((at,))], [0, 2]))
    return [both, b.add(graph.IndexOp.make(x, [b.places((at,)), b.places((at,))], [0, 1]))]


# -- reductions --------------------------------------------------------------------------------------


def reduced(op: type[graph.ReductionOp], *dims: int) -> Build:
    def build(b: Builder) -> Results:
        return [b.add(op.make(b.input(), [dim % len(b.sizes) for dim in dims]))]

    return build


def total(b: Builder) -> Results:
    return [b.add(graph.SumOp.make(b.input(), range(len(b.sizes))))]


def total_of_squares(b: Builder) -> Results:
    x = b.input()
    return [b.add(graph.SumOp.make(b.add(graph.MulOp.make(x, x)), range(len(b.sizes))))]


def both_ways(b: Builder) -> Results:
    """Sums along rows and down columns of one tensor."""
    x = b.input()
    return [b.add(graph.SumOp.make(x, [0])), b.add(graph.SumOp.make(x, [1]))]


def long_bodies(b: Builder) -> Results:
    """The sum of rows of what takes many ops, so that lanes beyond the end of a row cost more than strides do."""
    last = len(b.sizes) - 1
    return [b.add(graph.SumOp.make(value, [last])) for value in chain(b)]


def bias_gradient(b: Builder) -> Results:
    """A tensor that is kept, and the sum and the greatest of each of its columns."""
    made, rows = b.add(graph.MulOp.make(b.input(), b.input())), [*range(len(b.sizes) - 1)]
    return [made, b.add(graph.SumOp.make(made, rows)), b.add(graph.MaxOp.make(made, rows))]


def gradient_of_rows(b: Builder) -> Results:
    """A tensor that is kept, and the sum of its first dim alone."""
    made = b.add(graph.MulOp.make(b.input(), b.input()))
    return [made, b.add(graph.SumOp.make(made, [0]))]


def weight_gradient(b: Builder) -> Results:
    """Rows by their sums, and the sum of what every column was and of it and another tensor."""
    x, y, last = b.input(), b.input(), len(b.sizes) - 1
    made = b.add(graph.MulOp.make(x, b.spread(b.add(graph.SumOp.make(x, [last])), last, b.sizes)))
    columns = [b.add(graph.SumOp.make(value, [*range(last)])) for value in (x, b.add(graph.MulOp.make(x, y)))]
    return [b.add(graph.MulOp.make(made, y)), *columns]


def scanned(dim: int, combiner: str) -> Build:
    return lambda b: [b.add(graph.ScanOp.make(b.input(), dim % len(b.sizes), combiner))]


def _softmax(b: Builder, x: SSAValue, sizes: Sizes) -> SSAValue:
    last = len(sizes) - 1
    shifted = b.add(graph.SubOp.make(x, b.spread(b.add(graph.MaxOp.make(x, [last])), last, sizes)))
    powers = b.add(graph.ExpOp.make(shifted))
    return b.add(graph.DivOp.make(powers, b.spread(b.add(graph.SumOp.make(powers, [last])), last, sizes)))


def softmax(b: Builder) -> Results:
    return [b.narrow(_softmax(b, b.wide(b.input()), b.sizes))]


def softmax_backward(b: Builder) -> Results:
    last = len(b.sizes) - 1
    gradient, y = b.wide(b.input()), b.wide(b.input())
    weighted = b.add(graph.MulOp.make(gradient, y))
    inner = b.spread(b.add(graph.SumOp.make(weighted, [last])), last, b.sizes)
    return [b.narrow(b.add(graph.SubOp.make(weighted, b.add(graph.MulOp.make(y, inner)))))]


def _mean(b: Builder, x: SSAValue, dim: int, count: Expr) -> SSAValue:
    summed = b.add(graph.SumOp.make(x, [dim]))
    if count.is_constant:
        return b.add(graph.MulOp.make(summed, b.number(1 / count.constant, summed)))
    size = b.add(graph.ConvertOp.make(b.add(graph.SizeOp.make(count)), FLOAT32))
    return b.add(graph.DivOp.make(summed, b.add(graph.BroadcastOp.make(size, b.sizes[:dim]))))


def _normal(b: Builder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Rows with their mean taken off and divided by their deviation, and one over it."""
    sizes, last = b.sizes, len(b.sizes) - 1
    centered = b.add(graph.SubOp.make(x, b.spread(_mean(b, x, last, sizes[last]), last, sizes)))
    variance = _mean(b, b.add(graph.MulOp.make(centered, centered)), last, sizes[last])
    rate = b.add(graph.RsqrtOp.make(b.add(graph.AddOp.make(variance, b.number(1e-5, variance)))))
    return b.add(graph.MulOp.make(centered, b.spread(rate, last, sizes))), rate


def layer_norm(b: Builder) -> Results:
    normal, rate = _normal(b, b.wide(b.input()))
    weight, bias = (b.add(graph.BroadcastOp.make(b.wide(b.input(b.sizes[-1:])), b.sizes)) for _ in range(2))
    scaled = b.add(graph.AddOp.make(b.add(graph.MulOp.make(normal, weight)), bias))
    return [b.narrow(scaled), rate]


def layer_norm_backward(b: Builder) -> Results:
    """Gradients of the operand, the weight and the bias."""
    last = len(b.sizes) - 1
    gradient, (normal, rate) = b.wide(b.input()), _normal(b, b.wide(b.input()))
    weight = b.add(graph.BroadcastOp.make(b.wide(b.input(b.sizes[-1:])), b.sizes))
    scaled = b.add(graph.MulOp.make(gradient, weight))
    product = b.add(graph.MulOp.make(scaled, normal))
    means = [b.spread(_mean(b, value, last, b.sizes[last]), last, b.sizes) for value in (scaled, product)]
    rest = b.add(graph.SubOp.make(scaled, means[0]))
    rest = b.add(graph.SubOp.make(rest, b.add(graph.MulOp.make(normal, means[1]))))
    rows = [*range(last)]
    return [
        b.narrow(b.add(graph.MulOp.make(rest, b.spread(rate, last, b.sizes)))),
        b.narrow(b.add(graph.SumOp.make(b.add(graph.MulOp.make(gradient, normal)), rows))),
        b.narrow(b.add(graph.SumOp.make(gradient, rows))),
    ]


def rms_norm(b: Builder) -> Results:
    x, last = b.wide(b.input()), len(b.sizes) - 1
    power = _mean(b, b.add(graph.MulOp.make(x, x)), last, b.sizes[last])
    rate = b.add(graph.RsqrtOp.make(b.add(graph.AddOp.make(power, b.number(1e-6, power)))))
    weight = b.add(graph.BroadcastOp.make(b.input(b.sizes[-1:]), b.sizes))
    normal = b.narrow(b.add(graph.MulOp.make(x, b.spread(rate, last, b.sizes))))
    return [b.add(graph.MulOp.make(normal, weight))]


def batch_norm(b: Builder) -> Results:
    """Means and deviations of columns, and what they make of the rows."""
    x = b.wide(b.input())
    rows = as_expr(1)
    for size in b.sizes[:-1]:
        rows = rows * size
    dims = [*range(len(b.sizes) - 1)]
    scale = 1 / rows.constant if rows.is_constant else 0.25
    summed, squares = (b.add(graph.SumOp.make(v, dims)) for v in (x, b.add(graph.MulOp.make(x, x))))
    mean, power = (b.add(graph.MulOp.make(v, b.number(scale, v))) for v in (summed, squares))
    variance = b.add(graph.SubOp.make(power, b.add(graph.MulOp.make(mean, mean))))
    rate = b.add(graph.RsqrtOp.make(b.add(graph.AddOp.make(variance, b.number(1e-5, variance)))))
    wide = [b.add(graph.BroadcastOp.make(v, b.sizes)) for v in (mean, rate)]
    return [b.narrow(b.add(graph.MulOp.make(b.add(graph.SubOp.make(x, wide[0])), wide[1]))), mean, variance]


def group_norm(b: Builder) -> Results:
    """Channels in four groups, each with a mean of its own."""
    n, c, w = b.sizes
    grouped = b.add(graph.ReshapeOp.make(b.wide(b.input()), [n * 4, c // as_expr(4) * w]))
    inner = Builder("", b.element)
    inner.block, inner.sizes = b.block, (n * 4, c // as_expr(4) * w)
    normal, rate = _normal(inner, grouped)
    shaped = b.add(graph.ReshapeOp.make(normal, [n, c, w]))
    weight = b.add(graph.BroadcastOp.make(b.wide(b.input((c, as_expr(1)))), [n, c, w]))
    return [b.narrow(b.add(graph.MulOp.make(shaped, weight))), rate]


def cross_entropy(b: Builder) -> Results:
    sizes = b.sizes
    x, target = b.wide(b.input()), b.places(sizes[:1])
    shifted = b.add(graph.SubOp.make(x, b.spread(b.add(graph.MaxOp.make(x, [1])), 1, sizes)))
    logarithm = b.add(graph.LogOp.make(b.add(graph.SumOp.make(b.add(graph.ExpOp.make(shifted)), [1]))))
    place = b.add(graph.ReshapeOp.make(target, [sizes[0], as_expr(1)]))
    chosen = b.add(graph.ReshapeOp.make(b.add(graph.GatherOp.make(shifted, place, 1)), sizes[:1]))
    loss = b.add(graph.SubOp.make(logarithm, chosen))
    ignored = b.add(graph.CompareOp.make("eq", target, b.number(-100, target)))
    counted = b.add(graph.SelectOp.make(ignored, b.number(0.0, loss), loss))
    return [b.add(graph.SumOp.make(counted, [0])), logarithm]


def cross_entropy_backward(b: Builder) -> Results:
    sizes = b.sizes
    x, target = b.wide(b.input()), b.places(sizes[:1])
    columns = b.add(graph.BroadcastOp.make(b.add(graph.IotaOp.make(sizes[1])), sizes))
    hit = b.add(graph.CompareOp.make("eq", columns, b.spread(target, 1, sizes)))
    softmax = _softmax(b, x, sizes)
    less = b.add(graph.SubOp.make(softmax, b.number(1.0, softmax)))
    return [b.narrow(b.add(graph.SelectOp.make(hit, less, softmax)))]


NEARLY_DEPENDENT = 12


def nearly_dependent(which: int) -> Build:
    """Two reductions, one of `NEARLY_DEPENDENT` pairs almost of a form that can be computed part by part."""
    return lambda b: [_nearly_dependent(b)[which]]


def _nearly_dependent(b: Builder) -> Results:
    x, y, sizes = b.input(), b.input(), b.sizes

    def across(value: SSAValue) -> SSAValue:
        return b.spread(value, 1, sizes)

    def total(value: SSAValue) -> SSAValue:
        return b.add(graph.SumOp.make(value, [1]))

    def square(value: SSAValue, other: SSAValue | None = None) -> SSAValue:
        return total(b.add(graph.MulOp.make(value, value if other is None else other)))

    most, least = (b.add(op.make(x, [1])) for op in (graph.MaxOp, graph.MinOp))
    mean, half, summed = _mean(b, x, 1, sizes[1]), _mean(b, x, 1, sizes[1] * 2), total(x)
    below, above = (b.add(graph.SubOp.make(x, across(value))) for value in (most, least))
    other, apart = (b.add(graph.SubOp.make(y, across(value))) for value in (most, mean))
    exact, off = (b.add(graph.SubOp.make(x, across(value))) for value in (mean, half))
    beyond = b.add(graph.SubOp.make(across(most), x))
    return [
        total(b.add(graph.SqrtOp.make(below))),
        total(b.add(graph.ExpOp.make(above))),
        total(b.add(graph.ExpOp.make(other))),
        total(b.add(graph.ExpOp.make(beyond))),
        b.add(graph.ProdOp.make(b.add(graph.ExpOp.make(below)), [1])),
        b.add(graph.MaxOp.make(b.add(graph.ExpOp.make(below)), [1])),
        square(apart),
        square(off),
        square(exact, off),
        square(b.add(graph.AddOp.make(x, across(mean)))),
        square(b.add(graph.SubOp.make(x, across(summed)))),
        b.add(graph.MaxOp.make(b.add(graph.MulOp.make(exact, exact)), [1])),
    ]


# -- products ----------------------------------------------------------------------------------------


def _product(b: Builder) -> SSAValue:
    m, n, k = b.sizes
    return b.add(graph.MatmulOp.make(b.input((m, k)), b.input((k, n))))


def matmul(b: Builder) -> Results:
    return [_product(b)]


def matmul_transposed(b: Builder) -> Results:
    """By weights that lie as layers keep them, with a bias and what follows a layer."""
    m, n, k = b.sizes
    weight = b.input((k, n), strides=(as_expr(1), k))
    made = b.add(graph.MatmulOp.make(b.input((m, k)), weight))
    summed = b.add(graph.AddOp.make(made, b.add(graph.BroadcastOp.make(b.input((n,)), (m, n)))))
    return [b.add(graph.AddOp.make(b.add(graph.ReluOp.make(summed)), b.input((m, n))))]


def measured_matmul(b: Builder) -> Results:
    """Where schedules will be timed against the library."""
    b.attributes[MEASURE] = UnitAttr()
    return matmul_transposed(b)


def matmul_gelu(b: Builder) -> Results:
    wide = b.wide(_product(b))
    more = b.add(graph.AddOp.make(b.add(graph.TanhOp.make(wide)), b.number(1.0, wide)))
    return [b.narrow(b.add(graph.MulOp.make(wide, more)))]


def matmul_row_sums(b: Builder) -> Results:
    made = _product(b)
    return [made, b.add(graph.SumOp.make(b.wide(made), [1]))]


def batch_matmul(b: Builder) -> Results:
    m, n, k = b.sizes
    four = as_expr(12)
    made = b.add(graph.BatchMatmulOp.make(b.input((four, m, k)), b.input((four, k, n))))
    return [b.add(graph.MulOp.make(made, b.number(0.125, made)))]


def matmul_biases(b: Builder) -> Results:
    """With a bias of one dim, one of two dims, and one of a single row."""
    m, n, _ = b.sizes
    row = b.add(graph.BroadcastOp.make(b.input((n,)), (m, n)))
    single = b.add(graph.BroadcastOp.make(b.input((as_expr(1), n)), (m, n)))
    return [b.add(graph.AddOp.make(_product(b), bias)) for bias in (row, single, b.input((m, n)))]


def nearly_products(b: Builder) -> Results:
    """A sum of products written out, and sums like it that are none: of other factors, combiners and types."""
    m, n, k = sizes = b.sizes
    left = b.wide(b.spread(b.input((m, k)), 1, sizes))
    right = b.wide(b.add(graph.BroadcastOp.make(b.input((n, k)), sizes)))
    other = b.add(graph.BroadcastOp.make(b.input((n, k), FLOAT32), sizes))
    apart = b.wide(b.spread(b.input((m, n)), 2, sizes))
    made = b.add(graph.MulOp.make(left, right))
    pairs = ((left, other), (left, apart), (apart, right), (left, left))
    sums = [made, b.add(graph.AddOp.make(left, right)), *(b.add(graph.MulOp.make(*pair)) for pair in pairs)]
    return [*(b.add(graph.SumOp.make(value, [2])) for value in sums), b.add(graph.ProdOp.make(made, [2]))]


def batch_matmul_apart(b: Builder) -> Results:
    """Factors whose matrices alternate in memory, row by row or element by element."""
    m, n, k = b.sizes
    eight = as_expr(8)
    rows = b.input((eight, m, k), strides=(k, k * 8, as_expr(1)))
    elements = b.input((eight, k, n), strides=(as_expr(1), n * 8, eight))
    plain = b.input((eight, k, n))
    return [b.add(graph.BatchMatmulOp.make(rows, other)) for other in (plain, elements)]


def attention(b: Builder) -> Results:
    m, n, k = b.sizes
    heads = as_expr(12)
    key = b.input((heads, k, n), strides=(k * n, as_expr(1), k))
    scores = b.wide(b.add(graph.BatchMatmulOp.make(b.input((heads, m, k)), key)))
    scores = b.add(graph.MulOp.make(scores, b.number(0.125, scores)))
    weights = b.narrow(_softmax(b, scores, (heads, m, n)))
    return [b.add(graph.BatchMatmulOp.make(weights, b.input((heads, n, k))))]

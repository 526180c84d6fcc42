"""The programs whose code is kept: every kind of kernel, at sizes on both sides of what schedules and costs go by.

Nothing is executed, so that sizes cost nothing. A row is a function that builds a program and the shapes to do so at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser

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
)
from stepwell.ir.expr import Expr, as_expr, contiguous_strides
from stepwell.ir.graph.attributes import DataAttr
from stepwell.tests.golden.blocks import KERNELS, numbered
from stepwell.tests.golden.blocks import Texts as KernelTexts
from stepwell.tests.golden.builder import Builder, Sizes, context
from stepwell.tests.property.programs import rolled_program

Results = Sequence[SSAValue]
Build = Callable[[Builder], Results]

CODE = "llvm-ir"
"""The stage after the passes."""

OWN = "own"
"""The machine that the text of a program names."""

FILECHECK = Path(__file__).parents[1] / "filecheck"

FLOATS = (FLOAT32, FLOAT64, BFLOAT16, FLOAT16)
INTEGERS = (INT64, INT32, INT16, INT8, UINT8)
ELEMENTS = (*FLOATS, *INTEGERS, BOOL)


@dataclass(frozen=True)
class Program:
    """A program by its name, for one machine, and the first stage of the pipeline that it goes through."""

    name: str
    make: Callable[[], ModuleOp]
    target: str
    first: str = "graph"


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


def attention(b: Builder) -> Results:
    m, n, k = b.sizes
    heads = as_expr(12)
    key = b.input((heads, k, n), strides=(k * n, as_expr(1), k))
    scores = b.wide(b.add(graph.BatchMatmulOp.make(b.input((heads, m, k)), key)))
    scores = b.add(graph.MulOp.make(scores, b.number(0.125, scores)))
    weights = b.narrow(_softmax(b, scores, (heads, m, n)))
    return [b.add(graph.BatchMatmulOp.make(weights, b.input((heads, n, k))))]


# -- the table ---------------------------------------------------------------------------------------

POINTS = (
    "", "0", "1", "7", "8", "15", "16", "17", "31", "32", "33", "63", "64", "65", "127", "129", "255", "256", "257",
    "1000", "4095", "4096", "4097", "16383", "16384", "16385", "32769", "65536", "131073", "1048576", "67108864",
    "?", "?1000", "?1000000", "3x?7", "?7x3",
)  # fmt: skip
"""Shapes whose dims are all alike."""

ROWS = (
    "1x1", "1x7", "3x17", "4x33", "5x64", "17x129", "31x255", "64x1000", "300x512", "511x64", "513x16", "1000x300",
    "1000x3", "2048x1024", "4096x2000", "4096x4096", "4096x8192", "512x16384", "512x16385", "64x50257", "8192x768",
    "4x1048576", "1048576x4", "100000x16", "?300x1000", "300x?1000", "?64x?50", "?x?", "?x64",
)  # fmt: skip
"""Shapes of rows: short and long, few and many; of 64 KiB, of more than a cache holds."""

SOME_ROWS = ("3x17", "4x33", "64x1000", "1000x300", "4096x2000", "512x16384", "64x50257", "?300x1000", "?x64")

BOXES = ("2x3x5", "4x16x64", "8x64x1000", "32x128x256", "2x300x4097", "?4x64x100", "4x?64x100")

IMAGES = ("1x3x8x8", "2x64x28x28", "32x256x14x14", "8x3x224x224", "?8x64x7x7")

PRODUCTS = (
    "1x4096x4096", "4x4096x4096", "5x64x64", "16x16x16", "15x64x64", "64x15x64", "64x64x15", "64x64x64", "128x128x64",
    "256x1024x1024", "200x300x408", "512x512x512", "1024x4096x1024", "4096x4096x4096", "8192x1024x256", "64x8192x64",
    "2048x2048x8", "8192x8192x64", "?512x1024x1024", "512x50257x768", "132x64x4096",
)  # fmt: skip
"""Rows, columns and summands."""


CPUS = ("avx512", "avx2", "neon")


@dataclass(frozen=True)
class Row:
    """A kind of program: what builds it, at which shapes, of which elements, for which machines in turn; at some shapes
    for a GPU as well."""

    build: Build
    shapes: tuple[str, ...]
    elements: tuple[Attribute, ...] = (FLOAT32,)
    targets: tuple[str, ...] = CPUS
    gpu: tuple[str, ...] = ()

    def programs(self, name: str) -> Iterator[Program]:
        turns = cycle(self.targets)
        for element, shape in product(self.elements, self.shapes):
            for target in [next(turns), *(["gpu"] if shape in self.gpu else [])]:
                yield Program(f"{name} {element} {shape or '()'} {target}", self._maker(element, shape), target)

    def _maker(self, element: Attribute, shape: str) -> Callable[[], ModuleOp]:
        def make() -> ModuleOp:
            builder = Builder(shape, element)
            return builder.module(self.build(builder))

        return make


GPU = ("gpu",)


def name_of(op: type[graph.GraphOp]) -> str:
    return op.name.removeprefix("graph.")


FUNCTIONS = {
    **{name_of(op): Row(unary(op), ("100",), FLOATS, ("avx512", "avx2")) for op in ROUNDED},
    **{name_of(op): Row(unary(op), ("100",), (*FLOATS, *INTEGERS)) for op in NUMBERS},
    **{name_of(op): Row(unary(op), ("100",), FLOATS) for op in TESTS},
    "not": Row(unary(graph.NotOp), ("100",), (*INTEGERS, BOOL)),
    "of one number": Row(functions_of_one, ("",), FLOATS),
}

OPERATORS = {
    **{name_of(op): Row(binary(op), ("33",), (*FLOATS, *INTEGERS)) for op in ARITHMETIC},
    **{name_of(op): Row(binary(op), ("33",), FLOATS) for op in OF_FLOATS},
    **{name_of(op): Row(binary(op), ("33",), INTEGERS) for op in OF_BITS},
    "comparisons": Row(comparisons, ("33", ""), ELEMENTS),
    "fma": Row(fma, ("33",), FLOATS),
    **{
        f"{name_of(op)} with numbers": Row(with_numbers(op, *range(5), 7, 10), ("100",), (FLOAT32, INT64, INT8, UINT8))
        for op in ARITHMETIC
    },
    **{
        f"{name_of(op)} with odd numbers": Row(with_numbers(op, *ODD), ("100",), FLOATS)
        for op in (*OF_FLOATS, graph.PowOp, graph.AddOp, graph.MulOp, graph.SubOp, graph.MaximumOp)
    },
    **{f"{name_of(op)} with numbers": Row(with_numbers(op, 0, 1, 5, 63), ("100",), INTEGERS) for op in OF_BITS},
    "conversions": Row(conversions, ("100", "", "3x33"), ELEMENTS, (*CPUS, "avx512bf16")),
}

POINTWISE = {
    "chain": Row(chain, POINTS, gpu=POINTS[1::5]),
    "narrow chain": Row(chain, POINTS[2::4], (BFLOAT16, INT8, FLOAT64)),
    "gelu": Row(gelu, POINTS[2::3], (FLOAT32, BFLOAT16)),
    "dropout": Row(dropout, ("1", "33", "64x1000", "1048576", "?1000"), gpu=("1048576",)),
    "in place": Row(in_place, ("1", "33", "64x1000", "1048576", "?1000")),
}

LAYOUTS = {
    "transposed": Row(transposed, (*ROWS, *BOXES), gpu=SOME_ROWS),
    "narrow transposed": Row(transposed, SOME_ROWS, (BFLOAT16, INT8, FLOAT64)),
    "transposed sum": Row(transposed_sum, (*ROWS, *BOXES)),
    "narrow transposed sum": Row(transposed_sum, SOME_ROWS, (BFLOAT16, FLOAT64)),
    "row sum": Row(row_sum, (*ROWS, *BOXES)),
    "strided": Row(strided, (*POINTS[2::4], *SOME_ROWS)),
    "channels last": Row(channels_last, IMAGES),
    "channels": Row(channels, IMAGES),
    "split heads": Row(split_heads, ("5x64", "64x1000", "4096x2000", "?300x1000")),
    "joined": Row(joined, (*SOME_ROWS, *BOXES)),
    "joined rows": Row(joined_rows, (*SOME_ROWS, *BOXES)),
    "padded": Row(padded, (*SOME_ROWS, *BOXES)),
    "parts": Row(parts, (*SOME_ROWS, *BOXES)),
    "inserted": Row(inserted, (*SOME_ROWS, *BOXES)),
    "pooled": Row(pooled, (*SOME_ROWS, *BOXES)),
}

INDEXING = {
    "embedding": Row(embedding, SOME_ROWS, (FLOAT32, BFLOAT16)),
    "embedding backward": Row(embedding_backward, SOME_ROWS, gpu=SOME_ROWS[2:4]),
    "gathered": Row(gathered, (*SOME_ROWS, *BOXES)),
    "scattered": Row(scattered, (*SOME_ROWS, *BOXES)),
    "indexed twice": Row(indexed_twice, SOME_ROWS[:3]),
}

REDUCTIONS = {
    **{
        f"{name_of(op)} {dim}": Row(reduced(op, dim), ROWS, gpu=ROWS[::3])
        for op in (graph.SumOp, graph.ArgMaxOp)
        for dim in (0, -1)
    },
    **{
        f"{name_of(op)} of all": Row(reduced(op, -1), ("64x1000", "31x7"), (*FLOATS, INT64, INT8))
        for op in (graph.SumOp, graph.ProdOp, graph.MaxOp, graph.MinOp, graph.ArgMaxOp, graph.ArgMinOp)
    },
    **{name_of(op): Row(reduced(op, -1), SOME_ROWS[:4], (BOOL,)) for op in (graph.AnyOp, graph.AllOp)},
    "middle sum": Row(reduced(graph.SumOp, 1), BOXES, gpu=BOXES),
    "outer sum": Row(reduced(graph.SumOp, 0, -1), BOXES, gpu=BOXES),
    "total": Row(total, (*POINTS[1:], *SOME_ROWS), gpu=POINTS[3::4]),
    "total of squares": Row(total_of_squares, POINTS[2::3], (BFLOAT16, FLOAT32)),
    "both ways": Row(both_ways, ROWS, gpu=SOME_ROWS),
    "scan": Row(scanned(-1, "add"), SOME_ROWS, (FLOAT32, INT64, BFLOAT16)),
    "scan of rows": Row(scanned(0, "mul"), SOME_ROWS, (FLOAT32, INT64)),
}

NORMS = {
    "softmax": Row(softmax, ROWS, gpu=ROWS[::2]),
    "narrow softmax": Row(softmax, SOME_ROWS, (BFLOAT16,)),
    "softmax backward": Row(softmax_backward, ROWS[::2]),
    "layer norm": Row(layer_norm, ROWS, gpu=SOME_ROWS),
    "narrow layer norm": Row(layer_norm, SOME_ROWS, (BFLOAT16, FLOAT16)),
    "layer norm backward": Row(layer_norm_backward, ROWS, gpu=ROWS[3::6]),
    "narrow layer norm backward": Row(layer_norm_backward, SOME_ROWS[::2], (BFLOAT16,)),
    "rms norm": Row(rms_norm, SOME_ROWS, (FLOAT32, BFLOAT16)),
    "batch norm": Row(batch_norm, (*ROWS[::3], *BOXES), gpu=(*ROWS[::6], *BOXES[:3])),
    "group norm": Row(group_norm, ("2x8x5", "4x64x64", "8x64x1000", "?4x64x100")),
    "cross entropy": Row(cross_entropy, SOME_ROWS, (FLOAT32, BFLOAT16), gpu=SOME_ROWS[::3]),
    "cross entropy backward": Row(cross_entropy_backward, SOME_ROWS, gpu=SOME_ROWS[::3]),
}

MATRICES = {
    "matmul": Row(matmul, PRODUCTS, (BFLOAT16, FLOAT32), GPU),
    "matmul on processors": Row(matmul, PRODUCTS[::6], (FLOAT32, BFLOAT16, INT64), CPUS),
    "matmul transposed": Row(matmul_transposed, PRODUCTS, (FLOAT16,), GPU),
    "wide matmul transposed": Row(matmul_transposed, PRODUCTS[::2], (FLOAT32,), ("gpu", "avx512")),
    "matmul gelu": Row(matmul_gelu, PRODUCTS, (BFLOAT16,), GPU),
    "matmul row sums": Row(matmul_row_sums, PRODUCTS[::3], (BFLOAT16, FLOAT32), ("gpu", "avx512")),
    "batch matmul": Row(batch_matmul, PRODUCTS[2::3], (BFLOAT16, FLOAT32), ("gpu", "avx512")),
    "attention": Row(attention, ("64x64x64", "1024x1024x64", "?512x512x64"), (FLOAT32, BFLOAT16), ("gpu", "avx512")),
}


@dataclass(frozen=True)
class Rolled:
    """Random programs, of seeds in order."""

    seeds: range
    turns: tuple[str, ...] = (*CPUS, "gpu")

    def programs(self, name: str) -> Iterator[Program]:
        for seed, target in zip(self.seeds, cycle(self.turns), strict=False):
            yield Program(f"{name} {seed} {target}", partial(_rolled_module, seed), target)


def _rolled_module(seed: int) -> ModuleOp:
    return rolled_program(seed).module


@dataclass(frozen=True)
class Texts:
    """The programs of a test of one pass, which says for which machine they are."""

    path: str
    first: str

    def programs(self, name: str) -> Iterator[Program]:
        texts = (FILECHECK / self.path).read_text().split("// -----")
        for position, text in enumerate(texts):
            yield Program(f"{name} {position}", partial(_parsed, text), OWN, self.first)


def _parsed(text: str) -> ModuleOp:
    return Parser(context(), text).parse_module()


@dataclass(frozen=True)
class Blocks:
    """Kernels on blocks of unusual shapes, a module for each element."""

    texts: KernelTexts
    elements: tuple[str, ...]

    def programs(self, name: str) -> Iterator[Program]:
        for element, target in product(self.elements, ("avx512", "avx2")):
            yield Program(f"{name} {element} {target}", partial(self._module, element), target, CODE)

    def _module(self, element: str) -> ModuleOp:
        return _parsed(numbered(self.texts(element)))


BLOCKS = {name: Blocks(*row) for name, row in KERNELS.items()}

FIRST = {"graph-*": "graph", "convert-graph-*": "graph", "loop-*": "fused", "convert-loop-*": "fused"}
"""Names of tests → the stage behind that of their level."""

TEXTS = {
    path.stem: Texts(path.relative_to(FILECHECK).as_posix(), first)
    for pattern, first in FIRST.items()
    for path in sorted(FILECHECK.glob(f"*/{pattern}.mlir"))
}

RANDOM = {f"random from {first}": Rolled(range(first, first + 20)) for first in range(0, 160, 20)}

KINDS: dict[str, Mapping[str, Row | Rolled | Texts | Blocks]] = {
    "functions": FUNCTIONS,
    "operators": OPERATORS,
    "pointwise": POINTWISE,
    "layouts": LAYOUTS,
    "indexing": INDEXING,
    "reductions": REDUCTIONS,
    "norms": NORMS,
    "matrices": MATRICES,
    "random": RANDOM,
    "texts": TEXTS,
    "blocks": BLOCKS,
}
"""File → its rows by name."""

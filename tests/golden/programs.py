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
from xdsl.ir import Attribute
from xdsl.parser import Parser

from stepwell.ir import graph
from stepwell.ir.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
)
from stepwell.ir.expr import Expr, as_expr, symbol
from stepwell.ir.shapes import tensor_type
from stepwell.tests.golden import builds
from stepwell.tests.golden.blocks import KERNELS, numbered
from stepwell.tests.golden.blocks import Texts as KernelTexts
from stepwell.tests.golden.builder import Builder, context
from stepwell.tests.golden.builds import (
    ARITHMETIC,
    ELEMENTS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ODD,
    OF_BITS,
    OF_FLOATS,
    ROUNDED,
    TESTS,
    Build,
)
from stepwell.tests.property.programs import Grower, Value, rolled_program

CODE = "llvm-ir"
"""The stage after the passes."""

OWN = "own"
"""The machine that the text of a program names."""

FILECHECK = Path(__file__).parents[1] / "filecheck"


@dataclass(frozen=True)
class Program:
    """A program by its name, for one machine, and the first stage of the pipeline that it goes through."""

    name: str
    make: Callable[[], ModuleOp]
    target: str
    first: str = "graph"


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

EDGES = ("0x64", "64x0", "1x64", "64x1", "2x2")
"""Rows of which there are none, or which are no more than a number."""

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
    **{name_of(op): Row(builds.unary(op), ("100",), FLOATS, ("avx512", "avx2")) for op in ROUNDED},
    **{name_of(op): Row(builds.unary(op), ("100",), (*FLOATS, *INTEGERS)) for op in NUMBERS},
    **{name_of(op): Row(builds.unary(op), ("100",), FLOATS) for op in TESTS},
    "not": Row(builds.unary(graph.NotOp), ("100",), (*INTEGERS, BOOL)),
    "of one number": Row(builds.functions_of_one, ("",), FLOATS),
}

OPERATORS = {
    **{name_of(op): Row(builds.binary(op), ("33",), (*FLOATS, *INTEGERS)) for op in ARITHMETIC},
    **{name_of(op): Row(builds.binary(op), ("33",), FLOATS) for op in OF_FLOATS},
    **{name_of(op): Row(builds.binary(op), ("33",), INTEGERS) for op in OF_BITS},
    "comparisons": Row(builds.comparisons, ("33", ""), ELEMENTS),
    "fma": Row(builds.fma, ("33",), FLOATS),
    **{
        f"{name_of(op)} with numbers": Row(
            builds.with_numbers(op, *range(5), 7, 10), ("100",), (FLOAT32, INT64, INT8, UINT8)
        )
        for op in ARITHMETIC
    },
    **{
        f"{name_of(op)} with odd numbers": Row(builds.with_numbers(op, *ODD), ("100",), FLOATS)
        for op in (*OF_FLOATS, graph.PowOp, graph.AddOp, graph.MulOp, graph.SubOp, graph.MaximumOp)
    },
    **{f"{name_of(op)} with numbers": Row(builds.with_numbers(op, 0, 1, 5, 63), ("100",), INTEGERS) for op in OF_BITS},
    "conversions": Row(builds.conversions, ("100", "", "3x33"), ELEMENTS, (*CPUS, "avx512bf16")),
}

POINTWISE = {
    "chain": Row(builds.chain, POINTS, gpu=POINTS[1::5]),
    "narrow chain": Row(builds.chain, POINTS[2::4], (BFLOAT16, INT8, FLOAT64)),
    "gelu": Row(builds.gelu, POINTS[2::3], (FLOAT32, BFLOAT16)),
    "dropout": Row(builds.dropout, ("1", "33", "64x1000", "1048576", "?1000"), gpu=("1048576",)),
    "in place": Row(builds.in_place, ("1", "33", "64x1000", "1048576", "?1000")),
}

LAYOUTS = {
    "transposed": Row(builds.transposed, (*ROWS, *EDGES, *BOXES), gpu=SOME_ROWS),
    "narrow transposed": Row(builds.transposed, SOME_ROWS, (BFLOAT16, INT8, FLOAT64)),
    "transposed sum": Row(builds.transposed_sum, (*ROWS, *EDGES, *BOXES)),
    "narrow transposed sum": Row(builds.transposed_sum, SOME_ROWS, (BFLOAT16, FLOAT64)),
    "row sum": Row(builds.row_sum, (*ROWS, *EDGES, *BOXES)),
    "partly transposed": Row(builds.partly_transposed, ("64x1000", "1000x300", "4x64x300")),
    "gathered transposed": Row(builds.gathered_transposed, ("4x64x300", "?4x64x64")),
    "strided": Row(builds.strided, (*POINTS[2::4], *SOME_ROWS)),
    "channels last": Row(builds.channels_last, IMAGES),
    "channels": Row(builds.channels, IMAGES),
    "split heads": Row(builds.split_heads, ("5x64", "64x1000", "4096x2000", "?300x1000")),
    "joined": Row(builds.joined, (*SOME_ROWS, *BOXES)),
    "joined rows": Row(builds.joined_rows, (*SOME_ROWS, *BOXES)),
    "padded": Row(builds.padded, (*SOME_ROWS, *BOXES)),
    "parts": Row(builds.parts, (*SOME_ROWS, *BOXES)),
    "called": Row(builds.called, SOME_ROWS[::3], (FLOAT32, BFLOAT16)),
    "inserted": Row(builds.inserted, (*SOME_ROWS, *BOXES)),
    "known": Row(builds.known, ("1024", "1025"), (INT64,)),
    "pooled": Row(builds.pooled, (*SOME_ROWS, *BOXES)),
}

INDEXING = {
    "embedding": Row(builds.embedding, SOME_ROWS, (FLOAT32, BFLOAT16)),
    "embedding backward": Row(builds.embedding_backward, SOME_ROWS, gpu=SOME_ROWS[2:4]),
    "gathered": Row(builds.gathered, (*SOME_ROWS, *BOXES)),
    "scattered": Row(builds.scattered, (*SOME_ROWS, *BOXES)),
    "scattered by atomics": Row(
        builds.scattered,
        SOME_ROWS[1:4],
        (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT64, INT32, INT8),
        GPU,
    ),
    "indexed twice": Row(builds.indexed_twice, SOME_ROWS[:3]),
}

REDUCTIONS = {
    **{
        f"{name_of(op)} {dim}": Row(builds.reduced(op, dim), ROWS, gpu=ROWS[::3])
        for op in (graph.SumOp, graph.ArgMaxOp)
        for dim in (0, -1)
    },
    **{
        f"{name_of(op)} of all": Row(builds.reduced(op, -1), ("64x1000", "31x7"), (*FLOATS, INT64, INT8))
        for op in (graph.SumOp, graph.ProdOp, graph.MaxOp, graph.MinOp, graph.ArgMaxOp, graph.ArgMinOp)
    },
    **{name_of(op): Row(builds.reduced(op, -1), SOME_ROWS[:4], (BOOL,)) for op in (graph.AnyOp, graph.AllOp)},
    "middle sum": Row(builds.reduced(graph.SumOp, 1), (*BOXES, "64x600x64", "64x600x512", "64x500x512"), gpu=BOXES),
    **{
        f"nearly dependent {k}": Row(builds.nearly_dependent(k), ("64x50257", "4x1048576"), targets=GPU)
        for k in range(builds.NEARLY_DEPENDENT)
    },
    "outer sum": Row(builds.reduced(graph.SumOp, 0, -1), BOXES, gpu=BOXES),
    "total": Row(builds.total, (*POINTS[1:], *SOME_ROWS), gpu=POINTS[3::4]),
    "total of squares": Row(builds.total_of_squares, POINTS[2::3], (BFLOAT16, FLOAT32)),
    "both ways": Row(builds.both_ways, (*ROWS, *EDGES), gpu=SOME_ROWS),
    "long bodies": Row(builds.long_bodies, ("4096x5", "4096x4", "4096x2")),
    "bias gradient": Row(
        builds.bias_gradient, (*ROWS[6:24], *ROWS[25:], *EDGES, *BOXES, "?1000x20000"), gpu=SOME_ROWS[4:5]
    ),
    "narrow bias gradient": Row(builds.bias_gradient, SOME_ROWS[2:], (BFLOAT16, FLOAT64, INT64)),
    "gradient of rows": Row(builds.gradient_of_rows, ("1024x3x64", "1024x64x3", "1024x3x5"), gpu=("1024x3x64",)),
    "weight gradient": Row(builds.weight_gradient, (*ROWS[6:24], *ROWS[25:], *EDGES, *BOXES), gpu=SOME_ROWS[4:5]),
    "scan": Row(builds.scanned(-1, "add"), SOME_ROWS, (FLOAT32, INT64, BFLOAT16)),
    "scan of rows": Row(builds.scanned(0, "mul"), SOME_ROWS, (FLOAT32, INT64)),
}

NORMS = {
    "softmax": Row(builds.softmax, (*ROWS, *EDGES), gpu=ROWS[::2]),
    "narrow softmax": Row(builds.softmax, SOME_ROWS, (BFLOAT16,)),
    "softmax backward": Row(builds.softmax_backward, ROWS[::2]),
    "layer norm": Row(builds.layer_norm, ROWS, gpu=SOME_ROWS),
    "wide softmax": Row(builds.softmax, SOME_ROWS[:4], (FLOAT64,), ("neon",)),
    "narrow layer norm": Row(builds.layer_norm, SOME_ROWS, (BFLOAT16, FLOAT16)),
    "layer norm backward": Row(builds.layer_norm_backward, (*ROWS, *EDGES[2:]), gpu=ROWS[3::6]),
    "narrow layer norm backward": Row(builds.layer_norm_backward, SOME_ROWS[::2], (BFLOAT16,)),
    "rms norm": Row(builds.rms_norm, SOME_ROWS, (FLOAT32, BFLOAT16)),
    "batch norm": Row(builds.batch_norm, (*ROWS[::3], *BOXES), gpu=(*ROWS[::6], *BOXES[:3])),
    "group norm": Row(builds.group_norm, ("2x8x5", "4x64x64", "8x64x1000", "?4x64x100")),
    "cross entropy": Row(builds.cross_entropy, SOME_ROWS, (FLOAT32, BFLOAT16), gpu=SOME_ROWS[::3]),
    "cross entropy backward": Row(builds.cross_entropy_backward, SOME_ROWS, gpu=SOME_ROWS[::3]),
}

MATRICES = {
    "matmul": Row(builds.matmul, PRODUCTS, (BFLOAT16, FLOAT32), GPU),
    "matmul on processors": Row(builds.matmul, PRODUCTS[::6], (FLOAT32, BFLOAT16, INT64), CPUS),
    "matmul transposed": Row(builds.matmul_transposed, PRODUCTS, (FLOAT16,), GPU),
    "wide matmul transposed": Row(builds.matmul_transposed, PRODUCTS[::2], (FLOAT32,), ("gpu", "avx512")),
    "matmul gelu": Row(builds.matmul_gelu, PRODUCTS, (BFLOAT16,), GPU),
    "matmul row sums": Row(builds.matmul_row_sums, PRODUCTS[::3], (BFLOAT16, FLOAT32), ("gpu", "avx512")),
    "batch matmul": Row(builds.batch_matmul, PRODUCTS[2::3], (BFLOAT16, FLOAT32), ("gpu", "avx512")),
    "measured matmul": Row(builds.measured_matmul, PRODUCTS[::3], (BFLOAT16, FLOAT32), GPU),
    "matmul biases": Row(builds.matmul_biases, PRODUCTS[::4], (BFLOAT16, FLOAT32), ("gpu", "avx512")),
    "nearly products": Row(builds.nearly_products, PRODUCTS[5:9], (BFLOAT16, FLOAT32), GPU),
    "batch matmul apart": Row(builds.batch_matmul_apart, PRODUCTS[2::6], (BFLOAT16, FLOAT32), GPU),
    "attention": Row(
        builds.attention, ("64x64x64", "1024x1024x64", "?512x512x64"), (FLOAT32, BFLOAT16), ("gpu", "avx512")
    ),
}


@dataclass(frozen=True)
class Rolled:
    """Random programs, of seeds in order."""

    seeds: Sequence[int]
    make: Callable[[int], ModuleOp]
    turns: tuple[str, ...] = (*CPUS, "gpu")

    def programs(self, name: str) -> Iterator[Program]:
        for seed, target in zip(self.seeds, cycle(self.turns), strict=False):
            yield Program(f"{name} {seed} {target}", partial(self.make, seed), target)


class LargeGrower(Grower):
    """Grows programs on large tensors, without the data that would fill them."""

    @property
    def sizes(self) -> Sequence[Expr]:
        return [*map(as_expr, (64, 300, 1, 1000, 16, 2048, 5, 4096)), *map(symbol, self.symbols)]

    def new_argument(self, element: Attribute | None = None) -> Value:
        made = self.choose.one_of((FLOAT32, *ELEMENTS, FLOAT32, BFLOAT16)) if element is None else element
        return self.argument(tensor_type(made, self.choose.several(self.sizes, 1, 3)), None)

    def index(self, sizes: Sequence[Expr], below: int) -> Value:
        value = self.argument(tensor_type(INT64, sizes), None)
        self.values.pop()  # indices are for this alone
        return value


def _small_program(seed: int) -> ModuleOp:
    return rolled_program(seed).module


def _large_program(seed: int) -> ModuleOp:
    return rolled_program(seed, most=10, grower=LargeGrower).module


def _deep_program(seed: int) -> ModuleOp:
    return rolled_program(seed, most=24, grower=LargeGrower).module


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

CHOSEN: tuple[tuple[str, Callable[[int], ModuleOp], str, tuple[int, ...]], ...] = (
    ("random", _small_program, "avx2", (476, 1946, 2506, 2701)),
    ("random", _small_program, "avx512", (800, 1740)),
    ("random", _small_program, "avx512bf16", (604,)),
    ("random", _small_program, "gpu", (413, 1683, 1938, 2593)),
    ("large", _large_program, "avx2", (1171, 2561, 2731)),
    ("large", _large_program, "avx512", (1785, 1960, 2635)),
    ("large", _large_program, "avx512bf16", (654, 2424, 2704, 4114)),
    ("large", _large_program, "gpu", (563, 718, 1578, 1603, 2173, 2383, 2558)),
    ("large", _large_program, "neon", (602, 722, 3832)),
    ("deep", _deep_program, "avx2", (491, 536)),
    ("deep", _deep_program, "avx512", (585,)),
    ("deep", _deep_program, "avx512bf16", (1674,)),
    ("deep", _deep_program, "gpu", (803, 1398)),
    ("deep", _deep_program, "neon", (1022,)),
)
"""Of 8,000 random programs those in which a condition decides (`tests/mutation/decisions.py`) that else does not."""

RANDOM = {
    **{
        f"{name} from {first}": Rolled(range(first, first + 20), make)
        for name, make, count in (("random", _small_program, 160), ("large", _large_program, 240))
        for first in range(0, count, 20)
    },
    **{f"{name} chosen for {target}": Rolled(seeds, make, (target,)) for name, make, target, seeds in CHOSEN},
}

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

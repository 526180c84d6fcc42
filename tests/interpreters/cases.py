"""Every native graph op with special values, next to the eager call that it must equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from stepwell.tests.interpreters.support import DTYPES, NAMES, Eager, type_of

FLOATS = [
    float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 100.0,
    1e-5, -3e4,
]  # fmt: skip
WIDE_FLOATS = [*FLOATS, 3.0e38, -1e-40, 1e-45, 16777217.0]
SPECIAL: dict[str, list[Any]] = {
    "f64": WIDE_FLOATS,
    "f32": WIDE_FLOATS,
    "bf16": FLOATS,
    "f16": FLOATS,
    "i64": [0, 1, -1, 2, -3, 7, 63, 64, 1 << 40, -(1 << 63), (1 << 63) - 1],
    "i32": [0, 1, -1, 2, -3, 7, 31, 32, -(1 << 31), (1 << 31) - 1],
    "i8": [0, 1, -1, 2, -3, 7, 8, 9, -128, 127],
    "ui8": [0, 1, 2, 3, 7, 8, 9, 128, 200, 255],
    "i1": [False, True],
}

NEAR = {"f64": 2e-6, "f32": 2e-6, "bf16": 2**-7, "f16": 2**-10}
"""Relative error between two good implementations of a function that no machine rounds exactly."""


@dataclass(frozen=True)
class Case:
    """One op on inputs. `op` is written with `{0}`, `{1}`, … for its operands, without types."""

    name: str
    op: str
    inputs: tuple[Tensor, ...]
    expected: Tensor
    rtol: float = 0.0
    signed_zeros: bool = True

    @property
    def text(self) -> str:
        names = [f"%x{k}" for k in range(len(self.inputs))]
        types = [type_of(value) for value in self.inputs]
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
        result = type_of(self.expected)
        return (
            f"func.func @main({arguments}) -> {result} {{\n"
            f"  %y = {self.op.format(*names)} : ({', '.join(types)}) -> {result}\n"
            f"  func.return %y : {result}\n}}"
        )


def tensor(values: Sequence[Any], name: str) -> Tensor:
    return torch.tensor(values, dtype=DTYPES[name])


def pairs(name: str) -> tuple[Tensor, Tensor]:
    left, right = zip(*product(SPECIAL[name], repeat=2), strict=True)
    return tensor(left, name), tensor(right, name)


def box(name: str, *sizes: int) -> Tensor:
    """A tensor of small numbers."""
    count = torch.Size(sizes).numel()
    if name == "i1":
        return (torch.arange(count) * 7 % 5 < 2).reshape(sizes)
    values = (torch.arange(count) * 37 % 23 - 11).reshape(sizes)
    return (values.abs() if name == "ui8" else values).to(DTYPES[name])


def one_by_one(eager: Eager) -> Eager:
    """Eager on single numbers: its vector code loses denormal divisors and the largest quotients."""
    return lambda x, y: torch.cat([eager(x[k : k + 1], y[k : k + 1]) for k in range(len(x))])


def floor_divide(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="floor")


def truncate_divide(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="trunc")


def rounded_root(x: Tensor) -> Tensor:
    """The root, correctly rounded: eager's vectors are a unit off on processors without AVX-512."""
    return x.double().sqrt().to(x.dtype)


# -- elementwise -------------------------------------------------------------------------------------

FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid",
)  # fmt: skip

UNARY: dict[str, tuple[Eager, str]] = {
    "sqrt": (rounded_root, "f32 bf16 f16"),
    "floor": (torch.floor, "f32 bf16"),
    "ceil": (torch.ceil, "f32 bf16"),
    "round": (torch.round, "f32 bf16"),
    "trunc": (torch.trunc, "f32 bf16"),
    "neg": (torch.neg, "f32 bf16 i64 i8 ui8"),
    "abs": (torch.abs, "f32 bf16 i64 i8 ui8"),
    "sign": (torch.sign, "f32 bf16 i64 i8 ui8"),
    "relu": (torch.relu, "f32 bf16 i64 i8 ui8"),
    "not": (torch.bitwise_not, "i64 i8 ui8 i1"),
    "isnan": (torch.isnan, "f64 f32 bf16 f16"),
    "isinf": (torch.isinf, "f32 bf16"),
    "signbit": (torch.signbit, "f64 f32 bf16 f16"),
    "copy": (torch.clone, "f32 bf16 i64 ui8 i1"),
}

BINARY: dict[str, tuple[Eager, str]] = {
    "add": (torch.add, "f32 bf16 f16 i64 i8 ui8"),
    "sub": (torch.sub, "f32 bf16 i64 i8 ui8"),
    "mul": (torch.mul, "f32 bf16 i64 i8 ui8"),
    "div": (torch.div, "f64 f32 bf16 f16"),
    "floordiv": (one_by_one(floor_divide), "f32 bf16 f16"),
    "truncdiv": (truncate_divide, "f32 bf16"),
    "remainder": (one_by_one(torch.remainder), "f64 f32 bf16 f16"),
    "fmod": (one_by_one(torch.fmod), "f64 f32 bf16 f16"),
    "maximum": (torch.maximum, "f32 bf16 i64 i8 ui8"),
    "minimum": (torch.minimum, "f32 bf16 i64 i8 ui8"),
    "copysign": (torch.copysign, "f32 bf16"),
    "and": (torch.bitwise_and, "i64 i8 ui8 i1"),
    "or": (torch.bitwise_or, "i64 i8 ui8 i1"),
    "xor": (torch.bitwise_xor, "i64 i8 ui8 i1"),
    "shl": (torch.bitwise_left_shift, "i64 i32 i8 ui8"),
    "shr": (torch.bitwise_right_shift, "i64 i32 i8 ui8"),
}


def unary() -> Iterator[Case]:
    for op in FUNCTIONS:
        for name in ("f32",) if op == "erf" else ("f32", "bf16"):  # eager's erf of bf16 is off by 2 %
            x = tensor(SPECIAL[name], name)
            yield Case(f"{op}-{name}", f"graph.{op} {{0}}", (x,), getattr(torch, op)(x), NEAR[name])
    for op, (eager, names) in UNARY.items():
        for name in names.split():
            x = tensor(SPECIAL[name], name)
            yield Case(f"{op}-{name}", f"graph.{op} {{0}}", (x,), eager(x))


def binary() -> Iterator[Case]:
    for op, (eager, names) in BINARY.items():
        for name in names.split():
            x, y = pairs(name)
            extremum = op in ("maximum", "minimum")  # of 0 and -0 either may be the larger one
            yield Case(f"{op}-{name}", f"graph.{op} {{0}}, {{1}}", (x, y), eager(x, y), signed_zeros=not extremum)
    for op, eager, names in (("pow", torch.pow, "f32 bf16 i64 i8 ui8"), ("atan2", torch.atan2, "f32")):
        for name in names.split():
            x, y = pairs(name)
            yield Case(f"{op}-{name}", f"graph.{op} {{0}}, {{1}}", (x, y), eager(x, y), NEAR.get(name, 0.0))


def integer_division() -> Iterator[Case]:
    """Without zeros, and without the least number by -1, on which eager traps."""
    for op, eager in (
        ("floordiv", floor_divide), ("truncdiv", truncate_divide), ("remainder", torch.remainder), ("fmod", torch.fmod)
    ):  # fmt: skip
        for name in ("i64", "i32", "i8", "ui8"):
            x, y = pairs(name)
            kept = (y != 0) & ~((x == torch.iinfo(x.dtype).min) & (y == -1))
            x, y = x[kept], y[kept]
            yield Case(f"{op}-{name}", f"graph.{op} {{0}}, {{1}}", (x, y), eager(x, y))


def choices() -> Iterator[Case]:
    for predicate, name in product(("eq", "ne", "lt", "le", "gt", "ge"), ("f32", "bf16", "i64", "i8", "ui8", "i1")):
        x, y = pairs(name)
        expected = getattr(torch, predicate)(x, y)
        yield Case(f"{predicate}-{name}", f"graph.compare {{0}}, {{1}} is {predicate}", (x, y), expected)
    for name in ("f32", "bf16", "i64", "ui8", "i1"):
        x, y = pairs(name)
        condition = torch.arange(len(x)) % 3 == 0
        expected = torch.where(condition, x, y)
        yield Case(f"select-{name}", "graph.select {0}, {1}, {2}", (condition, x, y), expected)
    x = tensor([1 + 2**-12, 3.0, float("inf"), -0.0, 2.0**100], "f32")
    z = tensor([-1.0, 0.5, -float("inf"), 0.0, -(2.0**100)], "f32")
    yield Case("fma-f32", "graph.fma {0}, {1}, {2}", (x, x, z), (x.double() * x.double() + z.double()).float())


def conversions() -> Iterator[Case]:
    for source, target in product(DTYPES, DTYPES):
        if "i16" in (source, target):
            continue
        beyond = [300.7, -300.7, 3e9, 1e20, 1 + 2**-8 + 2**-30, 1 + 2**-11 + 2**-40, 255.5] if source in NEAR else []
        x = tensor([*SPECIAL[source], *beyond], source)
        yield Case(f"convert-{source}-{target}", "graph.convert {0}", (x,), x.to(DTYPES[target]))


def bitcasts() -> Iterator[Case]:
    for names in ("f32 i32", "i32 f32", "f64 i64", "bf16 i16", "i8 ui8", "ui8 i8", "i1 ui8"):
        source, target = names.split()
        x = tensor(SPECIAL[source], source)
        yield Case(f"bitcast-{source}-{target}", "graph.bitcast {0}", (x,), x.view(DTYPES[target]))


# -- reductions --------------------------------------------------------------------------------------


def _product(x: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim, dtype=x.dtype)
    return x


REDUCTIONS: dict[str, tuple[Eager, str]] = {
    "sum": (lambda x, dims: x.sum(dims, dtype=x.dtype), "f32 bf16 i64 i8 ui8"),
    "prod": (_product, "f32 i64"),
    "max": (torch.amax, "f32 bf16 i64 i8 ui8 i1"),
    "min": (torch.amin, "f32 bf16 i64 i8 ui8 i1"),
    "any": (torch.any, "i1"),
    "all": (torch.all, "i1"),
}


def reductions() -> Iterator[Case]:
    for (op, (eager, names)), dims in product(REDUCTIONS.items(), ([0], [2], [0, 2], [1, 2], [0, 1, 2])):
        for name in names.split():
            x = box(name, 3, 4, 5)
            near = NEAR.get(name, 0.0) if op in ("sum", "prod") else 0.0
            yield Case(f"{op}-{name}-{dims}", f"graph.{op} {{0}} {dims}", (x,), eager(x, dims), near)
    for op in ("max", "min"):
        x = tensor([[1.0, float("nan"), 3.0], [3.0, 2.0, 1.0]], "f32")
        yield Case(f"{op}-nan", f"graph.{op} {{0}} [1]", (x,), getattr(torch, f"a{op}")(x, 1))
    for op, name in product(("argmax", "argmin"), ("f32", "bf16", "i64", "i8", "ui8", "i1")):
        x = box(name, 4, 9)
        if name in NEAR:
            x[2, 3] = x[2, 5] = float("nan")
        expected = getattr(torch, op)(x.byte() if name == "i1" else x, 1)
        yield Case(f"{op}-{name}", f"graph.{op} {{0}} [1]", (x,), expected)
    for combiner, eager in (("add", torch.cumsum), ("mul", torch.cumprod)):
        for name, dim in product(("f64", "f32", "i64"), (0, 1)):
            x = box(name, 3, 6)
            op = f"graph.scan {{0}} dim {dim} with {combiner}"
            yield Case(f"scan-{combiner}-{name}-{dim}", op, (x,), eager(x, dim), NEAR.get(name, 0.0))


def empty() -> Iterator[Case]:
    """Reductions of nothing, and ops on it."""
    for op, (_, names) in REDUCTIONS.items():
        for name in names.split():
            x = torch.empty((2, 0), dtype=DTYPES[name])
            expected = torch.full((2,), _identity(op, x.dtype), dtype=x.dtype)
            yield Case(f"{op}-of-nothing-{name}", f"graph.{op} {{0}} [1]", (x,), expected)
    nothing = torch.empty(0, 3)
    yield Case("add-of-nothing", "graph.add {0}, {1}", (nothing, nothing), nothing)


def _identity(op: str, dtype: torch.dtype) -> Any:
    if dtype == torch.bool:
        return op in ("min", "all")
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    infinity = float("inf") if dtype.is_floating_point else None
    lowest, highest = (limits.min, limits.max) if infinity is None else (-infinity, infinity)
    return {"sum": 0, "prod": 1, "max": lowest, "min": highest}[op]


# -- views -------------------------------------------------------------------------------------------


def views() -> Iterator[Case]:
    for name in ("f32", "bf16", "i64", "ui8", "i1"):
        x, row = box(name, 4, 6), box(name, 4, 1)
        yield Case(f"permute-{name}", "graph.permute {0} [1, 0]", (x,), x.t().contiguous())
        yield Case(f"reshape-{name}", "graph.reshape {0}", (x,), x.reshape(3, 8))
        yield Case(f"broadcast-{name}", "graph.broadcast {0}", (row,), row.expand(2, 4, 5).contiguous())
        yield Case(f"slice-{name}", "graph.slice {0} from (1, 0) step (1, 2)", (x,), x[1:3, ::2].contiguous())
        yield Case(f"flip-{name}", "graph.flip {0} [0, 1]", (x,), x.flip(0, 1))
        windows = x.unfold(1, 3, 2)
        yield Case(f"window-{name}", "graph.window {0} step [2] dilation [1]", (x,), windows.contiguous())
        yield Case(f"pad-{name}", _pad(name), (x,), _padded(x, 1 if name in ("i1", "ui8", "i64") else 1.5))
        yield Case(f"cat-{name}", "graph.cat {0}, {1} dim 1", (x, row), torch.cat([x, row], 1))
    permuted = box("f32", 2, 3, 4)
    yield Case("permute-three", "graph.permute {0} [2, 0, 1]", (permuted,), permuted.permute(2, 0, 1).contiguous())


def _pad(name: str) -> str:
    value = {"i1": "true", "ui8": "1", "i64": "1"}.get(name, "1.5")
    return f"graph.pad {{0}} low (1, 0) value {name}<{value}>"


def _padded(x: Tensor, value: float) -> Tensor:
    result = torch.full((x.shape[0] + 2, x.shape[1] + 3), value, dtype=x.dtype)
    result[1 : 1 + x.shape[0], : x.shape[1]] = x
    return result


# -- indexing ----------------------------------------------------------------------------------------


def indexing() -> Iterator[Case]:
    for name in ("f32", "bf16", "i64", "ui8", "i1"):
        x = box(name, 4, 5, 3)
        along = torch.tensor([[[4, 0, 1]], [[2, 2, 3]]])
        yield Case(f"gather-{name}", "graph.gather {0}, {1} dim 1 bounds gather", (x, along), x.gather(1, along))
        i, j = torch.tensor([[3, -1], [0, 1]]), torch.tensor([[0, 4], [-5, 2]])
        yield Case(f"index-{name}", "graph.index {0}, {1}, {2} dims [0, 1] bounds index", (x, i, j), x[i, j])
        k = torch.tensor([[0, 2], [1, -3]])
        apart = "graph.index {0}, {1}, {2} dims [0, 2] bounds index"
        yield Case(f"index-apart-{name}", apart, (x, i, k), x[i, :, k].contiguous())
        value = box(name, 2, 1, 3) if name == "i1" else box(name, 2, 1, 3) + 3
        unique = torch.tensor([[[4, 0, 1]], [[2, 1, 3]]])
        scatter = "graph.scatter {0}, {1}, {2} dim 1 bounds gather"
        yield Case(f"scatter-{name}", scatter, (x, unique, value), x.scatter(1, unique, value))
        put = "graph.index_put {0}, {1}, {2} dims [1] bounds index"
        rows, at = box(name, 4, 2, 3), torch.tensor([-1, 0])
        expected = x.clone()
        expected[:, at] = rows
        yield Case(f"index_put-{name}", put, (x, rows, at), expected)
        grid, m, n = box(name, 2, 3, 3), torch.tensor([[3, -1, 0], [0, 1, 3]]), torch.tensor([[0, 4, 2], [-3, 2, 0]])
        expected = x.clone()
        for place in product(range(2), range(3)):  # (0, 2) and (3, 0) twice: the last one stays
            expected[m[place], n[place]] = grid[place]
        put = "graph.index_put {0}, {1}, {2}, {3} dims [0, 1] bounds index"
        yield Case(f"index_put-twice-{name}", put, (x, grid, m, n), expected)
        insert = "graph.insert_slice {0}, {1} from (1, 0, 2) step (2, 1, 1)"
        expected, inner = x.clone(), box(name, 2, 4, 1)
        expected[1::2, :4, 2:] = inner
        yield Case(f"insert_slice-{name}", insert, (x, inner), expected)
    for name, combiner, reduce in (
        ("f32", "add", "sum"), ("i64", "add", "sum"), ("i64", "mul", "prod"), ("f32", "max", "amax"),
        ("i64", "min", "amin"), ("ui8", "max", "amax"), ("ui8", "min", "amin"), ("i8", "max", "amax"),
        ("bf16", "add", "sum"),
    ):  # fmt: skip
        x, value = box(name, 4, 5), box(name, 3, 5) * (50 if name == "ui8" else 1)
        index = torch.tensor([[0, 3, 3, 1, 0], [0, 3, 2, 1, 1], [1, 3, 2, 1, 0]])
        op = f"graph.scatter {{0}}, {{1}}, {{2}} dim 0 bounds gather with {combiner}"
        expected = x.scatter_reduce(0, index, value, reduce)
        yield Case(f"scatter-{combiner}-{name}", op, (x, index, value), expected, NEAR.get(name, 0.0))
    x, value, at = box("f32", 4, 5), box("f32", 3, 5), torch.tensor([1, -1, 1])
    expected = x.index_put((at,), value, accumulate=True)
    op = "graph.index_put {0}, {1}, {2} dims [0] bounds index with add"
    yield Case("index_put-add", op, (x, value, at), expected)
    repeated = torch.tensor([[2, 2, 2, 2, 2], [2, 2, 2, 2, 2], [2, 2, 2, 2, 2]])
    expected = x.clone()
    expected[2] = value[2]
    op = "graph.scatter {0}, {1}, {2} dim 0 bounds gather"
    yield Case("scatter-the-last-stays", op, (x, repeated, value), expected)


# -- products ----------------------------------------------------------------------------------------


def products() -> Iterator[Case]:
    for name in ("f32", "bf16", "i64"):
        x, y, bias = box(name, 3, 4), box(name, 4, 5), box(name, 5)
        wide = (x.double() @ y.double() + bias.double()).to(x.dtype)
        yield Case(f"matmul-{name}", "graph.matmul {0}, {1}", (x, y), x @ y, NEAR.get(name, 0.0))
        yield Case(f"matmul-bias-{name}", "graph.matmul {0}, {1}, {2}", (x, y, bias), wide)
        a, b = box(name, 2, 3, 4), box(name, 2, 4, 1)
        yield Case(f"batch_matmul-{name}", "graph.batch_matmul {0}, {1}", (a, b), a @ b, NEAR.get(name, 0.0))


def all_cases() -> list[Case]:
    families = (
        unary, binary, integer_division, choices, conversions, bitcasts, reductions, empty, views, indexing, products,
    )  # fmt: skip
    return [case for family in families for case in family()]


__all__ = ["DTYPES", "NAMES", "NEAR", "SPECIAL", "Case", "all_cases", "box", "pairs", "tensor"]

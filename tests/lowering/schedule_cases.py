"""Loop kernels as fusion makes them, each with inputs and a float64 reference, at any shape.

A size is a number or the name of a symbol, so that every kernel also exists with dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

Size = int | str
Sizes = Mapping[str, int]

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i8": torch.int8, "i1": torch.bool,
}  # fmt: skip

EPSILON = {torch.float64: 2.0**-50, torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


@dataclass(frozen=True)
class Case:
    """A function, what to call it with, and what it computes. `scale` multiplies the error allowed per element."""

    text: str
    inputs: tuple[Tensor, ...]
    reference: Callable[..., Sequence[Tensor]]
    symbols: Sizes = field(default_factory=dict)
    scale: float = 4.0

    def expected(self) -> list[Tensor]:
        wide = [value.double() if value.is_floating_point() else value for value in self.inputs]
        return list(self.reference(*wide))

    def check(self, results: Sequence[Tensor]) -> None:
        for actual, expected in zip(results, self.expected(), strict=True):
            assert actual.shape == expected.shape
            if actual.is_floating_point():
                self._check_floats(actual, expected)
            else:
                assert torch.equal(actual, expected.to(actual.dtype))

    def _check_floats(self, actual: Tensor, expected: Tensor) -> None:
        size = expected.abs().max().item() if expected.numel() else 0.0
        allowed = EPSILON[actual.dtype] * self.scale * (expected.abs() + 0.25 * size)
        error = (actual.double() - expected).abs()
        wrong = ~((error <= allowed) | (actual.isnan() & expected.isnan()))
        assert not wrong.any(), (
            f"{int(wrong.sum())} elements, up to {(error / allowed).max().item():.3g} times the error"
        )


class Text:
    """Builds the text of a function: its arguments, kernels and result."""

    def __init__(self, **sizes: int) -> None:
        self.symbols = sizes
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.results: list[tuple[str, str]] = []

    def input(self, name: str, dtype: str, *dims: Size, strides: Sequence[Size] | None = None) -> str:
        """Declares a function argument and gives its type."""
        type_ = tensor(dtype, *dims, strides=strides)
        self.arguments.append(f"%{name}_in: {type_}")
        return type_

    def kernel(self, name: str, outputs: Mapping[str, str], body: str, inits: Mapping[str, str] | None = None) -> None:
        """Adds a kernel; `outputs` gives the tensor type of each destination, which the result is called after."""
        started = inits or {}
        outs = ", ".join(
            f"%{key}_out : {memref_of(type_)}" + (f" = %{started[key]}_in" if key in started else "")
            for key, type_ in outputs.items()
        )
        types = ", ".join(outputs.values())
        names = ", ".join(f"%{key}" for key in outputs)
        self.body.append(f'{names} = loop.kernel "{name}" outs({outs}) -> {types} {{\n{body}\n}}')
        self.results += outputs.items()

    def __str__(self) -> str:
        types = ", ".join(type_ for _, type_ in self.results)
        names = ", ".join(f"%{name}" for name, _ in self.results)
        declared = [*self.arguments, *(f"%{name}: index" for name in self.symbols)]
        ranges = ", ".join(f"#stepwell.symbol<{name}, 0, ?, hint {size}>" for name, size in self.symbols.items())
        attributes = f" attributes {{stepwell.symbols = [{ranges}]}}" if self.symbols else ""
        signature = f"@main({', '.join(declared)}) -> ({types}){attributes}"
        body = "\n".join([*self.body, f"func.return {names} : {types}"])
        return f"func.func {signature} {{\n{body}\n}}"


def tensor(dtype: str, *dims: Size, strides: Sequence[Size] | None = None) -> str:
    """The type of a tensor, row-major unless strides are given."""
    shape = "".join(f"{'?' if isinstance(dim, str) else dim}x" for dim in dims)
    dynamic = any(isinstance(dim, str) for dim in dims)
    if strides is None and not dynamic:
        return f"tensor<{shape}{dtype}>"
    steps = strides if strides is not None else [product(dims[k + 1 :]) for k in range(len(dims))]
    layout = f"({', '.join(map(str, dims))}), ({', '.join(map(str, steps))})"
    return f"tensor<{shape}{dtype}, #stepwell.layout<{layout}>>"


def product(dims: Sequence[Size]) -> Size:
    constant = 1
    names: list[str] = []
    for dim in dims:
        if isinstance(dim, str):
            names.append(dim)
        else:
            constant *= dim
    return " * ".join([*names, *([str(constant)] if constant != 1 else [])]) if names else constant


def memref_of(type_: str) -> str:
    return "memref<" + type_.removeprefix("tensor<").split(", #")[0].rstrip(">") + ">"


class Numbers:
    """Sizes as symbols where they are dynamic: `rows` and `columns` are what the text says."""

    def __init__(self, dynamic: bool, **sizes: int) -> None:
        self.values = sizes
        self.names: dict[str, Size] = {
            name: f"s{k}" if dynamic else size for k, (name, size) in enumerate(sizes.items())
        }
        self.symbols = {f"s{k}": size for k, size in enumerate(sizes.values())} if dynamic else {}

    def __getitem__(self, name: str) -> Size:
        return self.names[name]


def read(name: str, tensor_name: str, access: str, type_: str) -> str:
    return f"%{name} = loop.read %{tensor_name}_in[{access}] : {type_}"


def random(*shape: int, dtype: str = "f32", seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    wanted = DTYPES[dtype]
    if wanted == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not wanted.is_floating_point:
        return torch.randint(-100, 100, shape, generator=generator).to(wanted)
    return (torch.randn(shape, generator=generator) * scale).to(wanted)


def wide(dtype: str) -> str:
    return "f32" if dtype in ("bf16", "f16") else dtype


def extend(dtype: str, source: str, result: str) -> str:
    """`%result` as the wide value of `%source`; wide types are read under the final name already."""
    return f"%{result} = arith.extf %{source} : {dtype} to f32" if dtype != wide(dtype) else ""


def read_wide(name: str, tensor_name: str, access: str, type_: str, dtype: str) -> str:
    """Reads an element as f32, or as f64 if it is one."""
    if dtype == wide(dtype):
        return read(name, tensor_name, access, type_)
    return f"{read(name + '_narrow', tensor_name, access, type_)}\n{extend(dtype, name + '_narrow', name)}"


def write_narrow(name: str, target: str, access: str, type_: str, dtype: str) -> str:
    """Writes a wide value rounded to the element."""
    if dtype == wide(dtype):
        return f"loop.write %{name}, %{target}[{access}] : {memref_of(type_)}"
    return (
        f"%{name}_rounded = arith.truncf %{name} : f32 to {dtype}\n"
        f"loop.write %{name}_rounded, %{target}[{access}] : {memref_of(type_)}"
    )


# -- pointwise ---------------------------------------------------------------------------------------


def chain(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, length: int = 30) -> Case:
    """`length` alternating additions, multiplications and extrema of two tensors."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    text.input("y", dtype, n["rows"], n["columns"])
    ops = ("addf", "mulf", "subf", "maximumf")
    steps = [f"%v{k + 1} = arith.{ops[k % 4]} %v{k}, %w : {dtype}" for k in range(length)]
    lines = "\n".join(steps)
    text.kernel(
        "chain",
        {"o": type_},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("v0", "x", "%i, %j", type_)}
          {read("w", "y", "%i, %j", type_)}
          {lines}
          loop.write %v{length}, %o_out[%i, %j] : {memref_of(type_)}
        }}""",
    )

    def reference(x: Tensor, y: Tensor) -> list[Tensor]:
        for k in range(length):
            x = (torch.add, torch.mul, torch.sub, torch.maximum)[k % 4](x, y)
        return [x]

    inputs = (random(rows, columns, dtype=dtype), random(rows, columns, dtype=dtype, seed=1, scale=0.5))
    return Case(str(text), inputs, reference, n.symbols, scale=64)


def gelu(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, tanh: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    erf = f"""
          %root = arith.constant 0.70710678118654752 : {w}
          %a = arith.mulf %v, %root : {w}
          %e = math.erf %a : {w}"""
    tanh_text = f"""
          %c = arith.constant 0.044715 : {w}
          %k = arith.constant 0.79788456080286536 : {w}
          %v2 = arith.mulf %v, %v : {w}
          %v3 = arith.mulf %v2, %v : {w}
          %t = arith.mulf %v3, %c : {w}
          %u = arith.addf %v, %t : {w}
          %a = arith.mulf %u, %k : {w}
          %e = math.tanh %a : {w}"""
    text.kernel(
        "gelu",
        {"o": type_},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read_wide("v", "x", "%i, %j", type_, dtype)}
          {tanh_text if tanh else erf}
          %one = arith.constant 1.0 : {w}
          %half = arith.constant 0.5 : {w}
          %s = arith.addf %e, %one : {w}
          %h = arith.mulf %v, %half : {w}
          %r = arith.mulf %h, %s : {w}
          {write_narrow("r", "o_out", "%i, %j", type_, dtype)}
        }}""",
    )

    def reference(x: Tensor) -> list[Tensor]:
        return [F.gelu(x, approximate="tanh" if tanh else "none")]

    return Case(str(text), (random(rows, columns, dtype=dtype),), reference, n.symbols)


def not_and(rows: int, columns: int, dtype: str = "i1", dynamic: bool = False) -> Case:
    """Bit operations on integers or bools: x & ~y."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    text.input("y", dtype, n["rows"], n["columns"])
    text.kernel(
        "not_and",
        {"o": type_},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("v", "x", "%i, %j", type_)}
          {read("w", "y", "%i, %j", type_)}
          %ones = arith.constant {"true" if dtype == "i1" else f"-1 : {dtype}"}
          %u = arith.xori %w, %ones : {dtype}
          %r = arith.andi %v, %u : {dtype}
          loop.write %r, %o_out[%i, %j] : {memref_of(type_)}
        }}""",
    )
    inputs = (random(rows, columns, dtype=dtype), random(rows, columns, dtype=dtype, seed=1))
    return Case(str(text), inputs, lambda x, y: [x & ~y], n.symbols)


# -- rows --------------------------------------------------------------------------------------------


def softmax(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    row = f"memref<{'?' if dynamic else columns}x{w}>"
    text.kernel(
        "softmax",
        {"o": type_},
        f"""loop.parallel (%i) to ({n["rows"]}) {{
          %row = loop.local ({n["columns"]}) : {row}
          %m = loop.reduce (%j) to ({n["columns"]}) [max] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            loop.yield %v : {w}
          }}
          %s = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            %d = arith.subf %v, %m : {w}
            %e = math.exp %d : {w}
            loop.write %e, %row[%j] : {row}
            loop.yield %e : {w}
          }}
          loop.parallel (%j) to ({n["columns"]}) {{
            %e = loop.read %row[%j] : {row}
            %q = arith.divf %e, %s : {w}
            {write_narrow("q", "o_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )
    return Case(str(text), (random(rows, columns, dtype=dtype),), lambda x: [torch.softmax(x, 1)], n.symbols)


def softmax_backward(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("g", dtype, n["rows"], n["columns"])
    text.input("y", dtype, n["rows"], n["columns"])
    text.kernel(
        "softmax_backward",
        {"o": type_},
        f"""loop.parallel (%i) to ({n["rows"]}) {{
          %s = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("y", "y", "%i, %j", type_, dtype)}
            %p = arith.mulf %g, %y : {w}
            loop.yield %p : {w}
          }}
          loop.parallel (%j) to ({n["columns"]}) {{
            {read_wide("h", "g", "%i, %j", type_, dtype)}
            {read_wide("z", "y", "%i, %j", type_, dtype)}
            %d = arith.subf %h, %s : {w}
            %q = arith.mulf %d, %z : {w}
            {write_narrow("q", "o_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )
    y = torch.softmax(random(rows, columns, seed=1), 1).to(DTYPES[dtype])
    inputs = (random(rows, columns, dtype=dtype), y)
    return Case(str(text), inputs, lambda g, y: [(g - (g * y).sum(1, keepdim=True)) * y], n.symbols)


def layer_norm(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """Residual addition and layer norm: the sum, the normalised rows, their means and reciprocal deviations."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    text.input("r", dtype, n["rows"], n["columns"])
    weight = text.input("weight", dtype, n["columns"])
    text.input("bias", dtype, n["columns"])
    column = tensor(w, n["rows"])
    text.kernel(
        "layer_norm",
        {"h": type_, "y": type_, "mean": column, "rstd": column},
        f"""
        %n_int = loop.index [{n["columns"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %eps = arith.constant 1.0e-5 : {w}
        loop.parallel (%i) to ({n["rows"]}) {{
          %row = loop.local ({n["columns"]}) : memref<{"?" if dynamic else columns}x{w}>
          %total = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            {read_wide("r", "r", "%i, %j", type_, dtype)}
            %h = arith.addf %v, %r : {w}
            {write_narrow("h", "h_out", "%i, %j", type_, dtype)}
            loop.write %h, %row[%j] : memref<{"?" if dynamic else columns}x{w}>
            loop.yield %h : {w}
          }}
          %mean = arith.divf %total, %n : {w}
          %squares = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            %h = loop.read %row[%j] : memref<{"?" if dynamic else columns}x{w}>
            %d = arith.subf %h, %mean : {w}
            %q = arith.mulf %d, %d : {w}
            loop.yield %q : {w}
          }}
          %var = arith.divf %squares, %n : {w}
          %shifted = arith.addf %var, %eps : {w}
          %rstd = math.rsqrt %shifted : {w}
          loop.write %mean, %mean_out[%i] : {memref_of(column)}
          loop.write %rstd, %rstd_out[%i] : {memref_of(column)}
          loop.parallel (%j) to ({n["columns"]}) {{
            %h = loop.read %row[%j] : memref<{"?" if dynamic else columns}x{w}>
            {read_wide("g", "weight", "%j", weight, dtype)}
            {read_wide("b", "bias", "%j", weight, dtype)}
            %d = arith.subf %h, %mean : {w}
            %x = arith.mulf %d, %rstd : {w}
            %y = arith.mulf %x, %g : {w}
            %z = arith.addf %y, %b : {w}
            {write_narrow("z", "y_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )

    def reference(x: Tensor, r: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
        h = x + r
        var, mean = torch.var_mean(h, 1, correction=0)
        y = F.layer_norm(h, (columns,), weight, bias, 1e-5) if columns else h
        return [h, y, mean, torch.rsqrt(var + 1e-5)]

    inputs = (
        random(rows, columns, dtype=dtype) + 1, random(rows, columns, dtype=dtype, seed=1),
        random(columns, dtype=dtype, seed=2), random(columns, dtype=dtype, seed=3),
    )  # fmt: skip
    return Case(str(text), inputs, reference, n.symbols, scale=8)


def layer_norm_backward(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """The gradient of the input of a layer norm."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("g", dtype, n["rows"], n["columns"])
    text.input("h", dtype, n["rows"], n["columns"])
    weight = text.input("weight", dtype, n["columns"])
    column = text.input("mean", w, n["rows"])
    text.input("rstd", w, n["rows"])
    text.kernel(
        "layer_norm_backward",
        {"o": type_},
        f"""
        %n_int = loop.index [{n["columns"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        loop.parallel (%i) to ({n["rows"]}) {{
          {read("mean", "mean", "%i", column)}
          {read("rstd", "rstd", "%i", column)}
          %a, %b = loop.reduce (%j) to ({n["columns"]}) [add, add] -> {w}, {w} {{
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("h", "h", "%i, %j", type_, dtype)}
            {read_wide("c", "weight", "%j", weight, dtype)}
            %gc = arith.mulf %g, %c : {w}
            %d = arith.subf %h, %mean : {w}
            %x = arith.mulf %d, %rstd : {w}
            %p = arith.mulf %gc, %x : {w}
            loop.yield %p, %gc : {w}, {w}
          }}
          %c1 = arith.divf %a, %n : {w}
          %c2 = arith.divf %b, %n : {w}
          loop.parallel (%j) to ({n["columns"]}) {{
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("h", "h", "%i, %j", type_, dtype)}
            {read_wide("c", "weight", "%j", weight, dtype)}
            %gc = arith.mulf %g, %c : {w}
            %d = arith.subf %h, %mean : {w}
            %x = arith.mulf %d, %rstd : {w}
            %p = arith.mulf %x, %c1 : {w}
            %q = arith.subf %gc, %p : {w}
            %r = arith.subf %q, %c2 : {w}
            %s = arith.mulf %r, %rstd : {w}
            {write_narrow("s", "o_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )

    def reference(g: Tensor, h: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor) -> list[Tensor]:
        x, gc = (h - mean[:, None]) * rstd[:, None], g * weight
        return [(gc - x * (gc * x).mean(1, keepdim=True) - gc.mean(1, keepdim=True)) * rstd[:, None]]

    h = random(rows, columns, dtype=dtype, seed=1)
    var, mean = torch.var_mean(h.to(DTYPES[w]), 1, correction=0) if columns else (torch.zeros(rows),) * 2
    inputs = (
        random(rows, columns, dtype=dtype),
        h,
        random(columns, dtype=dtype, seed=2),
        mean,
        torch.rsqrt(var + 1e-5),
    )
    return Case(str(text), inputs, reference, n.symbols, scale=8)


def affine_gradients(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """The gradients of weight and bias of a layer norm: two column sums."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("g", dtype, n["rows"], n["columns"])
    text.input("h", dtype, n["rows"], n["columns"])
    column = text.input("mean", w, n["rows"])
    text.input("rstd", w, n["rows"])
    result = tensor(dtype, n["columns"])
    text.kernel(
        "affine_gradients",
        {"dw": result, "db": result},
        f"""loop.parallel (%j) to ({n["columns"]}) {{
          %a, %b = loop.reduce (%i) to ({n["rows"]}) [add, add] -> {w}, {w} {{
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("h", "h", "%i, %j", type_, dtype)}
            {read("mean", "mean", "%i", column)}
            {read("rstd", "rstd", "%i", column)}
            %d = arith.subf %h, %mean : {w}
            %x = arith.mulf %d, %rstd : {w}
            %p = arith.mulf %g, %x : {w}
            loop.yield %p, %g : {w}, {w}
          }}
          {write_narrow("a", "dw_out", "%j", result, dtype)}
          {write_narrow("b", "db_out", "%j", result, dtype)}
        }}""",
    )

    def reference(g: Tensor, h: Tensor, mean: Tensor, rstd: Tensor) -> list[Tensor]:
        return [(g * (h - mean[:, None]) * rstd[:, None]).sum(0), g.sum(0)]

    inputs = (
        random(rows, columns, dtype=dtype), random(rows, columns, dtype=dtype, seed=1),
        random(rows, dtype=w, seed=2), random(rows, dtype=w, seed=3),
    )  # fmt: skip
    return Case(str(text), inputs, reference, n.symbols, scale=16)


def rows_and_columns(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """Rows times their sums; as they pass by, the sums of those columns and the columns' greatest positive inputs."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    result = tensor(dtype, n["columns"])
    column = f"memref<{'?' if dynamic else columns}x{w}>"
    lowest = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}[w]
    text.kernel(
        "rows_and_columns",
        {"o": type_, "sums": result, "tops": result},
        f"""
        %sum = loop.local ({n["columns"]}) : {column}
        %top = loop.local ({n["columns"]}) : {column}
        %zero = arith.constant 0.0 : {w}
        %low = arith.constant {lowest} : {w}
        loop.parallel (%j) to ({n["columns"]}) {{
          loop.write %zero, %sum[%j] : {column}
          loop.write %low, %top[%j] : {column}
        }}
        loop.parallel (%i) to ({n["rows"]}) {{
          %s = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            loop.yield %v : {w}
          }}
          loop.parallel (%j) to ({n["columns"]}) {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            %p = arith.mulf %v, %s : {w}
            {write_narrow("p", "o_out", "%i, %j", type_, dtype)}
            loop.write %p, %sum[%j] add : {column}
            loop.write %v, %top[%j] max : {column}
          }}
        }}
        loop.parallel (%j) to ({n["columns"]}) {{
          %a = loop.read %sum[%j] : {column}
          %t = loop.read %top[%j] : {column}
          %b = arith.maximumf %t, %zero : {w}
          {write_narrow("a", "sums_out", "%j", result, dtype)}
          {write_narrow("b", "tops_out", "%j", result, dtype)}
        }}""",
    )

    def reference(x: Tensor) -> list[Tensor]:
        y = x * x.sum(1, keepdim=True)
        return [y, y.sum(0), torch.cat([x, x.new_zeros(1, columns)]).amax(0)]

    return Case(str(text), (random(rows, columns, dtype=dtype),), reference, n.symbols, scale=64)


def points_and_columns(rows: int, columns: int, dtype: str = "i64", dynamic: bool = False) -> Case:
    """Negated elements and, as they are made, the sums of their columns."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    result = tensor(dtype, n["columns"])
    column = f"memref<{'?' if dynamic else columns}x{dtype}>"
    text.kernel(
        "points_and_columns",
        {"o": type_, "sums": result},
        f"""
        %sum = loop.local ({n["columns"]}) : {column}
        %zero = arith.constant 0 : {dtype}
        loop.parallel (%j) to ({n["columns"]}) {{
          loop.write %zero, %sum[%j] : {column}
        }}
        loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("v", "x", "%i, %j", type_)}
          %m = arith.subi %zero, %v : {dtype}
          loop.write %m, %o_out[%i, %j] : {memref_of(type_)}
          loop.write %m, %sum[%j] add : {column}
        }}
        loop.parallel (%j) to ({n["columns"]}) {{
          %a = loop.read %sum[%j] : {column}
          loop.write %a, %sums_out[%j] : {memref_of(result)}
        }}""",
    )
    inputs = (random(rows, columns, dtype=dtype),)
    return Case(str(text), inputs, lambda x: [-x, (-x).sum(0)], n.symbols)


def rms_norm(rows: int, columns: int, dtype: str = "bf16", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    weight = text.input("weight", dtype, n["columns"])
    text.kernel(
        "rms_norm",
        {"o": type_},
        f"""
        %n_int = loop.index [{n["columns"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %eps = arith.constant 1.0e-5 : {w}
        loop.parallel (%i) to ({n["rows"]}) {{
          %s = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            %q = arith.mulf %v, %v : {w}
            loop.yield %q : {w}
          }}
          %mean = arith.divf %s, %n : {w}
          %shifted = arith.addf %mean, %eps : {w}
          %scale = math.rsqrt %shifted : {w}
          loop.parallel (%j) to ({n["columns"]}) {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            {read_wide("c", "weight", "%j", weight, dtype)}
            %a = arith.mulf %v, %scale : {w}
            %b = arith.mulf %a, %c : {w}
            {write_narrow("b", "o_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )

    def reference(x: Tensor, weight: Tensor) -> list[Tensor]:
        return [x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * weight]

    inputs = (random(rows, columns, dtype=dtype), random(columns, dtype=dtype, seed=1))
    return Case(str(text), inputs, reference, n.symbols)


def rms_norm_backward(rows: int, columns: int, dtype: str = "bf16", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("g", dtype, n["rows"], n["columns"])
    text.input("x", dtype, n["rows"], n["columns"])
    weight = text.input("weight", dtype, n["columns"])
    text.kernel(
        "rms_norm_backward",
        {"o": type_},
        f"""
        %n_int = loop.index [{n["columns"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %eps = arith.constant 1.0e-5 : {w}
        loop.parallel (%i) to ({n["rows"]}) {{
          %s, %t = loop.reduce (%j) to ({n["columns"]}) [add, add] -> {w}, {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("c", "weight", "%j", weight, dtype)}
            %q = arith.mulf %v, %v : {w}
            %gc = arith.mulf %g, %c : {w}
            %p = arith.mulf %gc, %v : {w}
            loop.yield %q, %p : {w}, {w}
          }}
          %mean = arith.divf %s, %n : {w}
          %dot = arith.divf %t, %n : {w}
          %shifted = arith.addf %mean, %eps : {w}
          %scale = math.rsqrt %shifted : {w}
          %square = arith.mulf %scale, %scale : {w}
          %factor = arith.mulf %square, %dot : {w}
          loop.parallel (%j) to ({n["columns"]}) {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            {read_wide("g", "g", "%i, %j", type_, dtype)}
            {read_wide("c", "weight", "%j", weight, dtype)}
            %gc = arith.mulf %g, %c : {w}
            %p = arith.mulf %v, %factor : {w}
            %d = arith.subf %gc, %p : {w}
            %o = arith.mulf %d, %scale : {w}
            {write_narrow("o", "o_out", "%i, %j", type_, dtype)}
          }}
        }}""",
    )

    def reference(g: Tensor, x: Tensor, weight: Tensor) -> list[Tensor]:
        scale, gc = torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5), g * weight
        return [(gc - x * scale * scale * (gc * x).mean(1, keepdim=True)) * scale]

    inputs = (
        random(rows, columns, dtype=dtype), random(rows, columns, dtype=dtype, seed=1),
        random(columns, dtype=dtype, seed=2),
    )  # fmt: skip
    return Case(str(text), inputs, reference, n.symbols, scale=8)


# -- cross entropy -----------------------------------------------------------------------------------


def cross_entropy(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """The mean loss over rows, and each row's logarithm of the sum of exponentials."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    target = text.input("t", "i64", n["rows"])
    column, scalar = tensor(w, n["rows"]), tensor(w)
    text.kernel(
        "cross_entropy",
        {"loss": scalar, "lse": column},
        f"""
        %n_int = loop.index [{n["rows"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %classes = loop.index [{n["columns"]}] : i64
        %zero = arith.constant 0 : i64
        %total = loop.reduce (%i) to ({n["rows"]}) [add] -> {w} {{
          %m = loop.reduce (%j) to ({n["columns"]}) [max] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            loop.yield %v : {w}
          }}
          %s = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            %d = arith.subf %v, %m : {w}
            %e = math.exp %d : {w}
            loop.yield %e : {w}
          }}
          %log = math.log %s : {w}
          %lse = arith.addf %log, %m : {w}
          loop.write %lse, %lse_out[%i] : {memref_of(column)}
          {read("t", "t", "%i", target)}
          %low = arith.cmpi sge, %t, %zero : i64
          %high = arith.cmpi slt, %t, %classes : i64
          %inside = arith.andi %low, %high : i1
          loop.assert %inside, %t, "IndexError", "Target {{}} is out of bounds."
          %safe = arith.select %inside, %t, %zero : i64
          %k = arith.index_cast %safe : i64 to index
          {read_wide("picked", "x", "%i, %k", type_, dtype)}
          %loss = arith.subf %lse, %picked : {w}
          loop.yield %loss : {w}
        }}
        %mean = arith.divf %total, %n : {w}
        loop.write %mean, %loss_out[] : {memref_of(scalar)}""",
    )

    def reference(x: Tensor, t: Tensor) -> list[Tensor]:
        lse = torch.logsumexp(x, 1)
        return [(lse - x.gather(1, t[:, None])[:, 0]).mean(), lse]

    targets = torch.randint(0, columns, (rows,), generator=torch.Generator().manual_seed(5))
    return Case(str(text), (random(rows, columns, dtype=dtype), targets), reference, n.symbols, scale=8)


def cross_entropy_backward(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    target = text.input("t", "i64", n["rows"])
    column = text.input("lse", w, n["rows"])
    scalar = text.input("g", w)
    text.kernel(
        "cross_entropy_backward",
        {"o": type_},
        f"""
        %n_int = loop.index [{n["rows"]}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %one = arith.constant 1.0 : {w}
        %none = arith.constant 0.0 : {w}
        loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read_wide("v", "x", "%i, %j", type_, dtype)}
          {read("lse", "lse", "%i", column)}
          {read("t", "t", "%i", target)}
          {read("g", "g", "", scalar)}
          %share = arith.divf %g, %n : {w}
          %d = arith.subf %v, %lse : {w}
          %p = math.exp %d : {w}
          %number = loop.index [%j] : i64
          %hit = arith.cmpi eq, %number, %t : i64
          %off = arith.select %hit, %one, %none : {w}
          %q = arith.subf %p, %off : {w}
          %r = arith.mulf %q, %share : {w}
          {write_narrow("r", "o_out", "%i, %j", type_, dtype)}
        }}""",
    )

    def reference(x: Tensor, t: Tensor, lse: Tensor, g: Tensor) -> list[Tensor]:
        return [(torch.exp(x - lse[:, None]) - F.one_hot(t, columns)) * g / rows]

    x = random(rows, columns, dtype=dtype)
    targets = torch.randint(0, columns, (rows,), generator=torch.Generator().manual_seed(5))
    lse = torch.logsumexp(x.to(DTYPES[w]), 1)
    return Case(str(text), (x, targets, lse, torch.tensor(3.0, dtype=DTYPES[w])), reference, n.symbols, scale=16)


# -- reductions --------------------------------------------------------------------------------------


def total(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """The mean of all elements."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    scalar = tensor(dtype)
    text.kernel(
        "mean",
        {"o": scalar},
        f"""
        %n_int = loop.index [{product((n["rows"], n["columns"]))}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %s = loop.reduce (%i, %j) to ({n["rows"]}, {n["columns"]}) [add] -> {w} {{
          {read_wide("v", "x", "%i, %j", type_, dtype)}
          loop.yield %v : {w}
        }}
        %mean = arith.divf %s, %n : {w}
        {write_narrow("mean", "o_out", "", scalar, dtype)}""",
    )
    x = random(rows, columns, dtype=dtype) + 1
    return Case(str(text), (x,), lambda x: [x.mean()], n.symbols)


def sums(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, along: int = 1) -> Case:
    """Sums of rows (`along` 1) or columns (0)."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    (outer, a), (inner, b) = (("rows", "i"), ("columns", "j")) if along else (("columns", "j"), ("rows", "i"))
    result = tensor(dtype, n[outer])
    reader = read_wide("v", "x", "%i, %j", type_, dtype) if dtype[0] != "i" else read("v", "x", "%i, %j", type_)
    text.kernel(
        "sums",
        {"o": result},
        f"""loop.parallel (%{a}) to ({n[outer]}) {{
          %s = loop.reduce (%{b}) to ({n[inner]}) [add] -> {w} {{
            {reader}
            loop.yield %v : {w}
          }}
          {write_narrow("s", "o_out", f"%{a}", result, dtype)}
        }}""",
    )

    def reference(x: Tensor) -> list[Tensor]:
        return [x.any(along) if dtype == "i1" else x.sum(along)]

    x = random(rows, columns, dtype=dtype) if dtype == "i1" else random(rows, columns, dtype=dtype) + 1
    return Case(str(text), (x,), reference, n.symbols)


def argmax(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, along: int = 1) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    (outer, a), (inner, b) = (("rows", "i"), ("columns", "j")) if along else (("columns", "j"), ("rows", "i"))
    result = tensor("i64", n[outer])
    text.kernel(
        "argmax",
        {"o": result},
        f"""loop.parallel (%{a}) to ({n[outer]}) {{
          %m, %k = loop.reduce (%{b}) to ({n[inner]}) [argmax] -> {dtype}, i64 {{
            {read("v", "x", "%i, %j", type_)}
            %number = loop.index [%{b}] : i64
            loop.yield %v, %number : {dtype}, i64
          }}
          loop.write %k, %o_out[%{a}] : {memref_of(result)}
        }}""",
    )
    return Case(str(text), (random(rows, columns, dtype=dtype),), lambda x: [x.argmax(along)], n.symbols)


def batch_norm_statistics(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """Means and variances per channel of images of `columns` pixels by 4, `rows` of them, with 16 channels."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    channels = 16
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], channels, n["columns"], 4)
    result = tensor(w, channels)
    text.kernel(
        "batch_norm_statistics",
        {"mean": result, "var": result},
        f"""
        %n_int = loop.index [{product((n["rows"], n["columns"], 4))}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        loop.parallel (%c) to ({channels}) {{
          %s = loop.reduce (%b, %i, %j) to ({n["rows"]}, {n["columns"]}, 4) [add] -> {w} {{
            {read_wide("v", "x", "%b, %c, %i, %j", type_, dtype)}
            loop.yield %v : {w}
          }}
          %mean = arith.divf %s, %n : {w}
          %q = loop.reduce (%b, %i, %j) to ({n["rows"]}, {n["columns"]}, 4) [add] -> {w} {{
            {read_wide("v", "x", "%b, %c, %i, %j", type_, dtype)}
            %d = arith.subf %v, %mean : {w}
            %p = arith.mulf %d, %d : {w}
            loop.yield %p : {w}
          }}
          %var = arith.divf %q, %n : {w}
          loop.write %mean, %mean_out[%c] : {memref_of(result)}
          loop.write %var, %var_out[%c] : {memref_of(result)}
        }}""",
    )

    def reference(x: Tensor) -> list[Tensor]:
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        return [mean, var]

    return Case(str(text), (random(rows, channels, columns, 4, dtype=dtype) + 0.5,), reference, n.symbols, scale=8)


def max_pool(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """The greatest of each 2 by 2 window of 3 images."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    images = 3
    type_ = text.input("x", dtype, images, product((n["rows"], 2)), product((n["columns"], 2)))
    result = tensor(dtype, images, n["rows"], n["columns"])
    text.kernel(
        "max_pool",
        {"o": result},
        f"""loop.parallel (%b, %i, %j) to ({images}, {n["rows"]}, {n["columns"]}) {{
          %m = loop.reduce (%k, %l) to (2, 2) [max] -> {dtype} {{
            {read("v", "x", "%b, %i * 2 + %k, %j * 2 + %l", type_)}
            loop.yield %v : {dtype}
          }}
          loop.write %m, %o_out[%b, %i, %j] : {memref_of(result)}
        }}""",
    )
    x = random(images, 2 * rows, 2 * columns, dtype=dtype)
    return Case(str(text), (x,), lambda x: [F.max_pool2d(x, 2) if x.numel() else x[:, :rows, :columns]], n.symbols)


# -- movement ----------------------------------------------------------------------------------------


def transpose_add(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    other = text.input("y", dtype, n["columns"], n["rows"])
    text.kernel(
        "transpose_add",
        {"o": type_},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("v", "x", "%i, %j", type_)}
          {read("w", "y", "%j, %i", other)}
          %r = arith.addf %v, %w : {dtype}
          loop.write %r, %o_out[%i, %j] : {memref_of(type_)}
        }}""",
    )
    inputs = (random(rows, columns, dtype=dtype), random(columns, rows, dtype=dtype, seed=1))
    return Case(str(text), inputs, lambda x, y: [x + y.t()], n.symbols)


def permute(
    rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, order: Sequence[int] = (0, 2, 1, 3)
) -> Case:
    """A copy of a (4, rows, 8, columns) tensor with its dims in another order."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    dims = (4, n["rows"], 8, n["columns"])
    type_ = text.input("x", dtype, *dims)
    result = tensor(dtype, *[dims[k] for k in order])
    names = [f"%i{k}" for k in range(4)]
    source = ", ".join(names[order.index(k)] for k in range(4))
    text.kernel(
        "permute",
        {"o": result},
        f"""loop.parallel ({", ".join(names)}) to ({", ".join(str(dims[k]) for k in order)}) {{
          {read("v", "x", source, type_)}
          loop.write %v, %o_out[{", ".join(names)}] : {memref_of(result)}
        }}""",
    )
    return Case(str(text), (random(4, rows, 8, columns, dtype=dtype),), lambda x: [x.permute(*order)], n.symbols)


def flip(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    text.kernel(
        "flip",
        {"o": type_},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("v", "x", f"%i, -%j + {n['columns']} - 1", type_)}
          loop.write %v, %o_out[%i, %j] : {memref_of(type_)}
        }}""",
    )
    return Case(str(text), (random(rows, columns, dtype=dtype),), lambda x: [x.flip(1)], n.symbols)


def concatenate(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """Two tensors side by side, the second one three columns wider, by guarded reads."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    c = n["columns"]
    type_ = text.input("x", dtype, n["rows"], c)
    other = text.input(
        "y",
        dtype,
        n["rows"],
        f"{c} + 3" if dynamic else columns + 3,
        strides=(f"{c} + 3" if dynamic else columns + 3, 1),
    )
    result = tensor(
        dtype,
        n["rows"],
        f"{c} * 2 + 3" if dynamic else 2 * columns + 3,
        strides=(f"{c} * 2 + 3" if dynamic else 2 * columns + 3, 1),
    )
    text.kernel(
        "concatenate",
        {"o": result},
        f"""
        %zero = arith.constant 0.0 : {dtype}
        %width = loop.index [{c}] : i64
        loop.parallel (%i, %j) to ({n["rows"]}, {c} * 2 + 3) {{
          %number = loop.index [%j] : i64
          %first = arith.cmpi slt, %number, %width : i64
          %second = arith.cmpi sge, %number, %width : i64
          %v = loop.read %x_in[%i, %j] if %first else %zero : {type_}
          %w = loop.read %y_in[%i, %j - {c}] if %second else %zero : {other}
          %r = arith.select %first, %v, %w : {dtype}
          loop.write %r, %o_out[%i, %j] : {memref_of(result)}
        }}""",
    )
    inputs = (random(rows, columns, dtype=dtype), random(rows, columns + 3, dtype=dtype, seed=1))
    return Case(str(text), inputs, lambda x, y: [torch.cat([x, y], 1)], n.symbols)


def pad(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """A border of one row and two columns around a tensor."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    high, width = (f"{n['rows']} + 2", f"{n['columns']} + 4") if dynamic else (rows + 2, columns + 4)
    result = tensor(dtype, high, width, strides=(width, 1))
    text.kernel(
        "pad",
        {"o": result},
        f"""
        %fill = arith.constant -1.0 : {dtype}
        %none = arith.constant 0 : i64
        %rows = loop.index [{n["rows"]}] : i64
        %columns = loop.index [{n["columns"]}] : i64
        loop.parallel (%i, %j) to ({high}, {width}) {{
          %a = loop.index [%i - 1] : i64
          %b = loop.index [%j - 2] : i64
          %c0 = arith.cmpi sge, %a, %none : i64
          %c1 = arith.cmpi slt, %a, %rows : i64
          %c2 = arith.cmpi sge, %b, %none : i64
          %c3 = arith.cmpi slt, %b, %columns : i64
          %d0 = arith.andi %c0, %c1 : i1
          %d1 = arith.andi %c2, %c3 : i1
          %in = arith.andi %d0, %d1 : i1
          %v = loop.read %x_in[%i - 1, %j - 2] if %in else %fill : {type_}
          loop.write %v, %o_out[%i, %j] : {memref_of(result)}
        }}""",
    )
    x = random(rows, columns, dtype=dtype)
    return Case(str(text), (x,), lambda x: [F.pad(x, (2, 2, 1, 1), value=-1.0)], n.symbols)


def embedding(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, entries: int = 97) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    ids = text.input("ids", "i64", n["rows"])
    table = text.input("table", dtype, entries, n["columns"])
    result = tensor(dtype, n["rows"], n["columns"])
    text.kernel(
        "embedding",
        {"o": result},
        f"""
        %zero = arith.constant 0 : i64
        %limit = arith.constant {entries} : i64
        loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("id", "ids", "%i", ids)}
          %low = arith.cmpi sge, %id, %zero : i64
          %high = arith.cmpi slt, %id, %limit : i64
          %inside = arith.andi %low, %high : i1
          loop.assert %inside, %id, "IndexError", "index {{}} is out of range"
          %safe = arith.select %inside, %id, %zero : i64
          %k = arith.index_cast %safe : i64 to index
          {read("v", "table", "%k, %j", table)}
          loop.write %v, %o_out[%i, %j] : {memref_of(result)}
        }}""",
    )
    ids_value = torch.randint(0, entries, (rows,), generator=torch.Generator().manual_seed(5))
    inputs = (ids_value, random(entries, columns, dtype=dtype))
    return Case(str(text), inputs, lambda ids, table: [table[ids]], n.symbols)


def embedding_backward(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, entries: int = 97) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    ids = text.input("ids", "i64", n["rows"])
    gradient = text.input("g", dtype, n["rows"], n["columns"])
    result = text.input("start", dtype, entries, n["columns"])
    text.kernel(
        "embedding_backward",
        {"o": result},
        f"""loop.parallel (%i, %j) to ({n["rows"]}, {n["columns"]}) {{
          {read("id", "ids", "%i", ids)}
          %k = arith.index_cast %id : i64 to index
          {read("v", "g", "%i, %j", gradient)}
          loop.write %v, %o_out[%k, %j] add : {memref_of(result)}
        }}""",
        {"o": "start"},
    )

    def reference(ids: Tensor, g: Tensor, start: Tensor) -> list[Tensor]:
        return [start.index_add(0, ids, g)]

    ids_value = torch.randint(0, entries, (rows,), generator=torch.Generator().manual_seed(5))
    zeros = torch.zeros(entries, columns, dtype=DTYPES[dtype])
    return Case(str(text), (ids_value, random(rows, columns, dtype=dtype), zeros), reference, n.symbols, scale=64)


def cumsum(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False, along: int = 1) -> Case:
    n = Numbers(dynamic, rows=rows, columns=columns)
    text = Text(**n.symbols)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    (outer, a), (inner, b) = (("rows", "i"), ("columns", "j")) if along else (("columns", "j"), ("rows", "i"))
    text.kernel(
        "cumsum",
        {"o": type_},
        f"""
        %zero = arith.constant 0.0 : {dtype}
        loop.parallel (%{a}) to ({n[outer]}) {{
          %last = loop.for (%{b}) to ({n[inner]}) carry (%sum = %zero : {dtype}) {{
            {read("v", "x", "%i, %j", type_)}
            %next = arith.addf %sum, %v : {dtype}
            loop.write %next, %o_out[%i, %j] : {memref_of(type_)}
            loop.yield %next : {dtype}
          }}
        }}""",
    )
    return Case(str(text), (random(rows, columns, dtype=dtype),), lambda x: [x.cumsum(along)], n.symbols, scale=64)


def centered(rows: int, columns: int, dtype: str = "f32", dynamic: bool = False) -> Case:
    """A kernel with dependent nests: every element less the mean of all, and the sums of the squares of each row."""
    n = Numbers(dynamic, rows=rows, columns=columns)
    text, w = Text(**n.symbols), wide(dtype)
    type_ = text.input("x", dtype, n["rows"], n["columns"])
    result = tensor(w, n["rows"])
    text.kernel(
        "centered",
        {"o": type_, "sums": result},
        f"""
        %n_int = loop.index [{product((n["rows"], n["columns"]))}] : i64
        %n = arith.sitofp %n_int : i64 to {w}
        %s = loop.reduce (%i, %j) to ({n["rows"]}, {n["columns"]}) [add] -> {w} {{
          {read_wide("v", "x", "%i, %j", type_, dtype)}
          loop.yield %v : {w}
        }}
        %mean = arith.divf %s, %n : {w}
        loop.parallel (%i) to ({n["rows"]}) {{
          %t = loop.reduce (%j) to ({n["columns"]}) [add] -> {w} {{
            {read_wide("v", "x", "%i, %j", type_, dtype)}
            %d = arith.subf %v, %mean : {w}
            {write_narrow("d", "o_out", "%i, %j", type_, dtype)}
            %p = arith.mulf %d, %d : {w}
            loop.yield %p : {w}
          }}
          loop.write %t, %sums_out[%i] : {memref_of(result)}
        }}""",
    )

    def reference(x: Tensor) -> list[Tensor]:
        y = x - x.mean()
        return [y, (y * y).sum(1)]

    return Case(str(text), (random(rows, columns, dtype=dtype),), reference, n.symbols, scale=64)

"""Writes functions of unfused loop kernels, one per graph op, as `convert-graph-to-loop` leaves them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

Size = int | str
"""A number, or a symbol such as `s0`."""


@dataclass(frozen=True)
class Tensor:
    """A value of the function, read at `indices` (expressions over i0, i1, …); by default at all of them in order."""

    name: str
    sizes: tuple[Size, ...]
    dtype: str
    indices: tuple[str, ...] | None = None

    def at(self, *indices: str) -> Tensor:
        return Tensor(self.name, self.sizes, self.dtype, indices)

    @property
    def type(self) -> str:
        if all(isinstance(size, int) for size in self.sizes):
            return f"tensor<{''.join(f'{size}x' for size in self.sizes)}{self.dtype}>"
        strides = [" * ".join(map(str, self.sizes[k + 1 :])) or "1" for k in range(len(self.sizes))]
        layout = f"#stepwell.layout<({', '.join(map(str, self.sizes))}), ({', '.join(strides)})>"
        return f"tensor<{self.shape}{self.dtype}, {layout}>"

    @property
    def buffer_type(self) -> str:
        return f"memref<{self.shape}{self.dtype}>"

    @property
    def shape(self) -> str:
        return "".join(f"{size if isinstance(size, int) else '?'}x" for size in self.sizes)


def _indices(text: str) -> str:
    return re.sub(r"\bi(\d+)\b", r"%i\1", text)


RESULT_DTYPE = {"arith.extf": "f32", "arith.truncf": "bf16"}


@dataclass
class Program:
    """The text of one function."""

    symbols: dict[str, int] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    counter: int = 0

    def input(self, *sizes: Size, dtype: str = "f32") -> Tensor:
        tensor = Tensor(f"x{len(self.inputs)}", sizes, dtype)
        self.inputs.append(tensor)
        return tensor

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    # -- kernels ---------------------------------------------------------------------------------

    def pointwise(self, op: str, *operands: Tensor | float, sizes: tuple[Size, ...] | None = None) -> Tensor:
        """One scalar op for each point; tensors of fewer dims than the space need explicit indices."""
        tensors = [operand for operand in operands if isinstance(operand, Tensor)]
        space = sizes or max((tensor.sizes for tensor in tensors), key=len)
        dtype = RESULT_DTYPE.get(op, tensors[-1].dtype)
        result = Tensor(self.fresh("t"), space, dtype)
        names: list[str] = []
        body: list[str] = []
        for operand in operands:
            names.append(
                self.read(operand, body, len(space))
                if isinstance(operand, Tensor)
                else self.constant(operand, dtype, body)
            )
        body.append(self.scalar(op, names, tensors, result))
        where = ", ".join(f"%i{k}" for k in range(len(space)))
        body.append(f"loop.write %v, %o[{where}] : {result.buffer_type}")
        self.kernel(op, result, [self.nest("parallel", range(len(space)), space), *body, "}"])
        return result

    def scalar(self, op: str, names: Sequence[str], tensors: Sequence[Tensor], result: Tensor) -> str:
        source = tensors[-1].dtype
        if op in ("arith.extf", "arith.truncf"):
            return f"%v = {op} {names[0]} : {source} to {result.dtype}"
        return f"%v = {op} {', '.join(names)} : {source}"

    def reduce(self, combiner: str, operand: Tensor, dims: Sequence[int] = (-1,), scale: float | None = None) -> Tensor:
        """Reduces dims of a tensor; `scale` divides the result, as a mean does."""
        rank = len(operand.indices or operand.sizes)
        reduced = [dim % rank for dim in dims]
        kept = [k for k in range(rank) if k not in reduced]
        result = Tensor(self.fresh("t"), tuple(operand.sizes[k] for k in kept), operand.dtype)
        inner: list[str] = []
        name = self.read(operand, inner, rank)
        nest = self.nest("reduce", reduced, [operand.sizes[k] for k in reduced])
        lines = [
            f"%r = {nest[:-1]}[{combiner}] -> {operand.dtype} {{",
            *inner,
            f"loop.yield {name} : {operand.dtype}",
            "}",
        ]
        value = "%r"
        if scale is not None:
            lines.append(f"%n = arith.constant {scale:.9e} : {operand.dtype}")
            lines.append(f"%d = arith.divf %r, %n : {operand.dtype}")
            value = "%d"
        lines.append(f"loop.write {value}, %o[{', '.join(f'%i{k}' for k in kept)}] : {result.buffer_type}")
        if kept:
            lines = [self.nest("parallel", kept, result.sizes), *lines, "}"]
        self.kernel(f"reduce.{combiner}", result, lines)
        return result

    def gather_rows(self, source: Tensor, index: Tensor) -> Tensor:
        """`source[i, index[i]]` with its bounds check, as a loss picks the target's entry."""
        result = Tensor(self.fresh("t"), index.sizes, source.dtype)
        lines = [
            self.nest("parallel", [0], result.sizes),
            f"%k = loop.read %{index.name}[%i0] : {index.type}",
            f"%limit = arith.constant {source.sizes[1]} : i64",
            "%in = arith.cmpi ult, %k, %limit : i64",
            'loop.assert %in, %k, "IndexError", "target {} is out of bounds"',
            "%p = arith.index_cast %k : i64 to index",
            f"%z = arith.constant 0.0 : {source.dtype}",
            f"%g = loop.read %{source.name}[%i0, %p] if %in else %z : {source.type}",
            f"loop.write %g, %o[%i0] : {result.buffer_type}",
            "}",
        ]
        self.kernel("gather.rows", result, lines)
        return result

    # -- text ------------------------------------------------------------------------------------

    def nest(self, kind: str, dims: Sequence[int], sizes: Sequence[Size]) -> str:
        return f"loop.{kind} ({', '.join(f'%i{k}' for k in dims)}) to ({', '.join(map(str, sizes))}) {{"

    def read(self, tensor: Tensor, body: list[str], rank: int) -> str:
        indices = tuple(f"i{k}" for k in range(rank)) if tensor.indices is None else tensor.indices
        name = f"%{self.fresh('a')}"
        body.append(f"{name} = loop.read %{tensor.name}[{_indices(', '.join(indices))}] : {tensor.type}")
        return name

    def constant(self, value: float, dtype: str, body: list[str]) -> str:
        name = f"%{self.fresh('c')}"
        body.append(f"{name} = arith.constant {value:.9e} : {dtype}")
        return name

    def kernel(self, op: str, result: Tensor, lines: Sequence[str]) -> None:
        name = op.split(".")[1].split(" ")[0]
        head = f'%{result.name} = loop.kernel "{name}" outs(%o : {result.buffer_type}) -> {result.type} {{'
        self.lines += [head, *lines, "}"]

    def extern(self, tensor: Tensor) -> Tensor:
        """An eager op between kernels."""
        result = Tensor(self.fresh("t"), tensor.sizes, tensor.dtype)
        call = f'graph.extern "aten.sort.stable"(%{tensor.name}) : ({tensor.type}) -> ({tensor.type})'
        self.lines.append(f"%{result.name} = {call}")
        return result

    def text(self, *results: Tensor) -> str:
        arguments = [*(f"%{name}: index" for name in self.symbols), *(f"%{x.name}: {x.type}" for x in self.inputs)]
        types = ", ".join(result.type for result in results)
        ranges = ", ".join(f"#stepwell.symbol<{name}, 2, ?, hint {hint}>" for name, hint in self.symbols.items())
        attributes = f" attributes {{stepwell.symbols = [{ranges}]}}" if ranges else ""
        values = ", ".join(f"%{result.name}" for result in results)
        lines = [
            f"func.func @main({', '.join(arguments)}) -> ({types}){attributes} {{",
            *self.lines,
            f"func.return {values} : {types}",
            "}",
        ]
        return "\n".join(lines)

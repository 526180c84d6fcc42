"""Runs imported graphs with torch, op by op, so that a test can compare an import with eager.

A bf16 or f16 op computes in f32 and rounds once, as the dialect says. Slow and simple on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.frontend.builder import torch_dtype
from stepwell.frontend.import_fx import ConstantResult, ImportedGraph, NumberInput, TensorInput
from stepwell.frontend.symbols import SizeSource
from stepwell.ir import graph
from stepwell.ir.definitions import definitions_of
from stepwell.ir.expr import Atom, Expr
from stepwell.ir.graph import Arguments, Named, OperandRef, integer_of, integers_of
from stepwell.ir.graph.elementwise import ElementwiseOp
from stepwell.ir.shapes import sizes_of, strides_of

_UNARY_NAMES = {"not": "bitwise_not"}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "floordiv": torch.floor_divide,
    "truncdiv": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "shl": torch.bitwise_left_shift,
    "shr": torch.bitwise_right_shift,
}
_COMBINED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "or": "amax"}


def _signed(x: Tensor) -> Tensor:
    return x.to(torch.int64)


class Evaluator:
    """One run of a graph on given inputs."""

    def __init__(self, imported: ImportedGraph) -> None:
        self.imported = imported
        self.values: dict[SSAValue, Any] = {}
        self.symbols: dict[str, int] = {}

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        function = self.imported.function
        for source, argument in zip(self.imported.arguments, function.body.block.args, strict=True):
            self.values[argument] = self.argument(source, inputs, argument)
        for op in function.body.block.ops:
            if op.name == "func.return":
                returned = [self.values[operand] for operand in op.operands]
            else:
                self.step(op)
        return [
            result.value if isinstance(result, ConstantResult) else returned[result.position]
            for result in self.imported.results
        ]

    def argument(self, source: Any, inputs: Sequence[Any], argument: SSAValue) -> Any:
        if isinstance(source, SizeSource):
            value = source.value(inputs)
            self.symbols[f"s{len(self.symbols)}"] = value
            return value
        assert isinstance(source, TensorInput | NumberInput)
        value = inputs[source.input]
        return value if isinstance(value, Tensor) else torch.tensor(value, dtype=self.dtype(argument.type))

    def number(self, expr: Expr) -> int:
        def leaf(atom: Atom) -> int:
            return self.symbols[atom.args[0]]

        return int(expr.evaluate(leaf))

    def numbers(self, exprs: Sequence[Expr]) -> list[int]:
        return [self.number(expr) for expr in exprs]

    def sizes(self, type_: Attribute) -> list[int]:
        return self.numbers(sizes_of(type_))

    @staticmethod
    def dtype(type_: Attribute) -> torch.dtype:
        return torch_dtype(type_.element_type)  # type: ignore[attr-defined]

    def step(self, op: Operation) -> None:
        operands = [self.values[operand] for operand in op.operands]
        result: Any = None
        if isinstance(op, ElementwiseOp):
            result = self.elementwise(op, operands)
        else:
            result = getattr(self, op.name.removeprefix("graph."))(op, *operands)
        results = result if isinstance(result, tuple) else (result,)
        for value, result_value in zip(op.results, results, strict=bool(op.results)):
            self.check(op, value.type, result_value)
            self.values[value] = result_value

    def check(self, op: Operation, type_: Attribute, value: Any) -> None:
        if isinstance(value, Tensor):
            expected = (self.dtype(type_), self.sizes(type_))
            assert (value.dtype, list(value.shape)) == expected, (str(op), value.dtype, value.shape)

    # -- elementwise -----------------------------------------------------------------------------

    def elementwise(self, op: ElementwiseOp, operands: list[Tensor]) -> Tensor:
        name, dtype = op.name.removeprefix("graph."), self.dtype(op.type)
        if name in ("copy", "probability"):
            return operands[0].clone()
        if name in ("convert", "bitcast"):
            return operands[0].to(dtype) if name == "convert" else operands[0].view(dtype)
        reduced = dtype in (torch.bfloat16, torch.float16)
        if reduced:
            operands = [value.float() if value.is_floating_point() else value for value in operands]
        result = self.compute(op, name, operands)
        return result.to(dtype) if reduced else result

    def compute(self, op: ElementwiseOp, name: str, operands: list[Tensor]) -> Tensor:
        if isinstance(op, graph.CompareOp):
            return getattr(torch, op.predicate.data)(*operands)  # type: ignore[no-any-return]
        if isinstance(op, graph.SelectOp):
            return torch.where(operands[0], operands[1], operands[2])
        if isinstance(op, graph.FmaOp):
            wide = [value.double() for value in operands]
            return (wide[0] * wide[1] + wide[2]).to(operands[0].dtype)
        function = _BINARY.get(name) or attrgetter(_UNARY_NAMES.get(name, name))(torch)
        result: Tensor = function(*operands)
        return result

    # -- reductions ------------------------------------------------------------------------------

    def sum(self, op: Any, x: Tensor) -> Tensor:
        return x.sum(op.reduced, dtype=x.dtype)

    def prod(self, op: Any, x: Tensor) -> Tensor:
        for dim in sorted(op.reduced, reverse=True):
            x = x.prod(dim, dtype=x.dtype)
        return x

    def max(self, op: Any, x: Tensor) -> Tensor:
        return x.amax(op.reduced)

    def min(self, op: Any, x: Tensor) -> Tensor:
        return x.amin(op.reduced)

    def any(self, op: Any, x: Tensor) -> Tensor:
        return torch.any(x, dim=op.reduced)

    def all(self, op: Any, x: Tensor) -> Tensor:
        return torch.all(x, dim=op.reduced)

    def argmax(self, op: Any, x: Tensor) -> Tensor:
        return (x.byte() if x.dtype == torch.bool else x).argmax(op.reduced[0])

    def argmin(self, op: Any, x: Tensor) -> Tensor:
        return (x.byte() if x.dtype == torch.bool else x).argmin(op.reduced[0])

    def scan(self, op: Any, x: Tensor) -> Tensor:
        scan = torch.cumsum if op.combiner.data == "add" else torch.cumprod
        return scan(x, integer_of(op.dim), dtype=x.dtype)

    # -- views -----------------------------------------------------------------------------------

    def permute(self, op: Any, x: Tensor) -> Tensor:
        return x.permute(op.permutation)

    def reshape(self, op: Any, x: Tensor) -> Tensor:
        return x.reshape(self.sizes(op.type))

    def broadcast(self, op: Any, x: Tensor) -> Tensor:
        return x.expand(self.sizes(op.type))

    def slice(self, op: Any, x: Tensor) -> Tensor:
        return x[self.box(op, self.sizes(op.type))]

    def box(self, op: Any, sizes: list[int]) -> tuple[Any, ...]:
        starts, steps = self.numbers(op.starts.results), self.numbers(op.steps.results)
        return tuple(
            slice(start, start + (size - 1) * step + 1 if size else start, step)
            for start, step, size in zip(starts, steps, sizes, strict=True)
        )

    def flip(self, op: Any, x: Tensor) -> Tensor:
        return x.flip(op.flipped)

    def window(self, op: Any, x: Tensor) -> Tensor:
        steps, dilations = integers_of(op.steps), integers_of(op.dilations)
        kept = x.ndim - len(steps)
        strides = [
            *x.stride()[:kept],
            *(stride * step for stride, step in zip(x.stride()[kept:], steps, strict=True)),
            *(stride * dilation for stride, dilation in zip(x.stride()[kept:], dilations, strict=True)),
        ]
        return x.as_strided(self.sizes(op.type), strides)

    def as_strided(self, op: Any, x: Tensor) -> Tensor:
        base = torch.empty_strided(x.shape, self.numbers(strides_of(op.operand.type)), dtype=x.dtype)
        base.copy_(x)
        offset = self.number(op.offset.results[0])
        return base.as_strided(self.sizes(op.type), self.numbers(strides_of(op.type)), offset)

    # -- creation --------------------------------------------------------------------------------

    def full(self, op: Any) -> Tensor:
        return torch.full(self.sizes(op.type), op.scalar, dtype=self.dtype(op.type))

    def constant(self, op: Any) -> Tensor:
        data = torch.frombuffer(bytearray(op.value.data.data), dtype=self.dtype(op.type))
        return data.reshape(self.sizes(op.type))

    def weight(self, op: Any) -> Tensor:
        return self.imported.objects[op.weight.data]  # type: ignore[no-any-return]

    def iota(self, op: Any) -> Tensor:
        start, step = self.number(op.start.results[0]), self.number(op.step.results[0])
        return torch.arange(self.sizes(op.type)[0], dtype=self.dtype(op.type)) * step + start

    def size(self, op: Any) -> Any:
        value = self.number(op.expr)
        return value if isinstance(op.results[0].type, IndexType) else torch.tensor(value)

    def random(self, op: Any, seed: Tensor) -> Tensor:
        from stepwell.frontend.random_ops import philox

        words = philox(int(seed), torch.Size(self.sizes(op.type)).numel(), integer_of(op.stream))
        return torch.from_numpy(words.astype("uint32").view("int32")).reshape(self.sizes(op.type))

    # -- indexing --------------------------------------------------------------------------------

    def indexed(self, op: Any, index: Tensor, size: int) -> Tensor:
        if op.index_bounds.wraps:
            index = torch.where(index < 0, index + size, index)
        if op.index_bounds.exception is None:
            return index.clamp(0, max(size - 1, 0))
        if index.numel() and not bool(((index >= 0) & (index < size)).all()):
            raise {"IndexError": IndexError, "RuntimeError": RuntimeError}[op.index_bounds.exception]
        return index

    def gather(self, op: Any, x: Tensor, index: Tensor) -> Tensor:
        dim = integer_of(op.dim)
        return x.gather(dim, self.indexed(op, index, x.shape[dim]).long())

    def places(self, op: Any, x: Tensor, indices: Sequence[Tensor]) -> tuple[Any, ...]:
        found: list[Any] = [slice(None)] * x.ndim
        for dim, index in zip(op.indexed, indices, strict=True):
            found[dim] = self.indexed(op, index, x.shape[dim])
        return tuple(found)

    def index(self, op: Any, x: Tensor, *indices: Tensor) -> Tensor:
        return x[self.places(op, x, indices)]

    def index_put(self, op: Any, x: Tensor, value: Tensor, *indices: Tensor) -> Tensor:
        result = x.clone()
        places = tuple(None if isinstance(p, slice) else p for p in self.places(op, x, indices))
        if op.combiner is None:
            result[self.places(op, x, indices)] = value
            return result
        return torch.ops.aten.index_put.default(x, places, value, True)  # type: ignore[no-any-return]

    def scatter(self, op: Any, x: Tensor, index: Tensor, value: Tensor) -> Tensor:
        dim = integer_of(op.dim)
        index = self.indexed(op, index, x.shape[dim]).long()
        if op.combiner is None:
            return x.scatter(dim, index, value)
        return x.scatter_reduce(dim, index, value, _COMBINED[op.combiner.data])

    def insert_slice(self, op: Any, x: Tensor, value: Tensor) -> Tensor:
        result = x.clone()
        result[self.box(op, self.sizes(op.value.type))] = value
        return result

    def cat(self, op: Any, *parts: Tensor) -> Tensor:
        return torch.cat(parts, integer_of(op.dim))

    def pad(self, op: Any, x: Tensor) -> Tensor:
        result = torch.full(self.sizes(op.type), op.value.scalar, dtype=x.dtype)
        low = self.numbers(op.low.results)
        result[tuple(slice(start, start + size) for start, size in zip(low, x.shape, strict=True))] = x
        return result

    # -- products and calls ----------------------------------------------------------------------

    def matmul(self, op: Any, lhs: Tensor, rhs: Tensor, bias: Tensor | None = None) -> Tensor:
        return lhs @ rhs if bias is None else torch.addmm(bias, lhs, rhs)

    def batch_matmul(self, op: Any, lhs: Tensor, rhs: Tensor, bias: Tensor | None = None) -> Tensor:
        return lhs @ rhs if bias is None else torch.baddbmm(bias, lhs, rhs)

    def copy_into(self, op: Any, value: Tensor, target: Tensor) -> tuple[()]:
        target.copy_(value)
        return ()

    def extern(self, op: Any, *operands: Any) -> Any:
        target: Any = torch.ops
        for part in op.target.data.split("."):
            target = getattr(target, part)
        arguments: Arguments = op.arguments.data

        def value(argument: Any) -> Any:
            match argument:
                case OperandRef(position, item):
                    return operands[position].item() if item else operands[position]
                case Named("object", name):
                    return self.imported.objects[name]
                case Named("device", name):
                    return torch.device(name)
                case Named(_, name):
                    return getattr(torch, name)
                case Expr():
                    return self.number(argument)
                case tuple():
                    return [value(item) for item in argument]
            return argument

        positional = [value(argument) for argument in arguments.positional]
        result = target(*positional, **{name: value(item) for name, item in arguments.keywords})
        leaves = result if isinstance(result, tuple | list) else (result,)
        wanted = Tensor | int if any(isinstance(type_, IndexType) for type_ in op.result_types) else Tensor
        results = tuple(leaf for leaf in leaves if isinstance(leaf, wanted))
        self.symbols.update((known.name, known.value(results)) for known in definitions_of(op))
        return results


def evaluate(imported: ImportedGraph, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of the FX graph, computed from the imported one."""
    return Evaluator(imported).run(inputs)

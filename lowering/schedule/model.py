"""What a schedule needs to know of a loop kernel: its nests, its accesses and how large things are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ...ir import loop
from ...ir.dtypes import element_of
from ...ir.expr import ZERO, Expr, contiguous_strides, linearize
from ...ir.shapes import sizes_of, strides_of
from ..analysis.accesses import accessed, extent_of
from ..analysis.sizes import BYTE, Sizes, element_bytes

MATH_WORK = 16
"""Operations that a math function counts as."""


def op_work(op: Operation) -> int:
    if isinstance(op, arith.ConstantOp):
        return 0
    return MATH_WORK if op.name.startswith("math.") else 1


class Access:
    """A read or write, as an offset in elements over its own index operands."""

    def __init__(self, op: loop.ReadOp | loop.WriteOp, offset: Expr, trips: int, elements: int):
        self.op = op
        self.tensor = accessed(op)
        self.indices = list(op.indices)
        self.offset = offset
        self.trips = trips
        self.elements = elements
        """How many it touches at most: what a broadcast reads again counts once."""
        self.bytes = element_bytes(op.result.type if isinstance(op, loop.ReadOp) else op.value.type)
        """Of one element in memory."""
        self._strides: dict[SSAValue, Expr | None] = {}

    @property
    def bits(self) -> int:
        return BYTE * self.bytes

    def stride(self, index: SSAValue) -> Expr | None:
        """Elements between neighbours along a loop index; None where the offset is not linear in it."""
        if index not in self._strides:
            position = next((k for k, operand in enumerate(self.indices) if operand is index), None)
            self._strides[index] = ZERO if position is None else self.offset.coefficient(position)
        return self._strides[index]


class KernelModel:
    """What a kernel is made of, with the number of times that each access and op runs."""

    def __init__(self, kernel: loop.KernelOp):
        self.kernel = kernel
        self.sizes = Sizes.at(kernel)
        self.layouts: dict[SSAValue, tuple[Expr, ...]] = {
            destination: strides_of(result.type)
            for destination, result in zip(kernel.block.args, kernel.results, strict=True)
        }
        self.accesses: list[Access] = []
        self.scalar_ops: list[tuple[Operation, int]] = []
        self.nests: list[loop.NestOp] = []
        self.locals: list[loop.LocalOp] = []
        self.symbols: set[str] = set()
        self._body_work: dict[Block, int] = {}
        self._walk(kernel.block, 1)

    def _walk(self, block: Block, trips: int) -> None:
        """Notes the ops of a block; its work is that of the longest innermost body in it."""
        inner = own = 0
        for op in block.ops:
            if isinstance(op, loop.NestOp):
                self.nests.append(op)
                self._note_symbols(op.sizes)
                self._walk(op.block, trips * self.sizes.volume(op.sizes))
                inner = max(inner, self._body_work[op.block])
                continue
            own += op_work(op)
            if isinstance(op, loop.ReadOp | loop.WriteOp):
                offset = linearize(op.map.results, self.strides(accessed(op)))
                self.accesses.append(Access(op, offset, trips, self._elements(op, trips)))
                self._note_symbols(op.map.results)
            else:
                self.scalar_ops.append((op, trips))
                self._note_scalar(op)
        self._body_work[block] = inner or own

    def _elements(self, op: loop.ReadOp | loop.WriteOp, trips: int) -> int:
        """The number of places to which the indices of an access lead; a computed index may lead anywhere."""
        sizes: list[Expr] = []
        for index in dict.fromkeys(op.indices):
            size = extent_of(index)
            if size is None:
                return trips
            sizes.append(size)
        return min(self.sizes.volume(sizes), trips)

    def _note_scalar(self, op: Operation) -> None:
        if isinstance(op, loop.LocalOp):
            self.locals.append(op)
            self._note_symbols(op.sizes)
        elif isinstance(op, loop.IndexOp):
            self._note_symbols(op.map.results)

    def _note_symbols(self, exprs: Iterable[Expr]) -> None:
        for expr in exprs:
            self.symbols |= expr.symbols

    def body_work(self, nest: loop.NestOp) -> int:
        """Operations of one run of its body, or of the longest innermost body in it."""
        return self._body_work[nest.block]

    def strides(self, tensor: SSAValue) -> tuple[Expr, ...]:
        """Strides of a captured tensor, a destination or a local."""
        known = self.layouts.get(tensor)
        if known is None:
            owner = tensor.owner
            known = local_strides(owner) if isinstance(owner, loop.LocalOp) else strides_of(tensor.type)
            self.layouts[tensor] = known
        return known

    @cached_property
    def inputs(self) -> list[SSAValue]:
        """The tensors of the enclosing function that the kernel reads, in order of first use."""
        return [tensor for tensor in self.layouts if isinstance(tensor.type, TensorType)]

    @cached_property
    def bytes(self) -> int:
        """What the tensors that the kernel reads and writes span."""
        types = [*(value.type for value in self.inputs), *self.kernel.result_types]
        return sum(self.sizes.volume(sizes_of(type_)) * element_bytes(element_of(type_)) for type_ in types)

    @cached_property
    def work(self) -> int:
        """Scalar ops and accesses that the kernel executes."""
        return sum(trips for _, trips in self.scalar_ops) + sum(access.trips for access in self.accesses)


def local_strides(local: loop.LocalOp) -> tuple[Expr, ...]:
    """Row-major strides of a local buffer."""
    return contiguous_strides(local.sizes)


def captured(kernel: loop.KernelOp) -> list[SSAValue]:
    """The tensors of the enclosing function that a kernel reads, in order of first use."""
    inside = set(kernel.block.args)
    found: dict[SSAValue, None] = {}
    for op in kernel.body.walk():
        if isinstance(op, loop.ReadOp) and op.source not in inside and not isinstance(op.source.owner, loop.LocalOp):
            found.setdefault(op.source)
    return list(found)

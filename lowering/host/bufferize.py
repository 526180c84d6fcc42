"""`host-bufferize`: every tensor of the host function becomes memory, allocated where it is first written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import graph, host
from ...ir.dtypes import element_of, is_native
from ...ir.errors import LoweringError
from ...ir.expr import Expr, symbol
from ...ir.graph.attributes import Arguments, OperandRef
from ...ir.locations import location_text
from ...ir.shapes import layout_of, symbol_ranges
from .memory import MemoryUse, host_functions, is_memory

OUT_VARIANTS = {
    f"aten.{name}.default": f"aten.{name}.out" for name in ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot")
}
"""Externs that compute straight into memory of ours: their results then come from the pool of output storage."""

PRODUCTS: dict[type[Operation], tuple[str, str]] = {
    graph.MatmulOp: ("aten.mm.out", "aten.addmm.out"),
    graph.BatchMatmulOp: ("aten.bmm.out", "aten.baddbmm.out"),
}
"""Product → the operators that compute it, without and with a bias."""


def buffer_type(type_: Attribute) -> Attribute:
    return host.BufferType.of(type_)


def _is_of_one_native_type(values: Sequence[SSAValue]) -> bool:
    """Whether what is computed is of the type that was promised: of mixed operands eager's result may be of another."""
    elements = [element_of(value.type) for value in values if is_memory(value)]
    return is_native(elements[0]) and all(element == elements[0] for element in elements)


class Bufferizer:
    """Builds the buffer form of one function, op by op."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        self.old = func.body.block
        self.use = MemoryUse(self.old)
        self.block = Block(arg_types=[buffer_type(arg.type) if is_memory(arg) else arg.type for arg in self.old.args])
        self.buffers: dict[SSAValue, SSAValue] = {}
        for old, new in zip(self.old.args, self.block.args, strict=True):
            self._bind(old, new)

    def run(self) -> None:
        for op in self.old.ops:
            HANDLERS.get(type(op), Bufferizer.refuse)(self, op)
        outputs = [] if self.block.last_op is None else [value.type for value in self.block.last_op.operands]
        self.func.function_type = FunctionType.from_lists(list(self.block.arg_types), outputs)
        self.func.body.detach_block(self.old)
        self.func.body.add_block(self.block)
        self.old.erase(safe_erase=False)

    # -- helpers ----------------------------------------------------------------------------------

    def _bind(self, old: SSAValue, new: SSAValue) -> None:
        new.name_hint = new.name_hint or old.name_hint
        self.buffers[old] = new

    def _add(self, op: Operation, source: Operation) -> Operation:
        op.location = source.location
        self.block.add_op(op)
        return op

    def _of(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.buffers[value] for value in values]

    def _alloc(self, result: SSAValue, source: Operation) -> SSAValue:
        op = self._add(host.AllocOp.make(buffer_type(result.type)), source)
        self._bind(result, SSAValue.get(op))
        return SSAValue.get(op)

    # -- one handler per op -----------------------------------------------------------------------

    def launch(self, op: Operation) -> None:
        """`host.launch → host.run` into new buffers, or into that of an initial value that dies here."""
        assert isinstance(op, host.LaunchOp)
        inits = op.init_of
        for position, result in enumerate(op.results):
            init = inits.get(position)
            if init is not None and self._may_overwrite(init, result, op):
                self._bind(result, self.buffers[init])
                continue
            buffer = self._alloc(result, op)
            if init is not None:
                self._add(host.CopyOp.make(self.buffers[init], buffer), op)
        kernel = op.kernel.root_reference.data
        self._add(host.RunOp.make(kernel, self._of(op.inputs), self._of(op.results), op.symbol_values), op)

    def _may_overwrite(self, init: SSAValue, result: SSAValue, op: host.LaunchOp) -> bool:
        """Whether the memory of an initial value is ours, of the right layout, and read by nobody but as such."""
        return (
            isinstance(init.owner, host.LaunchOp)
            and layout_of(init.type) == layout_of(result.type)
            and self.use.ends_at(init, op)
            and sum(self.use.share(init, other) for other in op.operands) == 1
        )

    def view(self, op: Operation) -> None:
        assert isinstance(op, host.ViewOp)
        made = host.ViewOp.make(self.buffers[op.source], op.element_offset, buffer_type(op.result.type))
        self._bind(op.result, SSAValue.get(self._add(made, op)))

    def extern(self, op: Operation) -> None:
        """`graph.extern → host.extern`, in its `out=` form where there is one that needs no copy."""
        assert isinstance(op, graph.ExternOp)
        target, arguments, inputs = op.target.data, op.arguments.data, self._of(op.inputs)
        if target in OUT_VARIANTS and _is_of_one_native_type([*op.inputs, *op.results]):
            self._compute_into(OUT_VARIANTS[target], inputs, arguments, op)
            return
        types = [buffer_type(result.type) if is_memory(result) else result.type for result in op.results]
        made = self._add(host.ExternOp.make(target, inputs, arguments, types, op.defines), op)
        for old, new in zip(op.results, made.results, strict=True):
            self._bind(old, new)

    def product(self, op: Operation) -> None:
        """`graph.matmul → aten.mm.out`, or `addmm` where there is a bias, which then comes first."""
        assert isinstance(op, graph.ProductOp)
        plain, with_bias = PRODUCTS[type(op)]
        bias = [] if op.bias is None else [op.bias]
        inputs = self._of([*bias, op.lhs, op.rhs])
        arguments = Arguments(tuple(OperandRef(position) for position in range(len(inputs))))
        self._compute_into(with_bias if bias else plain, inputs, arguments, op)

    def _compute_into(self, target: str, inputs: list[SSAValue], arguments: Arguments, op: Operation) -> None:
        """Calls the `out=` form of an operator with a new buffer."""
        keywords = (*arguments.keywords, ("out", OperandRef(len(inputs))))
        operands = [*inputs, self._alloc(SSAValue.get(op), op)]
        self._add(host.ExternOp.make(target, operands, Arguments(arguments.positional, keywords), ()), op)

    def copy_into(self, op: Operation) -> None:
        assert isinstance(op, graph.CopyIntoOp)
        self._add(host.CopyOp.make(self.buffers[op.value], self.buffers[op.target]), op)

    def weight(self, op: Operation) -> None:
        assert isinstance(op, graph.WeightOp)
        made = host.WeightOp.make(op.weight.data, buffer_type(op.result.type))
        self._bind(op.result, SSAValue.get(self._add(made, op)))

    def constant(self, op: Operation) -> None:
        assert isinstance(op, graph.ConstantOp)
        made = host.ConstantOp.make(op.value, buffer_type(op.result.type))
        self._bind(op.result, SSAValue.get(self._add(made, op)))

    def size(self, op: Operation) -> None:
        """`graph.size` is an expression in the return, which is where an index may be used."""

    def finish(self, op: Operation) -> None:
        """`func.return → host.return`: tensors stay operands, sizes become expressions."""
        operands: list[SSAValue] = []
        arguments: list[OperandRef | Expr] = []
        for value in op.operands:
            if is_memory(value):
                arguments.append(OperandRef(len(operands)))
                operands.append(self.buffers[value])
            else:
                arguments.append(self._size(value))
        self._add(host.ReturnOp.make(operands, Arguments(tuple(arguments))), op)

    def _size(self, value: SSAValue) -> Expr:
        if isinstance(value.owner, graph.SizeOp):
            return value.owner.expr
        sizes: list[SSAValue] = [argument for argument in self.old.args if not is_memory(argument)]
        names = dict(zip(sizes, symbol_ranges(self.func), strict=False))  # those of arguments come first
        return symbol(names[value])

    def refuse(self, op: Operation) -> None:
        raise LoweringError(
            "host-bufferize",
            expected=f"one of {', '.join(sorted(cls.name for cls in HANDLERS))}",
            got=op.name,
            location=location_text(op),
        )


HANDLERS: dict[type[Operation], Callable[[Bufferizer, Operation], None]] = {
    host.LaunchOp: Bufferizer.launch,
    host.ViewOp: Bufferizer.view,
    graph.ExternOp: Bufferizer.extern,
    graph.MatmulOp: Bufferizer.product,
    graph.BatchMatmulOp: Bufferizer.product,
    graph.CopyIntoOp: Bufferizer.copy_into,
    graph.WeightOp: Bufferizer.weight,
    graph.ConstantOp: Bufferizer.constant,
    graph.SizeOp: Bufferizer.size,
    FuncReturnOp: Bufferizer.finish,
}
"""The ops of the value form, and how each is said with buffers."""


@dataclass(frozen=True)
class HostBufferize(ModulePass):
    """Turns tensors into buffers; an initial value that dies where it is taken gives its buffer, else it is copied."""

    name = "host-bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in host_functions(op):
            Bufferizer(func).run()

"""Memory for values that others than kernels need: externs, products, copies into arguments, the caller."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ....ir import graph, host
from ....ir.dtypes import element_of, is_native
from ....ir.graph import Arguments, OperandRef
from ....ir.shapes import dense_order, layout_of, sizes_of, strides_of
from .kernels import Kernel
from .sources import Constant, Element, Formula, Source, Values
from .views import offset_in_memory


class Memory(Values):
    """The values of a function, with memory on demand."""

    def __init__(self, function: FuncOp) -> None:
        super().__init__(function)
        self._tensors: dict[SSAValue, SSAValue] = {}

    def tensor(self, value: SSAValue) -> SSAValue:
        """A tensor with the elements of a value and the layout of its type."""
        source = self.sources.get(value)
        if source is None or isinstance(value.owner, graph.ConstantOp):
            return value
        known = self._tensors.get(value)
        if known is None:
            known = self._tensors[value] = self._view(value, source) or self.copy(value)
        return known

    def base(self, value: SSAValue) -> SSAValue:
        """A tensor for an op that writes over some elements of a value. Numbers are written anew for each such op,
        which is cheaper than to copy them for all but one."""
        return self.copy(value) if isinstance(self.sources.get(value), Constant | Formula) else self.tensor(value)

    def _view(self, value: SSAValue, source: Source) -> SSAValue | None:
        """The memory that the value is part of, under another layout, where there is such a layout."""
        if not isinstance(source, Element):
            return None
        strides, layout = strides_of(source.tensor.type), layout_of(value.type)
        offset = offset_in_memory(source.place, strides, layout, self.box(layout.sizes))
        if offset is None:
            return None
        if source.tensor.type == value.type:  # a part as large as the whole
            return source.tensor
        view = host.ViewOp.make(source.tensor, offset, value.type)
        return insert_where_made(value, view)

    def copy(self, value: SSAValue) -> SSAValue:
        """A new tensor with the elements of a value, written where the value is made; no kernel can read some types."""
        if not is_native(element_of(value.type)):
            call = Arguments((OperandRef(0),))
            return insert_where_made(value, graph.ExternOp.make("aten.clone.default", [value], call, [value.type]))
        maker = value.owner
        name = maker.name.partition(".")[2] if isinstance(maker, graph.GraphOp) else "copy"
        kernel = Kernel(self, name, value.type, UNKNOWN_LOC if isinstance(maker, Block) else maker.location)
        kernel.enter_parallel(sizes_of(value.type))
        kernel.write(kernel.read(value))
        return insert_where_made(value, kernel.op)

    # -- results -----------------------------------------------------------------------------------

    def results(
        self, values: Sequence[SSAValue], storages: Sequence[int] | None, offsets: Sequence[int] | None = None
    ) -> list[SSAValue]:
        """Tensors for the caller, who may write to them: nothing that the compiled graph keeps, and, as far as the
        storages of the results are known, just the memory that eager would share."""
        owners: dict[SSAValue, int] = {}
        found: list[SSAValue] = []
        parts = self._parts(values, storages, offsets) if storages and offsets else {}
        bases = {base: self._result(values[base]) for base, _ in parts.values()}
        for position, value in enumerate(values):
            if position in parts:
                base, offset = parts[position]
                found.append(insert_where_made(bases[base], host.ViewOp.make(bases[base], offset, value.type)))
                continue
            tensor = bases.get(position) or self._result(value)
            if storages is not None:
                root = root_of(tensor)
                number = root.index if isinstance(root, BlockArgument) else storages[position]
                if owners.setdefault(root, number) != storages[position]:
                    tensor = self.copy(value)
            found.append(tensor)
        return found

    def _parts(
        self, values: Sequence[SSAValue], storages: Sequence[int], offsets: Sequence[int]
    ) -> dict[int, tuple[int, int]]:
        """The results that are known numbers and in eager part of another result, with that one and where in it they
        begin."""
        parts: dict[int, tuple[int, int]] = {}
        for storage in sorted(set(storages)):
            group = [position for position, number in enumerate(storages) if number == storage]
            if any(self._is_known(values[position]) for position in group):
                spans = {position: _span(values[position], offsets[position]) for position in group}
                base = max(group, key=lambda position: len(spans[position]))
                whole = spans[base]
                if dense_order(layout_of(values[base].type)) is not None:
                    for position, span in spans.items():
                        if position != base and span and whole.start <= span.start and span.stop <= whole.stop:
                            parts[position] = (base, span.start - whole.start)
        return parts

    def _is_known(self, value: SSAValue) -> bool:
        return isinstance(self.sources.get(value), Constant | Formula) or isinstance(value.owner, graph.ConstantOp)

    def _result(self, value: SSAValue) -> SSAValue:
        tensor = self.base(value)  # numbers may stand for several results
        return self.copy(value) if isinstance(root_of(tensor).owner, graph.ConstantOp) else tensor


def _span(value: SSAValue, offset: int) -> range:
    """From the first to the last element of a result in its memory; empty where sizes decide."""
    layout = layout_of(value.type)
    if offset < 0 or not all(expr.is_constant for expr in (*layout.sizes, *layout.strides)):
        return range(offset, offset)
    steps = zip(layout.sizes, layout.strides, strict=True)
    last = sum((size.constant - 1) * stride.constant for size, stride in steps)
    return range(offset, offset + last + 1)


def root_of(tensor: SSAValue) -> SSAValue:
    """The tensor whose memory a view shows."""
    while isinstance(tensor.owner, host.ViewOp):
        tensor = tensor.owner.source
    return tensor


def insert_where_made(value: SSAValue, op: Operation) -> SSAValue:
    """Inserts an op after the one that made the value, or at the start of the function; its result."""
    maker = value.owner
    if isinstance(maker, Block):
        assert maker.first_op is not None
        maker.insert_op_before(op, maker.first_op)
    else:
        assert maker.parent is not None
        op.location = maker.location
        maker.parent.insert_op_after(op, maker)
    return SSAValue.get(op)

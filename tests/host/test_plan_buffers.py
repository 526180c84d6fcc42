"""Memory planning on random programs: no two buffers that live at once share a byte."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue

from stepwell.ir import host
from stepwell.ir.expr import Expr, const, symbol
from stepwell.ir.graph.attributes import Arguments
from stepwell.ir.host import BufferType
from stepwell.ir.shapes import SYMBOLS, SymbolAttr, SymbolRange, tensor_type
from stepwell.lowering.host.plan_buffers import HostPlanBuffers

SIZES: tuple[Expr, ...] = (
    const(1),
    const(100),
    const(4096),
    symbol("s0"),
    symbol("s0") * 3 + 5,
    symbol("s0") * symbol("s1"),
)


def program(steps: list[tuple[int, list[int]]]) -> ModuleOp:
    """One kernel per step, which makes a buffer of the chosen size and reads some of the buffers before."""
    block = Block(arg_types=[IndexType(), IndexType()])
    made: list[SSAValue] = []
    for size, reads in steps:
        allocation = host.AllocOp.make(BufferType.of(tensor_type(f32, [SIZES[size]])))
        inputs = list(dict.fromkeys(made[read % len(made)] for read in reads)) if made else []
        block.add_ops([allocation, host.RunOp.make("k", inputs, [allocation.buffer])])
        made.append(allocation.buffer)
    block.add_op(host.ReturnOp.make([], Arguments(())))
    function = FuncOp("main", ([IndexType(), IndexType()], []), Region(block))
    ranges = [SymbolRange("s0", 0, None, 64), SymbolRange("s1", 0)]
    function.attributes[SYMBOLS] = ArrayAttr([SymbolAttr(known) for known in ranges])
    return ModuleOp([function])


def slots_and_lives(module: ModuleOp) -> list[tuple[host.SlotOp, int, int]]:
    """Each slot with the positions of the first and last op that uses it."""
    ops = list(module.walk())
    slots = [op for op in ops if isinstance(op, host.SlotOp)]
    uses = {slot: [ops.index(use.operation) for use in slot.buffer.uses] for slot in slots}
    return [(slot, min(uses[slot]), max(uses[slot])) for slot in slots]


@given(
    st.lists(
        st.tuples(st.integers(0, len(SIZES) - 1), st.lists(st.integers(0, 20), max_size=3)), min_size=1, max_size=12
    ),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_what_lives_at_once_lies_apart(steps: list[tuple[int, list[int]]], s0: int, s1: int) -> None:
    module = program(steps)
    HostPlanBuffers().apply(Context(), module)
    module.verify()
    values = {"s0": s0, "s1": s1}

    def value(expr: Expr) -> int:
        return int(expr.evaluate(lambda leaf: values[leaf.args[0]]))

    (workspace,) = (op for op in module.walk() if isinstance(op, host.WorkspaceOp))
    placed = slots_and_lives(module)
    assert len(placed) == len(steps)
    for slot, _, _ in placed:
        assert value(slot.byte_offset) % 64 == 0
        assert 0 <= value(slot.byte_offset) <= value(workspace.byte_size) - _span(slot, values)
    for (first, start, end), (second, other_start, other_end) in combinations(placed, 2):
        if start <= other_end and other_start <= end:
            low, high = sorted([first, second], key=lambda slot: value(slot.byte_offset))
            assert value(low.byte_offset) + _span(low, values) <= value(high.byte_offset)


def _span(slot: host.SlotOp, values: dict[str, int]) -> int:
    assert isinstance(slot.buffer.type, BufferType)
    return max(0, int(slot.buffer.type.byte_span.evaluate(lambda leaf: values[leaf.args[0]])))


def test_a_chain_takes_two_slots() -> None:
    module = program([(2, [position - 1] if position else []) for position in range(10)])
    HostPlanBuffers().apply(Context(), module)
    (workspace,) = (op for op in module.walk() if isinstance(op, host.WorkspaceOp))
    assert workspace.byte_size == const(2 * 4096 * 4)

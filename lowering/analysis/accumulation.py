"""Recognises kernels that combine columns while they go over rows: a local of the kernel collects what each row adds.

    loop.kernel { %l = loop.local   clear %l   loop.parallel (rows) { … loop.write %v, %l[…] add … }   read %l }

The order in which rows are combined is free, so that each of several programs may collect its own rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ...ir import loop
from ...ir.combiners import COMBINERS, Combiner, identity_value
from .accesses import ancestor_in


@dataclass(frozen=True)
class Accumulation:
    """The parts of such a kernel."""

    collected: dict[loop.LocalOp, Combiner]
    """The locals, and how each combines what rows add."""
    scalars: Sequence[Operation]
    clear: Sequence[loop.NestOp]
    """Nests that set the locals to the identities of their combiners."""
    rows: loop.ParallelOp
    after: Sequence[Operation]
    """What reads the locals when all rows are done."""


def accumulation_of(kernel: loop.KernelOp) -> Accumulation | None:
    """The parts of a kernel that goes over rows once and otherwise only clears and reads what it collects."""
    ops = list(kernel.block.ops)
    locals_ = [op for op in ops if isinstance(op, loop.LocalOp)]
    rows = next((top for local in locals_ if (top := _combining_nest(kernel.block, local)) is not None), None)
    if rows is None or kernel.operands:
        return None
    collected = {local: combiner for local in locals_ if (combiner := _combiner(local, rows)) is not None}
    if len(collected) < len(locals_):
        return None
    position = ops.index(rows)
    before, after = [op for op in ops[:position] if not isinstance(op, loop.LocalOp)], ops[position + 1 :]
    clear = [op for op in before if isinstance(op, loop.NestOp)]
    scalars = [op for op in before if not isinstance(op, loop.NestOp)]
    if not all(_writes_locals(nest) for nest in clear):
        return None
    return Accumulation(collected, scalars, clear, rows, after)


def _uses(local: loop.LocalOp) -> list[Operation]:
    return [use.operation for use in local.buffer.uses]


def _combining_nest(block: Block, local: loop.LocalOp) -> loop.ParallelOp | None:
    """The parallel nest of the kernel's own block in which something is combined into the local."""
    for op in _uses(local):
        if isinstance(op, loop.WriteOp) and op.combiner is not None:
            nest = ancestor_in(block, op)
            return nest if isinstance(nest, loop.ParallelOp) else None
    return None


def _combiner(local: loop.LocalOp, rows: loop.ParallelOp) -> Combiner | None:
    """How rows combine into the local, if it is only cleared before and only read behind."""
    block = rows.parent
    assert block is not None
    names: set[str] = set()
    for op in _uses(local):
        nest = ancestor_in(block, op)
        assert nest is not None
        if isinstance(op, loop.WriteOp) and op.combiner is not None and nest is rows:
            names.add(op.combiner.data)
        elif isinstance(op, loop.WriteOp):
            if op.combiner is not None or not nest.is_before_in_block(rows):
                return None
        elif not rows.is_before_in_block(nest):
            return None
    if len(names) != 1:
        return None
    combiner = COMBINERS[names.pop()]
    element = loop.scalar_type(local.buffer.type.element_type)
    plain = [op for op in _uses(local) if isinstance(op, loop.WriteOp) and op.combiner is None]
    is_neutral = all(_constant(op.value) == identity_value(combiner, element) for op in plain)
    return combiner if is_neutral else None


def _constant(value: SSAValue) -> int | float | None:
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    attribute = value.owner.value
    return attribute.value.data if isinstance(attribute, FloatAttr | IntegerAttr) else None


def _writes_locals(nest: loop.NestOp) -> bool:
    """Whether the nest writes nothing but locals."""
    return all(not isinstance(op, loop.WriteOp) or isinstance(op.target.owner, loop.LocalOp) for op in nest.walk())

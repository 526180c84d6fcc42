"""The small steps that passes of this level share: ops taken out, constants, names of fused kernels. Not a pass."""

from __future__ import annotations

from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...ir import loop

MAX_NAME = 48
"""Characters of the name of a fused kernel; of a longer one its beginning and its end are kept."""


def detach(op: Operation) -> None:
    """Takes an op out of its block, to be inserted elsewhere."""
    assert op.parent is not None
    op.parent.detach_op(op)


def erase(op: Operation) -> None:
    """Removes an op whose results nobody uses."""
    assert op.parent is not None
    op.parent.erase_op(op)


def is_only_written(buffer: SSAValue) -> bool:
    """Whether nothing reads a buffer."""
    return all(isinstance(use.operation, loop.WriteOp) for use in buffer.uses)


def erase_writes(buffer: SSAValue) -> None:
    """Removes the writes to a buffer that nothing reads."""
    for use in list(buffer.uses):
        erase(use.operation)


def fused_name(first: loop.KernelOp, second: loop.KernelOp) -> StringAttr:
    """The name of a kernel that does what these did, so that a profile reads like the program."""
    return _joined(first.kernel_name.data, second.kernel_name.data)


@cache
def _joined(first: str, second: str) -> StringAttr:
    """`add_exp` + `exp_sum` = `add_exp_sum`; a long name keeps its two ends."""
    words = dict.fromkeys([*first.split("_"), *second.split("_")])
    name = "_".join(words)
    if len(name) > MAX_NAME:
        half = MAX_NAME // 2
        name = f"{name[:half].rpartition('_')[0]}_to_{name[-half:].partition('_')[2]}"
    return StringAttr(name)


def constant(value: float, type_: Attribute) -> arith.ConstantOp:
    """A constant of a scalar type."""
    attr: Attribute
    if isinstance(type_, AnyFloat):
        attr = FloatAttr(float(value), type_)
    else:
        assert isinstance(type_, IntegerType)
        attr = IntegerAttr(int(value), type_)
    return arith.ConstantOp.create(properties={"value": attr}, result_types=[type_])

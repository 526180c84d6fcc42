"""What `host-bufferize` refuses."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from stepwell.ir import graph
from stepwell.ir.dtypes import FLOAT32
from stepwell.ir.errors import LoweringError
from stepwell.ir.locations import file_line
from stepwell.ir.shapes import tensor_type
from stepwell.lowering.host.bufferize import HostBufferize


def test_an_op_of_a_level_above_is_named_with_its_line() -> None:
    type_ = tensor_type(FLOAT32, [8])
    block = Block(arg_types=[type_])
    op = graph.ExpOp.make(block.args[0])
    op.location = file_line("model.py", 7)
    block.add_ops([op, ReturnOp(op.results[0])])
    module = ModuleOp([FuncOp("main", ([type_], [type_]), Region(block))])
    with pytest.raises(LoweringError, match=r"got graph\.exp\n  at model\.py:7") as caught:
        HostBufferize().apply(Context(), module)
    assert "host.launch" in caught.value.expected

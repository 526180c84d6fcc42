"""Sums over any dims of a tensor whose dims lie in memory in any order, none of which ends where a register does."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from stepwell.ir import graph
from stepwell.ir.expr import as_expr, contiguous_strides
from stepwell.ir.shapes import tensor_type
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import Program, Trust
from stepwell.tests.property.search import run_natively

SIZES = (21, 19, 37)


def sums(order: tuple[int, ...], dims: tuple[int, ...]) -> Program:
    """The sum of x + 1 along some dims: of a lane that no element stands for, it is 1."""
    strides = dict(zip(order, contiguous_strides(list(map(as_expr, (SIZES[dim] for dim in order)))), strict=True))
    type_ = tensor_type(f32, SIZES, [strides[dim] for dim in range(len(SIZES))])
    block = Block(arg_types=[type_])
    one = graph.FullOp.make(1.0, f32, SIZES)
    added = graph.AddOp.make(block.args[0], one.results[0])
    total = graph.SumOp.make(added.results[0], dims)
    block.add_ops([one, added, total, ReturnOp(total.results[0])])
    function = FuncOp("main", ([type_], [total.results[0].type]), Region(block))
    argument = np.random.default_rng(0).integers(-3, 4, SIZES).astype("f4")
    return Program(ModuleOp([function]), [argument], [Trust.BITS], exact_functions=False)


@pytest.mark.parametrize("dims", [dims for count in (1, 2, 3) for dims in combinations(range(3), count)], ids=str)
@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
def test_lanes_beyond_the_end_add_nothing(order: tuple[int, ...], dims: tuple[int, ...]) -> None:
    program = sums(order, dims)
    Reference(program).check(run_natively(program))

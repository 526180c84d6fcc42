"""Symbols that ops define: which ops name them, and what keeps a definition in the program."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from stepwell.ir.definitions import definitions_of, symbols_of
from stepwell.ir.graph import Graph
from stepwell.ir.host import Host
from stepwell.ir.loop import Loop
from stepwell.ir.shapes import Stepwell, SymbolDefinition

PROGRAM = """
func.func @main(%x: tensor<8xf32>) -> index
    attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>, #stepwell.symbol<s1, 0, ?>]} {
  %n = graph.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0))
    : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s0, 1), (1, s0)>>
  graph.extern "aten._assert_scalar.default"((min(s0, 1)), "nothing") effect check : () -> ()
  %k = loop.kernel "fill" outs(%o : memref<4x?xindex>) -> tensor<4x?xindex, #stepwell.layout<(4, s0), (s0, 1)>> {
    loop.parallel (%i, %j) to (4, s0) {
      %v = loop.index [%i * s0] : index
      loop.write %v, %o[%i, %j] : memref<4x?xindex>
    }
  }
  %c = host.extern "aten.f.default"(%x, [(s1 * 2)]) : (tensor<8xf32>) -> (!host.buffer<f32, (s0, 2), (2, 1)>)
  %z = graph.full f32<0.0> : tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %size = graph.size (s0) : index
  func.return %size : index
}
"""


@pytest.fixture
def module() -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Stepwell, Graph, Loop, Host):
        context.load_dialect(dialect)
    return Parser(context, PROGRAM).parse_module()


def named(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def test_an_op_names_symbols_in_types_arguments_and_bodies(module: ModuleOp) -> None:
    nonzero, check = named(module, "graph.extern")
    assert symbols_of(nonzero) == symbols_of(check) == {"s0"}
    assert symbols_of(named(module, "loop.kernel")[0]) == {"s0"}
    assert symbols_of(named(module, "host.extern")[0]) == {"s0", "s1"}


def test_definitions_are_found_on_the_op(module: ModuleOp) -> None:
    nonzero, check = named(module, "graph.extern")
    assert definitions_of(nonzero) == (SymbolDefinition("s0", "size", 0),)
    assert definitions_of(check) == ()


def test_a_definition_and_a_check_stay_though_no_result_is_used(module: ModuleOp) -> None:
    DeadCodeElimination().apply(Context(), module)
    assert len(named(module, "graph.extern")) == 2
    assert not named(module, "graph.full")

"""The graph dialect: its documentation, traits and effects, and what the text of constants keeps."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, MemoryEffect, get_effects, is_side_effect_free

from stepwell.ir import graph
from stepwell.ir.dtypes import BFLOAT16, BOOL, FLOAT32, FLOAT64, INT8, INT64, UINT8
from stepwell.ir.expr import ExprLike, symbol
from stepwell.ir.graph import DataAttr, Graph
from stepwell.ir.graph.traits import Contraction, Creation, Elementwise, Reduction, View
from stepwell.ir.shapes import Stepwell, own_type, tensor_type

Sizes: TypeAlias = tuple[ExprLike, ...]

OPERATIONS = [*Graph.operations]


def context() -> Context:
    found = Context()
    for dialect in (Builtin, Stepwell, Graph):
        found.load_dialect(dialect)
    return found


def text_of(printed: Operation | Attribute, generic: bool = False) -> str:
    stream = io.StringIO()
    printer = Printer(stream, print_generic_format=generic)
    if isinstance(printed, Operation):
        printer.print_op(printed)
    else:
        printer.print_attribute(printed)
    return stream.getvalue()


def examples(op: type[Operation]) -> Iterator[str]:
    """The ops in an op's documentation; their operands are defined nowhere."""
    blocks = re.findall(r"```mlir\n(.*?)```", inspect.getdoc(op) or "", re.DOTALL)
    for block in blocks:
        yield from re.split(r"\n(?=%|graph\.)", block.strip())


# -- documentation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_documentation_has_an_example_that_verifies(op: type[Operation]) -> None:
    texts = list(examples(op))
    assert texts
    for text in texts:
        parsed = Parser(context(), text).parse_op()
        assert isinstance(parsed, op)
        parsed.verify()


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_custom_and_generic_text_are_the_same_op(op: type[Operation]) -> None:
    for text in examples(op):
        parsed = Parser(context(), text).parse_op()
        again = Parser(context(), text_of(parsed, generic=True)).parse_op()
        assert text_of(again) == text_of(parsed)


# -- traits and effects ------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_every_op_declares_its_effects(op: type[Operation]) -> None:
    assert any(isinstance(trait, MemoryEffect) for trait in op.traits)


def test_families_are_told_by_traits() -> None:
    families = (Elementwise, Reduction, View, Contraction, Creation)
    counts = {family.__name__: sum(op.has_trait(family) for op in OPERATIONS) for family in families}
    assert all(counts.values())
    assert all(sum(op.has_trait(family) for family in families) <= 1 for op in OPERATIONS)
    assert [op.name for op in OPERATIONS if op.has_trait(ConstantLike)] == ["graph.full", "graph.constant"]


@pytest.mark.parametrize("effect", [None, "random", "write"])
def test_externs_have_the_effect_that_they_declare(effect: str | None) -> None:
    op = graph.ExternOp.make("aten.f.default", [], graph.Arguments(()), [tensor_type(FLOAT32, (2,))], effect)
    assert is_side_effect_free(op) == (effect is None)
    assert get_effects(op) == (graph.EFFECTS[effect] if effect else frozenset())


# -- constants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "values", "text"),
    [
        (FLOAT32, [0.1, -0.0, np.inf, np.nan], "f32, 0.1, -0.0, inf, nan"),
        (FLOAT64, [1e-300, -np.inf], "f64, 1.0e-300, -inf"),
        (BFLOAT16, [1.5, 3.14159], "bf16, 1.5, 3.14062"),
        (BOOL, [True, False], "i1, true, false"),
        (UINT8, [255], "ui8, 255"),
        (INT8, [-128], "i8, -128"),
        (INT64, [2**63 - 1, -(2**63)], "i64, 9223372036854775807, -9223372036854775808"),
        (FLOAT32, [], "f32"),
    ],
)
def test_data_keeps_every_bit_in_text(element: Attribute, values: list[float], text: str) -> None:
    data = DataAttr.of(element, values)
    assert text_of(data) == f"#graph.data<{text}>"
    assert Parser(context(), text_of(data)).parse_attribute() == data


def test_data_is_compared_by_its_bits() -> None:
    odd = DataAttr.packed(FLOAT32, bytes.fromhex("0100c07f"))
    usual = DataAttr.of(FLOAT32, float("nan"))
    assert usual == DataAttr.of(FLOAT32, float("nan"))
    assert odd != usual
    assert DataAttr.of(FLOAT32, 0.0) != DataAttr.of(FLOAT32, -0.0)
    assert text_of(odd) == "#graph.data<f32, nan(0x7FC00001)>"
    assert Parser(context(), text_of(odd)).parse_attribute() == odd


def test_a_static_row_major_type_has_one_form() -> None:
    assert tensor_type(FLOAT32, (2, 3)) == tensor_type(FLOAT32, (2, 3), (3, 1))
    assert text_of(tensor_type(FLOAT32, (2, 3))) == "tensor<2x3xf32>"
    assert text_of(tensor_type(FLOAT32, (2, 3), (1, 2))) == "tensor<2x3xf32, #stepwell.layout<(2, 3), (1, 2)>>"


@pytest.mark.parametrize(
    ("sizes", "strides", "own"),
    [
        ((3, 4), (4, 1), (4, 1)),
        ((3, 4), (1, 3), (1, 3)),
        ((3, 4), (0, 1), (4, 1)),
        ((3, 4), (2, 20), (1, 3)),
        ((2, 8, 3, 3), (288, 1, 96, 32), (72, 1, 24, 8)),
        ((symbol("s0"), 4), (8, 1), (4, 1)),
        ((symbol("s0"), 4), (1, symbol("s0")), (1, symbol("s0"))),
    ],
)
def test_a_tensor_of_its_own_has_neither_gaps_nor_overlaps(sizes: Sizes, strides: Sizes, own: Sizes) -> None:
    type_ = own_type(tensor_type(FLOAT32, sizes, strides), INT64)
    assert type_ == tensor_type(INT64, sizes, own)
    assert own_type(type_) == type_

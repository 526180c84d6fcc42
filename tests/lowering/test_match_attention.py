"""`graph-match-attention` fires on attention alone: each case differs in a line from what does match."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from stepwell.ir import graph
from stepwell.lowering.graph.match_attention import LIBRARY_CALL, MatchAttention
from stepwell.tests.lowering.loop_text import context, parse

KEYS = "tensor<2x8x4xf32, #stepwell.layout<(2, 8, 4), (32, 1, 8)>>"

ATTENTION = f"""
func.func @attention(
    %q: tensor<2x4x8xf32>, %k: {KEYS}, %v: tensor<2x4x8xf32>, %x: tensor<2x4x4xf32>, %y: tensor<4x4xf32>
) -> tensor<2x4x8xf32> {{
  %half = graph.full f32<0.5> : tensor<2x4x4xf32>
  %p = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, {KEYS}) -> tensor<2x4x4xf32>
  %s = graph.mul %p, %half : tensor<2x4x4xf32>
  %m = graph.max %s [2] : (tensor<2x4x4xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
  %d = graph.sub %s, %mb : tensor<2x4x4xf32>
  %e = graph.exp %d : tensor<2x4x4xf32>
  %t = graph.sum %e [2] : (tensor<2x4x4xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x4xf32>
  %w = graph.div %e, %tb : tensor<2x4x4xf32>
  %f = graph.reshape %w : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
  %g = graph.reshape %f : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  %o = graph.batch_matmul %g, %v : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}}"""

OTHERS = {
    "powers of two": ("graph.exp %d", "graph.exp2 %d"),
    "the maximum is added": ("graph.sub %s, %mb", "graph.add %s, %mb"),
    "the minimum is taken off": ("graph.max", "graph.min"),
    "the maximum of another tensor": ("graph.max %s", "graph.max %x"),
    "the maximum of a column": ("graph.max %s [2]", "graph.max %s [1]"),
    "the sum of another tensor": ("graph.sum %e", "graph.sum %x"),
    "the sum of a column": ("graph.sum %e [2]", "graph.sum %e [1]"),
    "the sum is an argument": ("graph.div %e, %tb", "graph.div %e, %x"),
    "a number is added to the scores": ("graph.mul %p, %half", "graph.add %p, %half"),
    "a factor that varies": ("graph.mul %p, %half", "graph.mul %p, %x"),
    "biased scores": (
        f"%q, %k : (tensor<2x4x8xf32>, {KEYS})", f"%q, %k, %y : (tensor<2x4x8xf32>, {KEYS}, tensor<4x4xf32>)"
    ),
    "a biased result": (
        "%g, %v : (tensor<2x4x4xf32>, tensor<2x4x8xf32>)",
        "%g, %v, %q : (tensor<2x4x4xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)",
    ),
}  # fmt: skip
"""What it may not be: a part of the text → another one."""

SEEN = {"p": "2x4x4", "s": "2x4x4", "d": "2x4x4", "e": "2x4x4", "w": "2x4x4", "f": "8x4"}
"""What nothing else may use, since the call doesn't make it."""


def matched(text: str) -> ModuleOp:
    module = parse(text)
    MatchAttention().apply(context(), module)
    module.verify()
    return module


def calls(module: ModuleOp) -> list[str]:
    return [op.target.data for op in module.walk() if isinstance(op, graph.ExternOp)]


def test_what_all_cases_differ_from_matches() -> None:
    assert calls(matched(ATTENTION)) == [LIBRARY_CALL]


@pytest.mark.parametrize("case", OTHERS)
def test_no_match_of_other_programs(case: str) -> None:
    old, new = OTHERS[case]
    assert ATTENTION.count(old) == 1
    assert not calls(matched(ATTENTION.replace(old, new)))


def test_no_match_of_types_that_the_library_rounds_otherwise() -> None:
    assert not calls(matched(ATTENTION.replace("f32", "bf16")))


def keeping(value: str, text: str = ATTENTION) -> str:
    """A text whose function gives a value on the way as well."""
    type_ = f"tensor<{SEEN[value]}xf32>"
    text = text.replace(") -> tensor<2x4x8xf32> {", f") -> (tensor<2x4x8xf32>, {type_}) {{")
    return text.replace("return %o : tensor<2x4x8xf32>", f"return %o, %{value} : tensor<2x4x8xf32>, {type_}")


@pytest.mark.parametrize("value", SEEN)
def test_no_match_when_a_value_on_the_way_is_kept(value: str) -> None:
    assert not calls(matched(keeping(value)))


@pytest.mark.parametrize(("reduction", "value"), [("max", "s"), ("sum", "e")])
def test_no_match_when_another_tensor_is_reduced_and_the_own_one_kept(reduction: str, value: str) -> None:
    text = ATTENTION.replace(f"graph.{reduction} %{value}", f"graph.{reduction} %x")
    assert not calls(matched(keeping(value, text)))

"""Why two kernels stay two: each pair differs in one respect from one that becomes a kernel."""

from __future__ import annotations

import pytest

from stepwell.ir import loop
from stepwell.lowering.analysis import costs
from stepwell.lowering.loop.fusion import KernelFuser, Obstacle
from stepwell.tests.lowering.loop_text import function_of, parse

READ = "%v = loop.read %{}[%i] : tensor<8xf32>"
WRITE = "loop.write %v, %o[%i] : memref<8xf32>"
LOCAL = "%l = loop.local (8) : memref<8xf32>"
ADD = "loop.write %v, %l[%i] add : memref<8xf32>"


def vector(name: str, body: str, init: str = "") -> str:
    """A kernel that makes eight numbers, called after it."""
    return f'%{name} = loop.kernel "{name}" outs(%o : memref<8xf32>{init}) -> tensor<8xf32> {{\n{body}\n}}'


def number(name: str, body: str) -> str:
    return f'%{name} = loop.kernel "{name}" outs(%o : memref<f32>) -> tensor<f32> {{\n{body}\n}}'


def each(*ops: str) -> str:
    return "loop.parallel (%i) to (8) {\n" + "\n".join(ops) + "\n}"


def total(source: str) -> str:
    read = READ.format(source)
    reduction = f"%s = loop.reduce (%i) to (8) [add] -> f32 {{\n{read}\nloop.yield %v : f32\n}}"
    return f"{reduction}\nloop.write %s, %o[] : memref<f32>"


FIRST, SECOND = vector("a", each(READ.format("x"), WRITE)), vector("b", each(READ.format("a"), WRITE))
SUM = number("a", total("x"))
SCALAR = number("a", "%v = loop.read %z[] : tensor<f32>\nloop.write %v, %o[] : memref<f32>")
NEXT_SCALAR = number("b", "%v = loop.read %a[] : tensor<f32>\nloop.write %v, %o[] : memref<f32>")
SCAN = number(
    "a",
    f"%n = arith.constant 0.0 : f32\n%s = loop.for (%i) to (8) carry (%c = %n : f32) {{\n{READ.format('x')}\n"
    "%t = arith.addf %c, %v : f32\nloop.yield %t : f32\n}\nloop.write %s, %o[] : memref<f32>",
)
OF_A_SCALAR = vector("b", f"%s = loop.read %a[] : tensor<f32>\n{each('loop.write %s, %o[%i] : memref<8xf32>')}")
OTHER = each(READ.format("x").replace("%v", "%u").replace("8xf32", "8xf32"))

OBSTACLES = {
    "one of them updates a tensor in place": [
        (vector("a", each(READ.format("x"), WRITE), " = %x"), SECOND),
        (FIRST, vector("b", each(READ.format("a"), WRITE), " = %x")),
        (vector("a", f"{LOCAL}\n{each(READ.format('x'), ADD, WRITE)}"), SECOND),
        (FIRST, vector("b", f"{LOCAL}\n{each(READ.format('a'), ADD, WRITE)}")),
    ],
    "one of them has several nests": [
        (vector("a", f"{OTHER}\n{each(READ.format('x'), WRITE)}"), SECOND),
        (FIRST, vector("b", f"{OTHER}\n{each(READ.format('a'), WRITE)}")),
    ],
    "scalars would follow a parallel nest": [
        (FIRST, number("b", "%n = arith.constant 3 : index\n%v = loop.read %a[%n] : tensor<8xf32>\n"
                            "loop.write %v, %o[] : memref<f32>")),
    ],
    "every iteration would compute the scalars": [(SCALAR, OF_A_SCALAR)],
    "their nests have no common form": [(SCAN, number("b", total("x")))],
    "the second needs a complete result of the first before it starts": [(SUM, OF_A_SCALAR)],
    "their index spaces share no leading index": [
        (FIRST, vector("b", each("%v = loop.read %a[7 - %i] : tensor<8xf32>", WRITE))),
    ],
}  # fmt: skip
"""Reason → pairs of kernels that stay two for it."""

PAIRS = [(reason, pair) for reason, pairs in OBSTACLES.items() for pair in pairs]
JOINED = [(FIRST, SECOND), (SUM, number("b", total("x"))), (SCALAR, NEXT_SCALAR), (SUM, NEXT_SCALAR)]


def plan(pair: tuple[str, str]) -> object:
    """The indices along which the second joins the first, or why it does not."""
    types = " , ".join("tensor<8xf32>" if "memref<8xf32>" in text.partition("{")[0] else "tensor<f32>" for text in pair)
    signature = f"func.func @main(%x: tensor<8xf32>, %z: tensor<f32>) -> ({types})"
    body = "\n".join([*pair, f"func.return %a, %b : {types}"])
    function = function_of(parse(f"{signature} {{\n{body}\n}}"))
    kernels = [op for op in function.body.block.ops if isinstance(op, loop.KernelOp)]
    fuser = KernelFuser(kernels)
    first, second = fuser.kernels.values()
    return fuser.plan(first, second)


@pytest.mark.parametrize("pair", JOINED)
def test_two_kernels_become_one(pair: tuple[str, str]) -> None:
    assert not isinstance(plan(pair), Obstacle)


@pytest.mark.parametrize(("reason", "pair"), PAIRS, ids=[reason for reason, _ in PAIRS])
def test_two_kernels_stay_two(reason: str, pair: tuple[str, str]) -> None:
    assert plan(pair) == Obstacle(reason)


@pytest.mark.parametrize(
    ("limit", "reason", "most"),
    [("MAX_OPS", "together they have too many ops", 6), ("MAX_TENSORS", "together they touch too many tensors", 3)],
)
def test_two_kernels_stay_two_beyond_a_limit(
    limit: str, reason: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, limit, most)
    assert not isinstance(plan((FIRST, SECOND)), Obstacle)
    monkeypatch.setattr(costs, limit, most - 1)
    assert plan((FIRST, SECOND)) == Obstacle(reason)

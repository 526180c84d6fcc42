"""`stepwell bisect`: planted faults at each level are found, named down to the rewrite, and reduced."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern

from stepwell.__main__ import app
from stepwell.backends.cpu.emit import EMITTERS
from stepwell.backends.cpu.target import host_target
from stepwell.frontend.aten import TABLE
from stepwell.ir import graph
from stepwell.ir.errors import BackendError
from stepwell.ir.run_main import RunMain
from stepwell.ir.target import TargetAttr
from stepwell.lowering.loop.fuse_nests import LoopFuseNests
from stepwell.lowering.loop.fusion import KernelFuser
from stepwell.runtime.bisect import CODE, IMPORT, Fault, bisect
from stepwell.runtime.config import config
from stepwell.runtime.reduction import Case
from stepwell.tests.interpreters.support import parse


class SubtractForAdd(RewritePattern):
    """tanh(x) + y → tanh(x) - y, which is wrong; right at other additions."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.lhs.owner, graph.TanhOp):
            rewriter.replace(op, graph.SubOp.make(op.lhs, op.rhs, op.type))


class SwapMul(RewritePattern):
    """x * exp(y) → exp(y) * x, which is right."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.rhs.owner, graph.ExpOp):
            rewriter.replace(op, graph.MulOp.make(op.rhs, op.lhs, op.type))


class SwapBack(RewritePattern):
    """exp(y) * x → x * exp(y), which is right."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.lhs.owner, graph.ExpOp):
            rewriter.replace(op, graph.MulOp.make(op.rhs, op.lhs, op.type))


class Planted(ModulePass):
    """Rewrites that are right, and one between them that is not."""

    name = "graph-planted"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(SwapMul()).rewrite_module(op)
        PatternRewriteWalker(SubtractForAdd()).rewrite_module(op)
        PatternRewriteWalker(SwapBack()).rewrite_module(op)


def program(x: Tensor, y: Tensor) -> Tensor:
    a = x * torch.exp(y)
    b = a * torch.exp(x)
    return torch.relu(torch.tanh(b) + y).sum(-1)


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 4), torch.randn(2, 4)


def only(faults: list[Fault]) -> Fault:
    (fault,) = faults
    return fault


def ops_of(text: str) -> list[str]:
    """The ops of a reduced program."""
    return [op.name for op in parse(text).walk() if op.name.startswith("graph.")]


def test_a_right_program_has_no_fault() -> None:
    assert bisect(program, *inputs()) == []


@pytest.mark.parametrize("last", [torch.nn.Softmax(-1), torch.nn.LayerNorm(8)], ids=["softmax", "norm"])
def test_gradients_that_cancel_are_no_fault(last: torch.nn.Module) -> None:
    """The sum of a softmax or norm is constant: its gradient is 0, and what is computed for it is rounding."""
    assert bisect(torch.nn.Sequential(torch.nn.Linear(8, 8), last), torch.randn(4, 8)) == []


def test_a_bad_rewrite_is_found_numbered_and_reduced() -> None:
    settings = replace(config.snapshot(), passes=(Planted(),))
    fault = only(bisect(program, *inputs(), settings=settings))
    assert (fault.graph, fault.step, fault.number) == ("inference", "graph-planted", 3)
    assert fault.application is not None
    assert "graph.add" in fault.application
    assert ops_of(fault.program) == ["graph.tanh", "graph.add"]
    assert "graph-planted changes a result by" in str(fault)


def test_a_bad_rewrite_is_found_in_the_backward_graph() -> None:
    class HalfSigmoid(Planted):
        """Works on derivatives of tanh alone."""

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for inner in list(op.walk()):
                if isinstance(inner, graph.SubOp):
                    inner.operands = [inner.operands[1], inner.operands[0]]

    x = torch.randn(4, requires_grad=True)
    settings = replace(config.snapshot(), passes=(HalfSigmoid(),))
    fault = only(bisect(torch.tanh, x, settings=settings))
    assert (fault.graph, fault.step, fault.application) == ("backward", "graph-planted", None)
    assert ops_of(fault.program)[-1] == "graph.sub"


def test_a_bad_fusion_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fuse = KernelFuser.fuse

    def wrong(self: KernelFuser, first: Any, second: Any, pairs: Any) -> None:
        fuse(self, first, second, pairs)
        for op in list(second.op.walk()):
            if isinstance(op, arith.DivfOp) and len(self.kernels) == 1:
                op.operands = [op.operands[1], op.operands[0]]
                break

    monkeypatch.setattr(KernelFuser, "fuse", wrong)
    fault = only(bisect(lambda x: torch.softmax(x, -1) * 2, torch.rand(3, 5) + 1))
    assert fault.step == LoopFuseNests.name
    assert fault.application is not None
    assert fault.application.startswith("join ")
    assert ops_of(fault.program)[-1] == "graph.reciprocal"


def test_a_bad_import_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = torch.ops.aten.tanh.default
    monkeypatch.setitem(TABLE, target, TABLE[torch.ops.aten.sigmoid.default])
    fault = only(bisect(program, *inputs()))
    assert fault.step == IMPORT
    assert fault.application is not None
    assert "aten.tanh" in fault.application


def test_bad_machine_code_is_found_and_reduced_to_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    emitters: Any = EMITTERS
    monkeypatch.setitem(emitters, arith.MaximumfOp, emitters[arith.MinimumfOp])

    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.maximum(torch.exp(x), y * 2) + 1

    fault = only(bisect(function, *inputs()))
    assert fault.step == CODE
    assert ops_of(fault.program) == ["graph.maximum"]


def test_arguments_keep_the_strides_of_their_types() -> None:
    layout = "#stepwell.layout<(s0, 3), (1, s0)>"
    text = f"""
        func.func @main(%s0: index, %x: tensor<?x3xf32, {layout}>) -> tensor<?x3xf32, {layout}>
            attributes {{stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]}} {{
          func.return %x : tensor<?x3xf32, {layout}>
        }}"""
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    _, (size, tensor) = Case(parse(text), (2, value)).as_import({}, TargetAttr(host_target()))
    assert (size, tensor.stride(), tensor.tolist()) == (2, (1, 2), value.tolist())


def test_the_commands_of_a_reduced_program_run_it(tmp_path: Path) -> None:
    settings = replace(config.snapshot(), passes=(Planted(),))
    fault = only(bisect(program, *inputs(), settings=settings))
    run, optimised = fault.program.splitlines()[:2]
    path = tmp_path / "reduced.mlir"
    path.write_text(fault.program)
    arguments = shlex.split(run.removeprefix("// stepwell-run ").replace("FILE", str(path)))
    (result,) = RunMain(arguments).run()
    assert result.startswith("result 0 : tensor<2x4xf32>")
    assert re.fullmatch(r"// stepwell-run --args '#graph.data<.*>, #graph.data<.*>' FILE", run)
    assert "-p graph-simplify-views" in optimised
    assert optimised.partition(" | ")[0].endswith("graph-planted")


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(BackendError, match="bisect: expected tensors on the CPU, got meta"):
        bisect(program, torch.empty(2, device="meta"), torch.empty(2))


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    path = tmp_path / "bisected_program.py"
    path.write_text("import torch\ndef f(x):\n    return torch.exp(x)\n")
    done = CliRunner().invoke(app, ["bisect", f"{path}:f", "--shape", "4xf32"])
    assert done.exit_code == 0, done.output
    assert "no difference" in done.output

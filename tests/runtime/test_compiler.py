"""One compile: what is dumped and can be run again, what is kept, and what is given back."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from stepwell.backends.native.jit import NativeModule
from stepwell.ir import host, loop
from stepwell.lowering.host.plan_buffers import HostPlanBuffers
from stepwell.lowering.pipelines import CPU
from stepwell.runtime.compiler import collector_paused, without_comment
from stepwell.runtime.config import config
from stepwell.runtime.observers import CompiledGraph
from stepwell.runtime.torch_backend import compile_captured
from stepwell.tests.filecheck.runlines import TOOLS


class Outcomes:
    """A recorder that keeps what was compiled."""

    def __init__(self) -> None:
        self.graphs: list[CompiledGraph] = []

    def before(self, *event: object) -> None: ...

    def after(self, *event: object) -> None: ...

    def finished(self, graph: CompiledGraph) -> None:
        self.graphs.append(graph)


def compiled(function: Callable[..., Any], *recorders: Any) -> Callable[..., Any]:
    settings = config.snapshot()
    wrapped: Callable[..., Any] = torch.compile(
        function, backend=lambda gm, inputs: compile_captured(gm, inputs, settings, *recorders)
    )
    return wrapped


def affine(x: Tensor) -> Tensor:
    return x * 3 + 1


# -- steps -------------------------------------------------------------------------------------------


def test_every_step_is_timed() -> None:
    outcomes = Outcomes()
    compiled(affine, outcomes)(torch.ones(8))
    (graph,) = outcomes.graphs
    passes = [name for _, names in CPU for name in names]
    assert list(graph.timings) == ["import", *dict.fromkeys(passes), "emit", "llvm", "plan"]
    assert all(seconds >= 0 for seconds in graph.timings.values())


def test_nothing_of_the_levels_above_is_left() -> None:
    outcomes = Outcomes()
    compiled(lambda x: torch.softmax(x @ x, -1), outcomes)(torch.ones(8, 8))
    (graph,) = outcomes.graphs
    left = [op.name for op in graph.module.walk() if isinstance(op, loop.KernelOp | host.LaunchOp)]
    assert not left
    assert not [op.name for op in graph.module.walk() if op.name.startswith("graph.")]


def test_a_kernel_on_another_line_is_the_same_code() -> None:
    assert without_comment("; tile.kernel @k, model.py:3\ndefine") == "define"
    assert without_comment("define") == "define"


# -- dumps -------------------------------------------------------------------------------------------


def test_a_dump_holds_every_pass_with_the_command_that_runs_it(tmp_path: Path) -> None:
    with config.patch(dump=tmp_path):
        compiled(affine)(torch.ones(8))
        torch._dynamo.reset()
        compiled(affine)(torch.ones(8))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph-0", "graph-1"]
    folder = tmp_path / "graph-0"
    passes = [name for _, names in CPU for name in names]
    files = sorted(folder.glob("[0-9][0-9]-*.mlir"))
    assert [path.stem.partition("-")[2] for path in files] == passes
    assert "def inference(args):" in (folder / "plan.py").read_text()
    assert "define void" in next(folder.glob("*.ll")).read_text()


def test_dumped_commands_lead_from_one_file_to_the_next(tmp_path: Path) -> None:
    with config.patch(dump=tmp_path):
        compiled(affine)(torch.ones(8))
    files = sorted(tmp_path.glob("graph-0/[0-9][0-9]-host-*.mlir"))
    for before, after in pairwise(files):
        command = re.search(r"xdsl-opt (.*)$", before.read_text().splitlines()[0])
        assert command
        assert TOOLS["xdsl-opt"](command[1].split(), "").strip() == after.read_text().partition("\n")[2].strip()


def without_places(text: str) -> list[str]:
    """LLVM IR without the comments that name lines of the program, which the text of our IR does not keep."""
    return [line for line in text.splitlines() if not line.strip().startswith(";")]


@pytest.mark.parametrize("stage", [stage for stage, _ in CPU if stage != "host"])
def test_the_dump_of_a_stage_leads_to_the_code_of_the_kernels(tmp_path: Path, stage: str) -> None:
    with config.patch(dump=tmp_path):
        compiled(affine)(torch.ones(8))
    path = tmp_path / "graph-0" / f"{stage}.mlir"
    command = re.fullmatch(rf"// inference graph after stage {stage}; xdsl-opt (.*)", path.read_text().splitlines()[0])
    assert command
    printed = TOOLS["xdsl-opt"](command[1].split(), "")
    assert without_places(printed) == without_places(next(path.parent.glob("*.ll")).read_text())


def test_the_replay_file_of_a_failing_pass_is_its_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apply = HostPlanBuffers.apply

    def fail(self: HostPlanBuffers, ctx: Any, module: Any) -> None:
        apply(self, ctx, module)
        raise ValueError("half done")

    monkeypatch.setattr(HostPlanBuffers, "apply", fail)
    with config.patch(dump=tmp_path), pytest.raises(Exception, match="half done") as caught:
        compiled(lambda x: torch.softmax(x, -1).t().contiguous())(torch.ones(4, 8))
    notes = "\n".join(caught.value.inner_exception.__notes__)  # type: ignore[attr-defined]
    path = re.search(r"xdsl-opt -p host-plan-buffers (\S+)", notes)
    assert path
    text = Path(path[1]).read_text()
    assert "host.run" in text
    assert "host.slot" not in text


# -- what is kept ------------------------------------------------------------------------------------


def test_forgotten_graphs_give_their_code_back() -> None:
    def live() -> int:
        gc.collect()
        return sum(type(thing) is NativeModule for thing in gc.get_objects())

    torch._dynamo.reset()
    before = live()
    for factor in range(20):
        torch._dynamo.reset()
        compiled(lambda x, factor=factor: (x * factor).exp())(torch.ones(8))
    assert live() > before
    torch._dynamo.reset()
    assert live() <= before + 1  # the driver, which the first stretch makes


def test_the_collector_pauses_and_resumes() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()

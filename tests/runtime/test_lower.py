"""`python -m stepwell lower`: a program on the command line as text at each level, which xdsl-opt reads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from stepwell.__main__ import app
from stepwell.ir.errors import OptionError
from stepwell.runtime.lower import LEVELS, SEPARATOR, lower
from stepwell.runtime.program import Program, example, load
from stepwell.tests.interpreters.support import parse

SOURCE = """
import torch
from torch import nn

def gelu_sum(x, y):
    return torch.nn.functional.gelu(x + y).sum(-1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)).sum()

def example_inputs():
    return [torch.ones(2, 8)]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lowered_program.py"
    path.write_text(SOURCE)
    return path


needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")

MARKS = {
    "graph": "graph.erf", "loop": "loop.reduce", "tile": "tile.kernel @", "host": "host.stretch",
    "llvm": "define void @", "asm": ".globl", "ttir": "tt.func", "ptx": ".visible .entry",
}  # fmt: skip


def test_every_level_has_a_mark() -> None:
    assert set(MARKS) == set(LEVELS)


@pytest.mark.parametrize(
    "level",
    [level if level != "ptx" else pytest.param(level, marks=needs_triton) for level in LEVELS],
)
def test_a_function_prints_at_each_level(file: Path, level: str) -> None:
    arguments = ["lower", f"{file}:gelu_sum", "--to", level, "--shape", "4x8xf32", "--shape", "4x8xf32"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert MARKS[level] in done.output
    if level in ("graph", "loop", "tile", "host"):
        parse(done.output)


def test_a_dynamic_size_is_a_symbol(file: Path) -> None:
    text = lower(load(f"{file}:gelu_sum", ["?x8xbf16", "?x8xbf16"]), "graph")
    assert "(s0, 8)" in text
    assert "hint 24" in text
    assert "bf16" in text


def test_pass_by_pass_shows_each_pass_up_to_the_level(file: Path) -> None:
    program = load(f"{file}:gelu_sum", ["4x8xf32", "4x8xf32"])
    parts = lower(program, "loop", pass_by_pass=True).split(SEPARATOR)
    after = [part.partition("\n")[0].rpartition(" ")[2] for part in parts]
    assert after[0] == "import"
    assert "\n// graph-fold-constants changes nothing" in parts[0]
    assert "loop-fuse-producers" in after
    assert "\n// loop-split-phases changes nothing" in parts[-1]
    assert "convert-loop-to-tile" not in after
    for part in parts:
        parse(part)


def test_the_way_to_a_gpu_has_passes_of_its_own(file: Path) -> None:
    text = lower(load(f"{file}:gelu_sum", ["4x8xf32", "4x8xf32"]), "ttir", pass_by_pass=True)
    assert "graph after convert-tile-to-tt" in text
    assert '#stepwell.target<"sm_90"' in text
    assert "host.stretch" in text


@needs_triton
def test_ptx_is_for_the_gpu_that_is_named(file: Path) -> None:
    assert ".target sm_80" in lower(load(f"{file}:gelu_sum", ["4x8xf32", "4x8xf32"]), "ptx", cpu="sm_80")


def test_a_graph_without_kernels_has_no_code_for_a_gpu(file: Path) -> None:
    assert lower(Program(torch.nonzero, (torch.ones(2),)), "ttir") == ""


def test_a_module_gives_forward_and_backward_of_its_example_inputs(file: Path) -> None:
    forward, backward = lower(load(f"{file}:Net"), "graph").split(SEPARATOR)
    assert forward.startswith("// forward graph")
    assert "tensor<2x8xf32>" in forward
    assert backward.startswith("// backward graph")


def test_assembly_for_a_processor_that_is_named(file: Path) -> None:
    program = load(f"{file}:gelu_sum", ["4x8xf32", "4x8xf32"])
    assert "zmm" not in lower(program, "asm", cpu="haswell")


@pytest.mark.parametrize(
    ("shape", "sizes", "dtype"),
    [("4x?7xf32", (4, 7), torch.float32), ("i64", (), torch.int64), ("0x3xi1", (0, 3), torch.bool)],
)
def test_a_shape_gives_a_tensor(shape: str, sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    made = example(shape)
    assert (made.shape, made.dtype) == (sizes, dtype)


@pytest.mark.parametrize("shape", ["4x8", "x8xf32", "4xf33", "4 x f32", "-1xf32"])
def test_a_shape_that_is_none_is_refused(shape: str) -> None:
    with pytest.raises(OptionError, match="expected sizes and an element type of"):
        example(shape)


def test_a_name_that_the_file_has_not_is_refused_with_those_it_has(file: Path) -> None:
    with pytest.raises(OptionError, match=r"expected one of .*gelu_sum"):
        load(f"{file}:gelu_max")
    with pytest.raises(OptionError, match="a file that exists"):
        load("nowhere.py:f")


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match="expected one of graph, loop, tile, host, llvm, asm, ttir, ptx"):
        lower(Program(torch.exp, (torch.ones(2),)), "cubin")

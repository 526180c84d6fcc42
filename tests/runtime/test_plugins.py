"""What an installed package adds through entry points: an op from ATen to machine code, a pass, a backend, a target."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

METADATA = "Metadata-Version: 2.1\nName: acme\nVersion: 0.1\n"

ENTRY_POINTS = """
[xdsl.universe]
acme = acme.universe:UNIVERSE
[stepwell.imports]
acme = acme.op
[stepwell.interpreters]
acme = acme.meaning
[stepwell.conversions]
acme = acme.conversion
[stepwell.passes]
acme = acme.passes:CountKernels
[stepwell.backends]
acme = acme.backend:BACKEND
"""

MEANING = """
import numpy as np
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition
from stepwell.ir.graph.elementwise import FloatUnaryOp
from stepwell.ir.graph.evaluate import FUNCTIONS

@irdl_op_definition
class TwiceExpOp(FloatUnaryOp):
    \"\"\"exp(exp(x)).\"\"\"
    name = "acme.twice_exp"

DIALECT = Dialect("acme", [TwiceExpOp], [])
FUNCTIONS[TwiceExpOp] = lambda x: np.exp(np.exp(x))
"""

CONVERSION = """
from stepwell.lowering.convert.graph.elementwise import FLOAT
from xdsl.dialects import math
from .meaning import TwiceExpOp
FLOAT[TwiceExpOp] = lambda s, x: s.apply(math.ExpOp, s.apply(math.ExpOp, x))
"""

OP = """
import torch
from stepwell.frontend.aten.registry import imports
from .meaning import TwiceExpOp

torch.library.define("acme::twice_exp", "(Tensor x) -> Tensor")
torch.library.impl("acme::twice_exp", "CompositeExplicitAutograd", lambda x: x.exp().exp())
torch.library.register_fake("acme::twice_exp", torch.empty_like)

@imports("acme.twice_exp")
def twice_exp(builder, x):
    return builder.unary(TwiceExpOp, x.up())
"""

PASSES = """
from xdsl.passes import ModulePass
from stepwell.ir import loop
COUNTS = []

class CountKernels(ModulePass):
    \"\"\"Count the kernels that fusion leaves.\"\"\"
    name = "acme-count-kernels"
    stage = "fused"
    def apply(self, ctx, op):
        COUNTS.append(sum(isinstance(each, loop.KernelOp) for each in op.walk()))
"""

BACKEND = """
class Declining:
    asked = []
    def compile(self, kernel, target):
        self.asked.append(kernel.sym_name.data)
BACKEND = Declining()
"""

UNIVERSE = """
from xdsl.universe import Universe
def dialect():
    from .meaning import DIALECT
    return DIALECT
def count_kernels():
    from .passes import CountKernels
    return CountKernels
UNIVERSE = Universe(all_dialects={"acme": dialect}, all_passes={"acme-count-kernels": count_kernels})
"""

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program where the package is installed; gives what it prints."""
    package, info = tmp_path / "acme", tmp_path / "acme-0.1.dist-info"
    package.mkdir()
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    files = {
        "__init__": "", "meaning": MEANING, "conversion": CONVERSION, "op": OP, "passes": PASSES, "backend": BACKEND,
        "universe": UNIVERSE,
    }  # fmt: skip
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)

    def execute(*command: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return execute


PROGRAM = """
import torch, stepwell
from acme.backend import BACKEND
from acme.passes import COUNTS
from stepwell.ir.interpret import interpret
def function(x):
    return torch.ops.acme.twice_exp(x * 0.5) + 1
x = torch.rand(8)
compiled = torch.compile(function, backend="stepwell", options={"backend": "acme"})
torch.testing.assert_close(compiled(x), function(x))
explanation = stepwell.explain(function, x)
assert "twice_exp" in explanation.kernels[0].ops and not explanation.externs
assert COUNTS == [1, 1], COUNTS
print(BACKEND.asked)
from stepwell.runtime.bisect import bisect
assert bisect(function, x) == []
"""


def test_a_package_adds_an_op_a_pass_and_a_backend(run: Run) -> None:
    assert run(sys.executable, "-c", PROGRAM).strip() == "['mul_twice_exp_add_0']"


def test_stock_xdsl_opt_lowers_the_op_of_a_package_to_code(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %y = acme.twice_exp %x : tensor<8xf32>\n  func.return %y : tensor<8xf32>\n}\n"
    )
    tool = str(Path(sys.executable).with_name("xdsl-opt"))
    passes = "convert-graph-to-loop,acme-count-kernels,convert-loop-to-tile"
    assert "define void @twice_exp_0" in run(tool, str(path), "-p", passes, "-t", "llvm-ir")


BROKEN = """
import stepwell
from stepwell.ir import plugins
try:
    plugins.load("stepwell.backends")
except stepwell.ConfigError as error:
    print(error)
"""


def test_an_entry_point_that_fails_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "acme" / "backend.py").write_text("import nothing_of_that_name")
    message = run(sys.executable, "-c", BROKEN)
    assert message.startswith("entry point acme of stepwell.backends: expected a backend")
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in message


@pytest.mark.parametrize("name", ["fused_op", "kernel_schedule", "c_backend"])
def test_an_example_of_an_extension_is_short(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 100

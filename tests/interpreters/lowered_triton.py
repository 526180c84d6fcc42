"""Lowers programs for an H100, down to tile kernels or to functions of Triton's dialect."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from stepwell.backends.triton.target import H100
from stepwell.ir import tt
from stepwell.ir.target import TARGET, TargetAttr
from stepwell.lowering.pipelines import make_pass
from stepwell.tests.interpreters import support

TO_TILE = ("loop-distribute-nests", "loop-coalesce-dims", "loop-split-reductions", "convert-loop-to-tile")
TO_TRITON = (*TO_TILE, "convert-tile-to-tt")


def context() -> Context:
    made = support.context()
    made.load_dialect(scf.Scf)
    made.load_dialect(tt.Triton)
    return made


def lower(module: ModuleOp, *passes: str) -> None:
    """Runs passes for that target, and verifies after each."""
    module.attributes[TARGET] = TargetAttr(H100)
    for name in passes:
        make_pass(name).apply(context(), module)
        module.verify()


def lowered(text: str, *passes: str) -> ModuleOp:
    """The module after passes for that target."""
    module = Parser(context(), text).parse_module()
    lower(module, *passes)
    return module

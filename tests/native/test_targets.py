"""Targets of xdsl-opt: what they print is tested in tests/filecheck, here what they refuse, and PTX."""

from __future__ import annotations

from io import StringIO

import pytest

from stepwell.ir.errors import BackendError
from stepwell.lowering.pipelines import make_pass
from stepwell.tests.interpreters.support import context, parse
from stepwell.universe import STEPWELL_UNIVERSE

KERNEL = """
tile.kernel @double(%x : memref<?xf32>, %o : memref<?xf32>) grid (3) {
  %p = tile.program_id : index
  %a = tile.load %x[%p * 128] strides (1) : memref<?xf32> -> vector<128xf32>
  %b = arith.addf %a, %a : vector<128xf32>
  tile.store %b, %o[%p * 128] strides (1) : vector<128xf32>, memref<?xf32>
}
"""


def printed(target: str, text: str, *passes: str, **options: object) -> str:
    module, stream = parse(text), StringIO()
    for name in passes:
        make_pass(name).apply(context(), module)
    STEPWELL_UNIVERSE.all_targets[target]()(**options).emit(context(), module, stream)
    return stream.getvalue()


@pytest.mark.parametrize("target", STEPWELL_UNIVERSE.all_targets)
def test_a_module_without_kernels_is_refused(target: str) -> None:
    with pytest.raises(BackendError, match=rf"target {target}: expected a module with .*, got none; lower it first"):
        printed(target, "func.func @main() { func.return }")


def test_a_processor_that_llvm_does_not_know_is_refused() -> None:
    with pytest.raises(BackendError, match="processor 'pentium9'"):
        printed("asm", KERNEL, cpu="pentium9")


def test_ptx_is_for_the_architecture_that_is_named() -> None:
    pytest.importorskip("triton")
    text = printed("ptx", KERNEL, "convert-tile-to-tt", arch=80)
    assert ".target sm_80" in text
    assert ".visible .entry double(" in text

"""`host-batch-runs`: how many runs one kernel can take."""

from __future__ import annotations

import pytest

from stepwell.ir import host
from stepwell.lowering.host.batch_runs import MOST_ARGUMENTS, HostBatchRuns, meet
from stepwell.tests.golden.builder import context
from stepwell.tests.interpreters.support import parse

BUFFER = "!host.buffer<f32, (1), (1)>"
TARGET = (
    '#stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 1, l1_bytes = 1, l2_bytes = 1, l3_bytes = 1>'
)


def arguments_of_runs(count: int) -> list[int]:
    """The arguments of each run that becomes of so many runs of a kernel of two."""
    names = [f"%a{k}" for k in range(2 * count)]
    runs = [
        f"host.run @k ins({x} : {BUFFER}) outs({y} : {BUFFER})" for x, y in zip(names[::2], names[1::2], strict=True)
    ]
    module = parse(f"""
    builtin.module attributes {{stepwell.target = {TARGET}}} {{
      func.func @f({", ".join(f"{name}: {BUFFER}" for name in names)}) {{
        host.stretch {{
          {" ".join(runs)}
        }}
        host.return () : () -> ()
      }}
      tile.kernel @k(%x: memref<?xf32>, %y: memref<?xf32>) grid (1) {{
        %v = tile.load %x[0] strides () : memref<?xf32> -> f32
        tile.store %v, %y[0] strides () : f32, memref<?xf32>
      }}
    }}""")
    HostBatchRuns().apply(context(), module)
    return [len(op.operands) for op in module.walk() if isinstance(op, host.RunOp)]


@pytest.mark.parametrize(("count", "expected"), [(248, [496]), (249, [498]), (250, [498, 2]), (251, [498, 4])])
def test_a_kernel_takes_fewer_arguments_than_a_launch_can_pass(count: int, expected: list[int]) -> None:
    assert MOST_ARGUMENTS == 500
    assert arguments_of_runs(count) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (range(64), range(64, 128), False),
        (range(64), range(63, 128), True),
        (range(64), range(16, 32), True),
        (range(64), None, True),
    ],
)
def test_memory_meets_in_either_order(one: range | None, other: range | None, expected: bool) -> None:
    assert meet(one, other) is expected
    assert meet(other, one) is expected

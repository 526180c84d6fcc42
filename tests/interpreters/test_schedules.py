"""Kernels as fusion makes them: loop and tile level agree with each other and with eager, at any sizes.

What a tile kernel moves is what the model of its loop kernel says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor

from stepwell.ir import loop
from stepwell.ir.interpret import Interpretation
from stepwell.lowering.analysis.costs import bytes_moved
from stepwell.tests.interpreters.support import lowered, parse, run, to_array, to_tensor
from stepwell.tests.lowering import schedule_cases as cases
from stepwell.tests.lowering.schedule_cases import Case

MAKERS: tuple[Callable[..., Case], ...] = (
    cases.chain, cases.gelu, cases.not_and, cases.softmax, cases.softmax_backward, cases.layer_norm,
    cases.layer_norm_backward, cases.affine_gradients, cases.rows_and_columns,
    cases.points_and_columns, cases.rms_norm, cases.rms_norm_backward, cases.cross_entropy,
    cases.cross_entropy_backward, cases.total, cases.sums, cases.argmax, cases.batch_norm_statistics, cases.max_pool,
    cases.transpose_add, cases.permute, cases.concatenate, cases.pad, cases.embedding, cases.embedding_backward,
    cases.cumsum, cases.centered,
)  # fmt: skip

SIZES = [(3, 37), (1, 1), (20, 5)]


def arguments(case: Case) -> list[Tensor | int]:
    """Tensors first, as the functions of the cases take them, then their sizes."""
    return [*case.inputs, *case.symbols.values()]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_levels_agree(maker: Callable[..., Case], sizes: tuple[int, int], dynamic: bool) -> None:
    case = maker(*sizes, dynamic=dynamic)
    at_loop = run(parse(case.text), *arguments(case))
    at_tile = run(lowered(case.text, "convert-loop-to-tile"), *arguments(case))
    case.check([to_tensor(value) for value in at_loop])
    case.check([to_tensor(value) for value in at_tile])


SINGLE_PASS = (cases.chain, cases.gelu, cases.softmax, cases.sums, cases.max_pool, cases.transpose_add, cases.permute)
"""Kernels that read every element of each tensor."""


@pytest.mark.parametrize("maker", SINGLE_PASS, ids=lambda maker: maker.__name__)
def test_a_kernel_moves_the_bytes_that_its_model_says(maker: Callable[..., Case]) -> None:
    case = maker(6, 10)
    (kernel,) = (op for op in parse(case.text).walk() if isinstance(op, loop.KernelOp))
    run = Interpretation(lowered(case.text, "convert-loop-to-tile"))
    run.call([to_array(value) for value in case.inputs])
    (traffic,) = run.traffic
    assert sum(traffic.read) + sum(traffic.written) == bytes_moved(kernel)
    assert np.min([traffic.loaded, traffic.stored]) > 0

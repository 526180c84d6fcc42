"""How near to eager a result must be: about as near to float64 as eager, of each element's own terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mpmath as mp
import pytest
import torch
from torch import Tensor

pytest.importorskip("expecttest", reason="torch's operator database needs it")

from stepwell.benchmarks.coverage.cases import Call, Case
from stepwell.benchmarks.coverage.judge import difference
from stepwell.benchmarks.coverage.reference import Reference
from stepwell.benchmarks.coverage.running import Outcome, eagerly, run
from stepwell.ir.errors import LoweringError


def case_of(function: Callable[..., Any], *args: Any, gradients: bool = False) -> Case:
    return Case("0", Call.of(function, args, {}), gradients)


def changed(case: Case, index: int, by: float, name: str = "results") -> dict[str, str]:
    """How the judge finds eager's outcome with one element changed."""
    expected = run(eagerly, case.call, gradients=case.gradients)
    values: Sequence[Tensor] = getattr(expected, name)
    other = values[0].detach().clone()
    other.view(-1)[index] += by
    parts: dict[str, Any] = {name: [other]}
    return difference(expected, replace(expected, **parts), Reference(case))


def test_what_is_added_up_is_known_per_element() -> None:
    x = torch.tensor([[3e4, 4e4, 0.0], [3.0, -4.0, 12.0]])
    added = Reference(case_of(lambda x: x.sum(1), x)).added("results", 0)
    assert added is not None  # the terms, and the sum itself
    assert torch.allclose(added, torch.tensor([8.6e4, 17.0], dtype=torch.float64), rtol=0.6)


def test_a_gradient_is_a_sum_of_those_of_results() -> None:
    x = torch.ones(1, requires_grad=True)
    added = Reference(case_of(lambda x: x.expand(1000) * 1, x, gradients=True)).added("gradients", 0)
    assert added is not None
    assert 10 < float(added) < 100  # 1000 terms up to 2, some above and some below 0


def test_a_small_element_is_judged_by_its_own_terms() -> None:
    case = case_of(lambda x: x.sum(1), torch.tensor([[3e4, 4e4, 0.1], [3.0, -4.0, 12.1]]))
    assert changed(case, 0, 7e4 * 2**-23) == {}
    assert "values" in changed(case, 1, 7e4 * 2**-23)


def test_terms_that_cancel_may_leave_their_rounding() -> None:
    case = case_of(lambda x: x.sum(1), torch.tensor([[3e4, 4e4, 0.1], [3e4, -3e4, 0.1]]))
    assert changed(case, 1, 3e4 * 2**-23) == {}
    assert "values" in changed(case, 1, 10 * 3e4 * 2**-23)


def test_float64_is_judged_by_what_was_added_up() -> None:
    case = case_of(lambda x: (x + 1e6) - 1e6, torch.tensor([1e-6, 2e-6], dtype=torch.float64))
    assert changed(case, 0, 1e6 * 2**-52) == {}
    assert "values" in changed(case, 0, 1e6 * 2**-40)


def test_a_logarithm_of_nearly_1_is_judged_by_the_sum_that_it_is_of() -> None:
    """The true values, in which eager's sum of 1 and small numbers has lost digits, are right; others are not."""
    x = torch.tensor([[-1.5, 7.4, -3.1], [0.3, 8.0, 12.5], [16.0, 2.0, 1.0]], dtype=torch.float64)
    case = case_of(lambda x: x.log_softmax(1), x)
    eager = case.call(x)[0].view(-1)
    rows = [[mp.mpf(number) for number in row] for row in x.tolist()]
    true = [float(one - mp.log(sum(map(mp.exp, row)))) for row in rows for one in row]
    errors = [value - float(one) for value, one in zip(true, eager, strict=True)]
    assert any(errors)
    for place, error in enumerate(errors):
        assert changed(case, place, error) == {}
    assert "values" in changed(case, 1, 1e-14)


def test_what_eager_gives_elsewhere_in_memory_is_eagers() -> None:
    """Its remainders by vectors are NaN where a quotient overflows, those by scalars exact."""
    case = case_of(torch.fmod, torch.full((64,), -5.0), torch.full((64,), 2.0**-126))
    expected = run(eagerly, case.call, gradients=False)
    exact = torch.full((64,), math.fmod(-5.0, 2.0**-126))

    def judged(found: Tensor) -> dict[str, str]:
        return difference(expected, replace(expected, results=[found]), Reference(case))

    assert judged(exact) == {}
    assert judged(expected.results[0]) == {}
    if expected.results[0].isnan().any():  # a machine without vectors has none
        assert "values" in judged(exact + 1)


def test_what_overflows_in_eager_is_infinite() -> None:
    case = case_of(torch.exp, torch.tensor([12.0, 1.0], dtype=torch.float16))
    expected = run(eagerly, case.call, gradients=False)
    found = replace(expected, results=[torch.tensor([65504.0, float(expected.results[0][1])]).half()])
    assert "values" in difference(expected, found, Reference(case))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8], ids=str)
def test_integers_are_exact(dtype: torch.dtype) -> None:
    assert "values" in changed(case_of(lambda x: x + 1, torch.tensor([1, 100], dtype=dtype)), 1, 1)


def test_a_number_is_no_nan() -> None:
    case = case_of(torch.log, torch.tensor([-1.0, 1.0]))
    assert changed(case, 0, 1.0) == {}
    assert "values" in changed(case, 1, float("nan"))


def test_an_error_of_the_compiler_is_no_error_of_eager() -> None:
    refused, broken = Outcome(error=RuntimeError("sizes")), Outcome(error=LoweringError("pass", expected="a", got="b"))
    assert difference(refused, Outcome(error=RuntimeError("other words")), None) == {}
    assert "error type" in difference(refused, broken, None)
    wrapped = RuntimeError("backend failed")
    wrapped.inner_exception = broken.error  # type: ignore[attr-defined]
    assert "error type" in difference(refused, Outcome(error=wrapped), None)
    assert "error type" in difference(refused, Outcome(error=TypeError("sizes")), None)

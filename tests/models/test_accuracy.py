"""The comparison with eager that the models are held to."""

from __future__ import annotations

import pytest
import torch

from stepwell.tests.models.accuracy import Results, assert_as_accurate_as_eager


def _results(*errors: float) -> tuple[Results, Results, Results]:
    """Results that are off by these parts in a million, eager's and exact ones: eager is off by one, at one by none."""
    exact = {str(k): torch.full((8,), 3.0, dtype=torch.float64) for k in range(len(errors))}
    eager = {name: (value * (1 + 1e-6 * (name != "0"))).float() for name, value in exact.items()}
    compiled = {
        name: (value * (1 + 1e-6 * error)).float() for (name, value), error in zip(exact.items(), errors, strict=True)
    }
    return compiled, eager, exact


def test_luck_of_eager_is_not_held_against_us() -> None:
    assert_as_accurate_as_eager(*_results(3, 3, 3))


@pytest.mark.parametrize("errors", [(9, 1, 1), (1, 9, 1), (float("nan"), 1, 1)])
def test_one_result_that_is_off_is_found(errors: tuple[float, ...]) -> None:
    with pytest.raises(AssertionError, match="eager's allows"):
        assert_as_accurate_as_eager(*_results(*errors))

"""How often the zoo's rule turns down a program that is as exact as eager: where it does, it cannot judge the model.

The program is eager with its operators decomposed, so that it rounds at other places; each is judged by the other's
error. `python -m stepwell.tests.models.control clip bert --groups 6`
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import torch
import typer
from torch import nn

from stepwell.tests.models.accuracy import Results, Statistic, judge
from stepwell.tests.models.test_zoo import TRIALS, built, statistics_of, train, training_batches
from stepwell.tests.models.zoo import ZOO


def decomposed(module: nn.Module) -> Any:
    return torch.compile(module, backend="aot_eager_decomp_partition")


def largest_share(
    found: list[Results], reference: list[Results], exact: list[Results], statistics: tuple[Statistic, ...]
) -> float:
    """The largest error of a tensor, as a share of what the reference's error allows."""
    judged = [one for statistic in statistics for one in judge(found, reference, exact, statistic).values()]
    return max(one.error / one.allowed if one.allowed else float("inf") if one.error else 0.0 for one in judged)


def main(
    models: Annotated[list[str] | None, typer.Argument(help="Of the zoo; all if none is named.")] = None,
    groups: Annotated[int, typer.Option(help=f"How often {TRIALS} batches are judged together.")] = 2,
) -> None:
    """Print for each model the largest share of what is allowed, one program judged by the other and back."""
    with warnings.catch_warnings(action="ignore"):  # those of torch's own modules, which the first compile imports
        decomposed(nn.Linear(2, 2))(torch.ones(2, 2)).sum().backward()
    for name in models or ZOO:
        torch._dynamo.reset()
        shares: list[tuple[float, float]] = []
        for group in range(groups):
            with torch._dynamo.config.patch(allow_rnn=True):
                steps = train(built(name), decomposed, training_batches(name, group * TRIALS))
            other, eager, exact = ([step[k] for step in steps] for k in range(3))
            judged_by = statistics_of(name)
            there, back = (largest_share(*pair, exact, judged_by) for pair in ((other, eager), (eager, other)))
            shares.append((there, back))
        refused = sum(share > 1 for pair in shares for share in pair)
        print(f"{name}: {refused} of {2 * groups} refused;", *(f"{there:.2f}/{back:.2f}" for there, back in shares))
        sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)

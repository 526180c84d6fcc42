"""Two processes under gloo: compiled programs give what eager gives there, and what one process gives alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.spawn import spawn

from stepwell.tests.distributed.programs import PROGRAMS, WORLD, run_rank, single_process

BACKENDS = ("eager", "stepwell")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all programs, which one pair of processes computes."""
    found = tmp_path_factory.mktemp("gloo")
    spawn(run_rank, (str(found), BACKENDS), nprocs=WORLD, join=True)
    return found


def results(folder: Path, name: str, backend: str) -> list[dict[str, Tensor]]:
    """What each rank computed."""
    found: list[Any] = [torch.load(folder / f"{name}-{backend}-{rank}.pt") for rank in range(WORLD)]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_rank_computes_what_it_does_in_eager(folder: Path, name: str) -> None:
    for found, expected in zip(*(results(folder, name, backend) for backend in ("stepwell", "eager")), strict=True):
        assert list(found) == list(expected)
        for key, value in found.items():
            torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["data_parallel", "fully_sharded"])
def test_all_ranks_together_are_one_process(folder: Path, name: str) -> None:
    alone = single_process()
    ranks = results(folder, name, "stepwell")
    for key, expected in alone.items():
        if key.startswith("output"):
            found = torch.stack([rank[key] for rank in ranks], 1).reshape(expected.shape)
        else:
            found = ranks[0][key]
            assert torch.equal(found, ranks[1][key])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)

"""`mode="reduce-overhead"` on a GPU: what is replayed, and what must not change under its owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from stepwell.runtime.cuda_graphs import MAX_PATTERNS, Recording
from stepwell.tests.gpu.training import losses


def graphed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="stepwell", mode="reduce-overhead", fullgraph=True, **options)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """Grows with every replay."""
    seen: list[Recording] = []
    replay = Recording.replay

    def counted(self: Recording, args: Sequence[Any]) -> list[Any]:
        seen.append(self)
        return replay(self, args)

    monkeypatch.setattr(Recording, "replay", counted)
    return seen


def chain(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(torch.sin(x) @ w, -1) * 2


def test_the_second_call_with_the_same_addresses_is_a_replay(gpu: torch.device, replays: list[Recording]) -> None:
    function = graphed(chain)
    x, w = torch.randn(64, 64, device=gpu), torch.randn(64, 64, device=gpu)
    for call in range(4):
        x.normal_()
        torch.testing.assert_close(function(x, w), chain(x, w))
        assert len(replays) == call
    assert len(set(map(id, replays))) == 1
    other = torch.randn(64, 64, device=gpu)
    torch.testing.assert_close(function(other, w), chain(other, w))
    assert len(replays) == 3


def test_results_that_are_held_do_not_change(gpu: torch.device, replays: list[Recording]) -> None:
    function = graphed(chain)
    x, w = torch.randn(64, 64, device=gpu), torch.randn(64, 64, device=gpu)
    held, expected = [], []
    for _ in range(6):
        x.normal_()
        held.append(function(x, w))
        expected.append(chain(x, w))
    for one, wanted in zip(held, expected, strict=True):
        torch.testing.assert_close(one, wanted)
    assert len(replays) == 2
    view = held[1][3:]
    del held, one
    function(x.normal_(), w)
    torch.testing.assert_close(view, expected[1][3:])


def test_training(gpu: torch.device, replays: list[Recording]) -> None:
    eager, found = losses(gpu, 8, lambda f: f, graphed)
    assert found == pytest.approx(eager, rel=1e-4)
    assert len(replays) > 6


def test_random_numbers_are_fresh_in_every_replay(gpu: torch.device, replays: list[Recording]) -> None:
    function, x = graphed(lambda x: nn.functional.dropout(x, 0.5)), torch.ones(1000, device=gpu)
    found = [function(x).clone() for _ in range(5)]
    assert replays
    assert all(not torch.equal(one, other) for one, other in pairwise(found))


def test_sizes_belong_to_the_pattern(gpu: torch.device, replays: list[Recording]) -> None:
    whole, w = torch.randn(100, 64, device=gpu), torch.randn(64, 64, device=gpu)
    function = graphed(lambda x: chain(x, w), dynamic=True)
    for rows in (100, 50) * 4:
        part = whole[:rows]
        torch.testing.assert_close(function(part), chain(part, w))
    assert len(set(map(id, replays))) == 2


def test_patterns_are_bounded(gpu: torch.device, replays: list[Recording]) -> None:
    function, w = graphed(chain), torch.randn(64, 64, device=gpu)
    parts = torch.randn(4 * MAX_PATTERNS, 64, 64, device=gpu).unbind()
    for _ in range(2):
        for part in parts:
            torch.testing.assert_close(function(part, w), chain(part, w))
    assert not replays


def test_a_refusal_gives_its_reason(gpu: torch.device, replays: list[Recording]) -> None:
    x, c = torch.randn(10, device=gpu), torch.randn(10)
    function = graphed(lambda x, c: x * 2 + c.to(x.device))
    with pytest.warns(UserWarning, match="without CUDA graphs: an input is on the CPU"):
        function(x, c)
    for _ in range(3):
        torch.testing.assert_close(function(x, c), x * 2 + c.to(x.device))
    assert not replays


def test_a_result_may_be_an_input_or_a_view(gpu: torch.device, replays: list[Recording]) -> None:
    function, x = graphed(lambda x: (x.mul_(2), x.sum(), x[2:])), torch.ones(10, device=gpu)
    for call in range(1, 4):
        same, total, view = function(x)
        assert same.data_ptr() == x.data_ptr()
        assert view.data_ptr() == x[2:].data_ptr()
        assert total.item() == 10 * 2**call

"""What a replay gives back, and when a plan is recorded, with recordings that need no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from stepwell.runtime import addresses, cuda_graphs
from stepwell.runtime.cuda_graphs import MAX_PATTERNS, MAX_TWINS, GraphedPlan, Owned, described

DEVICE = torch.device("cuda", 0)


def test_results_are_inputs_views_or_memory_of_the_recording() -> None:
    first, second = torch.randn(10), torch.randn(4, 4)

    def results() -> list[Any]:
        made = torch.randn(8, 8)
        return [first, made, made[2:], second.t(), None, 3]

    found = described(results(), [first, second])
    assert [type(one).__name__ for one in found] == ["Same", "Owned", "View", "View", "Same", "Same"]
    given: list[Any] = []
    for one in found:
        given.append(one.result([first, second], given))
    assert given[0] is first
    assert given[2].data_ptr() == given[1].data_ptr() + 2 * 8 * 4
    assert given[2]._base is given[1]
    assert given[3].shape == (4, 4)
    assert given[3].stride() == (1, 4)
    assert given[4:] == [None, 3]


def test_memory_is_free_once_every_holder_has_let_go() -> None:
    (owned,) = described([torch.randn(8)], [])
    assert isinstance(owned, Owned)
    owned.settle()
    assert owned.is_free()
    result = owned.result([], [])
    view = result[2:].detach()
    assert not owned.is_free()
    del result
    assert not owned.is_free()
    del view
    assert owned.is_free()


class Recorded:
    """A recording whose results are held or not as the test says."""

    made: ClassVar[list[Recorded]] = []

    def __init__(self, function: Any, args: Sequence[Any], device: torch.device) -> None:
        self.held = False
        self.made.append(self)

    def is_free(self) -> bool:
        return not self.held

    def replay(self, args: Sequence[Any]) -> list[Any]:
        return ["replayed", self.made.index(self)]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> GraphedPlan:
    Recorded.made = []
    monkeypatch.setattr(cuda_graphs, "Recording", Recorded)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0, raising=False)
    return GraphedPlan(lambda args: ["ran", *args], "inference", DEVICE, ())


def test_a_pattern_is_recorded_when_it_comes_again(plan: GraphedPlan) -> None:
    assert [plan([1])[0] for _ in range(3)] == ["ran", "replayed", "replayed"]
    assert plan([2]) == ["ran", 2]
    assert len(Recorded.made) == 1


def test_a_pattern_has_as_many_recordings_as_results_are_held(plan: GraphedPlan) -> None:
    plan([1])
    for number in range(MAX_TWINS):
        assert plan([1]) == ["replayed", number]
        Recorded.made[number].held = True
    assert plan([1]) == ["ran", 1]
    Recorded.made[0].held = False
    assert plan([1]) == ["replayed", 0]


def test_the_pattern_used_longest_ago_is_forgotten(plan: GraphedPlan) -> None:
    for number in range(MAX_PATTERNS + 1):
        plan([number])
    assert plan([0])[0] == "ran"
    assert plan([MAX_PATTERNS])[0] == "replayed"


class OnGpu(Tensor):
    """Says that it is on a GPU."""

    is_cuda = True


@pytest.mark.parametrize("fixed", [False, True])
def test_layouts_are_part_of_a_pattern_unless_the_plan_is_for_one(plan: GraphedPlan, fixed: bool) -> None:
    plan = GraphedPlan(lambda args: ["ran"], "inference", DEVICE, (), fixed=fixed)
    x = torch.zeros(4, 6).as_subclass(OnGpu)
    assert plan([x])[0] == "ran"
    assert plan([x.view(6, 4)])[0] == ("replayed" if fixed else "ran")
    assert plan([x])[0] == "replayed"


def test_tensors_that_lie_where_they_lay_are_not_looked_at(plan: GraphedPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(tensors: list[Tensor], found: list[int], positions: list[int]) -> bool:
        return all(tensors[k].data_ptr() == found[k] for k in positions)

    monkeypatch.setattr(addresses, "_same", same)
    plan = GraphedPlan(lambda args: ["ran"], "inference", DEVICE, (), fixed=True)
    x, y = (torch.zeros(4).as_subclass(OnGpu) for _ in range(2))
    assert [plan([x])[0] for _ in range(2)] == ["ran", "replayed"]
    assert plan([y])[0] == "ran"
    monkeypatch.setattr(OnGpu, "is_cuda", False)  # would end it
    assert plan([y])[0] == "replayed"


def test_a_tensor_on_the_cpu_ends_it_with_a_reason(plan: GraphedPlan) -> None:
    x = torch.ones(3)
    with pytest.warns(UserWarning, match="inference graph without CUDA graphs: an input is on the CPU"):
        plan([x])
    assert plan([x])[0] == "ran"


def test_a_recording_that_fails_is_the_last(plan: GraphedPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("operation not permitted")

    monkeypatch.setattr(cuda_graphs, "Recording", fails)
    plan([1])
    with pytest.warns(UserWarning, match="recording it failed: RuntimeError: operation not permitted"):
        assert plan([1]) == ["ran", 1]
    assert plan([1]) == ["ran", 1]

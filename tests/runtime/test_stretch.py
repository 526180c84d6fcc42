"""What surrounds native calls: arguments that overlap in memory, and errors that kernels record."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from stepwell.runtime import addresses, stretch
from stepwell.runtime.stretch import Separator, raise_error

RANGE = st.tuples(st.integers(0, 60), st.integers(0, 12))
"""Start and length of a stretch of elements."""


@given(st.lists(RANGE, max_size=5), st.lists(RANGE, min_size=1, max_size=5))
def test_exactly_what_overlaps_is_copied(sources: list[tuple[int, int]], written: list[tuple[int, int]]) -> None:
    memory = torch.arange(80, dtype=torch.int32)
    tensors = [memory[start : start + length] for start, length in sources]
    others = [memory[start : start + length] for start, length in written]
    found = Separator()(tensors, [4 * n for _, n in sources], others, [4 * n for _, n in written])
    results, places = found[: len(tensors)], found[len(tensors) :]
    assert [*places] == [value.data_ptr() for value in (*results, *others)]  # type: ignore[union-attr]
    for result, tensor, (start, length) in zip(results, tensors, sources, strict=True):
        assert isinstance(result, Tensor)
        own = set(range(start, start + length))
        shared = any(own & set(range(first, first + n)) for first, n in written)
        assert torch.equal(result, tensor)
        if shared:
            assert result.data_ptr() != tensor.data_ptr()
        elif length and all(n for _, n in written):  # an empty range within another may count as overlapping
            assert result is tensor


@pytest.fixture(params=[True, False], ids=["at once", "one by one"])
def looked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often places were compared with all others, in a build that compares addresses in either way."""
    seen: list[int] = []
    overlapping = stretch._overlapping

    def counted(*places: tuple[int, ...]) -> list[int]:
        seen.append(1)
        return overlapping(*places)

    def same(tensors: list[Tensor], found: list[int], positions: list[int]) -> bool:
        return all(tensors[k].data_ptr() == found[k] for k in positions)

    monkeypatch.setattr(addresses, "_same", same if request.param else None)
    monkeypatch.setattr(stretch, "_overlapping", counted)
    return seen


def test_what_lies_where_it_lay_is_not_compared_anew(looked: list[int]) -> None:
    memory, sizes = torch.arange(80, dtype=torch.int32), (16,)
    separate = Separator()

    def call(start: int, sizes: tuple[int, ...] = sizes) -> bool:
        """Whether the source was copied."""
        found, *places = separate([memory[start : start + 4]], sizes, [memory[8:12]], (16,))
        assert isinstance(found, Tensor)
        assert places == [found.data_ptr(), memory[8:].data_ptr()]
        return found.data_ptr() != memory[start:].data_ptr()

    assert [call(0), call(0), call(4), call(6), call(6), call(0)] == [False, False, False, True, True, False]
    assert len(looked) == 5
    assert call(0, (32 + 4,))
    assert len(looked) == 6


def test_an_error_record_becomes_eagers_exception() -> None:
    table = (("IndexError", "index {} is bad"), ("RuntimeError", "ZeroDivisionError"))
    with pytest.raises(IndexError, match=r"^index -7 is bad$"):
        raise_error(table, (1, -7))
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
        raise_error(table, (2, 0))

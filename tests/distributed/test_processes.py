"""Further processes without a group: spawned and forked ones, and what is written to files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as processes
from torch import nn
from torch.utils.data import DataLoader

from stepwell.tests.distributed.workers import LARGE, Computed, compiled, compute, function

# -- spawn -------------------------------------------------------------------------------------------


def test_a_spawned_process_compiles_and_outputs_travel_both_ways() -> None:
    """Outputs of the pool's size are shared with the other process while here the next calls run."""
    context: Any = processes.get_context("spawn")
    inputs, outputs = context.Queue(), context.Queue()
    process = context.Process(target=compute, args=(inputs, outputs))
    process.start()
    sent = [compiled(torch.linspace(0, k, LARGE)) for k in range(3)]
    kept = [value.clone() for value in sent]
    for value in sent:
        inputs.put(value)
    later = [compiled(torch.linspace(0, -k, LARGE)) for k in range(3)]
    answers = [outputs.get(timeout=120) for _ in sent]
    inputs.put(None)
    for value, original, answer in zip(sent, kept, answers, strict=True):
        assert torch.equal(value, original)
        torch.testing.assert_close(answer, function(original))
    for k, value in enumerate(later):
        torch.testing.assert_close(value, function(torch.linspace(0, -k, LARGE)))
    del answer, answers
    inputs.put(None)
    process.join(60)
    assert process.exitcode == 0


# -- fork --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled_before", [False, True], ids=["compiled there", "compiled here"])
def test_workers_of_a_data_loader_run_compiled_code(compiled_before: bool) -> None:
    torch._dynamo.reset()
    if compiled_before:
        compiled(torch.arange(8.0))
    loader = DataLoader(Computed(), batch_size=2, num_workers=2, timeout=120)
    found = [compiled(batch) for batch in loader]
    expected = [torch.stack([function(torch.arange(8.0) + k) for k in (first, first + 1)]) for first in (0, 2, 4)]
    torch.testing.assert_close(found, [function(batch) for batch in expected])


# -- files -------------------------------------------------------------------------------------------


def saved(value: Any) -> io.BytesIO:
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return stream


def test_the_state_of_a_compiled_module_is_that_of_the_module() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    expected = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    expected.load_state_dict(module.state_dict())
    compiled_module: Any = torch.compile(module, backend="stepwell")
    x = torch.randn(5, 4)
    for model in (compiled_module, expected):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    state = torch.load(saved(compiled_module.state_dict()))
    assert [name.removeprefix("_orig_mod.") for name in state] == list(expected.state_dict())
    module.load_state_dict({name.removeprefix("_orig_mod."): value for name, value in state.items()})
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(module.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    compiled_module.load_state_dict(state)
    torch.testing.assert_close(compiled_module(x), expected(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [8, LARGE])
def test_outputs_are_saved_as_eagers_are(size: int, tmp_path: Path) -> None:
    x = torch.linspace(0, 1, size)
    found, expected = compiled(x), function(x)
    for name, value in (("found", found), ("expected", expected), ("slice", found[2:5])):
        torch.save(value, tmp_path / name)
    assert abs((tmp_path / "found").stat().st_size - (tmp_path / "expected").stat().st_size) < 256
    loaded = [torch.load(tmp_path / name) for name in ("found", "slice")]
    del found
    compiled(-x)  # may lie where the saved output lay
    torch.testing.assert_close(loaded[0], expected)
    torch.testing.assert_close(loaded[1], expected[2:5])

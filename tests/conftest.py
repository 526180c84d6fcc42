"""What every test runs under: a strict, verifying compiler that leaves nothing on disk, and fixed seeds."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Set before `stepwell.config` is first read, and inherited by the processes that tests start.
os.environ |= {"STEPWELL_STRICT": "1", "STEPWELL_VERIFY": "1", "STEPWELL_DISABLE_CACHE": "1"}
# Idle threads of one pytest worker must not spin on the cores that the other one needs.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=10_000)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Seed every generator before a test and forget what Dynamo compiled after it."""
    random.seed(0)
    np.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    yield
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.reset()


@pytest.fixture
def thread_count() -> Iterator[None]:
    """Gives back torch's number of threads, which the test may set."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)

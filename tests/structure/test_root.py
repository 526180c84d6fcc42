"""The root package costs nothing to import, offers its names, and lets xdsl-opt start at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import stepwell
from stepwell.universe import STEPWELL_UNIVERSE

LIGHT = """
import sys, time
start = time.process_time()
import stepwell
elapsed = time.process_time() - start
heavy = {"torch", "xdsl", "numpy", "llvmlite"} & sys.modules.keys()
assert not heavy, heavy
assert elapsed < 0.1, elapsed
"""

NO_TORCH = """
import sys, time
start = time.process_time()
from xdsl.xdsl_opt_main import xDSLOptMain
tool = xDSLOptMain(args=[])
elapsed = time.process_time() - start
from stepwell.universe import STEPWELL_UNIVERSE as ours
for factories in (ours.all_dialects, ours.all_passes, ours.all_targets):
    for factory in factories.values():
        factory()
assert "torch" not in sys.modules
print(elapsed)
"""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_root_imports_nothing_heavy() -> None:
    python(LIGHT)


def test_xdsl_opt_starts_at_once_and_never_imports_torch() -> None:
    assert min(float(python(NO_TORCH)) for _ in range(2)) < 0.8


def test_the_help_of_xdsl_opt_says_what_each_pass_does() -> None:
    tool = Path(sys.executable).with_name("xdsl-opt")
    done = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True)
    listed = dict(
        line.split(maxsplit=1) for line in done.stdout.partition("passes of stepwell:")[2].splitlines() if line
    )
    assert listed.keys() == STEPWELL_UNIVERSE.all_passes.keys()
    assert listed["graph-fold-constants"] == "Compute at compile time what depends on constants alone."


@pytest.mark.parametrize("name", stepwell.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(stepwell, name) is not None
    assert name in dir(stepwell)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'complie'"):
        _ = stepwell.complie


@pytest.mark.parametrize("name", STEPWELL_UNIVERSE.all_dialects)
def test_a_dialect_loads_under_its_name(name: str) -> None:
    assert STEPWELL_UNIVERSE.all_dialects[name]().name == name


@pytest.mark.parametrize("name", STEPWELL_UNIVERSE.all_targets)
def test_a_target_loads_under_its_name(name: str) -> None:
    assert STEPWELL_UNIVERSE.all_targets[name]().name == name

"""The knobs: each way to set one, what is refused, and that the README lists them all."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell.lowering.loop.simplify import LoopSimplify
from stepwell.runtime.config import KNOBS, Config, Settings, from_environment

BAD = {
    "strict": 1,
    "mode": "fast",
    "passes": "graph-fold-constants",
    "backend": 1,
    "opt_level": 4,
    "vector_bits": 100,
    "min_parallel_elements": 0,
    "excess_precision": None,
    "fallback_random": "yes",
    "pool_bytes": 1.5,
    "cache_dir": None,
    "disable_cache": 0,
    "verify": "",
    "dump": 3,
}


@pytest.fixture
def config() -> Config:
    return Config(Settings())


def test_assignment_sets_and_converts(config: Config, tmp_path: Path) -> None:
    config.strict = True
    config.dump = str(tmp_path)
    config.passes = ["cse"]
    assert (config.strict, config.dump, config.passes) == (True, tmp_path, ("cse",))


@pytest.mark.parametrize("name", KNOBS)
def test_a_wrong_value_is_refused_everywhere(config: Config, name: str) -> None:
    with pytest.raises(stepwell.ConfigError, match=f"config.{name}: expected .*, got "):
        setattr(config, name, BAD[name])
    with pytest.raises(stepwell.OptionError, match=f"options.{name}: expected .*, got "):
        config.with_options({name: BAD[name]})
    assert getattr(config, name) == KNOBS[name].default


def test_an_unknown_name_lists_the_known_ones(config: Config) -> None:
    with pytest.raises(stepwell.ConfigError, match=r"one of strict, .*did you mean 'strict'"):
        config.srict = True
    with pytest.raises(stepwell.OptionError, match=r"expected one of strict, .*, got 'epilogue_fusion'"):
        config.with_options({"epilogue_fusion": True})
    with pytest.raises(AttributeError, match="one of strict"):
        _ = config.srict


def test_options_and_mode_override_for_one_compile(config: Config) -> None:
    settings = config.with_options({"opt_level": 3}, mode="max-autotune")
    assert (settings.opt_level, settings.mode) == (3, "max-autotune")
    assert config.snapshot() == config.with_options(None) == Settings()


def test_a_patch_ends_and_nests(config: Config) -> None:
    with config.patch(opt_level=1):
        with config.patch(strict=True, opt_level=0):
            assert (config.strict, config.opt_level) == (True, 0)
        assert (config.strict, config.opt_level) == (False, 1)
        config.opt_level = 3
        assert config.opt_level == 3
    assert config.opt_level == KNOBS["opt_level"].default


def test_a_patch_ends_with_an_error(config: Config) -> None:
    with pytest.raises(ZeroDivisionError), config.patch(strict=True):
        _ = 1 / 0
    assert config.strict is False


def test_a_patch_holds_for_its_thread_only(config: Config) -> None:
    with config.patch(strict=True), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: config.strict).result() is False


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("STEPWELL_STRICT", "1", True),
        ("STEPWELL_STRICT", "off", False),
        ("STEPWELL_POOL_BYTES", "0", 0),
        ("STEPWELL_MODE", "reduce-overhead", "reduce-overhead"),
        ("STEPWELL_PASSES", "cse, dce", ("cse", "dce")),
        ("STEPWELL_DUMP", "", None),
        ("STEPWELL_DUMP", "ir", Path("ir")),
        ("STEPWELL_CACHE_DIR", "cache", Path("cache")),
    ],
)
def test_an_environment_variable_sets_its_knob(variable: str, text: str, value: Any) -> None:
    settings = from_environment({variable: text, "PATH": "x"})
    assert getattr(settings, variable.removeprefix("STEPWELL_").lower()) == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [("STEPWELL_STRICT", "maybe"), ("STEPWELL_OPT_LEVEL", "9"), ("STEPWELL_POOL_BYTES", "1G")],
)
def test_a_wrong_environment_variable_is_refused(variable: str, text: str) -> None:
    with pytest.raises(stepwell.ConfigError, match=f"{variable}: expected .*, got '{text}'"):
        from_environment({variable: text})


def test_an_environment_variable_of_no_knob_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="STEPWELL_STRICKT is not a knob"):
        from_environment({"STEPWELL_STRICKT": "1"})


def test_the_process_reads_its_environment() -> None:
    environment = os.environ | {"STEPWELL_VECTOR_BITS": "256"}
    command = [sys.executable, "-c", "import stepwell; print(stepwell.config.vector_bits)"]
    assert subprocess.check_output(command, env=environment, text=True) == "256\n"


def test_the_readme_lists_every_knob_with_its_default_and_meaning() -> None:
    readme = (Path(stepwell.__file__).parent / "README.md").read_text()
    rows = [line for line in readme.splitlines() if line.startswith("| `STEPWELL_")]
    assert [row.split("`")[1] for row in rows] == [knob.variable for knob in KNOBS.values()]
    missing = [row for row, knob in zip(rows, KNOBS.values(), strict=True) if knob.doc not in row]
    assert not missing


def test_a_class_of_a_pass_is_told_from_a_pass(config: Config) -> None:
    passes: list[Any] = [LoopSimplify]
    with pytest.raises(
        stepwell.ConfigError, match=r"passes: expected a list .* passes, got .*; did you mean LoopSimplify\(\)\?"
    ):
        config.passes = passes

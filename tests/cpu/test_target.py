"""The description of this machine, and the attribute that carries it."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from stepwell.backends.cpu import target as cpu_target
from stepwell.backends.cpu.target import host_target
from stepwell.backends.native.processor import host
from stepwell.ir.target import GENERIC, TARGET, Target, TargetAttr, target_of, vector_bits_of
from stepwell.tests.cpu.kernels import parse_module


def test_the_host_is_described() -> None:
    target = host_target()
    assert target.vector_bits in (128, 256, 512)
    assert target.registers in (16, 32)
    assert target.cores >= 1
    assert 8 << 10 <= target.l1_bytes <= target.l2_bytes
    assert target.name != GENERIC.name


@pytest.mark.parametrize(
    ("features", "expected"),
    [("+avx,+avx2,+avx512f", (512, 32)), ("+sse2,+avx,-avx512f", (256, 16)), ("+neon", (128, 32)), ("+sse2", (128, 16)),
     ("", (128, 16))],
)  # fmt: skip
def test_vectors_follow_from_features(features: str, expected: tuple[int, int]) -> None:
    assert cpu_target._vectors(features.split(",")) == expected


def write_caches(folder: Path, *caches: tuple[str, int, str]) -> None:
    for index, (kind, level, size) in enumerate(caches):
        entry = folder / f"index{index}"
        entry.mkdir()
        for name, text in (("type", kind), ("level", str(level)), ("size", size)):
            (entry / name).write_text(text + "\n")


def test_cache_sizes_are_those_of_data_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_caches(tmp_path, ("Instruction", 1, "64K"), ("Data", 1, "48K"), ("Unified", 2, "2M"))
    monkeypatch.setattr(cpu_target, "_CACHES", tmp_path)
    assert cpu_target._cache_bytes(1, 0) == 48 << 10
    assert cpu_target._cache_bytes(2, 0) == 2 << 20
    assert cpu_target._cache_bytes(3, 7) == 7


def test_a_machine_is_what_its_processor_and_files_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_caches(tmp_path, ("Data", 1, "48K"), ("Unified", 2, "2M"), ("Unified", 3, "1G"))
    monkeypatch.setattr(cpu_target, "_CACHES", tmp_path)
    monkeypatch.setattr(cpu_target, "host", lambda: replace(host(), name="one", features="+avx512f,+avx512bf16"))
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 5} if process == 0 else set(), raising=False)
    caches = (48 << 10, 2 << 20, 1 << 30)
    assert host_target.__wrapped__() == Target("one", 512, 32, 3, *caches, rounds_to_bf16=True)


def test_sizes_and_cores_that_the_machine_keeps_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_target, "_CACHES", tmp_path)
    monkeypatch.setattr(cpu_target, "host", lambda: replace(host(), name="one", features="+avx"))
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    caches = (GENERIC.l1_bytes, GENERIC.l2_bytes, GENERIC.l3_bytes)
    for count, cores in ((6, 6), (None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        assert host_target.__wrapped__() == Target("one", 256, 16, cores, *caches)


def test_the_attribute_is_printed_and_parsed() -> None:
    target = Target("znver4", 512, 32, 2, 32 << 10, 1 << 20, 32 << 20)
    module = ModuleOp([], {TARGET: TargetAttr(target)})
    text = StringIO()
    Printer(text).print_op(module)
    assert '#stepwell.target<"znver4", vector_bits = 512, registers = 32, cores = 2, ' in text.getvalue()
    parsed = parse_module(text.getvalue())
    assert target_of(parsed) == target
    assert vector_bits_of(parsed) == 512


def test_the_attribute_tells_of_instructions_for_bf16() -> None:
    target = Target("znver4", 512, 32, 2, 32 << 10, 1 << 20, 32 << 20, rounds_to_bf16=True)
    text = StringIO()
    Printer(text).print_op(ModuleOp([], {TARGET: TargetAttr(target)}))
    assert "l3_bytes = 33554432, rounds_to_bf16>" in text.getvalue()
    assert target_of(parse_module(text.getvalue())) == target


def test_a_module_without_target_gets_a_modest_one() -> None:
    assert target_of(ModuleOp([])) == GENERIC

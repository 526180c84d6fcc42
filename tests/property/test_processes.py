"""The same program is the same text, code and cache key in every process, whatever the seed of its hashes."""

from __future__ import annotations

import os
import subprocess
import sys

SEEDS = range(12)

SCRIPT = f"""
from hashlib import sha256
from stepwell.backends.cpu.emit import emit_kernel
from stepwell.backends.native.codegen import Job, object_code
from stepwell.backends.native.processor import host
from stepwell.ir import tile
from stepwell.ir.target import target_of
from stepwell.lowering.pipelines import CPU, run
from stepwell.tests.interpreters.support import context
from stepwell.tests.property.programs import rolled_program
from stepwell.tests.property.test_programs import text_of

for seed in {list(SEEDS)}:
    module, texts = rolled_program(seed).module, []
    run(context(), module, CPU, after=lambda stage, module: texts.append(text_of(module)))
    jobs = [Job(emit_kernel(op, target_of(module)), host(), 0) for op in module.ops if isinstance(op, tile.KernelOp)]
    code = object_code(jobs[0]) if jobs else b""
    parts = [*texts, *(job.text for job in jobs), *(job.key for job in jobs)]
    print(seed, len(jobs), *(sha256(part.encode()).hexdigest()[:16] for part in parts), sha256(code).hexdigest())
"""


def said(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_text_code_and_keys_are_the_same_under_another_hash_seed() -> None:
    first, second = (said(seed).splitlines() for seed in ("1", "2"))
    assert len(first) == len(SEEDS)
    assert first == second

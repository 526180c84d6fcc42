"""Kernels of every kind compile to machine code for an H100 with the installed Triton, as good as they are meant to be.

No GPU is needed: NVIDIA's own tools, which come with Triton, say what the code does.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from stepwell.backends.triton.compiler import Job, compile_kernels
from stepwell.backends.triton.cubin import Cubin
from stepwell.ir import tt
from stepwell.tests.interpreters.lowered_triton import TO_TRITON, lowered
from stepwell.tests.lowering import schedule_cases as cases
from stepwell.tests.lowering.schedule_cases import Case

triton = pytest.importorskip("triton", reason="needs triton, which compiles kernels for GPUs")

SHARED_LIMIT = 232448
"""Bytes of shared memory that a block may have on an H100."""

KERNELS: dict[str, tuple[Callable[[], Case], int]] = {
    "chain": (lambda: cases.chain(512, 1024, length=6), 2),
    "gelu bf16": (lambda: cases.gelu(512, 1024, dtype="bf16"), 1),
    "softmax": (lambda: cases.softmax(512, 1024), 1),
    "softmax, long rows": (lambda: cases.softmax(512, 40960), 0),
    "softmax, rows in blocks": (lambda: cases.softmax(512, 20480), 20),
    "layer norm, rows in blocks": (lambda: cases.layer_norm(512, 5120), 10),
    "softmax backward": (lambda: cases.softmax_backward(512, 1024), 2),
    "layer norm": (lambda: cases.layer_norm(512, 1024), 4),
    "layer norm backward": (lambda: cases.layer_norm_backward(512, 1024), 3),
    "affine gradients": (lambda: cases.affine_gradients(2048, 512), 0),
    "rms norm bf16": (lambda: cases.rms_norm(512, 1024), 2),
    "rms norm backward": (lambda: cases.rms_norm_backward(512, 1024), 2),
    "cross entropy": (lambda: cases.cross_entropy(512, 4096), 1),
    "sum": (lambda: cases.total(512, 1024), 1),
    "argmax": (lambda: cases.argmax(512, 2048), 1),
    "transpose + add": (lambda: cases.transpose_add(512, 512), 2),
    "embedding": (lambda: cases.embedding(512, 256), 0),
    "embedding backward": (lambda: cases.embedding_backward(512, 256), 0),
    "cumsum": (lambda: cases.cumsum(64, 512), 0),
    "softmax, any sizes": (lambda: cases.softmax(512, 1000, dynamic=True), 0),
}
"""Name → the kernel, and how many tensors it must load, in its first function, in words of 16 bytes."""


@cache
def compiled(name: str) -> tuple[tuple[tt.FuncOp, Cubin], ...]:
    module = lowered(KERNELS[name][0]().text, *TO_TRITON)
    functions = [op for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
    return tuple(zip(functions, compile_kernels([Job.of(function, 90) for function in functions]), strict=True))


def inspected(cubin: Cubin, option: str, folder: Path) -> str:
    """What `cuobjdump` says of a cubin."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin.code)
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return subprocess.run([tool, option, path], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile_without_spilling(name: str, tmp_path: Path) -> None:
    for function, cubin in compiled(name):
        assert cubin.parameters == len(function.block.args)
        assert cubin.shared <= SHARED_LIMIT
        usage = re.search(r"STACK:(\d+).*LOCAL:(\d+)", inspected(cubin, "-res-usage", tmp_path))
        assert usage is not None
        assert usage.groups() == ("0", "0"), function.sym_name.data


@pytest.mark.parametrize("name", [name for name, (_, wide) in KERNELS.items() if wide])
def test_kernels_load_words_of_16_bytes(name: str, tmp_path: Path) -> None:
    """Into registers or, in loops, ahead of time into shared memory."""
    (_, cubin), *_ = compiled(name)
    code = inspected(cubin, "-sass", tmp_path)
    assert len(re.findall(r"LDG(STS)?\.E(\.\w+)*\.128", code)) >= KERNELS[name][1]
    assert not re.findall(r"\b(LDL|STL)\b", code), "registers in memory"

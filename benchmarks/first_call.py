"""How long the first call of a compiled workload takes, in a process of its own with every cache off.

`python -m stepwell.benchmarks.first_call BACKEND WORKLOAD SHAPE THREADS` prints the seconds; imports are not
counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from time import perf_counter

NO_CACHE = {"STEPWELL_DISABLE_CACHE": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}

IMPORTS = {
    "inductor": ("torch._inductor.compile_fx", "torch._inductor.codegen.cpp"),
    "stepwell": ("stepwell.runtime.torch_backend",),
}
"""What a backend would otherwise import while its first call is timed."""


def first_call(backend: str, workload: str, shape_name: str, threads: int) -> float:
    """Seconds of the first call, measured in a fresh process."""
    command = [sys.executable, "-m", __name__, backend, workload, shape_name, str(threads)]
    environment = os.environ | NO_CACHE
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def _measure(backend: str, workload_name: str, shape_name: str, threads: int) -> float:
    import torch

    from .compare import BACKENDS, candidate
    from .workloads import WORKLOADS

    for module in ("torch._dynamo", *IMPORTS.get(backend, ())):
        import_module(module)
    torch.set_num_threads(threads)
    workload = next(row for row in WORKLOADS if row.name == workload_name)
    one = candidate(workload, BACKENDS[backend](workload.function), workload.inputs(workload.shapes[shape_name]))
    start = perf_counter()
    one.run(one.prepare())
    return perf_counter() - start


if __name__ == "__main__":
    print(_measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))

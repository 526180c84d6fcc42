"""Bad indices on a GPU: kernels replace one and record it in host memory, and a later call raises what eager raises.

A launch returns before its kernel runs, so the error comes with the next call of the same graph; under
`CUDA_LAUNCH_BLOCKING=1` with the call itself. The device stays usable.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import c_int64
from functools import cache

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..ir.errors import eager_error
from ..ir.tt.ops import ERROR_SHIFT


@cache
def launches_block() -> bool:
    """Whether CUDA is asked to wait for every kernel."""
    return os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")


class ErrorSlot:
    """A word that the kernel writes from the GPU and the host reads without waiting; 0 says that all is well."""

    def __init__(self, kernel: str, table: Sequence[tuple[str, str]]) -> None:
        self.kernel, self.table = kernel, table
        with unset_fake_temporarily():
            self._memory = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self.address = self._memory.data_ptr()
        self._word = c_int64.from_address(self.address)

    def check(self) -> None:
        """Raises what was recorded, once."""
        if word := self._word.value:
            self._word.value = 0
            raise recorded_error(word, self.kernel, self.table)

    def check_after(self, ordinal: int) -> None:
        """The same once all kernels have ended."""
        torch.cuda.synchronize(ordinal)
        self.check()


def recorded_error(word: int, kernel: str, table: Sequence[tuple[str, str]]) -> Exception:
    """The error that a word stands for: the code in its upper bits, the offending value in the lower ones."""
    code, low = (word >> ERROR_SHIFT) & 0xFF, word & ((1 << ERROR_SHIFT) - 1)
    value = low - ((low >> (ERROR_SHIFT - 1)) << ERROR_SHIFT)
    error = eager_error(*table[code - 1], value)
    error.add_note(f"  in kernel {kernel} of an earlier call on the GPU; CUDA_LAUNCH_BLOCKING=1 shows which")
    return error

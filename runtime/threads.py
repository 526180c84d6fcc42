"""How many threads native code uses: torch's number, in whichever Python thread it runs.

Keeps no pool and no number of its own. In a forked child, regions of several threads hang if the parent has used
some, as eager's do; `torch.set_num_threads(1)` in the child helps both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

adopt_thread_count: Callable[[], int] = torch.get_num_threads
"""Call before native code (50 ns): OpenMP counts per thread, and a Python thread that has run nothing of torch yet
would use every core instead of `torch.set_num_threads`; asking torch for the number sets it. Returns the number."""

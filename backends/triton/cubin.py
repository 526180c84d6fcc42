"""What a compiled kernel is: machine code for one architecture and all that a launch must know of it.

Bytes in, bytes out, so that a cache on disk can hold it; knows neither Triton nor CUDA.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from ...ir.errors import BackendError

_ENTRY = r"\.entry\s+{name}\s*\((?P<parameters>[^)]*)\)"


@dataclass(frozen=True)
class Cubin:
    """Code of a kernel `name` that takes `parameters` arguments and then `scratches` pointers to scratch memory.

    `threads` is the size of a block, `shared` its bytes of shared memory, `scratch_bytes` the global scratch memory
    that each program needs.
    """

    code: bytes
    name: str
    parameters: int
    scratches: int
    threads: int
    shared: int
    scratch_bytes: int = 0

    def to_bytes(self) -> bytes:
        """A line of JSON, then the code."""
        facts = asdict(self) | {"code": len(self.code)}
        return json.dumps(facts).encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(stored: bytes) -> Cubin:
        head, _, code = stored.partition(b"\n")
        facts = json.loads(head)
        if facts["code"] != len(code):
            raise BackendError("cubin", expected=f"{facts['code']} bytes of code", got=str(len(code)))
        return Cubin(**facts | {"code": code})


def parameter_count(ptx: str, name: str) -> int:
    """How many parameters the entry of that name declares; raises BackendError where there is no such entry."""
    found = re.search(_ENTRY.format(name=re.escape(name)), ptx)
    if found is None:
        entries = re.findall(r"\.entry\s+([\w$]+)", ptx)
        raise BackendError(f"PTX of @{name}", expected="an entry of that name", got=", ".join(entries) or "none")
    return found["parameters"].count(".param")

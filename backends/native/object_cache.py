"""Object code on disk, so that the next process neither optimises nor generates code.

A convenience only: whatever is wrong with the folder costs one warning and a compile, never an error.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_DIGEST_BYTES = sha256().digest_size


class ObjectCache:
    """A folder of files named by key, each the SHA-256 of its contents followed by the contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warned = False

    def get(self, key: str) -> bytes | None:
        """The code stored under `key`; None, and room for a better one, where it is missing or damaged."""
        path = self._path(key)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"cannot be read ({error.strerror})")
            return None
        code = stored[_DIGEST_BYTES:]
        if sha256(code).digest() == stored[:_DIGEST_BYTES]:
            return code
        self._warn(f"holds a damaged file, {path.name}, which is compiled anew")
        return None

    def put(self, key: str, code: bytes) -> None:
        """Store under a temporary name, then rename: a reader sees all of it or nothing."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, sha256(code).digest() + code)
        except OSError as error:
            self._warn(f"cannot be written ({error.strerror})")

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.o"

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            advice = "delete it, make it writable, set STEPWELL_CACHE_DIR to another, or STEPWELL_DISABLE_CACHE=1"
            warnings.warn(f"the kernel cache {self.folder} {what}; {advice}", stacklevel=2)


def _write(path: Path, contents: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise

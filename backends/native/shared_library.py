"""Code in a shared library that some other compiler has made: what a backend hands out that does not use LLVM here."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ...ir.errors import BackendError


class SharedLibrary:
    """A library that is loaded at once, so that its file may go; `text` is what shows as its code."""

    def __init__(self, path: Path | str, text: str = "") -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise BackendError("shared library", expected="a library that loads", got=str(error)) from None
        self._text = text

    def address(self, symbol: str) -> int:
        """Of a function; raises BackendError if the library has none of that name."""
        try:
            found = ctypes.cast(self._library[symbol], ctypes.c_void_p).value
        except AttributeError as error:
            raise BackendError("shared library", expected=f"a function {symbol!r}", got=str(error)) from None
        assert found is not None
        return found

    def assembly(self) -> str:
        return self._text

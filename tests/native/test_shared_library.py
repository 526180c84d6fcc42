"""Code that another compiler has made."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import pytest

from stepwell.backends.native.shared_library import SharedLibrary
from stepwell.ir.errors import BackendError


def test_a_function_of_a_library_has_an_address() -> None:
    name = ctypes.util.find_library("m")
    assert name is not None
    library = SharedLibrary(Path(name), "the text")
    cosine = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("cos"))
    assert cosine(0.0) == 1.0
    assert library.assembly() == "the text"
    with pytest.raises(BackendError, match="expected a function 'no_cosine'"):
        library.address("no_cosine")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    path.write_text("text")
    with pytest.raises(BackendError, match="expected a library that loads"):
        SharedLibrary(path)

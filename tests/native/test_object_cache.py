"""A cached kernel is not compiled again, and nothing that is wrong with the folder stops a compile."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepwell.backends.native import jit
from stepwell.backends.native.jit import compile_module, compile_modules
from stepwell.backends.native.object_cache import ObjectCache

TEXT = "define i64 @f() { ret i64 1 }"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: object) -> bytes:
        raise AssertionError(f"compiled {job}")

    monkeypatch.setattr(jit, "object_code", fail)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A cache that holds TEXT."""
    compile_module(TEXT, objects=ObjectCache(tmp_path))
    return tmp_path


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("filled", "no_compiler")
def test_a_hit_neither_optimises_nor_generates(filled: Path) -> None:
    assert compile_module(TEXT, objects=ObjectCache(filled)).address("f")


def test_a_file_is_whole_or_absent(filled: Path) -> None:
    assert [path.suffix for path in _files(filled)] == [".o"]


def test_another_level_is_another_entry(filled: Path) -> None:
    compile_module(TEXT, objects=ObjectCache(filled), opt_level=1)
    assert len(_files(filled)) == 2


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 500])
def test_a_damaged_file_warns_once_and_is_replaced(filled: Path, damage: bytes) -> None:
    (path,) = _files(filled)
    whole = path.read_bytes()
    path.write_bytes(damage)
    with pytest.warns(UserWarning, match="holds a damaged file(.|\n)*delete it") as warned:
        assert compile_module(TEXT, objects=ObjectCache(filled)).address("f")
    assert len(warned) == 1
    assert path.read_bytes() == whole


def test_an_unwritable_folder_warns_once_and_compiles(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    objects = ObjectCache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="STEPWELL_CACHE_DIR") as warned:
        modules = compile_modules([TEXT, TEXT.replace("1", "2")], objects=objects)
    assert all(module.address("f") for module in modules)
    assert len(warned) == 1


def test_an_absent_folder_is_made_without_a_word(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_module(TEXT, objects=ObjectCache(tmp_path / "a" / "b"))
    assert len(_files(tmp_path)) == 1


def test_writers_do_not_disturb_each_other_or_readers(tmp_path: Path) -> None:
    code = bytes(range(256)) * 64

    def write_and_read(_: int) -> bool:
        objects = ObjectCache(tmp_path)
        objects.put("key", code)
        return objects.get("key") == code

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        assert all(pool.map(write_and_read, range(40)))
    assert len(_files(tmp_path)) == 1

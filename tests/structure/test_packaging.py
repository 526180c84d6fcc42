"""What is installed is what the tree holds: discovery cannot name a root package, so the list is by hand."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

import stepwell


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def archives(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The files of the wheel and of the source distribution, by suffix."""
    folder = tmp_path_factory.mktemp("archives")
    generated = ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
    checkout = copytree(root, folder / "checkout", ignore=generated)
    build = "from setuptools import build_meta as b; b.build_wheel('..'); b.build_sdist('..')"
    subprocess.run([sys.executable, "-c", build], cwd=checkout, check=True, capture_output=True)
    with (
        zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel,
        tarfile.open(next(folder.glob("*.gz"))) as sdist,
    ):
        return {"whl": set(wheel.namelist()), "gz": {name.partition("/")[2] for name in sdist.getnames()}}


def test_packages_lists_every_folder_with_sources(project: dict[str, Any], package_sources: list[Path]) -> None:
    tree = {".".join(["stepwell", *path.parent.parts]) for path in package_sources}
    assert sorted(project["tool"]["setuptools"]["packages"]) == sorted(tree)


def test_every_package_has_an_init(root: Path, package_sources: list[Path]) -> None:
    folders = {path.parent for path in package_sources}
    assert [str(folder) for folder in folders if not (root / folder / "__init__.py").exists()] == []


def test_the_wheel_holds_the_package_and_nothing_else(
    archives: dict[str, set[str]], package_sources: list[Path]
) -> None:
    ours = {name for name in archives["whl"] if ".dist-info/" not in name}
    assert ours == {f"stepwell/{path.as_posix()}" for path in package_sources} | {"stepwell/py.typed"}


def test_the_source_distribution_holds_every_source_and_the_licence(
    archives: dict[str, set[str]], sources: list[Path]
) -> None:
    expected = {path.as_posix() for path in sources} | {"LICENSE", "README.md", "pyproject.toml"}
    assert sorted(expected - archives["gz"]) == []


def test_the_version_is_said_once(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == stepwell.__version__


@pytest.mark.parametrize("group", ["torch_dynamo_backends", "xdsl.universe", "console_scripts"])
def test_entry_points_load(group: str) -> None:
    ours = [point for point in entry_points(group=group) if point.name == "stepwell"]
    assert len(ours) == 1
    ours[0].load()

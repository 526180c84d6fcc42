"""One obvious place: a pass is named as its path, stands in the table and has a FileCheck file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stepwell.ir.errors import LoweringError
from stepwell.lowering.pipelines import CPU, PASSES, make_pass, names_after
from stepwell.universe import STEPWELL_UNIVERSE


def _pass_classes(path: Path) -> list[str]:
    """Names of the classes in a file that derive from ModulePass by name."""
    classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if any("ModulePass" in ast.unparse(base) for base in node.bases)]


def test_the_table_lists_every_pass(root: Path, package_sources: list[Path]) -> None:
    lowering = [path for path in package_sources if path.parts[0] == "lowering"]
    defined = {
        (".".join(path.with_suffix("").parts[1:]), name) for path in lowering for name in _pass_classes(root / path)
    }
    assert defined == set(PASSES.values())


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_named_as_its_path(name: str) -> None:
    module, _ = PASSES[name]
    assert module.replace(".", "-").replace("_", "-") == name


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_loads_under_its_name_and_says_what_it_does(name: str) -> None:
    cls = STEPWELL_UNIVERSE.all_passes[name]()
    assert cls.name == name
    assert cls.__doc__
    assert not cls.__doc__.startswith(f"{cls.__name__}("), "a dataclass made this docstring"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_a_filecheck_file(root: Path, name: str) -> None:
    assert list((root / "tests/filecheck").rglob(f"{name}*.mlir"))


@pytest.mark.parametrize("name", [name for name in PASSES if not name.startswith("convert-")])
def test_a_pass_has_functions_on_which_it_must_not_fire(root: Path, name: str) -> None:
    texts = [path.read_text() for path in (root / "tests/filecheck").rglob(f"{name}*.mlir")]
    assert any("func.func @no_" in text for text in texts)


def test_a_pass_of_another_package_is_made_by_name_with_its_options() -> None:
    made = make_pass('mlir-opt{executable="other" generic=true}')
    assert (made.name, vars(made)["executable"]) == ("mlir-opt", "other")
    with pytest.raises(LoweringError, match="pass no-such-pass: expected a known pass"):
        make_pass("no-such-pass")


def test_the_passes_after_a_stage_are_those_of_the_stages_that_follow() -> None:
    assert names_after("fused", CPU)[:2] == ["convert-loop-to-tile", "host-bufferize"]
    assert names_after("host", CPU) == []

"""Imports go one way, also inside functions: ir ← {frontend, lowering, backends} ← runtime ← root."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MAY_IMPORT = {
    "ir": {"ir"},
    "frontend": {"ir", "frontend"},
    "lowering": {"ir", "lowering"},
    "backends": {"ir", "backends"},
    "runtime": {"ir", "frontend", "lowering", "backends", "runtime"},
    "universe.py": {"ir", "lowering", "backends"},
    "__init__.py": {"ir", "runtime"},
    "__main__.py": {"ir", "runtime", "universe"},
}
"""First part of a file's path → first parts of the modules of ours that it may import."""

ONLY_IN = {
    "torch": ("frontend", "runtime"),
    "functorch": ("frontend", "runtime"),
    "llvmlite": ("backends/native",),
    "triton": ("backends/triton",),
    "rich": ("runtime", "__main__.py"),
    "typer": ("__main__.py",),
}
"""Third-party package → where it may be imported."""


def imports(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import; ours begin with `stepwell`, whether written relative or not."""
    package = ("stepwell", *path.parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def complaint(path: Path, name: str) -> str | None:
    """Why this file may not import that name, if it may not."""
    package, *rest = name.split(".")
    if package == "stepwell":
        allowed = MAY_IMPORT[path.parts[0]]
        return None if rest[0] in allowed else f"expected an import of {', '.join(sorted(allowed))}"
    homes = ONLY_IN.get(package)
    if homes is None or any(path.as_posix().startswith(home) for home in homes):
        return None
    return f"expected {package} only in {', '.join(homes)}"


def test_imports_go_one_way(root: Path, package_sources: list[Path]) -> None:
    complaints = [
        f"{path}:{line}: {why}, got {name}"
        for path in package_sources
        for line, name in imports(path, (root / path).read_text())
        if (why := complaint(path, name))
    ]
    assert not complaints, "\n".join(complaints)


def test_imports_within_the_package_are_relative(root: Path, package_sources: list[Path]) -> None:
    absolute = [
        f"{path}:{node.lineno}"
        for path in package_sources
        for node in ast.walk(ast.parse((root / path).read_text()))
        if (isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("stepwell"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("stepwell") for alias in node.names))
    ]
    assert not absolute, "\n".join(absolute)


def test_each_arrow_is_enforced() -> None:
    ir, runtime, native = Path("ir/a.py"), Path("runtime/a.py"), Path("backends/native/jit.py")
    inside_a_function = "def f():\n    from ..runtime import config\n    import torch.nn"
    assert [name for _, name in imports(ir, inside_a_function)] == ["stepwell.runtime.config", "torch.nn"]
    assert complaint(ir, "stepwell.runtime.config")
    assert complaint(ir, "torch.nn")
    assert complaint(Path("lowering/a.py"), "stepwell.backends.cpu")
    assert complaint(Path("backends/cpu/a.py"), "llvmlite.binding")
    assert not complaint(native, "llvmlite.binding")
    assert not complaint(runtime, "stepwell.lowering.pipelines")
    assert not complaint(runtime, "torch.nn")

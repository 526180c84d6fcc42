"""Makes a test of every `.mlir` file below this folder: lint its directives, then run its RUN lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.tests.filecheck.runlines import FileCheckError, execute, lint, read_run_lines


class MlirItem(pytest.Item):
    """One test file."""

    def runtest(self) -> None:
        failures = lint(self.path) or self._run()
        if failures:
            pytest.fail("\n".join(failures), pytrace=False)

    def _run(self) -> list[str]:
        try:
            for run in read_run_lines(self.path.read_text()):
                execute(run, self.path)
        except FileCheckError as error:
            return [str(error)]
        return []

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.path.name


class MlirFile(pytest.File):
    """The collector of one test file."""

    def collect(self) -> Iterator[MlirItem]:
        yield MlirItem.from_parent(self, name=self.path.stem)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> MlirFile | None:
    return MlirFile.from_parent(parent, path=file_path) if file_path.suffix == ".mlir" else None

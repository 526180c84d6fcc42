"""The FileCheck runner itself: what passes, what fails, and each mistake that the linter must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell.tests.filecheck.runlines import FileCheckError, execute, lint, read_run_lines

GOOD = """\
// RUN: xdsl-opt %s -p cse | filecheck %s

// Two equal additions become one; SSA names are captured.
// CHECK-LABEL: @twice
// CHECK: %[[SUM:.*]] = arith.addi
// CHECK-NEXT: func.return %[[SUM]], %[[SUM]]
func.func @twice(%x: i32) -> (i32, i32) {
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  func.return %a, %b : i32, i32
}
"""

INVALID = """\
// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: Operation does not verify
func.func @f() -> i32 {
  func.return
}
"""

ROUND_TRIP = GOOD.replace("xdsl-opt %s -p cse |", "xdsl-opt %s --print-op-generic | xdsl-opt -p cse |")


def write(folder: Path, text: str, name: str = "cse.mlir") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def run(path: Path) -> None:
    for line in read_run_lines(path.read_text()):
        execute(line, path)


@pytest.mark.parametrize("text", [GOOD, INVALID, ROUND_TRIP])
def test_accepts_what_is_right(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert lint(path) == []
    run(path)


def test_a_check_that_does_not_match_fails(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("arith.addi\n", "arith.muli\n", 1))
    assert lint(path) == []
    with pytest.raises(FileCheckError, match=r"arith\.muli"):
        run(path)


def test_a_tool_that_fails_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="Operation does not verify"):
        run(write(tmp_path, INVALID.replace("--verify-diagnostics ", "")))


MISTAKES = {
    "no run line": GOOD.replace("RUN:", "Run with"),
    "no filecheck": GOOD.replace("| filecheck %s", ""),
    "unknown tool": GOOD.replace("xdsl-opt", "mlir-opt"),
    "two passes": GOOD.replace("-p cse", "-p cse,dce"),
    "two passes in two tools": GOOD.replace("-p cse", "-p cse | xdsl-opt -p dce"),
    "another pass": GOOD.replace("-p cse", "--passes=dce"),
    "verifier off": GOOD.replace("-p cse", "-p cse --disable-verify"),
    "no label": GOOD.replace("CHECK-LABEL:", "CHECK:"),
    "unchecked prefix": GOOD.replace("filecheck %s", "filecheck %s --check-prefix LOOP"),
    "colon missing": GOOD.replace("CHECK-NEXT:", "CHECK-NEXT"),
    "colon missing on the plain form": GOOD.replace("CHECK: %", "CHECK %"),
    "space before the colon": GOOD.replace("CHECK: %", "CHECK : %"),
    "letters swapped": GOOD.replace("CHECK: %", "CHEKC: %"),
    "letters swapped without colon": GOOD.replace("CHECK: %", "CEHCK %"),
    "unknown kind": GOOD.replace("CHECK-NEXT:", "CHECK-NXT:"),
    "underscore": GOOD.replace("CHECK-NEXT:", "CHECK_NEXT:"),
    "undeclared prefix": GOOD.replace("CHECK-NEXT:", "LOOP-NEXT:"),
    "lower case": GOOD.replace("CHECK: %", "check: %"),
    "after code": GOOD.replace("(%x: i32)", "(%x: i32) // CHEK: x\n", 1),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_linter_finds(tmp_path: Path, mistake: str) -> None:
    assert MISTAKES[mistake] != GOOD
    assert lint(write(tmp_path, MISTAKES[mistake]))

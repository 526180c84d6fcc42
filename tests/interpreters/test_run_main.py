"""`stepwell-run`: what it prints for given and for random inputs, how it says no, and that it starts without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.ir.run_main import main

LAYOUT = "#stepwell.layout<(s0), (1)>"
PROGRAM = f"""
func.func @main(%x: tensor<?xf32, {LAYOUT}>, %s0: index) -> tensor<?xf32, {LAYOUT}>
    attributes {{stepwell.symbols = [#stepwell.symbol<s0, 2, 3>]}} {{
  %w = graph.weight "w" : tensor<?xf32, {LAYOUT}>
  %y = graph.sub %x, %x : tensor<?xf32, {LAYOUT}>
  func.return %y : tensor<?xf32, {LAYOUT}>
}}
func.func @double(%x: tensor<2xi64>) -> tensor<2xi64> {{
  %y = graph.add %x, %x : tensor<2xi64>
  func.return %y : tensor<2xi64>
}}
func.func @call() -> tensor<2xf32> {{
  %y = graph.extern "aten.randn.default"([2]) : () -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}}"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["stepwell-run", *arguments])
    main()
    return capsys.readouterr().out


def test_arguments_are_attributes(
    program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for values in ("dense<[3, -4]> : tensor<2xi64>", "#graph.data<i64, 3, -4>"):
        text = printed(capsys, monkeypatch, program, "--function", "double", "--args", values)
        assert text == "result 0 : tensor<2xi64>\n[ 6, -8]\n"


def test_arguments_left_out_are_random_and_sizes_lie_in_their_range(
    program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, monkeypatch, program).endswith("\n[0., 0., 0.]\n")
    assert printed(capsys, monkeypatch, program, "--args", "2 : index").endswith("\n[0., 0.]\n")
    seeds = {printed(capsys, monkeypatch, program, "--function", "double", "--seed", seed) for seed in "001"}
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--function", "none"], "function @none: expected a function of the module, got none"),
        (["--function", "call"], "extern aten.randn.default: expected a way to call eager ops, got none"),
        (["--function", "double", "--args", '"a"'], "--args: expected an integer, dense elements or #graph.data"),
        (["--function", "double", "--args", "dense<1.0"], "ParseError"),
    ],
)
def test_a_fault_of_the_input_is_a_message(
    program: str, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["stepwell-run", program, *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert str(caught.value).startswith("stepwell-run: ")
    assert message in str(caught.value)


def test_it_starts_without_torch() -> None:
    code = "import sys; from stepwell.ir.run_main import RunMain; RunMain([]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

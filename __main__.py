"""The command line: `python -m stepwell` or `stepwell`. Parses, calls `runtime`, prints; decides nothing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .ir.errors import StepwellError

ProgramArgument = Annotated[str, typer.Argument(metavar="FILE.PY:NAME", help="A function, or an nn.Module.")]
ShapeOption = Annotated[
    list[str],
    typer.Option(help="An argument each: 4x8xf32, ?x8xf32 (dynamic). None: example_inputs() of the file."),
]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def stepwell() -> None:
    """Stepwell compiles PyTorch programs through the graph, loop and tile dialects."""


@app.command()
def demo(
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each backend.")] = 30,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda or cuda:1.")] = "cpu",
) -> None:
    """Train a small network in eager, Inductor and Stepwell, and show what was compiled."""
    from .runtime.demo import demo as run_demo

    run_demo(steps, device)


@app.command()
def lower(
    program: ProgramArgument,
    to: Annotated[str, typer.Option(help="graph, loop, tile, host, llvm, asm, ttir or ptx.")] = "loop",
    shape: ShapeOption = [],
    cpu: Annotated[
        str | None, typer.Option(help="Processor for asm, in LLVM's words (this one if none), or GPU: sm_80.")
    ] = None,
    pass_by_pass: Annotated[bool, typer.Option(help="Also print the IR after each pass on the way.")] = False,
) -> None:
    """Print what a function or module is at one level, as text that xdsl-opt reads."""
    from .runtime.lower import lower as text_of
    from .runtime.program import load

    print(text_of(load(program, shape), to, cpu=cpu, pass_by_pass=pass_by_pass))


@app.command()
def explain(program: ProgramArgument, shape: ShapeOption = []) -> None:
    """Print the graphs of a function or module, its kernels with their ops, bytes and lines, and its externs."""
    from .runtime.explain import explain as explained
    from .runtime.program import load

    loaded = load(program, shape)
    print(explained(loaded.function, *loaded.arguments))


@app.command()
def bisect(program: ProgramArgument, shape: ShapeOption = []) -> None:
    """Find the first pass, and its rewrite, that makes a function differ from eager, and reduce the program."""
    from .runtime.bisect import bisect as faults_of
    from .runtime.program import load

    loaded = load(program, shape)
    faults = faults_of(loaded.function, *loaded.arguments)
    if faults:
        sys.exit("\n\n".join(map(str, faults)))
    print("no difference from eager beyond rounding")


@app.command()
def passes() -> None:
    """List every pass with what it does; `xdsl-opt -p NAME` runs one alone."""
    from .universe import pass_sentences

    print(pass_sentences())


def main() -> None:
    """Run the command line; an error of ours is a message, not a traceback."""
    try:
        app()
    except StepwellError as error:
        sys.exit(f"stepwell: {error}")


if __name__ == "__main__":
    main()

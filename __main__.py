"""The command line: `python -m stepwell` or `stepwell`. Parses, calls `runtime`, prints; decides nothing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .ir.errors import StepwellError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def stepwell() -> None:
    """Stepwell compiles PyTorch programs through the graph, loop and tile dialects."""


@app.command()
def demo(
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each backend.")] = 30,
    device: Annotated[str, typer.Option(help="Where to train: cpu, or cuda once that exists.")] = "cpu",
) -> None:
    """Train a small network in eager, Inductor and Stepwell, and show what was compiled."""
    from .runtime.demo import demo as run_demo

    run_demo(steps, device)


@app.command()
def passes() -> None:
    """List every pass with what it does; `xdsl-opt -p NAME` runs one alone."""
    from rich.console import Console
    from rich.table import Table

    from .universe import STEPWELL_UNIVERSE

    table = Table("pass", "what it does", box=None)
    for name, factory in sorted(STEPWELL_UNIVERSE.all_passes.items()):
        table.add_row(name, (factory().__doc__ or "").strip().partition("\n")[0])
    Console().print(table)


def main() -> None:
    """Run the command line; an error of ours is a message, not a traceback."""
    try:
        app()
    except StepwellError as error:
        sys.exit(f"stepwell: {error}")


if __name__ == "__main__":
    main()

"""A process of the sweep that dies at one case of each operator; in a module of its own, as processes import it."""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import time

from stepwell.benchmarks.coverage.cases import Extent
from stepwell.benchmarks.coverage.pool import Report
from stepwell.benchmarks.coverage.sweep import Result

CASES, PARTS, FATAL = 4, 2, 2


def dies_at_a_case(pipe: Connection, extent: Extent, until: float, log: Path) -> None:
    """Passes all cases but the second, in two parts; an operator `start` kills it before any."""
    with suppress(EOFError):
        while True:
            piece = pipe.recv()
            if piece.op == "start":
                os.abort()
            result = Result(piece.op, piece.dtype, piece.part, PARTS)
            for number in range(piece.skipped + 1, CASES + 1):
                if time() > until:
                    result.left = True
                    break
                pipe.send(Report(result, f"case {number}", number))
                if number == FATAL and piece.part == 0:
                    os.abort()
                result.passed += 1
            pipe.send(Report(result))

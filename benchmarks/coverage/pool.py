"""Processes that try the operators, piece by piece. One that dies or hangs costs the case that it was at, nothing else.

Who starts them holds every result so far, since a process reports before each case.
"""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from time import time
from typing import Any

import torch
from torch._logging._internal import set_logs

from .cases import Extent, operators, samples_of
from .sweep import SECONDS_PER_CASE, Result, trying
from .ways import cases_of

SAMPLES_PER_PIECE = 40
"""An operator with more is cut into parts, which processes take up at the same time."""

PIECES_PER_PROCESS = 150
"""Compiled code and traces pile up; a fresh process starts in seconds."""

SECONDS_OF_SILENCE = SECONDS_PER_CASE + 30
"""After so many a process hangs in native code, where its own limit does not stop it."""

SECONDS_OF_GRACE = 20
"""So long after the last case may begin, those that have begun may end."""


@dataclass(frozen=True)
class Piece:
    """Some cases of an operator in one type: a part of them, 0 of it if the number of parts is still open; what an
    ended process has done of it is skipped."""

    op: str
    dtype: str
    part: int = 0
    parts: int = 0
    skipped: int = 0


@dataclass
class Report:
    """What a process has of a piece, and the case that it begins, with its number from 1; None at the end."""

    result: Result
    case: str | None = None
    begun: int = 0


def run_pieces(
    pieces: Sequence[Piece],
    extent: Extent,
    *,
    jobs: int,
    until: float,
    log: Path,
    environments: Sequence[Mapping[str, str]],
    ended: Callable[[Result], None],
    served: Callable[[Connection, Extent, float, Path], None] | None = None,
) -> None:
    """Runs the pieces in that order, `jobs` at a time, and calls `ended` with each result as it comes.

    After `until` no case is begun; results then say that some are left. Processes get the environments in turn, and
    write what they have to say into `log`. They run `served`, `serve` by default.
    """
    work: queue.Queue[Piece | None] = queue.Queue()
    for piece in pieces:
        work.put(piece)
    lock = threading.Lock()

    def end(result: Result) -> None:
        with lock:
            ended(result)

    crews = [
        _Crew(work, (extent, until, log), environments[k % len(environments)], lock, end, served or serve)
        for k in range(jobs)
    ]
    threads = [threading.Thread(target=crew.run, daemon=True) for crew in crews]
    for thread in threads:
        thread.start()
    work.join()
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join()


# -- one who sends pieces ----------------------------------------------------------------------------


@dataclass
class _Crew:
    """Has one process at a time, a fresh one when it ends or has done enough."""

    work: queue.Queue[Piece | None]
    settings: tuple[Extent, float, Path]
    environment: Mapping[str, str]
    lock: threading.Lock
    ended: Callable[[Result], None]
    served: Callable[[Connection, Extent, float, Path], None]
    process: Any = None
    pipe: Any = None
    status: int | None = None
    done: int = 0

    @property
    def until(self) -> float:
        return self.settings[1]

    def run(self) -> None:
        while (piece := self.work.get()) is not None:
            if time() > self.until:
                self.ended(Result(piece.op, piece.dtype, piece.part, piece.parts, left=True))
            else:
                self._send(piece)
            self.work.task_done()
        self._stop()

    def _send(self, piece: Piece) -> None:
        if self.process is None or self.done >= PIECES_PER_PROCESS:
            self._stop()
            self._start()
        self.done += 1
        last = Report(Result(piece.op, piece.dtype, piece.part, max(1, piece.parts)), "start")
        try:
            self.pipe.send(piece)
            while last.case is not None:
                if not self.pipe.poll(min(SECONDS_OF_SILENCE, max(0, self.until + SECONDS_OF_GRACE - time()))):
                    raise TimeoutError
                last = self.pipe.recv()
        except (OSError, EOFError) as error:
            self._record_loss(piece, last, hung=isinstance(error, TimeoutError))
        if not piece.parts:
            for part in range(1, last.result.parts):
                self.work.put(replace(piece, part=part, parts=last.result.parts))
        self.ended(last.result)

    def _record_loss(self, piece: Piece, last: Report, *, hung: bool) -> None:
        """Says what the process was at when it died or hung, and leaves what came after it to another."""
        self._stop()
        if hung and time() > self.until:
            last.result.left = True
            return
        how = f"hang: silent for {SECONDS_OF_SILENCE} s" if hung else f"crash: ended with status {self.status}"
        last.result.wrong[last.case or "end"] = f"process: {how}"
        if last.begun:
            self.work.put(replace(piece, parts=last.result.parts, skipped=last.begun))

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        with self.lock:  # a process inherits the environment of the moment
            os.environ.update(self.environment)
            self.process = context.Process(target=self.served, args=(other, *self.settings), daemon=True)
            self.process.start()
        other.close()
        self.done = 0

    def _stop(self) -> None:
        if self.process is None:
            return
        self.pipe.close()  # which ends one that waits for a piece
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.status, self.process = self.process.exitcode, None


# -- the process -------------------------------------------------------------------------------------


def serve(pipe: Connection, extent: Extent, until: float, log: Path) -> None:
    """Tries one piece after the other, until there is nobody to report to."""
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    faulthandler.enable()
    set_logs(all=logging.CRITICAL)  # each refused case would be reported, too
    known = {op.full_name: op for op in operators()}
    with suppress(EOFError, OSError):
        while True:
            piece = pipe.recv()
            for report in _reports(piece, known[piece.op], extent, until):
                pipe.send(report)


def _reports(piece: Piece, op: Any, extent: Extent, until: float) -> Iterator[Report]:
    dtype = getattr(torch, piece.dtype)
    samples = samples_of(op, dtype, extent)
    parts = piece.parts or max(1, -(-len(samples) // SAMPLES_PER_PIECE))
    result = Result(piece.op, piece.dtype, piece.part, parts)
    some = islice(cases_of(op, dtype, extent, samples[piece.part :: parts]), piece.skipped, None)
    for number, case in enumerate(trying(result, op, some), piece.skipped + 1):
        if time() > until:
            result.left = True
            break
        yield Report(result, case, number)
    yield Report(result)

"""Runs work in forks of this process, several at a time. A fork may die, or run in circles, without harm to this one.

A fork shares what is loaded already, and torch takes seconds to load. It must be made before torch has used threads.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Generic, NoReturn, TypeVar

Key = TypeVar("Key")
Say = Callable[[object], None]
"""Tells the parent something."""


@dataclass
class Fork(Generic[Key]):
    """A process, what it is for, and what it has said so far; `status` is that of its end, negative for a signal."""

    key: Key
    slot: int
    pid: int
    ear: Connection
    started: float
    said: list[object] = field(default_factory=list)
    status: int | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def listen(self) -> bool:
        """Takes in one thing that is said; whether the process still runs after it."""
        try:
            self.said.append(self.ear.recv())
        except EOFError:
            self.ear.close()
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status is None

    def kill(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)


class Forks(Generic[Key]):
    """At most `jobs` processes at a time, each in a slot with a number below that. None outlives the `with` block, and
    `run` ends at `deadline`, a time of `time.monotonic`."""

    def __init__(self, jobs: int, deadline: float | None = None) -> None:
        self.jobs = jobs
        self.deadline = deadline
        self.running: list[Fork[Key]] = []

    def __enter__(self) -> Forks[Key]:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("stopped"))
        return self

    def __exit__(self, *_: object) -> None:
        for fork in self.running:
            fork.kill()
            os.waitpid(fork.pid, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @property
    def left(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0)

    def run(self, pending: deque[Key], work: Callable[[Say, Key, int], None]) -> Iterator[Fork[Key]]:
        """Each process as it ends. The caller may add to what is pending meanwhile; at the deadline this stops, and
        what runs is of no use any more."""
        while (pending or self.running) and self.left != 0:
            while pending and len(self.running) < self.jobs:
                self._start(pending.popleft(), work)
            yield from self._ended()

    def _start(self, key: Key, work: Callable[[Say, Key, int], None]) -> None:
        slot = min({*range(self.jobs)} - {fork.slot for fork in self.running})
        ear, mouth = Pipe(duplex=False)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            lead(lambda: work(mouth.send, key, slot))
        os.setpgid(pid, pid)
        mouth.close()
        self.running.append(Fork(key, slot, pid, ear, time.monotonic()))

    def _ended(self) -> Iterator[Fork[Key]]:
        """Waits until a process says something or ends."""
        ready = wait([fork.ear for fork in self.running], self.left)
        for fork in [fork for fork in self.running if fork.ear in ready]:
            if not fork.listen():
                self.running.remove(fork)
                yield fork


def lead(life: Callable[[], None]) -> NoReturn:
    """Lives the life of a fork, which must not go back to what its parent was about."""
    status = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        life()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)

"""Runs functions of a text in another process, with limits: what a text makes of it ends that process, and no other.

    text ─► process: function(text) ─► result        one text at a time; a process that was ended is replaced for the next one

Law: the result is that of the function, or None where it needed more than the limits. Time is that of the CPU, so that a busy
machine changes no result, unless a process does not get that much in `_PATIENCE` times as long.
Cost: a millisecond a text; a second and a half for a new process.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from joinlib.lean import lean

Result = TypeVar("Result")
_PATIENCE = 12
_START_S = 120.0  # for a new process to have loaded all it needs
_LOOK_S = 0.05  # in which it cannot fill much
_SPAWN = multiprocessing.get_context("spawn")  # not forked: this process has threads
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class _Used(NamedTuple):
    seconds: float  # of CPU time
    memory: int  # bytes


class ConfinedProcess:
    """A process that functions of texts are run in. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[SpawnProcess, Connection] | None = None

    def result(
        self, function: Callable[[str], Result], text: str, seconds: float, memory: int
    ) -> Result | None:
        """Return the result of a function of a module, as `Confined` does."""
        with self._lock:
            process, pipe = self._running = self._running or _started(function)
            with suppress(OSError, EOFError):  # it has ended
                before, began = _used(process), time.monotonic()
                pipe.send((function, text))
                while not pipe.poll(_LOOK_S):
                    now = _used(process)
                    if (
                        now.seconds - before.seconds > seconds
                        or now.memory - before.memory > memory
                        or time.monotonic() - began > _PATIENCE * seconds
                    ):
                        break
                else:
                    found: Result = pipe.recv()
                    return found
            self._running = None
            _end(process, pipe)
            return None


@dataclass(frozen=True)
class Confined(Generic[Result]):
    """A function that is run in another process, which others may share. Safe for several threads."""

    function: Callable[[str], Result]  # of a module
    seconds: float  # of CPU time, for one text
    memory: int  # bytes, for one text
    process: ConfinedProcess = field(default_factory=ConfinedProcess)

    def __call__(self, text: str) -> Result | None:
        """Return the result for this text; None if it needs more time or memory than there is.

        Raises:
            ChildProcessError: No process can be started.
        """
        return self.process.result(self.function, text, self.seconds, self.memory)


def _started(first: Callable[[str], Any]) -> tuple[SpawnProcess, Connection]:
    """Start a process, which loads what its first function needs before time is counted."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(theirs, first), daemon=True)
    process.start()
    theirs.close()
    with suppress(OSError, EOFError):
        if ours.poll(_START_S):
            ours.recv()
            return process, ours
    _end(process, ours)
    raise ChildProcessError("the process that checks specs does not start")


def _end(process: SpawnProcess, pipe: Connection) -> None:
    process.kill()
    process.join()
    pipe.close()


def _used(process: SpawnProcess) -> _Used:
    """Return what a process has used so far.

    Raises:
        OSError: It has ended.
    """
    folder = Path(f"/proc/{process.pid}")
    user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    resident = (folder / "statm").read_text().split()[1]
    return _Used((int(user) + int(system)) / _TICKS, int(resident) * _PAGE)


def _serve(pipe: Connection, _loaded: Callable[[str], Any]) -> None:
    """Answer until the other side is gone."""
    lean()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send(None)
        while True:
            function, text = pipe.recv()
            pipe.send(function(text))

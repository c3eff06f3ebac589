"""The processes that run the batches of a job without Spark, and the exchange between them.

    a small batch    one of them runs it from the slices to the receipts
    any other        each reads a part ─► rows by partition ─► each joins a partition, level after level ─► receipts

The exchange passes the run's own process. It carries ticks and small blocks: large ones are files already, whose names it
carries (`Tuning.spool_bytes`).
"""

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from socket import socketpair
from typing import Any

import orjson

from joinlib.engine.sources import SourceTask
from joinlib.engine.task import JoinTask
from joinlib.errors import StreamJoinError

_SERVE = "joinlib.direct.serve"  # not imported: it loads what only its process needs
_LAST_S = 10.0  # for a process to end


class ServerGone(StreamJoinError):
    """A process has ended, or has told of an error."""


class ServerProcess:
    """A process of `direct.serve`. `python`: the command that starts Python; `settings`: those of its `Server`."""

    def __init__(self, python: Sequence[str], **settings: object) -> None:
        ours, theirs = socketpair()
        with theirs:
            # Its own process group: Ctrl-C is for the driver, which ends the loop between two batches.
            command = [*python, "-m", _SERVE]
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), process_group=0)
        self._connection = Connection(ours.detach())
        with suppress(OSError):  # it has ended, which `answer` tells
            self._connection.send(("", settings))

    def ask(self, name: str, *arguments: object) -> None:
        """Call a method of the `Server`.

        Raises:
            ServerGone: The process has ended.
        """
        try:
            self._connection.send((name, arguments))
        except OSError as error:
            raise _gone() from error

    def answer(self) -> Any:
        """Return what it returned.

        Raises:
            ServerGone: It has raised, or the process has ended.
        """
        try:
            done, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise _gone() from error
        if not done:
            raise ServerGone(answer)
        return answer

    def close(self, patience_s: float = _LAST_S) -> None:
        """End the process: after what it does now, or after so long."""
        with suppress(OSError):
            self._connection.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _gone() -> ServerGone:
    return ServerGone("a process that runs batches without Spark has ended")


class Servers:
    """As many processes as batches need so far, the first of which composes them.

    Args:
        python: The command that starts Python.
        source: What is read.
        join: The stages.
        partitions: Those of a batch that is not small.
        until_done: Whether the inputs are closed behind what is there.
    """

    def __init__(
        self, python: Sequence[str], source: SourceTask, join: JoinTask, *, partitions: int, until_done: bool
    ) -> None:
        self.partitions, self._levels = partitions, len(join.pipeline.levels)
        self._python = python
        self._settings = {"source": source, "join": join, "partitions": partitions, "until_done": until_done}
        self._all = [ServerProcess(python, **self._settings)]

    def ask(self, name: str, *arguments: object) -> Any:
        """Return what the process says that composes batches.

        Raises:
            ServerGone: It has raised, or the process has ended.
        """
        (answer,) = self._each(name, [arguments])
        return answer

    def run(self, start: str, end: str, batch: int) -> list[bytes]:
        """Run a batch; return what its tasks say of their units (`receipt.told`).

        Raises:
            ServerGone: A task has raised, or its process has ended.
        """
        if orjson.loads(end).get("small"):
            return [self.ask("small", start, end, batch)]
        sent = self._each("read", [(part, batch) for part in self.ask("parts", start, end)])
        for level in range(self._levels - 1):
            sent = self._each("forward", [(level, batch, *own) for own in self._exchanged(sent)])
        return self._each("finish", [(batch, *own) for own in self._exchanged(sent)])

    def close(self, patience_s: float = _LAST_S) -> None:
        """End the processes: after what they do now, or after so long."""
        for server in self._all:
            server.close(patience_s)

    def _exchanged(self, sent: Sequence[Sequence[bytes]]) -> Iterable[tuple[int, list[bytes]]]:
        """Yield each partition with the rows that go there."""
        return ((to, [rows[to] for rows in sent]) for to in range(self.partitions))

    def _each(self, name: str, calls: Iterable[Sequence[object]]) -> list[Any]:
        """Call a method in as many processes at the same time; return the answers, once all are there."""
        asked = []
        for at, arguments in enumerate(calls):
            if at == len(self._all):
                self._all.append(ServerProcess(self._python, **self._settings))
            self._all[at].ask(name, *arguments)
            asked.append(self._all[at])
        return [server.answer() for server in asked]

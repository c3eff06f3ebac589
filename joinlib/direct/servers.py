"""The processes that run the batches of a job without Spark, and the exchange between them.

    a small batch    one of them runs it from the slices to the receipts
    any other        each reads a part ─► rows by partition ─► each joins a partition, level after level ─► receipts
                                                               whoever is done reads a part of the next batch,
                                                               or others read several

The exchange is in files. The run's own process hands on their names.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import SHUT_WR, socketpair
from typing import TYPE_CHECKING, Any

import orjson

from joinlib.direct.reading import BatchReading, ReadAhead
from joinlib.engine.sources import SourceTask
from joinlib.engine.task import JoinTask
from joinlib.errors import StreamJoinError

if TYPE_CHECKING:
    from joinlib.engine.partition import Arrived, Sent

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
            command, one = [*python, "-m", _SERVE], {**os.environ, "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), process_group=0, env=one)
        self._socket, self._connection = ours, Connection(os.dup(ours.fileno()))
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

    def fileno(self) -> int:
        """Return what is ready once there is an answer, or the process has ended."""
        return self._connection.fileno()

    def leave(self) -> None:
        """Let the process end after what it does now."""
        with suppress(OSError):
            self._socket.shutdown(SHUT_WR)

    def close(self, end: float) -> None:
        """Wait for the end of the process, which was left; kill it at that time (`time.monotonic`)."""
        if not self._ended(end):
            self._process.kill()  # with a prefork it stands for the process, which ends with it
            self._ended(time.monotonic() + _LAST_S)
        self._process.wait()
        self._connection.close()
        self._socket.close()

    def _ended(self, end: float) -> bool:
        """Wait until then for the end of the connection, which is that of the process."""
        try:
            while self._connection.poll(max(end - time.monotonic(), 0.0)):
                self._connection.recv_bytes()
        except (EOFError, OSError):
            return True
        return False


def _gone() -> ServerGone:
    return ServerGone("a process that runs batches without Spark has ended")


class Servers:
    """As many processes as batches need so far, the first of which composes them.

    Args:
        python: The command that starts Python.
        source: What is read.
        join: The stages.
        until_done: Whether the inputs are closed behind what is there.
    """

    def __init__(
        self, python: Sequence[str], source: SourceTask, join: JoinTask, *, until_done: bool
    ) -> None:
        self._levels, self._exchange = len(join.pipeline.levels), join.exchange
        self._begin = partial(ServerProcess, python, source=source, join=join, until_done=until_done)
        shutil.rmtree(join.exchange, ignore_errors=True)  # what a run has left there that was killed
        join.exchange.mkdir(parents=True)
        self._all = [self._begin()]
        self._ahead = ReadAhead(self._begin, source.tasks)

    def initial(self) -> str:
        """Return where the first of all batches begins.

        Raises:
            ServerGone: The process that composes batches has raised, or ended.
        """
        return str(self._ask("initial"))

    def next(self, start: str) -> str | None:
        """Return where the batch ends that follows one that is done; None if there is nothing to do.

        Raises:
            ServerGone: The process that composes batches has raised, or ended.
        """
        if (read := self._ahead.following(start)) is not None:
            return read.end
        self._ahead.drop()
        end: str | None = self._ask("next", start, start)
        return end

    def _ask(self, name: str, *arguments: object) -> Any:
        """Return what the process says that composes batches.

        Raises:
            ServerGone: It has raised, or the process has ended.
        """
        (answer,) = self._each(name, [arguments])
        return answer

    def run(self, start: str, end: str, batch: int, partitions: int, *, ahead: bool = False) -> list[bytes]:
        """Run a batch; return what its tasks say of their units (`receipt.told`).

        Args:
            start: Where the batch begins.
            end: Where it ends.
            batch: Its number.
            partitions: How many it has, if it is not small.
            ahead: Whether what follows is read meanwhile.

        Raises:
            ServerGone: A task has raised, or its process has ended.
        """
        if orjson.loads(end).get("small"):
            self._ahead.drop()
            return [self._ask("small", start, end, batch)]
        sent = self._read(start, end, partitions)
        last = self._levels - 1
        for level in range(last):
            sent += self._each("forward", [(level, batch, *own) for own in _exchanged(sent, level)])
            sent = _without_read(sent, level)
        if ahead:
            self._read_ahead(end, start, partitions)
        told = self._each("finish", [(batch, *own) for own in _exchanged(sent, last)], self._ahead.offer)
        _without_read(sent, last)
        return told

    def close(self, patience_s: float = _LAST_S) -> None:
        """End the processes: after what they do now, or after so long."""
        every = [*self._all, *self._ahead.processes]
        for server in every:
            server.leave()
        end = time.monotonic() + patience_s
        for server in every:
            server.close(end)
        shutil.rmtree(self._exchange, ignore_errors=True)  # what was read of a batch that does not come

    def _read(self, start: str, end: str, partitions: int) -> "list[Sent]":
        """Return the rows of a batch by partition, which may be read already."""
        read = self._ahead.following(start)
        if read is None or (read.end, read.partitions) != (end, partitions):
            self._ahead.drop()
            parts = self._ask("parts", start, end)
            return self._each("read", [(part, partitions) for part in parts])
        return self._ahead.take(self._first(len(read)))

    def _read_ahead(self, end: str, done: str, partitions: int) -> None:
        """Begin to read what follows a batch that ends there. `done`: where the last one ended that is done."""
        while self._ahead.wanted:
            before = self._ahead.end
            start = before or end
            if (found := self._ask("ahead", start, done, before is None)) is None:
                break
            following, parts, whole = found
            self._ahead.add(BatchReading(start, following, partitions, parts, whole=whole))
        for server in self._all[partitions:]:
            self._ahead.offer(server)

    def _first(self, count: int) -> "list[ServerProcess]":
        """Return so many processes. Whoever is there goes on with its units."""
        while len(self._all) < count:
            self._all.append(self._begin())
        return self._all[:count]

    def _each(
        self,
        name: str,
        calls: Iterable[Sequence[object]],
        then: "Callable[[ServerProcess], None]" = lambda _: None,
    ) -> list[Any]:
        """Call a method in as many processes at the same time; return the answers, once all are there.

        `then`: what is done with a process that has answered.
        """
        every = list(calls)
        asked: dict[Any, int] = {}
        for at, server in enumerate(self._first(len(every))):
            server.ask(name, *every[at])
            asked[server] = at
        answers: list[Any] = [None] * len(asked)
        while asked:  # what fails is told as soon as it does
            ready = set[Any](wait([*asked, *self._ahead.busy]))
            self._ahead.heard(ready - asked.keys())
            for server in ready & asked.keys():
                answers[asked.pop(server)] = server.answer()
                then(server)
        return answers


def _exchanged(sent: "Sequence[Sent]", level: int) -> "Iterator[tuple[tuple[int, int], Arrived]]":
    """Yield each partition, with its number and how many there are, and the rows of a level that go there."""
    files, spans = [file for file, _ in sent], [levels[level] for _, levels in sent]
    for to, own in enumerate(zip(*spans, strict=True)):
        yield (to, len(spans[0])), [(file, some) for file, some in zip(files, own, strict=True) if some]


def _without_read(sent: "Iterable[Sent]", level: int) -> "list[Sent]":
    """Remove files of which nothing is for a level behind this one; return the others."""
    left = []
    for file, levels in sent:
        if any(some for own in levels[level + 1 :] for some in own):
            left.append((file, levels))
        else:
            Path(file).unlink()
    return left

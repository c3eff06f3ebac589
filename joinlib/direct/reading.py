"""Batches that are read before they begin.

    batch N + 1      a part by each process that has ended its task of batch N
    N + 1, N + 2, …  by processes that do nothing else, until each core has a part to read: where batches are read whole

Whole is what cannot be cut well: a row group of a Parquet file is decoded as a whole, however little of it is wanted, so
sixteen processes that read a part each of four of them would spend most of their time on what they do not want. What is read
is pure: if a batch does not come to be, or is composed in another way, its files are removed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joinlib.errors import StreamJoinError

if TYPE_CHECKING:
    from joinlib.direct.servers import ServerProcess
    from joinlib.engine.partition import Sent
    from joinlib.engine.sources import MapInput


class BatchReading:
    """The reading of a batch.

    Args:
        start: Where the batch begins, an offset as it is logged.
        end: Where it ends.
        partitions: How many its rows go to.
        parts: What is to be read.
        whole: Whether processes read it that only read.
    """

    def __init__(
        self, start: str, end: str, partitions: int, parts: "Sequence[MapInput]", *, whole: bool
    ) -> None:
        self.start, self.end, self.partitions, self.parts, self.whole = start, end, partitions, parts, whole
        self.left = deque(range(len(parts)))
        self.sent: dict[int, Sent] = {}
        self.error: StreamJoinError | None = None  # of a part that could not be read

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def missing(self) -> int:
        """How many parts are not read yet."""
        return len(self.parts) - len(self.sent)


class ReadAhead:
    """The batches that are read before they begin, the next one first.

    Args:
        begin: Begins a process that only reads.
        cores: How many parts are read at the same time.
    """

    def __init__(self, begin: "Callable[[], ServerProcess]", cores: int) -> None:
        self._begin, self._cores = begin, cores
        self._batches: deque[BatchReading] = deque()
        self._busy: dict[ServerProcess, tuple[BatchReading, int]] = {}
        self._own: list[ServerProcess] = []  # processes that only read
        self._failed: set[ServerProcess] = set()  # those that may have ended

    @property
    def processes(self) -> "Sequence[ServerProcess]":
        """The processes that only read."""
        return self._own

    @property
    def busy(self) -> set[Any]:
        """The processes that read at the moment."""
        return set(self._busy)

    @property
    def wanted(self) -> bool:
        """Whether one more batch is to be read."""
        return sum(reading.missing for reading in self._batches) < self._cores

    @property
    def end(self) -> str | None:
        """Where the last of the batches ends."""
        return self._batches[-1].end if self._batches else None

    def following(self, start: str) -> BatchReading | None:
        """Return the next batch, if it begins there."""
        return self._batches[0] if self._batches and self._batches[0].start == start else None

    def add(self, reading: BatchReading) -> None:
        """Read one more batch, behind the others."""
        self._batches.append(reading)
        self._go_on()

    def offer(self, server: "ServerProcess") -> None:
        """Let a process that has nothing to do read a part of the next batch, unless that is read whole."""
        if self._batches and not (first := self._batches[0]).whole and server not in self._busy:
            self._read(server, first)

    def heard(self, servers: "Iterable[ServerProcess]") -> None:
        """Take what processes have read. What cannot be read is told when its batch begins, and not by one before it."""
        for server in servers:
            reading, at = self._busy.pop(server)
            try:
                reading.sent[at] = server.answer()
            except StreamJoinError as error:
                reading.error = error
                self._failed.add(server)
        self._go_on()

    def take(self, servers: "Sequence[ServerProcess]") -> "list[Sent]":
        """Return what was read of the next batch, in order, once all of it is. `servers`: have nothing else to do.

        Raises:
            ServerGone: It cannot be read, or a process has ended.
        """
        first = self._batches[0]
        while first.missing:
            if first.error is not None:
                raise first.error
            for server in servers:
                self.offer(server)
            self.heard(_ready(self._busy))
        self._batches.popleft()
        return [first.sent[at] for at in range(len(first))]

    def drop(self) -> None:
        """Forget all batches: wait for those that read, and remove what was read."""
        for reading in self._batches:
            reading.left.clear()
        while self._busy:
            self.heard(_ready(self._busy))
        for reading in self._batches:
            for file, _ in reading.sent.values():
                Path(file).unlink()
        self._batches.clear()

    def _go_on(self) -> None:
        """Let all processes read that only read, as far as there is something for them."""
        for reading in self._batches:
            while reading.whole and reading.left and (server := self._idle()) is not None:
                self._read(server, reading)

    def _idle(self) -> "ServerProcess | None":
        for server in self._own:
            if server not in self._busy and server not in self._failed:
                return server
        if len(self._own) == self._cores:
            return None
        self._own.append(server := self._begin())
        return server

    def _read(self, server: "ServerProcess", reading: BatchReading) -> None:
        if reading.left:
            self._busy[server] = reading, (at := reading.left.popleft())
            server.ask("read", reading.parts[at], reading.partitions)


def _ready(servers: "Iterable[ServerProcess]") -> "set[Any]":
    """Return those of them that have answered, once there are some."""
    return set(wait(list[Any](servers)))

"""What is read of a batch, and by whom: by all processes at once, or by those that have nothing to do in the batch before.

A process that has ended its task of batch N reads a part of N + 1, while others still join and while N is published. What
is read is pure: if N + 1 does not come to be, or is composed in another way, its files are removed.
"""

from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """

    def __init__(self, start: str, end: str, partitions: int, parts: "Sequence[MapInput]") -> None:
        self.start, self.end, self.partitions, self._parts = start, end, partitions, parts
        self._left = deque(range(len(parts)))
        self._asked: dict[ServerProcess, int] = {}
        self._sent: dict[int, Sent] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def offer(self, server: "ServerProcess") -> None:
        """Let a process read a part that nobody reads yet, unless it reads one."""
        if self._left and server not in self._asked:
            self._asked[server] = at = self._left.popleft()
            server.ask("read", self._parts[at], self.partitions)

    def ended(self, servers: "Sequence[ServerProcess]") -> "list[Sent]":
        """Read what is left; return what was read, in order.

        Raises:
            ServerGone: It cannot be read, or a process has ended.
        """
        for server in servers:
            self.offer(server)
        while self._asked:
            for server in set[Any](wait(list[Any](self._asked))):
                self._take(server)
                self.offer(server)
        return [self._sent[at] for at in range(len(self._parts))]

    def dropped(self) -> None:
        """Wait for those that read, and remove what was read."""
        self._left.clear()
        for server in list(self._asked):
            self._take(server)
        for file, _ in self._sent.values():
            Path(file).unlink()

    def _take(self, server: "ServerProcess") -> None:
        at = self._asked[server]
        self._sent[at] = server.answer()
        del self._asked[server]

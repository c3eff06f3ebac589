"""A process that runs batches without Spark, alone or as one of several.

    ("initial")                            ─►   where the first batch begins   `engine.composer`
    ("next", where the last batch ended)   ─►   where the next one ends
    ("ahead", where this batch ends)       ─►   where the next one ends, and what is read of it before it begins
    ("parts", from where to where)         ─►   what each process reads of it
    ("small", from where to where, number) ─►   what its units say             `engine.small`
    ("read" | "forward" | "finish", ...)   ─►   a task of a larger one         `engine.partition`

It is what the source's driver part and a worker are to Spark. Nothing is logged or published here: `direct.loop` does it.
One process composes all batches. Each ends with its connection, which is its standard input.
"""

import json
import os
import traceback
from functools import cached_property
from multiprocessing.connection import Connection
from typing import Any

from joinlib.engine import partition, small
from joinlib.engine.composer import Composer
from joinlib.engine.partition import Arrived, Sent
from joinlib.engine.sources import MapInput, SourceTask
from joinlib.engine.task import JoinTask


class Server:
    """Answers what a run asks of its batches. Offsets are text, as they are logged.

    Args:
        source: What is read.
        join: The stages.
        until_done: Whether what is there is read, and the inputs are closed behind it.
    """

    def __init__(self, source: SourceTask, join: JoinTask, *, until_done: bool) -> None:
        self._source, self._join, self._until_done = source, join, until_done
        self._released = ""  # the offset up to which inputs have let go what they kept

    @cached_property
    def _composer(self) -> Composer:
        made = Composer(self._source)
        if self._until_done:
            made.bound()
        return made

    def initial(self) -> str:
        """Return where the first of all batches begins."""
        self._released = json.dumps(self._composer.initial())
        return self._released

    def next(self, start: str, done: str) -> str | None:
        """Return where the batch ends that follows; None if there is nothing to do.

        Args:
            start: Where it begins.
            done: Where the last batch that is done ended, up to which inputs let go of what they keep.
        """
        if done != self._released:
            self._composer.commit(json.loads(done))
            self._released = done
        before = json.loads(start)
        end = self._composer.after(before)
        return None if end == before else json.dumps(end)

    def ahead(self, start: str, done: str, read: bool) -> tuple[str, list[MapInput], bool] | None:
        """Return where a batch ends that has not begun, what is read of it, and whether that is whole.

        It is, if in as many parts as there are tasks more than twice as much would be decoded. None if there are few rows,
        since more will have come, or if which keys are hot is not known yet, by which they are spread.

        Args:
            start: Where it begins.
            done: Where the last batch that is done ended.
            read: Whether all batches before it are read, and forwarded to their last level.
        """
        free = self._composer.free
        if not (free or read) or (end := self.next(start, done)) is None or json.loads(end)["small"]:
            return None
        cut = whole = self.parts(start, end)
        if free:
            whole = self._composer.parts(json.loads(start), json.loads(end), whole=True)
        return (end, whole, True) if 2 * len(whole) < len(cut) else (end, cut, False)

    def parts(self, start: str, end: str) -> list[MapInput]:
        """Return what each process reads of a batch."""
        return self._composer.parts(json.loads(start), json.loads(end))

    def small(self, start: str, end: str, batch: int) -> bytes:
        """Run a small batch; return what it says of all units (`receipt.told`)."""
        (part,) = self.parts(start, end)
        return small.run(self._source, self._join, part, batch, attempt=0)

    def read(self, part: MapInput, partitions: int) -> Sent:
        """Read a part of a batch; return its rows by partition."""
        return partition.read(self._source, self._join, part, partitions)

    def forward(self, level: int, batch: int, at: tuple[int, int], arrived: Arrived) -> Sent:
        """Run an inner level in a partition; return the rows that go on, by partition."""
        return partition.forward(self._join, level, batch, at, arrived)

    def finish(self, batch: int, at: tuple[int, int], arrived: Arrived) -> bytes:
        """Run the last level in a partition; return what it says of its units (`receipt.told`)."""
        return partition.finish(self._join, batch, at, arrived)


def serve(asked: Connection) -> None:
    """Answer until the other end is closed: (True, the answer) or (False, the traceback of an error)."""
    server: Server | None = None
    while True:
        try:
            name, arguments = asked.recv()
        except (EOFError, ConnectionError):
            return
        try:
            if server is None:
                server = Server(**arguments)
                continue
            answer: tuple[bool, Any] = True, getattr(server, name)(*arguments)
        except Exception:  # noqa: BLE001 - told to the run, which decides what to do about it
            answer = False, traceback.format_exc()
        try:
            asked.send(answer)
        except ConnectionError:
            return


if __name__ == "__main__":
    serve(Connection(os.dup(0)))

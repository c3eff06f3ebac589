"""A process that runs small batches: it composes each, and runs it from the slices to the receipts.

    ("next", where the last batch ended)   ─►   where the next one ends     `engine.composer`
    ("run", from where to where, number)   ─►   what its units say          `engine.small`

It is what the source's driver part and a task are to Spark, in one process. Nothing is logged or published here:
`direct.loop` does it. The process ends with the connection, which is its standard input.
"""

import json
import os
import traceback
from multiprocessing.connection import Connection
from typing import Any

from joinlib.engine import small
from joinlib.engine.composer import Composer
from joinlib.engine.sources import SourceTask
from joinlib.engine.task import JoinTask

_MOST = 8  # small batches in which rows that wait are read; where more do, Spark is faster


class Server:
    """Answers what a run asks of its small batches. Offsets are text, as they are logged."""

    def __init__(self, source: SourceTask, join: JoinTask) -> None:
        self._source, self._join = source, join
        self._composer = Composer(source)
        self._released = ""  # the offset up to which inputs have let go what they kept

    def next(self, start: str) -> str | None:
        """Return where the batch ends that follows; None if there is nothing to do. It need not be small."""
        before = json.loads(start)
        if start != self._released:
            self._composer.commit(before)
            self._released = start
        end = self._composer.after(before)
        waiting = 0 if end["small"] else self._composer.rows_between(before, end)
        if 0 < waiting <= _MOST * self._source.small_rows:
            end = self._composer.after(before, self._source.small_rows)
        return None if end == before else json.dumps(end)

    def run(self, start: str, end: str, batch: int) -> bytes:
        """Run a small batch; return what it says of all units (`receipt.told`)."""
        (part,) = self._composer.parts(json.loads(start), json.loads(end))
        return small.run(self._source, self._join, part, batch, attempt=0)


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
                server = Server(*arguments)
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

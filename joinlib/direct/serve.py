"""A process that runs small batches: it composes each, and runs it from the slices to the receipts.

    ("initial")                            ─►   where the first one begins  `engine.composer`
    ("next", where the last batch ended)   ─►   where the next one ends     `engine.composer`
    ("run", from where to where, number)   ─►   what its units say          `engine.small`

It is what the source's driver part and a task are to Spark, in one process. Nothing is logged or published here:
`direct.loop` does it. The process ends with the connection, which is its standard input.
"""

import json
import os
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from joinlib.direct.allowance import Allowance
from joinlib.engine import small
from joinlib.engine.composer import Composer, Offset
from joinlib.engine.sources import SourceTask
from joinlib.engine.task import JoinTask


class Server:
    """Answers what a run asks of its small batches. Offsets are text, as they are logged.

    `until_done`: what is there is read, and the inputs are closed behind it.
    """

    def __init__(self, source: SourceTask, join: JoinTask, *, until_done: bool = False) -> None:
        self._source, self._join = source, join
        self._composer = Composer(source)
        self._allowed = Allowance.first(
            source.small_rows, source.tasks, alone=len(source.pipeline.levels) == 1
        )
        self._released = self.initial()  # the offset up to which inputs have let go what they kept
        if until_done:
            self._composer.bound()

    def initial(self) -> str:
        """Return where the first of all batches begins."""
        return json.dumps(self._composer.initial())

    def next(self, start: str, spark: bool) -> tuple[str | None, bool]:
        """Return where the batch ends that follows, and whether Spark is wanted.

        The first is None if there is nothing to do. The batch need not be small. `spark`: whether Spark is there.
        """
        before = json.loads(start)
        if start != self._released:
            self._composer.commit(before)
            self._released = start
        limits = self._allowed.limits(spark=spark)
        end = self._composer.after(before, limits.rows, limits.most)
        if end == before:
            return None, False
        much = self._composer.rows_between(before, end) + _left(end) > limits.waiting
        if not end["small"] or (much and spark):
            return json.dumps(self._composer.after(before)), True
        return json.dumps(end), much

    def run(self, start: str, end: str, batch: int) -> bytes:
        """Run a small batch; return what it says of all units (`receipt.told`)."""
        before, after, began = json.loads(start), json.loads(end), time.monotonic()
        (part,) = self._composer.parts(before, after)
        told = small.run(self._source, self._join, part, batch, attempt=0)
        rows = self._composer.rows_between(before, after)
        self._allowed = self._allowed.after(rows, time.monotonic() - began, left=_left(after) > 0)
        return told


def _left(end: Offset) -> int:
    """Return how many rows a batch leaves waiting."""
    return sum(lag["rows"] for lag in end["lag"].values())


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

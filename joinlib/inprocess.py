"""Runs a job in this process, without Spark: what Spark does between its tasks is done here, for few rows.

    Composer: offsets, parts ─► exchange rows ─► by slot to partitions ─► turns ─► receipts, rows to show

Tables and their versions, stages, groups, manifests and results are made by what makes them in a job. Played are the
shuffle and the number of the batch that a task is told. Nothing is logged or published: whoever runs batches does it.
Cost: a task at a time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import orjson
import pyarrow as pa

from joinlib.compiled import Compiled, with_tables
from joinlib.engine import receipt
from joinlib.engine.checks import tables
from joinlib.engine.composer import Composer, Offset
from joinlib.engine.operators import forwarded, receipts
from joinlib.engine.partition import parted, turns
from joinlib.engine.reading import read
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.engine.turn import Turn

Rows = list[pa.RecordBatch]
T = TypeVar("T")
Run = Callable[[list[Turn], Iterator[pa.RecordBatch]], Iterable[T]]


class Told(NamedTuple):
    """What a unit says of a batch, and its rows if the output shows them."""

    receipt: Receipt
    block: bytes | None


class InProcess:
    """A job at the end of a batch.

    Args:
        plan: The compiled spec.
        shuffled: The order in which exchange rows arrive; by default that in which they were sent.
        clock: Seconds, by which inputs become idle.
    """

    def __init__(
        self,
        plan: Compiled,
        shuffled: Callable[[Rows], Rows] = list,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = with_tables(plan, tables(plan.source.tables))
        self._shuffled, self._clock = shuffled, clock
        self.renew()
        self.offset: Offset = self.composer.initial()
        self.batch = 0

    def renew(self) -> None:
        """Open the inputs again, as a new process does."""
        self.composer = Composer(self.plan.source, self._clock)

    def next(self) -> Offset | None:
        """Return the offset at which the next batch ends, as a log gives it back; None if there is nothing to do."""
        end = self.composer.after(self.offset)
        return None if end == self.offset else orjson.loads(orjson.dumps(end))

    def join(self, end: Offset, partitions: int = 1) -> list[Told]:
        """Run the tasks of the batch that ends there, each attempt of which leaves the same."""
        parts = self.composer.parts(self.offset, end)
        rows = [sent for part in parts for sent in read(self.plan.source, part, self.batch)]
        *links, last = self.plan.join.levels()
        for link in links:
            rows = [sent for some in self._stage(link, forwarded, rows, partitions) for sent in some]
        said = self._stage(last, lambda turns, own: receipts(turns, 0, own), rows, partitions)
        return [Told(receipt.decode(text), block) for some in said for text, block in some]

    def done(self, end: Offset) -> None:
        """Go on behind the batch that ends there."""
        self.composer.commit(end)
        self.offset = end
        self.batch += 1

    def _stage(self, tasks: tuple[JoinTask, ...], run: Run[T], rows: Rows, partitions: int) -> list[list[T]]:
        made = []
        for partition, own in enumerate(self._parted(rows, partitions)):
            made.append(list(run(turns(tasks, self.batch, (partition, partitions)), iter(own))))
        return made

    def _parted(self, rows: Rows, partitions: int) -> list[Rows]:
        """Return what each partition is given."""
        found: list[Rows] = [[] for _ in range(partitions)]
        for some in self._shuffled(rows):
            for partition, own in parted(some, self.plan.pipeline.units, partitions):
                found[partition].append(own)
        return found

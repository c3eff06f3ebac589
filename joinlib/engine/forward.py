"""Sends a task's result rows to the next stage: the rows of all its units, cut into one block per unit there.

u units in p tasks make p·u blocks. If each unit sent its own rows there would be u² of them, most of a few
rows.
"""

from collections.abc import Iterator

import pyarrow as pa

from joinlib.aggregate.partial import Partials
from joinlib.engine.exchange import Sender, Spool
from joinlib.engine.frames import frames
from joinlib.engine.task import JoinTask
from joinlib.join.forward import tick
from joinlib.join.watermark import Tick
from joinlib.route.split import prepare


class Forwarder:
    """Forwards the result rows of one task and batch.

    `partition` is the task's; it makes the sequence numbers of its blocks unique.
    """

    def __init__(self, task: JoinTask, batch: int, partition: int) -> None:
        self.task, self.partition, pipeline = task, partition, task.pipeline
        self.reports: list[pa.RecordBatch] = []  # exchange rows without result rows: ticks and receipts
        if task.grouped:
            self._sender = Sender(pipeline, len(pipeline.stages))
        else:
            number, self._plan = pipeline.reader(task.number)
            self._sender = Sender(pipeline, number, Spool(task.states, batch, task.tuning.spool_bytes))

    def send(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the units' rows as exchange rows, then the ticks and receipts that the units have added."""
        yield from self._partials(rows) if self.task.grouped else self._blocks(rows)
        yield from self.reports

    def time(self, watermark: int, closed: bool) -> None:
        """Forward the watermark (µs) to the next stage; `closed` means that no more rows will follow."""
        said = Tick(0, watermark, closed=closed) if self.task.grouped else tick(self._plan, watermark, closed)
        self.reports.append(self._sender.ticks([said]))

    def _blocks(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blocks for the stage that reads the rows.

        A sequence number is the partition in the high 32 bits and the number of frames before
        in the low ones.
        """
        tuning = self.task.tuning
        for at, frame in enumerate(frames(rows, tuning.frame_rows), self.partition << 32):
            block = prepare(self._plan, frame, at, tuning.hash_bits)
            if (sent := self._sender.split(self._plan.number, at, block)) is not None:
                yield sent

    def _partials(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield partials for the units of groups, one for each group of this batch, and rows for their bags."""
        assert self.task.pipeline.grouping is not None
        partials = Partials(self.task.pipeline.grouping)
        for frame in frames(rows, self.task.tuning.frame_rows):
            partials.add(frame)
        for number, block in partials.blocks():
            if (sent := self._sender.split(number, self.partition, block)) is not None:
                yield sent

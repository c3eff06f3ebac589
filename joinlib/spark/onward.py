"""What a task sends to the stage behind its own: the rows of all its units, cut into a block for each unit there.

Of u units in p tasks become p u blocks; would each unit send its own rows, u² of them, most of a few rows.
"""

from collections.abc import Iterator

import pyarrow as pa

from joinlib.aggregate.partial import Partials
from joinlib.join.forward import tick
from joinlib.join.watermark import Tick
from joinlib.route.split import prepare
from joinlib.spark.emit import frames
from joinlib.spark.exchange import Sender, Spool
from joinlib.spark.task import JoinTask


class Onward:
    """Of one task and batch. `partition`: the task's, which its blocks are told apart by."""

    def __init__(self, task: JoinTask, batch: int, partition: int) -> None:
        self.task, self.partition, pipeline = task, partition, task.pipeline
        self.said: list[pa.RecordBatch] = []  # what its units have to say besides their rows
        if task.grouped:
            self._sender = Sender(pipeline, len(pipeline.stages))
        else:
            number, self._plan = pipeline.reader(task.number)
            self._sender = Sender(pipeline, number, Spool(task.states, batch, task.tuning.spool_bytes))

    def send(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The units' rows as exchange rows, and behind them what the units have said meanwhile."""
        yield from self._partials(rows) if self.task.grouped else self._blocks(rows)
        yield from self.said

    def time(self, watermark: int, closed: bool) -> None:
        """How far time has come; `closed`: to its end."""
        said = Tick(0, watermark, closed=closed) if self.task.grouped else tick(self._plan, watermark, closed)
        self.said.append(self._sender.ticks([said]))

    def _blocks(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For the stage that reads the rows. Sequences say the partition and how many frames came before."""
        tuning = self.task.tuning
        for at, frame in enumerate(frames(rows, tuning.frame_rows), self.partition << 32):
            block = prepare(self._plan, frame, at, tuning.hash_bits)
            if (sent := self._sender.split(self._plan.number, at, block)) is not None:
                yield sent

    def _partials(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For the units of groups: one partial for each group of this batch."""
        assert self.task.pipeline.grouping is not None
        partials = Partials(self.task.pipeline.grouping)
        for frame in frames(rows, self.task.tuning.frame_rows):
            partials.add(frame)
        if (sent := self._sender.split(0, self.partition, partials.merged())) is not None:
            yield sent

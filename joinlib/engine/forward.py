"""Sends a task's result rows to the stages that read them: the rows of all its units, cut into one block per unit there.

u units in p tasks make p·u blocks. If each unit sent its own rows there would be u² of them, most of a few
rows.
"""

from collections.abc import Iterator

import pyarrow as pa

from joinlib.engine.edge import edge, senders
from joinlib.engine.frames import frames
from joinlib.engine.task import JoinTask
from joinlib.join.forward import tick


class Forwarder:
    """Forwards the result rows of one task and batch.

    `partition` is the task's; it makes the sequence numbers of its blocks unique.
    """

    def __init__(self, task: JoinTask, batch: int, partition: int) -> None:
        self.task, self.partition, pipeline = task, partition, task.pipeline
        self.reports: list[pa.RecordBatch] = []  # exchange rows without result rows: ticks and receipts
        to = senders(pipeline, task.states, task.tuning, batch)
        self._edges = [
            edge(pipeline, n, plan, to[n], task.tuning.hash_bits) for n, plan in pipeline.readers(task.number)
        ]

    def send(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the units' rows as exchange rows, then the ticks and receipts that the units have added.

        A sequence number is the partition in the high 32 bits and the number of frames before in the low ones.
        """
        for at, frame in enumerate(frames(rows, self.task.tuning.frame_rows), self.partition << 32):
            for each in self._edges:
                yield from each.rows(at, frame)
        for each in self._edges:
            yield from each.end(self.partition)
        yield from self.reports

    def time(self, watermark: int, closed: bool) -> None:
        """Forward the watermark (µs); `closed` means that no more rows will follow."""
        self.reports += [e.sender.ticks([tick(e.plan, watermark, closed)]) for e in self._edges]

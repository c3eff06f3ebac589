"""The tasks of a batch that several processes run without Spark: what Spark shuffles goes from one to the other as bytes.

    slices ─► read ─► rows by partition ─► forward, level by level ─► rows by partition ─► finish ─► receipts

A level begins when the one before has ended in all processes, and units go to the partitions that Spark would take them to.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.engine import reading, receipt
from joinlib.engine.operators import forwarded, receipts
from joinlib.engine.sources import MapInput, SourceTask
from joinlib.engine.task import JoinTask
from joinlib.engine.turn import Turn
from joinlib.engine.wire import SCHEMA
from joinlib.route.slots import slots

Sent = list[bytes]  # exchange rows, by the partition that they go to


def read(source: SourceTask, part: MapInput, batch: int, partitions: int) -> Sent:
    """Read one part of a batch."""
    return _sent(reading.read(source, part, batch), source.pipeline.units, partitions)


def forward(join: JoinTask, level: int, batch: int, at: tuple[int, int], arrived: Sequence[bytes]) -> Sent:
    """Run the stages of an inner level in a partition. `at`: its number, and how many there are."""
    made = forwarded(turns(join.levels()[level], batch, at), _rows(arrived))
    return _sent(made, join.pipeline.units, at[1])


def finish(join: JoinTask, batch: int, at: tuple[int, int], arrived: Sequence[bytes]) -> bytes:
    """Run the stages of the last level in a partition; return what it says of its units (`receipt.told`)."""
    return receipt.told(receipts(turns(join.levels()[-1], batch, at), 0, _rows(arrived)))


def turns(tasks: Iterable[JoinTask], batch: int, at: tuple[int, int] = (0, 1)) -> list[Turn]:
    """Return what runs the stages of a level in a partition."""
    partition, partitions = at
    return [Turn(task, partition=partition, partitions=partitions, batch=batch) for task in tasks]


def _sent(batches: Iterable[pa.RecordBatch], units: int, partitions: int) -> Sent:
    """Return the rows of each partition."""
    to, sinks = _partition_of(units, partitions), [pa.BufferOutputStream() for _ in range(partitions)]
    writers = [pa.ipc.new_stream(sink, SCHEMA) for sink in sinks]
    for batch in batches:
        wanted = to[batch.column(0).to_numpy()]
        for partition, writer in enumerate(writers):
            own = np.flatnonzero(wanted == partition)
            if len(own):
                writer.write_batch(batch if len(own) == len(wanted) else batch.take(pa.array(own)))
    for writer in writers:
        writer.close()
    return [sink.getvalue().to_pybytes() for sink in sinks]


@cache
def _partition_of(units: int, partitions: int) -> npt.NDArray[np.int64]:
    """Return the partition of each slot."""
    known = slots(units)
    found = np.full(max(known) + 1, -1)
    found[list(known)] = np.arange(units) % partitions
    return found


def _rows(arrived: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    for sent in arrived:
        yield from pa.ipc.open_stream(sent)

"""The tasks of a batch that several processes run without Spark: what Spark shuffles goes from one to the other in files.

    slices ─► read ─► rows by partition ─► forward, level by level ─► rows by partition ─► finish ─► receipts

A level begins when the one before has ended in all processes, and units go to the partitions that Spark would take them to.
Each process writes one file for all levels behind it, since making files is what slows many processes most, and rows stay in
it until their own level reads them. The files are this machine's own, are mapped by whoever reads them, and the run removes
them behind the last level that does.
"""

import uuid
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
from joinlib.files import room
from joinlib.model.stage import Pipeline
from joinlib.route.slots import slots

Span = tuple[int, int]  # where a record batch begins in a file, and its size in bytes
Sent = tuple[str, list[list[list[Span]]]]  # a file, and where in it exchange rows are: by level and partition
Arrived = Sequence[tuple[str, list[Span]]]  # files, and where in them those of one partition are


def read(source: SourceTask, join: JoinTask, part: MapInput, partitions: int) -> Sent:
    """Read one part of a batch.

    Blocks are not made segments here, as they are for Spark: a unit takes few rows of each process, and stores them at once.
    """
    return _sent(reading.read(source, part, None), join, partitions)


def forward(join: JoinTask, level: int, batch: int, at: tuple[int, int], arrived: Arrived) -> Sent:
    """Run the stages of an inner level in a partition. `at`: its number, and how many there are."""
    return _sent(forwarded(turns(join.levels()[level], batch, at), _rows(arrived)), join, at[1])


def finish(join: JoinTask, batch: int, at: tuple[int, int], arrived: Arrived) -> bytes:
    """Run the stages of the last level in a partition; return what it says of its units (`receipt.told`)."""
    return receipt.told(receipts(turns(join.levels()[-1], batch, at), 0, _rows(arrived)))


def turns(tasks: Iterable[JoinTask], batch: int, at: tuple[int, int] = (0, 1)) -> list[Turn]:
    """Return what runs the stages of a level in a partition."""
    partition, partitions = at
    return [Turn(task, partition=partition, partitions=partitions, batch=batch) for task in tasks]


def _sent(batches: Iterable[pa.RecordBatch], join: JoinTask, partitions: int) -> Sent:
    """Write the rows of all levels and partitions."""
    file, levels, level_of = (
        str(join.exchange / uuid.uuid4().hex),
        join.pipeline.levels,
        _level_of(join.pipeline),
    )
    spans: list[list[list[Span]]] = [[[] for _ in range(partitions)] for _ in levels]
    with room(join.exchange), pa.OSFile(file, "wb") as out:
        for batch in batches:
            for level, rows in _apart(batch, level_of[batch.column("stage").to_numpy()], len(levels)):
                for partition, own in parted(rows, join.pipeline.units, partitions):
                    content = own.serialize()
                    spans[level][partition].append((out.tell(), content.size))
                    out.write(content)
    return file, spans


def _level_of(pipeline: Pipeline) -> npt.NDArray[np.int64]:
    """Return the level of each stage; rows of no stage, whose number is the next one, are for the last level."""
    found = np.full(len(pipeline.stages) + 1, len(pipeline.levels) - 1)
    for level, stages in enumerate(pipeline.levels):
        found[list(stages)] = level
    return found


def parted(batch: pa.RecordBatch, units: int, partitions: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the partitions that exchange rows go to, each with its rows."""
    return _apart(batch, _partition_of(units, partitions)[batch.column("slot").to_numpy()], partitions)


def _apart(
    batch: pa.RecordBatch, where: npt.NDArray[np.int64], count: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the places, of so many, to which rows go, each with its rows. `where`: the place of each row."""
    for place in range(count):
        own = np.flatnonzero(where == place)
        if len(own) == batch.num_rows > 0:
            yield place, batch
        elif len(own):
            yield place, batch.slice(own[0], 1) if len(own) == 1 else batch.take(pa.array(own))


@cache
def _partition_of(units: int, partitions: int) -> npt.NDArray[np.int64]:
    """Return the partition of each slot."""
    known = slots(units)
    found = np.full(max(known) + 1, -1)
    found[list(known)] = np.arange(units) % partitions
    return found


def _rows(arrived: Arrived) -> Iterator[pa.RecordBatch]:
    for file, spans in arrived:
        with pa.memory_map(file) as mapped:
            for start, size in spans:
                mapped.seek(start)
                yield pa.ipc.read_record_batch(mapped.read_buffer(size), SCHEMA)

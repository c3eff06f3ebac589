"""The operators of the stages, as Spark runs them: blocks are brought to their partition, and a task joins those of its units.

    exchange rows ─► repartition by slot ─► task: manifests of the batch before ─► units, one after the other ─► their manifests

For Spark they are maps without state, which cost it next to nothing. Its own state store took 54 ms of a partition and 3 ms of
a unit in each batch, to keep a few hundred bytes. A stage whose rows are not the result sends them on as exchange rows; the
last one hands on receipts, or the rows themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from joinlib import fault
from joinlib.errors import StateError
from joinlib.route.slots import slots
from joinlib.spark import receipt
from joinlib.spark.task import JoinTask, unit_folder
from joinlib.spark.wire import DDL
from joinlib.state import epochs
from joinlib.state.manifests import Manifests

if TYPE_CHECKING:
    from joinlib.spark.attempt import Save
    from joinlib.spark.groups import GroupTask
    from joinlib.spark.unit import UnitTask

Batches = Iterator[pa.RecordBatch]
Place = Callable[[DataFrame], DataFrame]  # says on which executors the partitions of rows are best computed


def anywhere(rows: DataFrame) -> DataFrame:
    """Wherever Spark likes."""
    return rows


def receipts(rows: DataFrame, task: JoinTask, partitions: int, place: Place = anywhere) -> DataFrame:
    """Results go into the sink, and of each unit and stage a receipt comes out. `rows`: exchange rows of one batch."""
    arriving, last = _linked(rows, task, partitions, place)
    return arriving.mapInArrow(partial(_receipts, last, partitions), receipt.DDL)


def results(rows: DataFrame, task: JoinTask, partitions: int, schema: StructType) -> DataFrame:
    """Results come out as rows of `schema`. `rows`: a stream of exchange rows."""
    arriving, last = _linked(rows, task, partitions, anywhere)
    made = to_arrow_schema(schema, timezone="UTC")
    return arriving.mapInArrow(partial(_results, last, partitions, made), schema)


def _linked(rows: DataFrame, task: JoinTask, partitions: int, place: Place) -> tuple[DataFrame, JoinTask]:
    """The last operator, and what arrives there."""
    *links, last = task.chain()
    for link in links:
        rows = _exchanged(rows, partitions, place).mapInArrow(partial(_link, link, partitions), DDL)
    return _exchanged(rows, partitions, place), last


def _exchanged(rows: DataFrame, partitions: int, place: Place) -> DataFrame:
    return place(rows.repartition(partitions, "slot"))


def _link(task: JoinTask, partitions: int, batches: Batches) -> Batches:
    """What is for later stages passes as it came."""
    from joinlib.spark.exchange import apart  # tasks need what the driver's copy of this module does not
    from joinlib.spark.onward import Onward

    turn, own = Turn(task, partitions), []
    for batch in batches:
        mine, passing = apart(batch, task.number)
        own.append(mine)
        if passing.num_rows:
            yield passing
    onward = Onward(task, turn.batch, turn.partition)
    made = (turn.unit(unit).onward(rows, save, onward) for unit, rows, save in turn.units(own))
    yield from onward.send(chain.from_iterable(made))
    turn.end()


def _receipts(task: JoinTask, partitions: int, batches: Batches) -> Batches:
    from joinlib.spark.emit import open_sink
    from joinlib.spark.exchange import apart, receipts_of

    turn = Turn(task, partitions)
    own: list[pa.RecordBatch] = []
    told: list[tuple[str, bytes | None]] = []
    for batch in batches:
        mine, passing = apart(batch, task.number)
        own.append(mine)
        told += [(text, None) for text in receipts_of(passing)]
    sink = open_sink(task, turn.partition, turn.batch, turn.attempt)
    for unit, rows, save in turn.units(own):
        made, block = turn.result(unit).receipt(rows, save, sink)
        told.append((made.encode(), block))
    sink.close()
    fault.point("written", turn.batch)
    turn.end()
    yield receipt.batch(told)


def _results(task: JoinTask, partitions: int, schema: pa.Schema, batches: Batches) -> Batches:
    turn = Turn(task, partitions)
    for unit, rows, save in turn.units(batches):
        for frame in turn.result(unit).frames(rows, save):
            yield frame.cast(schema)
    turn.end()


class Turn:
    """One task: the units of a partition, in one batch of one stage."""

    def __init__(self, task: JoinTask, partitions: int) -> None:
        context = TaskContext.get()
        assert context is not None
        self.task, self.attempt = task, context.taskAttemptId()
        self.batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        self.slots = slots(task.pipeline.units)
        self.partition, self.partitions = context.partitionId(), partitions
        epochs.check(task.states, task.epoch)
        synced = task.tuning.sync
        self._manifests = Manifests(task.states, task.number, self.partition, partitions, task.epoch, synced)
        self.saved = self._manifests.after(self.batch - 1)
        self._next = dict(self.saved)
        self._fresh: list[Path] = []

    def units(self, arrived: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[Sequence[Any]], "Save"]]:
        """Each unit with its exchange rows, and with what saves its manifest."""
        by_slot: dict[int, list[Sequence[Any]]] = {}
        for row in _rows(arrived):
            by_slot.setdefault(row[0], []).append(row)
        unit_of = {slot: unit for unit, slot in enumerate(self.slots)}
        for slot in sorted(by_slot):
            unit = unit_of[slot]
            if unit % self.partitions != self.partition:  # it would begin anew, and its state would be lost
                raise StateError(f"unit {unit} has come to partition {self.partition} of {self.partitions}")
            yield unit, by_slot.pop(slot), partial(self._save, unit)

    def unit(self, unit: int) -> "UnitTask":
        """The unit as it was before this batch."""
        from joinlib.spark.unit import UnitTask

        return UnitTask(self.task, unit, self.batch, self.saved.get(unit))

    def result(self, unit: int) -> "UnitTask | GroupTask":
        """The unit, whose rows are the result."""
        if self.task.grouping is None:
            return self.unit(unit)
        from joinlib.spark.groups import GroupTask

        return GroupTask(self.task, unit, self.batch, self.saved.get(unit))

    def end(self) -> None:
        """All units are done: what they are now counts."""
        self._manifests.write(self.batch, self._next, self._fresh)
        self._manifests.sweep(self.batch, self.task.tuning.retain_batches)

    def _save(self, unit: int, manifest: bytes, fresh: Iterable[str]) -> None:
        self._next[unit] = manifest
        folder = unit_folder(self.task.state, unit)
        self._fresh += [folder / name for name in fresh]


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

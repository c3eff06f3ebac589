"""The stateful operators: Spark hands them a unit's blocks and keeps the unit's manifest in its state store.

A stage whose rows are not the result has a `LinkJoiner`, the last a `ReceiptJoiner` or a `FrameJoiner`.

Spark makes a fresh object for every task; what is worth keeping between batches (open maps) hangs on the process.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from joinlib.spark.task import JoinTask
from joinlib.spark.wire import DDL, SCHEMA

if TYPE_CHECKING:
    import pandas as pd

    from joinlib.spark.groups import GroupTask
    from joinlib.spark.outbox import Outbox
    from joinlib.spark.unit import UnitTask


_SENT = Row(*SCHEMA.names)


class _Joiner(StatefulProcessor):
    """Joins the blocks of the units that fall upon this task."""

    def __init__(self, task: JoinTask) -> None:
        self.task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.saved = handle.getValueState("manifest", "manifest BINARY")

    def close(self) -> None:
        pass

    def unit(self, key: Any) -> "UnitTask":
        """The unit of `key`, as it was before this batch."""
        from joinlib.spark.unit import UnitTask  # tasks need what the driver's copy of this object does not

        return UnitTask(self.task, *self._known(key))

    def result(self, key: Any) -> "UnitTask | GroupTask":
        """The unit of `key`, whose rows are the result."""
        if self.task.grouping is None:
            return self.unit(key)
        from joinlib.spark.groups import GroupTask

        return GroupTask(self.task, *self._known(key))

    def _known(self, key: Any) -> tuple[int, int, int, bytes | None]:
        context, batch = _now()
        saved = self.saved.get()
        return int(key[0]), batch, context.taskAttemptId(), bytes(saved[0]) if saved else None

    def save(self, manifest: bytes) -> None:
        """What the unit is after this batch."""
        self.saved.update((manifest,))


class LinkJoiner(_Joiner):
    """Results go on as exchange rows of a later stage. What is for later stages passes as it came."""

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        from joinlib.spark.exchange import apart

        own, passing = apart(_checked(rows), self.task.number)
        yield from passing
        for sent in self.unit(key).onward(own, self.save):
            for values in zip(*(column.to_pylist() for column in sent.columns), strict=True):
                yield _SENT(*values)


class ReceiptJoiner(_Joiner):
    """Results go into the sink, a receipt to the driver. Rows in, rows out: frames would cost 1.5 ms a unit and batch."""

    def __init__(self, task: JoinTask) -> None:
        super().__init__(task)
        self._outbox: Outbox | None = None

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, and rows as we asked for
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        from joinlib.spark.exchange import apart, receipt_of

        own, passing = apart(_checked(rows), self.task.number)
        for row in passing:
            yield Row(receipt=receipt_of(row), block=None)
        receipt, block = self.result(key).receipt(own, self.save, self.outbox())
        yield Row(receipt=receipt.encode(), block=block)

    def outbox(self) -> "Outbox | None":
        """Of this task, where results go to Kafka."""
        if self._outbox is None and (target := self.task.emit.kafka):
            from joinlib.spark.outbox import Outbox

            context, batch = _now()
            self._outbox = Outbox(target, context.partitionId(), batch)
        return self._outbox

    def close(self) -> None:
        """All units are done, the state is not committed yet. Not called where something went wrong."""
        if self._outbox is not None:
            self._outbox.commit()


class FrameJoiner(_Joiner):
    """Results go on through Spark, as frames of bounded size."""

    def handleInputRows(  # type: ignore[override]  # noqa: N802
        self,
        key: Any,
        rows: Iterator["pd.DataFrame"],
        timerValues: Any,  # noqa: N803
    ) -> Iterator["pd.DataFrame"]:
        from joinlib.spark.emit import to_pandas

        arrived = (row for frame in rows for row in _tuples(frame))
        yield from (to_pandas(frame) for frame in self.result(key).frames(arrived, self.save))


def stateful(rows: DataFrame, task: JoinTask, schema: StructType | str) -> DataFrame:
    """The stages' stateful operators, one after the other, over exchange rows."""
    *links, last = task.chain()
    for link in links:
        rows = rows.groupBy("slot").transformWithState(
            LinkJoiner(link), outputStructType=DDL, outputMode="Append", timeMode="None"
        )
    units = rows.groupBy("slot")
    if last.emit.kind == "rows":
        return units.transformWithStateInPandas(
            FrameJoiner(last), outputStructType=schema, outputMode="Append", timeMode="None"
        )
    return units.transformWithState(
        ReceiptJoiner(last), outputStructType=schema, outputMode="Append", timeMode="None"
    )


def _now() -> tuple[TaskContext, int]:
    """The task that runs, and its batch."""
    context = TaskContext.get()
    assert context is not None
    return context, int(context.getLocalProperty("streaming.sql.batchId") or 0)


def _checked(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        assert list(row.__fields__) == SCHEMA.names
        yield row


def _tuples(frame: "pd.DataFrame") -> list[list[Any]]:
    assert list(frame.columns) == SCHEMA.names
    return frame.to_numpy(dtype=object).tolist()  # a tenth of what column after column costs

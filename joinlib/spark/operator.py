"""The stateful operator: Spark hands it a unit's blocks and keeps the unit's manifest in its state store.

Spark makes a fresh object for every task; what is worth keeping between batches (open maps) hangs on the process.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from joinlib.spark.task import JoinTask

if TYPE_CHECKING:
    import pandas as pd

    from joinlib.spark.outbox import Outbox


class JoinProcessor(StatefulProcessor):
    """Joins the blocks of the units that fall upon this task."""

    def __init__(self, task: JoinTask) -> None:
        self.task = task
        self._outbox: Outbox | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.saved = handle.getValueState("manifest", "manifest BINARY")

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, and frames as we asked for
        self,
        key: Any,
        rows: Iterator["pd.DataFrame"],
        timerValues: Any,  # noqa: N803
    ) -> Iterator["pd.DataFrame"]:
        from joinlib.spark.unit import UnitTask  # tasks need what the driver's copy of this object does not

        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        saved = self.saved.get()
        unit = UnitTask(
            self.task, int(key[0]), batch, context.taskAttemptId(), bytes(saved[0]) if saved else None
        )
        if self._outbox is None and (target := self.task.emit.kafka):
            from joinlib.spark.outbox import Outbox

            self._outbox = Outbox(target, context.partitionId(), batch)
        yield from unit.run(rows, lambda manifest: self.saved.update((manifest,)), self._outbox)

    def close(self) -> None:
        """All units are done, the state is not committed yet. Not called where something went wrong."""
        if self._outbox is not None:
            self._outbox.commit()

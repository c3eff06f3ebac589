"""One batch of one unit of groups, as a Spark task runs it: manifest in, frames or a receipt out, manifest saved."""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from joinlib import fault
from joinlib.aggregate.partial import schema
from joinlib.aggregate.unit import GroupUnit, empty
from joinlib.errors import StateError
from joinlib.metric.cgroup import recent
from joinlib.route.slots import slots
from joinlib.spark.emit import frames, open_sink
from joinlib.spark.exchange import receive_partials
from joinlib.spark.receipt import Receipt
from joinlib.spark.task import JoinTask, local_folder, unit_folder
from joinlib.spark.unit import Save
from joinlib.state.manifest import ALWAYS, NEVER, decode
from joinlib.state.unit import live_segments

if TYPE_CHECKING:
    from joinlib.spark.outbox import Outbox


class GroupTask:
    """One batch of one unit of groups. `saved`: its manifest after the batch before, None at the very first."""

    def __init__(self, task: JoinTask, slot: int, batch: int, attempt: int, saved: bytes | None) -> None:
        assert task.grouping is not None
        self.task, self.grouping, self.batch, self.attempt = task, task.grouping, batch, attempt
        self.started = time.perf_counter()
        self.unit = slots(task.pipeline.units).index(slot)
        self.before = decode(saved) if saved else empty()
        if self.before.batch >= batch:
            raise StateError(
                f"unit {self.unit} of groups is at batch {self.before.batch}, Spark at {batch}: the checkpoint was mixed up"
                " with another"
            )

    def frames(self, arrived: Iterable[Sequence[Any]], save: Save) -> Iterator[pa.RecordBatch]:
        """The result, in frames of bounded size; saves the manifest once every frame has been taken."""
        with self._grouping(arrived) as (result, unit):
            yield from result
            self._end(unit, save)

    def receipt(
        self, arrived: Iterable[Sequence[Any]], save: Save, outbox: "Outbox | None" = None
    ) -> tuple[Receipt, bytes | None]:
        """Groups into the sink and saves the manifest; what the driver must know, and rows to show if any."""
        with self._grouping(arrived) as (result, unit):
            result_schema = self.task.pipeline.schema
            sink = open_sink(self.task.emit, self.unit, self.batch, self.attempt, result_schema, outbox)
            rows_out = 0
            for frame in result:
                sink.write(frame)
                rows_out += frame.num_rows
            files, block = sink.close()
            receipt = self._figures(unit, rows_out, files)
            self._end(unit, save)
        return receipt, block

    @contextmanager
    def _grouping(
        self, arrived: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Iterator[pa.RecordBatch], GroupUnit]]:
        fault.point("handed", self.batch)
        segments = unit_folder(self.task.state, self.unit)
        parts, ticks = receive_partials(arrived, schema(self.grouping))
        watermark = max((ALWAYS if t.closed else t.highest for t in ticks), default=NEVER)
        locks = local_folder(self.task.state)
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / f"{segments.name}.lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unit = GroupUnit(self.grouping, self.unit, segments, self.task.tuning, self.before)
            yield frames(unit.run(self.batch, parts, watermark), self.task.tuning.frame_rows), unit

    def _end(self, unit: GroupUnit, save: Save) -> None:
        fault.point("grouped", self.batch)
        save(unit.manifest.encode())

    def _figures(self, unit: GroupUnit, rows_out: int, files: tuple[str, ...]) -> Receipt:
        after, container = unit.manifest, recent()
        alive, heard = live_segments(after), len(self.task.pipeline.heard)
        return Receipt(
            unit=self.task.number * self.task.pipeline.units + self.unit,
            batch=self.batch,
            rows_in=(0,) * heard,
            late=(0,) * heard,
            late_total=(0,) * heard,
            rows_out=rows_out,
            files=files,
            state_rows=sum(s.rows for s in after.sides),
            state_bytes=sum(s.bytes for s in alive),
            retired_bytes=sum(size for _, _, size in after.retired),
            index_bytes=0,
            segments=len(alive),
            watermark=after.watermark,
            highest=(NEVER,) * heard,
            seconds=time.perf_counter() - self.started,
            bad=(0,) * heard,
            executor=os.environ.get("SPARK_EXECUTOR_ID", ""),
            working_set=container.working_set,
            memory_limit=container.limit,
        )

"""The stateful operator: Spark hands it a unit's blocks, it joins them and keeps the unit's manifest in Spark's state store.

Spark makes a fresh object for every task; what is worth keeping between batches (open maps) hangs on the process.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from joinlib import fault
from joinlib.errors import StateError
from joinlib.join.layout import Operator, layout
from joinlib.join.unit import UnitJoin
from joinlib.plan.stage import Stage
from joinlib.route.slots import slots
from joinlib.spark.emit import Emit, frames, project, to_pandas
from joinlib.spark.exchange import receive, unit_folder
from joinlib.spark.receipt import Receipt
from joinlib.state.manifest import Manifest, decode, empty
from joinlib.state.side import SideConfig
from joinlib.state.tuning import Tuning
from joinlib.state.unit import Unit, hold, live_segments


@dataclass(frozen=True)
class JoinTask:
    """A stage as an executor runs it. Frozen, picklable."""

    stage: Stage
    state: Path  # folder of this stage's segments
    tuning: Tuning
    emit: Emit

    @cached_property
    def root(self) -> Operator:
        select = tuple(c.value for c in self.stage.select)
        return layout(self.stage.tree, self.stage.inputs, select, self.tuning.hash_bits)

    @cached_property
    def sides(self) -> tuple[SideConfig, ...]:
        return tuple(s for op in self.root.operators() for s in op.sides)


class JoinProcessor(StatefulProcessor):
    """Joins the blocks of the units that fall upon this task."""

    def __init__(self, task: JoinTask) -> None:
        self.task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.saved = handle.getValueState("manifest", "manifest BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: ARG002, N802, N803
        started = time.perf_counter()
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        stage = self.task.stage
        unit = slots(stage.units).index(int(key[0]))
        manifest = self._manifest()
        if manifest.batch >= batch:
            raise StateError(f"unit {unit} is at batch {manifest.batch}, Spark at {batch}: the checkpoint was mixed up with another")
        segments = unit_folder(self.task.state, unit)
        blocks = receive(rows, stage.inputs, segments)
        with hold(segments, _indexes(segments), stage.units.bit_length() - 1, self.task.sides, self.task.tuning, manifest) as held:
            join = UnitJoin(self.task.root, stage.inputs, stage.timed, stage.final_close, self.task.tuning, held, manifest)
            result = frames(project(join.run(batch, blocks), stage.select, stage.schema), self.task.tuning.frame_rows)
            if self.task.emit.kind == "rows":
                yield from (to_pandas(frame) for frame in result)
            else:
                yield self._receipt(unit, batch, context.taskAttemptId(), result, join, manifest, held, started)
            fault.point("joined", batch)
            self.saved.update((join.manifest.encode(),))

    def _manifest(self) -> Manifest:
        saved = self.saved.get()
        return decode(bytes(saved[0])) if saved else empty(len(self.task.sides), len(self.task.stage.inputs))

    def _receipt(
        self,
        unit: int,
        batch: int,
        attempt: int,
        result: Iterator[pa.RecordBatch],
        join: UnitJoin,
        before: Manifest,
        held: Unit,
        started: float,
    ) -> pd.DataFrame:
        sink = self.task.emit.sink(unit, batch, attempt, self.task.stage.schema)
        rows_out = 0
        for frame in result:
            sink.write(frame)
            rows_out += frame.num_rows
        files, block = sink.close()
        after = join.manifest
        alive = live_segments(after)
        receipt = Receipt(
            unit=unit,
            batch=batch,
            rows_in=tuple(b - a for a, b in zip(before.rows, after.rows, strict=True)),
            late=tuple(b - a for a, b in zip(before.late, after.late, strict=True)),
            late_total=after.late,
            rows_out=rows_out,
            files=files,
            state_rows=sum(s.rows for s in after.sides),
            state_bytes=sum(s.bytes for s in alive),
            retired_bytes=sum(size for _, _, size in after.retired),
            index_bytes=held.index_bytes,
            segments=len(alive),
            watermark=after.watermark,
            highest=after.highest,
            seconds=time.perf_counter() - started,
        )
        return pd.DataFrame({"receipt": [receipt.encode()], "block": [block]})

    def close(self) -> None:
        pass


def _indexes(segments: Path) -> Path:
    """The folder of a unit's indexes on this machine: a cache that no other boot of the machine and no other user sees."""
    return local_folder(segments.parent) / segments.name


def local_folder(state: Path) -> Path:
    """The folder of a stage's indexes on this machine."""
    root = Path(os.environ.get("STREAMJOIN_LOCAL_DIR") or tempfile.gettempdir()) / f"streamjoin-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise StateError(f"{root} belongs to another user; set STREAMJOIN_LOCAL_DIR to a folder of your own")
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read(8)
    return root / f"{boot}{str(state.resolve()).replace('/', '-')}"

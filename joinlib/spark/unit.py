"""One batch of one unit, as a Spark task runs it: manifest in, frames or a receipt out, manifest saved."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from joinlib import fault
from joinlib.errors import StateError
from joinlib.join.config import Leaf, Lookup
from joinlib.join.layout import Operator, layout
from joinlib.join.stage import Stage
from joinlib.join.unit import Blocks, UnitJoin
from joinlib.lookup.enrich import Finder, enriched, finder
from joinlib.metric.cgroup import recent
from joinlib.route.slots import slots
from joinlib.spark.emit import frames, open_sink, project
from joinlib.spark.exchange import receive
from joinlib.spark.receipt import Receipt
from joinlib.spark.task import JoinTask, local_folder, unit_folder
from joinlib.state.manifest import decode, empty
from joinlib.state.unit import Unit, hold, live_segments

if TYPE_CHECKING:
    from joinlib.spark.outbox import Outbox

Save = Callable[[bytes], None]


@cache
def root_of(stage: Stage, hash_bits: int) -> Operator | Leaf:
    """The stage's operators; a leaf where nothing is joined but tables are looked up."""
    if isinstance(stage.tree, Leaf):
        return stage.tree
    return layout(stage.tree, stage.inputs, stage.above, hash_bits, stage.index)


class UnitTask:
    """One batch of one unit. `saved`: its manifest after the batch before, None at the very first."""

    def __init__(self, task: JoinTask, slot: int, batch: int, attempt: int, saved: bytes | None) -> None:
        self.task, self.stage, self.batch, self.attempt = task, task.stage, batch, attempt
        self.started = time.perf_counter()
        self.unit = slots(self.stage.units).index(slot)
        self.root = root_of(self.stage, task.tuning.hash_bits)
        operators = () if isinstance(self.root, Leaf) else self.root.operators()
        self.sides = tuple(side for op in operators for side in op.sides)
        self.finders: list[tuple[Lookup, Finder]] = []  # once it joins
        self.before = decode(saved) if saved else empty(len(self.sides), len(self.stage.inputs))
        if self.before.batch >= batch:
            raise StateError(
                f"unit {self.unit} is at batch {self.before.batch}, Spark at {batch}: the checkpoint was mixed up with another"
            )

    def frames(self, arrived: Iterable[Sequence[Any]], save: Save) -> Iterator[pa.RecordBatch]:
        """The result, in frames of bounded size; saves the manifest once every frame has been taken."""
        with self._joining(arrived) as (_, result, join):
            yield from result
            self._end(join, save)

    def receipt(
        self, arrived: Iterable[Sequence[Any]], save: Save, outbox: "Outbox | None" = None
    ) -> tuple[Receipt, bytes | None]:
        """Joins into the sink and saves the manifest; what the driver must know, and rows to show if any.

        outbox: of the task, if results go to Kafka.
        """
        with self._joining(arrived) as (held, result, join):
            sink = open_sink(self.task.emit, self.unit, self.batch, self.attempt, self.stage.schema, outbox)
            rows_out = 0
            for frame in result:
                sink.write(frame)
                rows_out += frame.num_rows
            files, block = sink.close()
            receipt = self._figures(join, held, rows_out, files)
            self._end(join, save)
        return receipt, block

    @contextmanager
    def _joining(
        self, arrived: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Unit, Iterator[pa.RecordBatch], UnitJoin]]:
        stage, tuning = self.stage, self.task.tuning
        segments = unit_folder(self.task.state, self.unit)
        indexes = local_folder(self.task.state) / segments.name
        blocks = receive(arrived, stage.inputs, segments)
        with hold(segments, indexes, stage.skip_bits, self.sides, tuning, self.before) as held:
            join = UnitJoin(
                self.root, stage.inputs, stage.timed, stage.final_close, tuning, held, self.before
            )
            self.finders = self._lookups(blocks, indexes)
            found = enriched(join.run(self.batch, blocks), self.finders, stage.reads)
            yield held, frames(project(found, stage.select, stage.schema), tuning.frame_rows), join

    def _end(self, join: UnitJoin, save: Save) -> None:
        fault.point("joined", self.batch)
        save(join.manifest.encode())

    def _lookups(self, blocks: Blocks, folder: Path) -> list[tuple[Lookup, Finder]]:
        units, bits = self.stage.units, self.task.tuning.hash_bits
        return [(t.lookup, finder(t, blocks.versions, folder, units, bits)) for t in self.task.tables]

    def _figures(self, join: UnitJoin, held: Unit, rows_out: int, files: tuple[str, ...]) -> Receipt:
        before, after, container = self.before, join.manifest, recent()
        alive = live_segments(after)
        return Receipt(
            unit=self.unit,
            batch=self.batch,
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
            seconds=time.perf_counter() - self.started,
            bad=tuple(b - a for a, b in zip(before.bad, after.bad, strict=True)),
            commit_seconds=join.commit_seconds,
            executor=os.environ.get("SPARK_EXECUTOR_ID", ""),
            working_set=container.working_set,
            memory_limit=container.limit,
            tables=tuple(found.used() for _, found in self.finders),
            probes=join.chosen,
        )

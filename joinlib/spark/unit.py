"""One batch of one unit, as a Spark task runs it: manifest in, frames, a receipt or exchange rows out, manifest saved."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from joinlib import fault
from joinlib.aggregate.partial import Partials
from joinlib.errors import StateError
from joinlib.join.config import Leaf, Lookup
from joinlib.join.forward import tick
from joinlib.join.layout import Operator, layout
from joinlib.join.stage import Stage
from joinlib.join.unit import Blocks, UnitJoin
from joinlib.join.watermark import Tick
from joinlib.lookup.enrich import Finder, enriched, finder
from joinlib.metric.cgroup import recent
from joinlib.route.slots import slots
from joinlib.route.split import prepare
from joinlib.spark.emit import frames, open_sink, project
from joinlib.spark.exchange import Sender, Spool, receipt_row, receive
from joinlib.spark.receipt import Receipt
from joinlib.spark.task import JoinTask, local_folder, unit_folder
from joinlib.state.manifest import NEVER, decode, empty
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
        self.slot = slot
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

    def onward(self, arrived: Iterable[Sequence[Any]], save: Save) -> Iterator[pa.RecordBatch]:
        """The result as exchange rows of the stage that reads it, and how far time has come; a receipt where one is wanted.

        Sequences say the unit and how many frames came before.
        """
        task = self.task
        with self._joining(arrived) as (held, result, join):
            grouped = task.number == task.pipeline.operators - 2 and task.pipeline.grouping is not None
            yield from self._partials(result, join) if grouped else self._blocks(result, join)
            if task.emit.kind != "rows":
                receipt = self._figures(join, held, 0, ())
                yield receipt_row(self.slot, task.pipeline.operators, receipt.encode())
            self._end(join, save)

    def _blocks(self, result: Iterator[pa.RecordBatch], join: UnitJoin) -> Iterator[pa.RecordBatch]:
        """For the stage that reads the rows."""
        task = self.task
        number, plan = task.pipeline.reader(task.number)
        sender = Sender(task.pipeline, number, Spool(task.states, self.batch, task.tuning.spool_bytes))
        for at, frame in enumerate(result, self.unit << 32):
            sent = sender.split(plan.number, at, prepare(plan, frame, at, task.tuning.hash_bits))
            if sent is not None:
                yield sent
        if self.unit == 0:  # time is the same in all units, so one speaks for all
            yield sender.ticks([tick(plan, join.manifest.watermark, join.closed)])

    def _partials(self, result: Iterator[pa.RecordBatch], join: UnitJoin) -> Iterator[pa.RecordBatch]:
        """For the units of groups: one partial for each group of this batch."""
        pipeline = self.task.pipeline
        assert pipeline.grouping is not None
        partials = Partials(pipeline.grouping)
        for frame in result:
            partials.add(frame)
        sender = Sender(pipeline, len(pipeline.stages))
        sent = sender.split(0, self.unit, partials.merged())
        if sent is not None:
            yield sent
        if self.unit == 0:
            yield sender.ticks([Tick(0, join.manifest.watermark, closed=join.closed)])

    @contextmanager
    def _joining(
        self, arrived: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Unit, Iterator[pa.RecordBatch], UnitJoin]]:
        stage, tuning = self.stage, self.task.tuning
        if self.task.number:
            fault.point("handed", self.batch)
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
        tables = self.task.tables if self.task.last else ()
        return [(t.lookup, finder(t, blocks.versions, folder, units, bits)) for t in tables]

    def _figures(self, join: UnitJoin, held: Unit, rows_out: int, files: tuple[str, ...]) -> Receipt:
        before, after, container = self.before, join.manifest, recent()
        alive = live_segments(after)
        return Receipt(
            unit=self.task.number * self.stage.units + self.unit,
            batch=self.batch,
            rows_in=self._by_input(_more(before.rows, after.rows)),
            late=self._by_input(_more(before.late, after.late)),
            late_total=self._by_input(after.late),
            rows_out=rows_out,
            files=files,
            state_rows=sum(s.rows for s in after.sides),
            state_bytes=sum(s.bytes for s in alive),
            retired_bytes=sum(size for _, _, size in after.retired),
            index_bytes=held.index_bytes,
            segments=len(alive),
            watermark=after.watermark,
            highest=self._by_input(after.highest, NEVER),
            seconds=time.perf_counter() - self.started,
            bad=self._by_input(_more(before.bad, after.bad)),
            commit_seconds=join.commit_seconds,
            executor=os.environ.get("SPARK_EXECUTOR_ID", ""),
            working_set=container.working_set,
            memory_limit=container.limit,
            tables=tuple(found.used() for _, found in self.finders),
            probes=join.chosen,
        )

    def _by_input(self, figures: Sequence[int], other: int = 0) -> tuple[int, ...]:
        """For every input of the pipeline that is read from a source: `other` where another stage reads it."""
        own = self.task.number
        return tuple(figures[p.number] if n == own else other for n, p in self.task.pipeline.heard)


def _more(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [b - a for a, b in zip(before, after, strict=True)]

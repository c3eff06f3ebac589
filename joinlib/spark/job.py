"""One run of a spec, from the lock to the last batch.

    compiled ─► lock ─► identity ─► session ─► query ─► (batch ─► receipts ─► publish ─► report)* ─► stop

A batch of files is published by the driver after all its units have joined and before Spark writes its commit log. Killed
in between, the batch runs again, and the rename says that it was there already: exactly once. Into Kafka each task commits
its own rows (`outbox`).
"""

import contextlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joinlib import fault
from joinlib.errors import NotReady
from joinlib.route.slots import check as check_partitions
from joinlib.spark import batches, receipt, session
from joinlib.spark.compiled import Compiled, with_tables
from joinlib.spark.failure import GO_ON, translate
from joinlib.spark.history import History
from joinlib.spark.identity import identify
from joinlib.spark.inputs import check, tables
from joinlib.spark.lock import Lock
from joinlib.spark.operator import receipts
from joinlib.spark.outlet import BeforeCommit, Outlet
from joinlib.spark.publish import claim
from joinlib.spark.receipt import Receipt
from joinlib.spark.source import NAME, data_source
from joinlib.spark.spread import Spread, Spreading
from joinlib.spark.task import local_folder
from joinlib.state import epochs


@dataclass(frozen=True)
class Report:
    """What one batch did."""

    batch: int
    receipts: tuple[Receipt, ...]
    sample: pa.Table | None  # the first result rows, if the output is the console

    @property
    def rows_in(self) -> int:
        return sum(sum(r.rows_in) for r in self.receipts)

    @property
    def rows_out(self) -> int:
        return sum(r.rows_out for r in self.receipts)

    @property
    def watermark(self) -> int:
        """µs; of the unit that is furthest behind."""
        return min(r.watermark for r in self.receipts)

    @property
    def bad(self) -> tuple[int, ...]:
        """Messages left out in this batch, by input."""
        return receipt.heard(self.receipts)

    def late(self) -> tuple[int, ...]:
        """Rows left out since the checkpoint began, by input."""
        return tuple(sum(column) for column in zip(*(r.late_total for r in self.receipts), strict=True))


_JVM_GONE = (Py4JNetworkError, ConnectionError, EOFError)  # what a call into it then raises

OnBatch = Callable[[Report], None]
Commit = Callable[[DataFrame, int], None]


class Job:
    """A job that is running. Make it by `started`."""

    def __init__(
        self, plan: Compiled, spark: SparkSession, query: StreamingQuery, spreading: Spreading, outlet: Outlet
    ) -> None:
        self.plan, self.spark, self.query = plan, spark, query
        self._spreading, self._outlet = spreading, outlet

    def wait(self, seconds: float) -> bool:
        """Waits; true when the query has ended. Raises what ended it. Results that wait for others come out meanwhile."""
        ended = _ended(self.query, seconds, self.plan.checkpoint / "spark")
        self._outlet.look()
        return ended

    def lag(self) -> Mapping[str, Mapping[str, int]]:
        """For each source what is known but not yet read, as of the last batch."""
        progress = self.query.lastProgress
        return envelope(progress).get("lag", {}) if progress else {}

    @property
    def partitions(self) -> int:
        """Of the state: tasks that join at once."""
        return self._spreading.wanted.partitions

    def spread(self, partitions: int, executors: Sequence[str]) -> None:
        """From the next batch on. executors: the id of the one that each partition is best joined on; none: anywhere."""
        check_partitions(self.plan.pipeline.units, partitions)
        self._spreading.wanted = Spread(partitions, tuple(executors))

    def stop(self) -> None:
        """Ends the query between two batches."""
        _stop(self.query, self.plan.source.stop)


@contextlib.contextmanager
def started(
    plan: Compiled,
    on_batch: OnBatch,
    *,
    until_done: bool,
    cores: int,
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    lock: Lock | None = None,
    before_commit: BeforeCommit = lambda: None,
    spread: Spread | None = None,
) -> Iterator[Job]:
    """The running job; stopped cleanly at the end of the block.

    A session that is given is used and left running, a `lock` is released with the job. `before_commit` is called right
    before each batch is published. `spread`: by default over as many tasks as there are cores.
    """
    lock = lock or Lock(plan.checkpoint)
    try:
        plan, outlet = _taken(plan, before_commit, until_done=until_done)
        units = plan.pipeline.units
        spread = spread or Spread(session.default_partitions(units, cores))
        check_partitions(units, spread.partitions)
        own = spark or session.start(cores, conf, synced=plan.join.tuning.sync)
        try:
            session.warm_workers(own, cores)
            lock.hold_in_jvm(own)
            own.dataSource.register(data_source(plan.source))
            spreading = Spreading(plan.checkpoint, spread, plan.join.tuning.sync)
            commit = _committer(plan, spreading, outlet, on_batch)
            job = Job(plan, own, _query(plan, own, commit, until_done=until_done), spreading, outlet)
            try:
                yield job
            finally:
                with contextlib.suppress(*_JVM_GONE):
                    job.stop()
            outlet.close()
        finally:
            if spark is None:
                with contextlib.suppress(*_JVM_GONE):
                    own.stop()
            for task in plan.join.chain():
                shutil.rmtree(local_folder(task.state), ignore_errors=True)
    finally:
        lock.release()


def _taken(plan: Compiled, before_commit: BeforeCommit, *, until_done: bool) -> tuple[Compiled, Outlet]:
    """The plan as this run has it, which holds the lock. Refuses a checkpoint or an output that is not its own, or damaged."""
    checkpoint, synced = plan.checkpoint, plan.join.tuning.sync
    identity = identify(checkpoint, plan.document.metadata.name, plan.pipeline, synced)
    History(checkpoint, plan.pipeline.operators).check()
    batches.make(checkpoint / "spark", synced=synced)
    epoch = epochs.take(plan.join.states, synced)

    def ours() -> None:
        before_commit()
        epochs.check(plan.join.states, epoch)

    outlet = Outlet(plan, ours)
    outlet.open(identity)
    for kept in plan.source.dead_letters:
        claim(kept, identity, synced)
    check(plan.source, until_done=until_done)
    known = with_tables(_addressed(plan, identity), tables(plan.source.tables))
    return replace(known, join=replace(known.join, run=uuid.uuid4().hex, epoch=epoch)), outlet


def _addressed(plan: Compiled, identity: str) -> Compiled:
    """The plan, with what the output's cluster says of itself. Refuses one that cannot be written."""
    emit, output = plan.join.emit, plan.document.spec.output.kafka
    if emit.kafka is None or output is None:
        return plan
    from joinlib.spark.topic import reached

    target = reached(emit.kafka, identity, plan.checkpoint, repeat=output.on_forgotten == "repeat")
    return replace(plan, join=replace(plan.join, emit=replace(emit, kafka=target)))


def _ended(query: StreamingQuery, seconds: float, spark: Path) -> bool:
    """Waits; true when the query has ended. Raises what ended it. `spark`: the folder of Spark's logs."""
    try:
        return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions
    except _JVM_GONE as error:
        raise NotReady(f"Spark's JVM died (killed, or out of memory); {GO_ON}") from error
    except Exception as error:
        raise translate(str(error), batches.cut_off(spark)) from error


def _stop(query: StreamingQuery, stop: Path, patience_s: float = 60.0) -> None:
    """Ends the query between two batches: one that is cut off is done again later, which is right but slow and noisy."""
    stop.touch()
    end = time.monotonic() + patience_s
    while query.isActive and "Waiting" not in query.status["message"] and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()
    stop.unlink(missing_ok=True)


def _query(plan: Compiled, spark: SparkSession, commit: Commit, *, until_done: bool) -> StreamingQuery:
    """The query, going on where it was."""
    plan.source.stop.unlink(missing_ok=True)
    rows = spark.readStream.format(NAME).load()
    writer = (
        rows.writeStream.queryName(plan.document.metadata.name)
        .option("checkpointLocation", str(plan.checkpoint / "spark"))
        .foreachBatch(commit)
    )
    interval = f"{plan.document.spec.pace_us // 1000} milliseconds"
    timed = writer.trigger(availableNow=True) if until_done else writer.trigger(processingTime=interval)
    return timed.start()


def _committer(plan: Compiled, spreading: Spreading, outlet: Outlet, on_batch: OnBatch) -> Commit:
    def commit(sent: DataFrame, batch: int) -> None:
        epochs.check(plan.join.states, plan.join.epoch)
        spread = spreading.of(batch)
        rows = receipts(sent, plan.join, spread.partitions, spread.place).collect()
        told = tuple(receipt.decode(row["receipt"]) for row in rows)
        fault.point("collected", batch)
        outlet.take(batch, [name for r in told for name in r.files])
        on_batch(Report(batch, told, _sample([bytes(row["block"]) for row in rows if row["block"]], plan)))

    return commit


def _sample(blocks: list[bytes], plan: Compiled) -> pa.Table | None:
    if not blocks:
        return None
    return pa.concat_tables([pa.ipc.open_stream(b).read_all() for b in blocks]).slice(0, plan.join.emit.show)


def envelope(progress: Any) -> Mapping[str, Any]:
    """The offset that a batch's progress tells, see `source`."""
    raw = progress["sources"][0]["endOffset"] if progress["sources"] else None
    return json.loads(raw) if isinstance(raw, str) else dict(raw or {})


def default_cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0))

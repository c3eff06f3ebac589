"""Runs a spec once, from the lock to the last batch.

    compiled ─► lock ─► identity ─► session ─► query ─► (batch ─► receipts ─► publish ─► report)* ─► stop

With file output, the driver publishes a batch after all its units have joined and before Spark writes its
commit log. If it is killed in between, the batch runs again and the rename finds that it is there already:
exactly once. With Kafka output, each task commits its own rows (`joinlib.sink.kafka`). A batch of several outputs
is committed after all of them have it; what runs again is there already in those that had it.
"""

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joinlib import fault
from joinlib.checkpoint import batches, units
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.lock import Lock
from joinlib.compiled import Compiled, with_tables
from joinlib.engine import receipt
from joinlib.engine.checks import check, tables
from joinlib.engine.receipt import Receipt
from joinlib.errors import NotReady
from joinlib.model.stage import NamedResult, Pipeline
from joinlib.route.slots import check as check_partitions
from joinlib.sink.config import SinkConfig
from joinlib.sink.outlet import BatchPublisher, BeforeCommit, Outlet, StagedLost
from joinlib.sink.publish import claim
from joinlib.spark import session
from joinlib.spark.failure import GO_ON, translate
from joinlib.spark.gather import last_column
from joinlib.spark.jvm_lock import jvm_lock
from joinlib.spark.operator import receipts
from joinlib.spark.source import NAME, data_source
from joinlib.spark.spread import Spread, Spreading
from joinlib.state import epochs


class Sample(NamedTuple):
    """The first rows of a batch's result."""

    rows: pa.Table
    of: int  # so many there are


class BatchPhase(NamedTuple):
    """What a part of a batch took, in seconds since 1970."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True)
class Report:
    """The outcome of one batch."""

    batch: int
    receipts: tuple[Receipt, ...]
    samples: Mapping[str, Sample] = field(default_factory=dict)  # by output: for the console and the page
    phases: tuple[BatchPhase, ...] = ()  # tasks, publish; more than once if they had to run again

    @property
    def rows_in(self) -> int:
        return sum(sum(r.rows_in) for r in self.receipts)

    @property
    def rows_out(self) -> int:
        return sum(r.rows_out for r in self.receipts)

    @property
    def watermark(self) -> int:
        """The watermark (µs) of the unit that is furthest behind."""
        return min(r.watermark for r in self.receipts)

    @property
    def bad(self) -> tuple[int, ...]:
        """Messages left out in this batch, by input."""
        return receipt.bad_messages(self.receipts)

    def late(self) -> tuple[int, ...]:
        """Return the rows left out since the checkpoint began, by input."""
        return tuple(sum(column) for column in zip(*(r.late_total for r in self.receipts), strict=True))


log = logging.getLogger("joinlib.spark")
_TRIES = 3  # of a batch whose staged results were lost
_JVM_GONE = (Py4JNetworkError, ConnectionError, EOFError)  # what a call into a dead JVM raises

Outlets = Mapping[str, Outlet]  # by output
OnBatch = Callable[[Report], None]
Commit = Callable[[DataFrame, int], None]


class RunningJob:
    """A running job, made by `started`."""

    def __init__(
        self,
        plan: Compiled,
        spark: SparkSession,
        query: StreamingQuery,
        spreading: Spreading,
        outlets: Outlets,
    ) -> None:
        self.plan, self.spark, self.query = plan, spark, query
        self._spreading, self._outlets = spreading, outlets
        self.patience_s = 60.0  # how long a batch that runs may go on once the job is to stop

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether the query has ended. Publishes waiting results that are due.

        Raises:
            StreamJoinError: The query has failed.
        """
        ended = _ended(self.query, seconds, self.plan.checkpoint / "spark")
        for outlet in self._outlets.values():
            outlet.look()
        return ended

    def lag(self) -> Mapping[str, Mapping[str, int]]:
        """Return, for each source, what is known but not yet read, as of the last batch."""
        progress = self.query.lastProgress
        return envelope(progress).get("lag", {}) if progress else {}

    def progress(self, after: int) -> list[dict[str, Any]]:
        """Return what Spark says of each batch behind batch `after`, of the last hundred, oldest first."""
        kept: Any = self.query._jsq.recentProgress()
        found: list[dict[str, Any]] = []
        for at in reversed(range(len(kept))):
            said = json.loads(kept[at].json())
            if said["batchId"] <= after:
                break
            found.append(said)
        return found[::-1]

    @property
    def partitions(self) -> int:
        """The number of partitions of the state: tasks that join at the same time."""
        return self._spreading.wanted.partitions

    def heap_bytes(self) -> tuple[int, int]:
        """Return how much of the JVM's heap is in use, garbage included, and the most that it may be."""
        return self._runtime.totalMemory() - self._runtime.freeMemory(), self._runtime.maxMemory()

    @cached_property
    def _runtime(self) -> Any:
        assert self.spark._jvm is not None
        return self.spark._jvm.java.lang.Runtime.getRuntime()

    def spread(self, partitions: int, executors: Sequence[str]) -> None:
        """Set the number of partitions and their placement, from the next batch on that is not small.

        `executors` holds the preferred executor's id for each partition; empty means no preference.
        """
        check_partitions(self.plan.pipeline.units, partitions)
        self._spreading.wanted = Spread(partitions, tuple(executors))

    def stop(self) -> None:
        """Stop the query between two batches."""
        _stop(self.query, self.plan.source.stop, self.patience_s)


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
) -> Iterator[RunningJob]:
    """Start a job and yield it; stop it cleanly at the end of the block.

    Args:
        plan: The compiled spec.
        on_batch: Called with the report of each batch.
        until_done: Whether the query ends once all that is there has been read.
        cores: The cores of a local session.
        conf: Spark settings that override the job's.
        spark: A session to use and leave running; by default the job starts its own and stops it.
        lock: The checkpoint's lock, if the caller holds it already; it is released with the job.
        before_commit: Called right before each batch is published; it raises if the run may no longer
            publish.
        spread: Number and placement of partitions. By default there are as many as cores, and where executors are
            threads of this machine, a small batch has one.

    Raises:
        StreamJoinError: The job cannot run: its checkpoint, an input, a table or the output cannot be used.
    """
    lock = lock or Lock(plan.checkpoint)
    with contextlib.ExitStack() as last:
        last.callback(lock.release)
        plan, outlets, box = _taken(plan, before_commit, until_done=until_done)
        own = spark or session.start(cores, conf, synced=plan.join.tuning.sync)
        try:
            if spread is None and session.on_one_machine(own):
                plan = replace(plan, source=replace(plan.source, small_rows=plan.source.tuning.small_rows))
            spread = spread or Spread(session.default_partitions(plan.pipeline.units, cores))
            check_partitions(plan.pipeline.units, spread.partitions)
            session.warm_workers(own, cores)
            last.enter_context(jvm_lock(own, plan.checkpoint))  # until the session has stopped
            own.dataSource.register(data_source(plan.source, plan.join))
            spreading = Spreading(plan.checkpoint, spread, plan.join.tuning.sync)
            commit = _committer(own, plan, spreading, outlets, box, on_batch)
            job = RunningJob(plan, own, _query(plan, own, commit, until_done=until_done), spreading, outlets)
            try:
                yield job
            finally:
                with contextlib.suppress(*_JVM_GONE):
                    job.stop()
            for outlet in outlets.values():
                outlet.close()
        finally:
            if spark is None:
                with contextlib.suppress(*_JVM_GONE):
                    own.stop()
            plan.join.forget_local()


def _taken(
    plan: Compiled, before_commit: BeforeCommit, *, until_done: bool
) -> tuple[Compiled, Outlets, Outlet]:
    """Return the plan of this run, which holds the lock, and its publishers: of results, and of dead letters.

    Raises:
        StreamJoinError: The checkpoint or the output belongs to another job, or is damaged.
    """
    checkpoint, synced = plan.checkpoint, plan.join.tuning.sync
    units.follow(checkpoint, plan.pipeline, plan.join.tuning)
    identity = identify(checkpoint, plan.document.metadata.name, plan.pipeline, synced)
    History(checkpoint, len(plan.pipeline.stages)).check()
    batches.make(checkpoint / "spark", synced=synced)
    epoch = epochs.take(plan.join.states, synced)

    def ours() -> None:
        before_commit()
        epochs.check(plan.join.states, epoch)

    owners = {result.name: _owner(identity, result) for result in plan.pipeline.results}
    outlets = _outlets(plan, ours)
    for name, outlet in outlets.items():
        outlet.open(owners[name], batches.begun(checkpoint / "spark"))
    for kept in plan.source.dead_letters:
        claim(kept, identity, synced)
    box = _box(plan, ours)
    box.open(identity, batches.begun(checkpoint / "spark"))
    check(plan.source, until_done=until_done)
    interrupted = batches.interrupted(checkpoint / "spark")
    pairs = zip(plan.join.sinks, outlets.items(), strict=True)
    sinks = tuple(_addressed(sink, owners[name], outlet, interrupted) for sink, (name, outlet) in pairs)
    known = with_tables(plan, tables(plan.source.tables))
    known = replace(known, join=replace(known.join, sinks=sinks, run=uuid.uuid4().hex, epoch=epoch))
    return known, outlets, box


def _owner(identity: str, result: NamedResult) -> str:
    """Return the id by which an output knows its checkpoint: of several outputs, each has its own."""
    return str(uuid.uuid5(uuid.UUID(identity), result.name)) if result.name else identity


def _outlets(plan: Compiled, before_commit: BeforeCommit) -> Outlets:
    """Return what publishes the results of this run, by output."""
    results = zip(plan.pipeline.results, plan.join.sinks, strict=True)
    return {result.name: _outlet(plan, result, sink, before_commit) for result, sink in results}


def _box(plan: Compiled, before_commit: BeforeCommit) -> Outlet:
    """Return what publishes the dead letters of this run; nothing, if it keeps none."""
    folder = plan.join.letters.folder if plan.join.letters is not None else None
    mark = partial(batches.mark, plan.checkpoint / "spark")
    return BatchPublisher(folder, None, before_commit, mark, synced=plan.join.tuning.sync)


def _outlet(plan: Compiled, result: NamedResult, sink: SinkConfig, before_commit: BeforeCommit) -> Outlet:
    mark = partial(batches.mark, plan.checkpoint / "spark")
    if sink.postgres is not None:
        from joinlib.sink.postgres.outlet import TableOutlet

        return TableOutlet(sink.postgres, plan.pipeline.stages[result.stage].schema, before_commit, mark)
    files = plan.document.spec.results[result.name].files
    compact = files.compact if files else None
    return BatchPublisher(sink.folder, compact, before_commit, mark, synced=plan.join.tuning.sync)


def _addressed(
    sink: SinkConfig, owner: str, outlet: Outlet, interrupted: tuple[int, float] | None
) -> SinkConfig:
    """Return the sink with what is known of its topic or table; raise if a topic cannot be written."""
    if sink.postgres is not None:
        return replace(sink, postgres=outlet.target)  # type: ignore[attr-defined]
    if sink.kafka is not None:
        from joinlib.sink.kafka.topic import reached

        return replace(sink, kafka=reached(sink.kafka, owner, interrupted))
    return sink


def _ended(query: StreamingQuery, seconds: float, spark: Path) -> bool:
    """Wait up to `seconds`; return whether the query has ended, or raise what ended it.

    `spark` is the folder of Spark's logs.
    """
    try:
        return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions
    except _JVM_GONE as error:
        raise NotReady(f"Spark's JVM died (killed, or out of memory); {GO_ON}") from error
    except Exception as error:
        raise translate(str(error), batches.cut_off(spark)) from error


def _stop(query: StreamingQuery, stop: Path, patience_s: float) -> None:
    """Stop the query between two batches: one that is cut off runs again, which is slow and noisy."""
    stop.touch()
    end = time.monotonic() + patience_s
    while query.isActive and "Waiting" not in query.status["message"] and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()
    stop.unlink(missing_ok=True)


def _query(plan: Compiled, spark: SparkSession, commit: Commit, *, until_done: bool) -> StreamingQuery:
    """Start the query; it resumes where it was."""
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


def _committer(
    spark: SparkSession,
    plan: Compiled,
    spreading: Spreading,
    outlets: Outlets,
    box: Outlet,
    on_batch: OnBatch,
) -> Commit:
    def commit(sent: DataFrame, batch: int) -> None:
        epochs.check(plan.join.states, plan.join.epoch)
        small = bool(batches.offset(plan.checkpoint / "spark", batch).get("small"))
        spread = spreading.of(batch, small)
        phases: list[BatchPhase] = []
        for again in reversed(range(_TRIES)):
            began = time.time()
            made = sent if small else receipts(sent, plan.join, spread.partitions, spread.place)
            said = [unit for task in last_column(made) for unit in receipt.heard(task)]
            told = tuple(receipt.decode(text) for text, _ in said)
            phases.append(BatchPhase("tasks", began, published := time.time()))
            fault.point("collected", batch)
            try:
                if files := [name for r in told for name in r.letters]:
                    box.take(batch, files)
                for result, made_by in _by_result(plan.pipeline, told):
                    outlets[result.name].take(batch, [name for r in made_by for name in r.files])
                    fault.point("taken", batch)
                phases.append(BatchPhase("publish", published, time.time()))
                break
            except StagedLost as lost:
                if not again:
                    raise NotReady(f"{lost}; {GO_ON}") from None
                log.warning("%s; batch %s is computed again", lost, batch)
        blocks = {r.unit: block for r, (_, block) in zip(told, said, strict=True) if block}
        session.end_planners(spark)
        shown = _samples(blocks, _by_result(plan.pipeline, told), plan.join.sinks)
        on_batch(Report(batch, told, shown, tuple(phases)))

    return commit


def _by_result(plan: Pipeline, told: Sequence[Receipt]) -> Iterator[tuple[NamedResult, list[Receipt]]]:
    """Yield each result with the receipts of its stage's units."""
    for result in plan.results:
        yield result, [r for r in told if r.unit // plan.units == result.stage]


def _samples(
    blocks: Mapping[int, bytes],
    made: Iterable[tuple[NamedResult, Sequence[Receipt]]],
    sinks: Sequence[SinkConfig],
) -> dict[str, Sample]:
    """Return the rows to show of each result. `blocks`: by unit."""
    found = {}
    for (result, told), sink in zip(made, sinks, strict=True):
        parts = [pa.ipc.open_stream(blocks[r.unit]).read_all() for r in told if r.unit in blocks]
        if parts:
            rows = pa.concat_tables(parts).slice(0, sink.show)
            found[result.name] = Sample(rows, sum(r.rows_out for r in told))
    return found


def envelope(progress: Any, which: str = "endOffset") -> Mapping[str, Any]:
    """Return an offset that the progress of a batch reports (`engine.composer`); nothing starts at {}."""
    raw = progress["sources"][0][which] if progress["sources"] else None
    found = json.loads(raw) if isinstance(raw, str) else raw
    return dict(found or {})

"""Runs a spec once, from the lock to the last batch.

    compiled ─► lock ─► identity ─► session ─► batching: (batch ─► receipts ─► publish ─► report)* ─► stop

With file output, the driver publishes a batch after all its units have joined and before Spark writes its
commit log. If it is killed in between, the batch runs again and the rename finds that it is there already:
exactly once. With Kafka output, each task commits its own rows (`joinlib.sink.kafka`). A batch of several outputs
is committed after all of them have it; what runs again is there already in those that had it.
"""

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joinlib.checkpoint import batches, units
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import identify, owner_id
from joinlib.checkpoint.lock import Lock
from joinlib.compiled import Compiled, with_tables
from joinlib.direct.commit import Commit, OnBatch, Outlets
from joinlib.engine.checks import check, tables
from joinlib.metric.heap import Heap, heap
from joinlib.model.stage import NamedResult
from joinlib.route.slots import check as check_partitions
from joinlib.sink.changing import written
from joinlib.sink.config import SinkConfig
from joinlib.sink.outlet import BatchPublisher, BeforeCommit, Outlet
from joinlib.sink.publish import claim
from joinlib.spark.batching import Batching
from joinlib.spark.boot import jar
from joinlib.spark.on_demand import Given, OnDemand
from joinlib.spark.session import JVM_GONE, default_partitions, on_one_machine
from joinlib.spark.spread import Spread, Spreading
from joinlib.state import epochs


class RunningJob:
    """A running job, made by `started`."""

    def __init__(
        self,
        plan: Compiled,
        spark: OnDemand,
        batching: Batching,
        spreading: Spreading,
        outlets: Outlets,
    ) -> None:
        self.plan, self._spark, self._batching = plan, spark, batching
        self._spreading, self._outlets = spreading, outlets
        self.patience_s = 60.0  # how long a batch that runs may go on once the job is to stop

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether the job has ended. Does meanwhile what is due between batches.

        Raises:
            StreamJoinError: The job has failed.
        """
        ended = self._batching.wait(seconds, self.patience_s)
        for outlet in self._outlets.values():
            outlet.look()
        return ended

    @property
    def spark(self) -> SparkSession:
        """The session, which is started if there is none."""
        return self._spark.get()

    @property
    def used_spark(self) -> bool:
        """Whether there was a session so far."""
        return self._spark.used

    @property
    def spark_starts(self) -> bool:
        """Whether the session is starting at the moment."""
        return self._spark.starting

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's query, the latest one; None if there was none yet."""
        return self._batching.query

    @property
    def busy(self) -> bool:
        """Whether a batch is running."""
        return self._batching.busy

    @property
    def direct(self) -> bool:
        """Whether batches are run without Spark at the moment (`joinlib.direct`)."""
        return self._batching.direct

    def last(self) -> dict[str, Any] | None:
        """Return what the last batch took, in Spark's words."""
        return self._batching.last()

    def lag(self) -> Mapping[str, Mapping[str, int]]:
        """Return, for each source, what is known but not yet read, as of the last batch."""
        progress = self.last()
        return envelope(progress).get("lag", {}) if progress else {}

    def progress(self, after: int) -> list[dict[str, Any]]:
        """Return what each batch behind batch `after` took, of the last hundred, oldest first."""
        return self._batching.progress(after)

    @property
    def partitions(self) -> int:
        """The number of partitions of the state: tasks that join at the same time."""
        return self._spreading.wanted.partitions

    def heap(self) -> Heap | None:
        """Return the heap of this process's JVM; None where none is running, or Spark's home has no jar of ours."""
        spark = self._spark.running
        if spark is None or spark._jvm is None or not jar.there():
            return None
        return heap(str(jar.known(spark._jvm, "Heaps").own()))

    def spread(self, partitions: int, executors: Sequence[str], readers: Sequence[str] = ()) -> None:
        """Set the number of partitions and their placement, from the next batch on that is not small.

        Args:
            partitions: How many there are.
            executors: The preferred executor's id for each of them; empty means no preference.
            readers: The ids of the executors that read the inputs; empty means any.
        """
        check_partitions(self.plan.pipeline.units, partitions)
        self._spreading.wanted = Spread(partitions, tuple(executors), tuple(readers))

    def stop(self) -> None:
        """Stop between two batches."""
        self._batching.stop(self.patience_s)


@contextlib.contextmanager
def started(
    plan: Compiled,
    on_batch: OnBatch,
    *,
    until_done: bool,
    cores: int,
    conf: Mapping[str, str] | None = None,
    spark: Given | None = None,
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
        spark: A session to use and leave running, or what gives one when a batch needs it; by default the job has
            its own, while it needs one.
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
        there = spark if isinstance(spark, SparkSession) else None
        if spread is None and on_one_machine(there, conf or {}):
            plan = replace(plan, source=replace(plan.source, small_rows=plan.source.tuning.small_rows))
        spread = spread or Spread(default_partitions(plan.pipeline.units, cores))
        check_partitions(plan.pipeline.units, spread.partitions)
        session = OnDemand(plan, cores, conf or {}, spark)
        try:
            spreading = Spreading(plan.checkpoint, spread, plan.join.tuning.sync)
            commit = Commit(plan, outlets, box, on_batch)
            batching = Batching(plan, session, spreading, commit, until_done=until_done)
            job = RunningJob(plan, session, batching, spreading, outlets)
            try:
                yield job
            finally:
                with contextlib.suppress(*JVM_GONE):
                    job.stop()
            for outlet in outlets.values():
                outlet.close()
        finally:
            with contextlib.suppress(*JVM_GONE):
                session.close()
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
    History(checkpoint, len(plan.pipeline.stateful)).check()
    batches.make(checkpoint / "spark", synced=synced)
    epoch = epochs.take(plan.join.states, synced)

    def ours() -> None:
        before_commit()
        epochs.check(plan.join.states, epoch)

    owners = {result.name: owner_id(identity, result.name) for result in plan.pipeline.results}
    outlets = _outlets(plan, ours)
    for name, outlet in outlets.items():
        outlet.open(owners[name], batches.begun(checkpoint / "spark"))
    for kept in plan.source.dead_letters:
        claim(kept, identity, synced)
    box = _box(plan, ours)
    box.open(identity, batches.begun(checkpoint / "spark"))
    check(plan.source, until_done=until_done)
    interrupted = batches.interrupted(checkpoint / "spark")
    schemas = [plan.pipeline.stages[result.stage].schema for result in plan.pipeline.results]
    each = zip(plan.join.sinks, schemas, owners.values(), outlets.values(), strict=True)  # in one order
    sinks = tuple(_addressed(*one, interrupted) for one in each)
    known = with_tables(plan, tables(plan.source.tables))
    known = replace(known, join=replace(known.join, sinks=sinks, run=uuid.uuid4().hex, epoch=epoch))
    return known, outlets, box


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
    sink: SinkConfig, schema: pa.Schema, owner: str, outlet: Outlet, interrupted: tuple[int, float] | None
) -> SinkConfig:
    """Return the sink with what is known of its topic or table; raise if a topic cannot be written.

    `schema`: of the results, without weights.
    """
    if sink.postgres is not None:
        return replace(sink, postgres=outlet.target)  # type: ignore[attr-defined]
    if sink.kafka is not None:
        from joinlib.sink.kafka.topic import reached

        return replace(sink, kafka=reached(sink.kafka, owner, interrupted, written(sink, schema)))
    return sink


def envelope(progress: Any, which: str = "endOffset") -> Mapping[str, Any]:
    """Return an offset that the progress of a batch reports (`engine.composer`); nothing starts at {}."""
    raw = progress["sources"][0][which] if progress["sources"] else None
    found = json.loads(raw) if isinstance(raw, str) else raw
    return dict(found or {})

"""One run of a spec, from the lock to the last batch.

    compiled ─► lock ─► identity ─► session ─► query ─► (batch ─► receipts ─► publish ─► report)* ─► stop

A batch of files is published by the driver after all its units have joined and before Spark writes its commit log. Killed
in between, the batch runs again, and the rename says that it was there already: exactly once. Into Kafka each task commits
its own rows (`outbox`).
"""

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from joinlib import errors, fault
from joinlib.errors import NotReady, StreamJoinError
from joinlib.spark import batches, receipt, repartition, session
from joinlib.spark.compiled import Compiled, with_tables
from joinlib.spark.identity import identify
from joinlib.spark.inputs import check, tables
from joinlib.spark.lock import Lock
from joinlib.spark.operator import stateful
from joinlib.spark.publish import claim, publish
from joinlib.spark.receipt import Receipt
from joinlib.spark.source import NAME, data_source
from joinlib.spark.task import local_folder


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


_GO_ON = "run again, the job goes on where it was"
_JVM_GONE = (Py4JNetworkError, ConnectionError, EOFError)  # what a call into it then raises

OnBatch = Callable[[Report], None]
BeforeCommit = Callable[[], None]
Commit = Callable[[DataFrame, int], None]


class Job:
    """A job that is running. Make it by `started`."""

    def __init__(self, opened: "Opened", until_done: bool) -> None:
        self._opened, self._until_done = opened, until_done
        self.plan, self.spark = opened.plan, opened.spark
        self.query = opened.query(until_done=until_done)
        self.partitions = batches.partitions(self.plan.checkpoint / "spark") or opened.partitions

    def wait(self, seconds: float) -> bool:
        """Waits; true when the query has ended. Raises what ended it."""
        return _ended(self.query, seconds)

    def lag(self) -> Mapping[str, Mapping[str, int]]:
        """For each source what is known but not yet read, as of the last batch."""
        progress = self.query.lastProgress
        return envelope(progress).get("lag", {}) if progress else {}

    def repartition(self, partitions: int) -> None:
        """Between two batches; the query then goes on. Raises what went wrong: the job must be started anew."""
        self.stop()
        if self._opened.repartition(partitions):
            self.partitions = partitions
        self.query = self._opened.query(until_done=self._until_done)

    def stop(self) -> None:
        """Ends the query between two batches."""
        _stop(self.query, self.plan.source.stop)


@dataclass(frozen=True)
class Opened:
    """A checkpoint that is ours, and a session; no query runs. Make it by `opened`."""

    plan: Compiled
    spark: SparkSession
    partitions: int  # of a checkpoint that has none yet
    commit: Commit

    def query(self, *, until_done: bool) -> StreamingQuery:
        """The query, going on where it was."""
        self.plan.source.stop.unlink(missing_ok=True)
        interval = f"{self.plan.document.spec.batch.interval_us // 1000} milliseconds"
        writer = self._writer()
        return (
            writer.trigger(availableNow=True) if until_done else writer.trigger(processingTime=interval)
        ).start()

    def repartition(self, partitions: int) -> bool:
        """Whether there was something to do. Only a checkpoint with a batch that is done has partitions."""
        self._settle()
        return repartition.change(self.spark, self.plan.checkpoint, partitions)

    def _settle(self) -> None:
        """Runs the batch that was begun and is not done, and only that: its results may be in the output already."""
        if batches.cut_off(self.plan.checkpoint / "spark") is None:
            return
        self.plan.source.stop.touch()
        query = self._writer().start()
        try:
            while batches.cut_off(self.plan.checkpoint / "spark") is not None:
                _ended(query, 0.1)
        finally:
            with contextlib.suppress(*_JVM_GONE):
                _stop(query, self.plan.source.stop)

    def _writer(self) -> DataStreamWriter:
        rows = self.spark.readStream.format(NAME).load()
        return (
            stateful(rows, self.plan.join, receipt.DDL)
            .writeStream.queryName(self.plan.document.metadata.name)
            .option("checkpointLocation", str(self.plan.checkpoint / "spark"))
            .foreachBatch(self.commit)
        )


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
) -> Iterator[Job]:
    """The running job; stopped cleanly at the end of the block.

    A session that is given is used and left running, a `lock` is released with the job. `before_commit` is called right
    before each batch is published.
    """
    with opened(
        plan,
        on_batch,
        until_done=until_done,
        cores=cores,
        conf=conf,
        spark=spark,
        lock=lock,
        before_commit=before_commit,
    ) as ready:
        job = Job(ready, until_done)
        try:
            yield job
        finally:
            with contextlib.suppress(*_JVM_GONE):
                job.stop()


@contextlib.contextmanager
def opened(
    plan: Compiled,
    on_batch: OnBatch,
    *,
    cores: int,
    until_done: bool = False,
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    lock: Lock | None = None,
    before_commit: BeforeCommit = lambda: None,
) -> Iterator[Opened]:
    """The checkpoint of a plan, locked, and a session for it. A repartition that was cut off is done first."""
    lock = lock or Lock(plan.checkpoint)
    try:
        identity = identify(plan.checkpoint, plan.document.metadata.name, plan.pipeline)
        if (folder := plan.join.emit.folder) is not None:
            claim(folder, identity)
        for kept in plan.source.dead_letters:
            claim(kept, identity)
        check(plan.source, until_done=until_done)
        plan = with_tables(_addressed(plan, identity), tables(plan.source.tables))
        partitions = session.default_partitions(plan.pipeline.units, cores)
        own = spark or session.start(partitions, plan.join.tuning.retain_batches, cores, conf)
        try:
            session.warm_workers(own, cores)
            lock.hold_in_jvm(own)
            own.dataSource.register(data_source(plan.source))
            repartition.finish(own, plan.checkpoint)
            yield Opened(plan, own, partitions, _committer(plan, before_commit, on_batch))
        finally:
            if spark is None:
                with contextlib.suppress(*_JVM_GONE):
                    own.stop()
            for task in plan.join.chain():
                shutil.rmtree(local_folder(task.state), ignore_errors=True)
    finally:
        lock.release()


def _addressed(plan: Compiled, identity: str) -> Compiled:
    """The plan, with what the output's cluster says of itself. Refuses one that cannot be written."""
    emit, output = plan.join.emit, plan.document.spec.output.kafka
    if emit.kafka is None or output is None:
        return plan
    from joinlib.spark.topic import reached

    target = reached(emit.kafka, identity, plan.checkpoint, repeat=output.on_forgotten == "repeat")
    return replace(plan, join=replace(plan.join, emit=replace(emit, kafka=target)))


def _ended(query: StreamingQuery, seconds: float) -> bool:
    """Waits; true when the query has ended. Raises what ended it."""
    try:
        return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions
    except _JVM_GONE as error:
        raise NotReady(f"Spark's JVM died (killed, or out of memory); {_GO_ON}") from error
    except Exception as error:
        raise translate(str(error)) from error


def _stop(query: StreamingQuery, stop: Path, patience_s: float = 60.0) -> None:
    """Ends the query between two batches: one that is cut off is done again later, which is right but slow and noisy."""
    stop.touch()
    end = time.monotonic() + patience_s
    while query.isActive and "Waiting" not in query.status["message"] and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()
    stop.unlink(missing_ok=True)


def _committer(plan: Compiled, before_commit: BeforeCommit, on_batch: OnBatch) -> Commit:
    def commit(frame: DataFrame, batch: int) -> None:
        rows = frame.collect()
        receipts = tuple(receipt.decode(row["receipt"]) for row in rows)
        fault.point("collected", batch)
        before_commit()
        if (folder := plan.join.emit.folder) is not None:
            publish(folder, batch, [name for r in receipts for name in r.files])
        on_batch(
            Report(batch, receipts, _sample([bytes(row["block"]) for row in rows if row["block"]], plan))
        )

    return commit


def _sample(blocks: list[bytes], plan: Compiled) -> pa.Table | None:
    if not blocks:
        return None
    return pa.concat_tables([pa.ipc.open_stream(b).read_all() for b in blocks]).slice(0, plan.join.emit.show)


def envelope(progress: Any) -> Mapping[str, Any]:
    """The offset that a batch's progress tells, see `source`."""
    raw = progress["sources"][0]["endOffset"] if progress["sources"] else None
    return json.loads(raw) if isinstance(raw, str) else dict(raw or {})


def translate(text: str) -> StreamJoinError:
    """What ended the query, in our own words: Spark wraps a worker's error in pages of stack traces."""
    ours = re.findall(r"^(?:\S+: )?joinlib\.errors\.(\w+): (.+)$", text, re.MULTILINE)
    if ours:
        kind, message = ours[-1]
        return _error(kind, message)
    if "No space left on device" in text:
        return NotReady(
            "the disk is full: free space and run again, the job goes on where it was (nothing is lost)"
        )
    if "Python worker exited unexpectedly" in text:
        return NotReady(f"a Python worker died (killed, or out of memory); {_GO_ON}")
    if "Python worker failed to connect back" in text:
        return NotReady(f"a Python worker did not start within 10 s, the machine is too busy; {_GO_ON}")
    return StreamJoinError(f"Spark ended the query: {_reason(text)}")


def _reason(text: str) -> str:
    """The first line, less Spark's wrapping; the whole of it is the error's cause."""
    first = text.strip().partition("\n")[0]
    return first.partition("terminated with exception: ")[2] or first


def _error(kind: str, message: str) -> StreamJoinError:
    cls = getattr(errors, kind, StreamJoinError)
    return cls(message) if issubclass(cls, StreamJoinError) else StreamJoinError(message)


def default_cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0))

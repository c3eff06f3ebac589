"""Runs the batches of a job: without Spark where all tasks run on this machine, else by a query of Spark.

    direct.loop ──an error──► query ──some batches in a row──► direct.loop

Both go on behind the last batch that is done, by the same logs, and one of them runs at a time. Where Spark would have to
start first, a run begins with the loop. Cost: to change takes some tenths of a second, in which no batch runs, so it is done
less often the sooner it was undone. A run that has an end does not change back.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joinlib.checkpoint import batches
from joinlib.compiled import Compiled
from joinlib.direct.commit import Commit
from joinlib.direct.loop import KEPT, DirectLoop
from joinlib.direct.servers import ServerGone, Servers
from joinlib.errors import GO_ON, InputError, NotReady, SpecError
from joinlib.spark import session
from joinlib.spark.boot import prefork
from joinlib.spark.failure import translate
from joinlib.spark.gather import last_column
from joinlib.spark.on_demand import OnDemand
from joinlib.spark.operator import receipts
from joinlib.spark.session import JVM_GONE
from joinlib.spark.source import NAME
from joinlib.spark.spread import Spreading

_MOST = 1024  # batches in a row that are waited for, after changes that were not worth it
_WORTH = 100  # batches without Spark, after which a change was worth it
_SOON_S = 1.0  # for a query that has been stopped to end
Progress = dict[str, Any]
log = logging.getLogger("joinlib.direct")


class Batching:
    """The batches of a running job. `query` is Spark's, the latest one; None if there was none yet."""

    def __init__(
        self, plan: Compiled, spark: OnDemand, spreading: Spreading, commit: Commit, *, until_done: bool
    ) -> None:
        self._plan, self._spark, self._spreading, self._commit = plan, spark, spreading, commit
        self._logs, self._until_done = plan.checkpoint / "spark", until_done
        self._may_leave = plan.source.small_rows >= 0  # all tasks run on this machine
        self._in_a_row, self._needed = 0, plan.source.tuning.direct_after  # batches of the query
        self._direct: DirectLoop | None = None
        self._took: deque[Progress] = deque(maxlen=KEPT)  # of queries and loops that have ended
        self.query: StreamingQuery | None = None
        plan.source.stop.unlink(missing_ok=True)
        if self._may_leave and plan.source.tuning.direct_first and spark.running is None:
            self._do_without()
        else:
            self._begin()

    @property
    def direct(self) -> bool:
        """Whether batches are run without Spark at the moment."""
        return self._direct is not None

    @property
    def busy(self) -> bool:
        """Whether a batch is running."""
        if self._direct is not None:
            return self._direct.busy
        return self.query is not None and bool(self.query.status["isDataAvailable"])

    def wait(self, seconds: float, patience_s: float) -> bool:
        """Wait up to `seconds`; return whether the query has ended. Changes between Spark and none where it is due.

        `patience_s`: how long a batch that runs may go on then.

        Raises:
            StreamJoinError: The query has failed.
        """
        try:
            return self._waited(seconds, patience_s)
        except JVM_GONE as error:
            raise NotReady(f"Spark's JVM died (killed, or out of memory); {GO_ON}") from error

    def _waited(self, seconds: float, patience_s: float) -> bool:
        if (loop := self._direct) is not None:
            loop.join(seconds)
            if loop.is_alive():
                self._spark.look()
            elif not loop.done:
                self._told(loop)
                self._return(loop)
            return loop.done
        assert self.query is not None
        ended = _ended(self.query, seconds, self._logs)
        if not ended and self._may_leave and not self._until_done and self._in_a_row >= self._needed:
            self._leave(self.query, patience_s)
        return ended

    def last(self) -> Progress | None:
        """Return what is known of the last batch."""
        if self.query is not None and (last := self.query.lastProgress):
            return last
        took = (self._direct.took if self._direct is not None else None) or self._took
        return took[-1] if took else None

    def progress(self, after: int) -> list[Progress]:
        """Return what each batch behind batch `after` took, of the last hundred, oldest first."""
        now: list[Progress] = []
        if self._direct is not None:
            now = list(self._direct.took)
        elif self.query is not None:
            now = _recent(self.query, after)
        return [one for one in [*self._took, *now] if one["batchId"] > after][-KEPT:]

    def stop(self, patience_s: float) -> None:
        """End between two batches: one that is cut off runs again, which is slow and noisy."""
        if self._direct is not None:
            self._direct.stop(patience_s)
        elif self.query is not None:
            _stop(self.query, self._plan.source.stop, patience_s)

    def _leave(self, query: StreamingQuery, patience_s: float) -> None:
        """Go on without the query."""
        _stop(query, self._plan.source.stop, patience_s)
        _ended(query, _SOON_S, self._logs)  # raises what has ended it otherwise
        self._took.extend(_recent(query, -1))
        if batches.cut_off(self._logs) is not None:  # a batch took too long
            self._begin()
        else:
            self._do_without()

    def _do_without(self) -> None:
        """Begin the loop."""
        plan, until_done = self._plan, self._until_done
        self.query = None
        self._spark.do_without()
        tuning = replace(plan.join.tuning, spool_bytes=plan.join.tuning.direct_spool_bytes)
        join = replace(plan.join, tuning=tuning)
        servers = Servers([prefork.begin()], plan.source, join, until_done=until_done)
        self._direct = DirectLoop(
            servers,
            self._logs,
            self._without_spark,
            pace_s=0.0 if until_done else plan.document.spec.pace_us / 1e6,
            synced=plan.join.tuning.sync,
            until_done=until_done,
        )
        self._direct.start()

    def _told(self, loop: DirectLoop) -> None:
        """Raise the user's mistake that has ended the loop in its first batch, which Spark would take seconds to meet again.

        Later it is tried once more, like what else has failed: nobody waits for it then.
        """
        error = loop.failed
        if isinstance(error, ServerGone):
            error = translate(str(error), batches.cut_off(self._logs))
        if loop.count == 0 and isinstance(error, (SpecError, InputError)):
            raise error from loop.failed
        if error is not None:
            log.warning("a batch is left to Spark: %s", loop.failed)

    def _return(self, loop: DirectLoop) -> None:
        """Go on with Spark."""
        least = self._plan.source.tuning.direct_after
        self._needed = least if loop.count >= _WORTH else min(2 * self._needed, _MOST)
        self._took.extend(loop.took)
        self._begin()

    def _begin(self) -> None:
        """Begin a query, which resumes where the one before was."""
        self._in_a_row = 0
        self._direct = None
        self.query = self._written(self._spark.get()).start()

    def _written(self, spark: SparkSession) -> Any:
        """Return what starts a query."""
        document = self._plan.document
        writer = (
            spark.readStream.format(NAME)
            .load()
            .writeStream.queryName(document.metadata.name)
            .option("checkpointLocation", str(self._logs))
            .foreachBatch(partial(self._by_spark, spark))
        )
        if self._until_done:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=f"{document.spec.pace_us // 1000} milliseconds")

    def _by_spark(self, spark: SparkSession, sent: DataFrame, batch: int) -> None:
        """Commit a batch that Spark has begun. The session of `sent` is another one in each batch."""
        small = bool(batches.offset(self._logs, batch).get("small"))
        spread, join = self._spreading.of(batch, small), self._plan.join
        read = spread.reading(sent)
        made = read if small else receipts(read, join, spread.partitions, spread.place)
        self._commit(batch, lambda: last_column(made))
        session.end_planners(spark)
        self._in_a_row += 1

    def _without_spark(self, batch: int, small: bool, run: Callable[[int], Iterable[bytes]]) -> None:
        """Commit a batch that was begun without Spark. `run`: runs its tasks, in so many partitions."""
        spread = self._spreading.of(batch, small)
        self._commit(batch, lambda: run(spread.partitions))


def _recent(query: StreamingQuery, after: int) -> list[Progress]:
    """Return what Spark says of each batch behind batch `after`, oldest first."""
    kept: Any = query._jsq.recentProgress()
    found: list[Progress] = []
    for at in reversed(range(len(kept))):
        said = json.loads(kept[at].json())
        if said["batchId"] <= after:
            break
        found.append(said)
    return found[::-1]


def _ended(query: StreamingQuery, seconds: float, spark: Path) -> bool:
    """Wait up to `seconds`; return whether the query has ended, or raise what ended it.

    `spark` is the folder of Spark's logs.
    """
    try:
        return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions
    except JVM_GONE:
        raise
    except Exception as error:
        raise translate(str(error), batches.cut_off(spark)) from error


def _stop(query: StreamingQuery, stop: Path, patience_s: float) -> None:
    """Stop the query between two batches."""
    stop.touch()
    end = time.monotonic() + patience_s
    try:
        while query.isActive and "Waiting" not in query.status["message"] and time.monotonic() < end:
            time.sleep(0.05)
        query.stop()
    finally:
        stop.unlink(missing_ok=True)

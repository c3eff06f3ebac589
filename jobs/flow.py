"""Runs a job in its own thread, so that the main thread is free for a terminal and for signals.

The thread starts the job, waits and stops it; the main thread sees only batches in a queue and a few plain values.
(Spark takes over SIGINT only when it starts in the main thread, so here it does not.)
"""

import contextlib
import gc
import os
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from jobs.figures import Took
from jobs.pace import lap
from joinlib.metric.heap import Heap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.lineage.told import ToldRun
    from jobs.traces.told import TracedRun
    from joinlib.checkpoint.lock import Lock
    from joinlib.compiled import Compiled
    from joinlib.direct.report import Report
    from joinlib.spark.job import RunningJob

_POLL_S = 0.3


def default_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class Flow(threading.Thread):
    """The thread of a run. Call `start()`; the run is over when it is no longer alive.

    `error` is the exception that ended it, if any.
    """

    def __init__(
        self,
        plan: "Compiled",
        *,
        until_done: bool,
        partitions: int | None = None,
        conf: Mapping[str, str],
        lock: "Lock | None" = None,
        before_commit: Callable[[], None] = lambda: None,
        spark: "Callable[[], SparkSession] | None" = None,
        told: "ToldRun | None" = None,
        traced: "TracedRun | None" = None,
    ) -> None:
        super().__init__(name="flow", daemon=True)
        self._plan, self._until_done, self._conf = plan, until_done, conf
        self._partitions = partitions  # of the first batch; by default one per core
        self._lock, self._before_commit = lock, before_commit
        self._spark = spark  # gives a session that outlives this run; by default the run has its own
        self._told = told  # tells an endpoint of OpenLineage of the run; by default nobody does
        self._traced = traced  # tells a collector of OpenTelemetry of the batches; by default nobody does
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._stop_asked = threading.Event()
        self.flowing = threading.Event()  # the query has started
        self.job: RunningJob | None = None  # set when `flowing` is
        self.lag: Mapping[str, Mapping[str, int]] = {}  # by source, as of the last batch
        self.loads: Mapping[str, Mapping[str, float]] = {}  # by table: figures of its last load
        self.route_skew: Mapping[str, float] = {}  # degree of skew of the last batch: by hashes, by the rule
        self.hot: Mapping[str, float] = {}  # hot keys' share of the last batch, by source that spreads them
        self.took = Took()  # the last batch that was committed
        self.heap: Heap | None = None  # of this process's JVM, while there is one
        self.busy = False  # whether a batch is running
        self.error: Exception | None = None

    @property
    def outages(self) -> list[str]:
        """What is wrong with endpoints that are told of the run."""
        told = [self._told.outage if self._told else "", self._traced.outage if self._traced else ""]
        return [outage for outage in told if outage]

    def stop(self) -> None:
        """Ask the run to end after its current batch; return at once."""
        self._stop_asked.set()

    def reports(self, seconds: float) -> list["Report"]:
        """Return the batches that ended since the last call; wait up to `seconds` for the first."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._reports.get(timeout=seconds))
            while True:
                found.append(self._reports.get_nowait())
        return found

    def run(self) -> None:
        try:
            if self._told is not None:
                self._told.begun()
            self._flow()
        except Exception as error:  # noqa: BLE001 - handed to the main thread, which tells the user
            traceback.print_exc()  # in full, for the log
            self.error = error
        if self._told is not None:
            self._told.ended(self.error, asked=self._stop_asked.is_set())
        if self._traced is not None and self.flowing.is_set():
            self._traced.ended(self.error)

    def _flow(self) -> None:
        from joinlib.spark.job import started
        from joinlib.spark.spread import Spread

        with started(
            self._plan,
            self._done,
            until_done=self._until_done,
            cores=self._plan.cores,
            conf=self._conf,
            spark=self._spark,
            lock=self._lock,
            before_commit=self._before_commit,
            spread=Spread(self._partitions) if self._partitions else None,
        ) as job:
            self.job = job
            # What is loaded by now stays. Where garbage is looked for among it, a batch waits for a tenth of a second.
            gc.freeze()
            if self._traced is not None:
                self._traced.begun()
            self.flowing.set()
            ended = False
            while not ended and not self._stop_asked.is_set():
                ended = job.wait(_POLL_S)
                self._look(job)
                if self._told is not None:
                    self._told.running()

    def _done(self, report: "Report") -> None:
        """Take in a batch that is published. Spark waits for it."""
        self._reports.put(report)
        if self._traced is not None:
            self._traced.batch(report)

    def _look(self, job: "RunningJob") -> None:
        """Read the query's progress.

        It is only displayed, so the error of a query that has just ended is ignored.
        """
        from joinlib.spark.job import envelope

        with contextlib.suppress(Exception):
            self.busy = job.busy
            if progress := job.last():
                if said := envelope(progress):
                    self.lag, self.loads = said.get("lag", {}), said.get("loads", {})
                    self.route_skew, self.hot = said.get("skew") or {}, said.get("hot", {})
                took = {step: ms / 1000 for step, ms in progress["durationMs"].items()}
                seconds = took.pop("triggerExecution")
                begun = datetime.fromisoformat(progress["timestamp"]).timestamp()
                before = envelope(progress, "startOffset").get("lag", {})
                self.took = Took(progress["batchId"], seconds, took, lap(begun, seconds, before, self.lag))
            self.heap = job.heap()
        if self._traced is not None:
            with contextlib.suppress(Exception):
                self._traced.look(job.progress)

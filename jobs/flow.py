"""A run in a thread of its own, so that the main thread is free for a terminal and for signals.

The thread starts Spark, waits and stops; all that the main thread sees are batches in a queue and a few plain values.
(Spark takes over SIGINT only from the main thread: here it does not.)
"""

import contextlib
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jobs.figures import Took
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from joinlib.spark.job import Job, Report
    from joinlib.spark.lock import Lock

_POLL_S = 0.3


class Flow(threading.Thread):
    """Begins with `start()`; over when it is no longer alive. `error` says what ended it, if something did."""

    def __init__(
        self,
        document: StreamJoin,
        *,
        until_done: bool,
        cores: int | None,
        partitions: int | None = None,
        conf: Mapping[str, str],
        lock: "Lock | None" = None,
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="flow", daemon=True)
        self._document, self._until_done, self._cores, self._conf = document, until_done, cores, conf
        self._partitions = partitions  # of the first batch, by default one for each core
        self._lock, self._before_commit = lock, before_commit
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._stop_asked = threading.Event()
        self.flowing = threading.Event()  # the query has started
        self.job: Job | None = None  # from then on
        self.lag: Mapping[str, Mapping[str, int]] = {}  # of each source, as of the last batch
        self.loads: Mapping[str, Mapping[str, float]] = {}  # how loading each table went
        self.route_skew: Mapping[str, float] = {}  # DS of the batch before: by hashes alone, by the rule
        self.hot: Mapping[str, float] = {}  # of that batch, where they are spread
        self.took = Took()  # the last batch that was committed
        self.busy = False  # rows are there, a batch is on its way
        self.error: Exception | None = None

    def stop(self) -> None:
        """Asks the run to end after what it is doing; returns at once."""
        self._stop_asked.set()

    def reports(self, seconds: float) -> list["Report"]:
        """The batches that ended since the last call; waits up to `seconds` for the first."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._reports.get(timeout=seconds))
            while True:
                found.append(self._reports.get_nowait())
        return found

    def run(self) -> None:
        try:
            self._flow()
        except Exception as error:  # noqa: BLE001 - handed to the main thread, which tells the user
            traceback.print_exc()  # whole, for the log
            self.error = error

    def _flow(self) -> None:
        from joinlib.spark.compiled import compiled
        from joinlib.spark.job import default_cores, started
        from joinlib.spark.spread import Spread

        cores = self._cores or default_cores()
        plan = compiled(self._document, cores)
        with started(
            plan,
            self._reports.put,
            until_done=self._until_done,
            cores=cores,
            conf=self._conf,
            lock=self._lock,
            before_commit=self._before_commit,
            spread=Spread(self._partitions) if self._partitions else None,
        ) as job:
            self.job = job
            self.flowing.set()
            ended = False
            while not ended and not self._stop_asked.is_set():
                ended = job.wait(_POLL_S)
                self._look(job)

    def _look(self, job: "Job") -> None:
        """Progress is for show: a query that has just gone has none."""
        from joinlib.spark.job import envelope

        with contextlib.suppress(Exception):
            self.busy = job.query.status["isDataAvailable"]
            if progress := job.query.lastProgress:
                if said := envelope(progress):
                    self.lag, self.loads = said.get("lag", {}), said.get("loads", {})
                    self.route_skew, self.hot = said.get("skew") or {}, said.get("hot", {})
                took = {step: ms / 1000 for step, ms in progress["durationMs"].items()}
                self.took = Took(progress["batchId"], took.pop("triggerExecution"), took)

"""Rehearsals: a small query without real rows makes new executors load what their first batch will need.

The query has the operators of a join, its exchange, its daemon and its imports, so that a new executor's
first batch is as fast as that of the others. Its tasks go to the executors that have just come: a batch that runs
meanwhile waits for none of them.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import SparkSession

from joinlib.spark.mapped import Batches, mapped
from joinlib.spark.spread import located

_PATIENCE_S = 60.0


class Rehearsals:
    """Tracks which executors have rehearsed. Runs one rehearsal at a time, in its own thread."""

    def __init__(
        self,
        rehearse: Callable[[Sequence[str]], None],
        warm: Iterable[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rehearse, self._clock = rehearse, clock
        self._warm = self._told = frozenset(warm)
        self._since = clock()  # when `done` last returned every executor
        self._thread: threading.Thread | None = None

    def done(self, ready: Sequence[str], coming: bool = False) -> list[str]:
        """Return the executors that have rehearsed, or took too long to. The others start a rehearsal.

        Executors that join one after the other are returned together, once the last of them has
        rehearsed: then units move only once. A rehearsal takes slots, and a batch that moved units in the
        meantime would wait for them. For the same reason, and to spare its CPU time, none begins while
        others are `coming`: they have registered, and take tasks in a moment.
        """
        there, now = frozenset(ready), self._clock()
        if now - self._since > _PATIENCE_S:
            self._warm |= there
        if there <= self._warm:
            self._told, self._since = self._warm, now
        elif not coming and (self._thread is None or not self._thread.is_alive()):
            new = [executor for executor in ready if executor not in self._warm]
            self._thread = threading.Thread(target=self._run, args=(new,), daemon=True)
            self._thread.start()
        return [executor for executor in ready if executor in self._told]

    def _run(self, new: Sequence[str]) -> None:
        with contextlib.suppress(Exception):  # the session may end before it does
            self._rehearse(new)
        self._warm |= frozenset(new)


def rehearse(spark: SparkSession, executors: Sequence[str], cores: int) -> None:
    """Run a rehearsal on executors of so many task slots each, and wait for its end.

    It takes a second or two where everything was loaded, and ten where nothing was.
    """
    slots = [executor for executor in executors for _ in range(cores)]
    place = located(slots)
    rows = spark.range(0, 8 * len(slots), 1, len(slots))
    read = mapped(place(rows), ["id"], _load, rows.schema)
    mapped(place(read.repartition(len(slots), "id")), ["id"], _load, rows.schema).collect()


def _load(batches: Batches) -> Batches:
    """Pass the batches on; by then the worker has loaded what later tasks need."""
    return batches

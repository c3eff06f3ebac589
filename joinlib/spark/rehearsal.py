"""What must an executor have loaded before its first batch is as quick as everybody's? A rehearsal loads it: a small query with
the operators of a join, its exchange, its daemon and its imports, but nobody's rows.

Its tasks go to slots that are free, and linger a little: those of executors that have just come take most of them.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

_LINGER_S = 0.2
_TASKS = 2  # for each slot
_PATIENCE_S = 60.0


class Rehearsals:
    """Which executors have rehearsed? One rehearsal at a time, in a thread of its own."""

    def __init__(
        self,
        rehearse: Callable[[int], None],
        warm: Iterable[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rehearse, self._clock = rehearse, clock
        self._warm = self._told = frozenset(warm)
        self._since = clock()  # then all that were there were told of
        self._thread: threading.Thread | None = None

    def done(self, ready: Sequence[str]) -> list[str]:
        """Those that have, or took too long: it only saves time. For others it is begun.

        Several come one after the other: units move once, when the last of them has rehearsed. A rehearsal takes slots, and a
        batch that moves units meanwhile would wait for them.
        """
        there, now = frozenset(ready), self._clock()
        if now - self._since > _PATIENCE_S:
            self._warm |= there
        if there <= self._warm:
            self._told, self._since = self._warm, now
        elif self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, args=(tuple(ready),), daemon=True)
            self._thread.start()
        return [executor for executor in ready if executor in self._told]

    def _run(self, ready: tuple[str, ...]) -> None:
        with contextlib.suppress(Exception):  # the session may end before it does
            self._rehearse(len(ready))
        self._warm |= frozenset(ready)


def rehearse(spark: SparkSession, slots: int) -> None:
    """Returns when it is over, after a second or two where everything was loaded, ten where nothing was."""
    tasks = _TASKS * slots
    rows = spark.range(0, 8 * tasks, 1, tasks).mapInArrow(_linger, "id BIGINT")
    rows.repartition(tasks, "id").mapInArrow(_load, "id BIGINT").collect()


def _linger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(_LINGER_S)
    return batches


def _load(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the tasks that follow will need is there then."""
    import joinlib.spark.groups
    import joinlib.spark.operator
    import joinlib.spark.unit  # noqa: F401

    return batches

"""Runs batches without Spark, in processes of its own.

    compose ─► offsets/N ─► run ─► publish, report ─► commits/N          each as Spark does it, N + 1 after N; where the
                                                                         job is behind, N + 1 is read while N is joined

Spark places tasks, exchanges rows between them and tries them again. On one machine, a few processes need none of that,
and Spark's part of a small batch is more than half of its time. The logs are Spark's own, and a batch depends on nothing
else: so whichever of the two has begun a batch, either of them can run it again and go on behind it.

Law: one of them runs at a time. Whatever fails ends the loop; then Spark goes on, tries again and says what is wrong, unless it
is the user's mistake, in the first batch that is tried. A run that has an end is done where the loop finds nothing more.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from joinlib import fault
from joinlib.checkpoint import batches
from joinlib.direct.servers import Servers

_POLL_S = 0.01  # between two looks for new rows, as in Spark
KEPT = 100  # batches of which it is known what they took


class DirectLoop(threading.Thread):
    """Runs batches behind the last one that is done, until something fails or `stop` is called.

    It begins with the batch that was cut off, if there is one.

    Args:
        servers: The processes, which end with the loop.
        spark: The folder of Spark's logs.
        commit: Runs the tasks of a batch, small or not, in as many partitions as it says, and publishes it.
        pace_s: Seconds between the beginnings of two batches, at least.
        synced: Whether the logs survive a power cut.
        until_done: Whether it ends where there is nothing more to do.
    """

    def __init__(
        self,
        servers: Servers,
        spark: Path,
        commit: Callable[[int, bool, Callable[[int], Iterable[bytes]]], None],
        *,
        pace_s: float,
        synced: bool,
        until_done: bool = False,
    ) -> None:
        super().__init__(name="direct", daemon=True)
        self._servers, self._spark, self._commit = servers, spark, commit
        self._pace_s, self._synced, self._until_done = pace_s, synced, until_done
        self._stopping = threading.Event()
        self._behind = False  # whether the last batch took longer than the pace: the next one is read ahead
        self.done = False  # all that there is has been read
        self.failed: Exception | None = None  # what has ended it
        self.busy = False  # whether a batch is running
        self.count = 0  # of batches that are done
        self.took: deque[dict[str, Any]] = deque(maxlen=KEPT)  # what batches took, in Spark's words

    def stop(self, patience_s: float) -> None:
        """End the loop after its batch, or after so long."""
        self._stopping.set()
        self.join(patience_s)
        if self.is_alive():
            self._servers.close(0.0)
            self.join()

    def run(self) -> None:
        try:
            done = batches.done(self._spark)
            last = -1 if done is None else done
            start = self._servers.initial() if done is None else batches.envelope(self._spark, last)
            if batches.cut_off(self._spark) is not None:
                last, start = last + 1, self._again(last + 1, start)
            end: str | None = start
            while end is not None and not self._stopping.is_set():
                last, end = last + 1, self._next(last + 1, end)
        except Exception as error:  # noqa: BLE001 - who waits for the loop decides what to do about it
            if not self._stopping.is_set():
                self.failed = error
        finally:
            self.busy = False
            self._servers.close()

    def _again(self, batch: int, start: str) -> str:
        """Run the batch that was cut off; return where it ends."""
        end = batches.envelope(self._spark, batch)
        self.busy = True
        now = time.time()
        return self._ran(batch, start, end, (now, now, now))

    def _next(self, batch: int, start: str) -> str | None:
        """Run the next batch; return where it ends, None if there is none."""
        while (found := self._composed(start)) is None:
            self.done = self._until_done
            if self.done or self._stopping.wait(_POLL_S):
                return None
        began, end = found
        self.busy = True
        composed = time.time()
        batches.begin(self._spark, batch, end, synced=self._synced)
        return self._ran(batch, start, end, (began, composed, time.time()))

    def _ran(self, batch: int, start: str, end: str, times: tuple[float, float, float]) -> str:
        """Run a batch that has begun; return where it ends. `times`: when it was asked for, composed and logged."""
        small = bool(orjson.loads(end).get("small"))
        self._commit(batch, small, partial(self._servers.run, start, end, batch, ahead=self._behind))
        joined = time.time()
        fault.point("published_directly", batch)
        batches.finish(self._spark, batch, synced=self._synced)
        self._note(batch, start, end, (*times, joined, ended := time.time()))
        self._behind = ended - times[0] > self._pace_s
        self.count += 1
        self.busy = False
        self._stopping.wait(self._pause())
        return end

    def _composed(self, start: str) -> tuple[float, str] | None:
        """Return where the next batch ends, and when it was asked."""
        began = time.time()
        end = self._servers.next(start)
        return None if end is None else (began, end)

    def _pause(self) -> float:
        """Return the seconds until the next batch may begin: as with Spark, at a multiple of its pace."""
        return self._pace_s - time.time() % self._pace_s if self._pace_s else 0.0

    def _note(
        self, batch: int, start: str, end: str, times: tuple[float, float, float, float, float]
    ) -> None:
        """Note what a batch took, as Spark tells of its own."""
        began, composed, logged, joined, done = times
        steps = {
            "latestOffset": composed - began,
            "walCommit": logged - composed,
            "addBatch": joined - logged,
            "commitOffsets": done - joined,
            "triggerExecution": done - began,
        }
        self.took.append(
            {
                "batchId": batch,
                "timestamp": datetime.fromtimestamp(began, UTC).isoformat(),
                "durationMs": {name: seconds * 1000 for name, seconds in steps.items()},
                "sources": [{"startOffset": orjson.loads(start), "endOffset": orjson.loads(end)}],
            }
        )

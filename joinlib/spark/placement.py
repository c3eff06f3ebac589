"""When do units move to other executors, and when do they stay? Decided anew after each batch.

A partition's task waits so long for the executor that holds its indexes, before any other may take it (`spark.locality.wait`):

    0 s     whoever is free takes it: spread evenly within two batches, but never at rest (0.9 partitions move a batch)
    10 s    it stays, as long as its executor lives; a new executor never gets one

So: spread after executors have come or gone, until partitions lie evenly or enough batches were spent on it, then rest. A unit
that moves is rebuilt from its segments (11 ms a MB); one that stays costs nothing.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

SPREAD, REST = "0s", "10s"
_BATCHES = 8  # that may be spent on spreading


@dataclass(frozen=True)
class Placement:
    """What is known after a batch."""

    executors: frozenset[str] = frozenset()  # that partitions should lie on
    left: int = 0  # batches that may still be spent on spreading
    wait: str = REST  # for the next batch

    def after(self, executors: Collection[str], placed: Collection[str]) -> "Placement":
        """One batch later. `executors`: that are warm; `placed`: the executor of each partition."""
        now = frozenset(executors)
        left = _BATCHES if now != self.executors else self.left
        if not left or even(now, placed):
            return Placement(now, 0, REST)
        return replace(self, executors=now, left=left - 1, wait=SPREAD)


def even(executors: Collection[str], placed: Collection[str]) -> bool:
    """Has no executor two partitions more than another?"""
    held = Counter(placed)
    counts = [held[e] for e in executors]
    return held.keys() <= set(executors) and (not counts or max(counts) - min(counts) <= 1)

"""Arrays for pairs, taken again once nobody holds them: memory new to the process costs as much as finding the pairs.

for probes, rows in run.probe(...)      while a frame is filled the reader still holds the one before: two go round
frames = list(run.probe(...))           all are held: each has arrays of its own
"""

import sys

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class Frames:
    """Of `room` pairs each. Every view of an array refers to it, so an array without references is free."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._made: list[tuple[I64, I64]] = []
        self._idle: int | None = None  # references that are not a reader's

    def take(self) -> tuple[I64, I64]:
        """Two arrays that nobody reads."""
        for frame in self._made:
            if _references(frame) == self._idle:
                return frame
        self._made.append((np.empty(self._room, np.int64), np.empty(self._room, np.int64)))
        if self._idle is None:
            self._idle = _references(self._made[0])
        return self._made[-1]


def _references(frame: tuple[I64, I64]) -> int:
    return sys.getrefcount(frame[0]) + sys.getrefcount(frame[1])

"""Reusable arrays for pairs: allocating new memory costs as much as finding the pairs.

for probes, rows in run.probe(...)      the reader holds one frame while the next is filled: two alternate
frames = list(run.probe(...))           the reader holds all frames: each has its own arrays
"""

import sys

import numpy as np

from joinlib.arrays import I64


class Frames:
    """Frames of `room` pairs each.

    Every view of an array refers to it, so an array to which only this class refers is free.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._made: list[tuple[I64, I64]] = []
        self._idle: int | None = None  # reference count of a frame that no reader holds

    def take(self) -> tuple[I64, I64]:
        """Return two arrays that no reader holds."""
        for frame in self._made:
            if _references(frame) == self._idle:
                return frame
        self._made.append((np.empty(self._room, np.int64), np.empty(self._room, np.int64)))
        if self._idle is None:
            self._idle = _references(self._made[0])
        return self._made[-1]


def _references(frame: tuple[I64, I64]) -> int:
    return sys.getrefcount(frame[0]) + sys.getrefcount(frame[1])

"""Functions whose value is that of another row: lag, lead, first, last and n-th value, the ends of sessions.

They return the position that the value is taken from, or -1.
"""

import numba as nb
import numpy as np

from joinlib.arrays import I64
from joinlib.over.frames import FrameEnds
from joinlib.over.layout import Layout
from joinlib.route.content import Mask


def shifted(layout: Layout, far: int, known: Mask | None) -> I64:
    """Return the position so many rows after each (before it, if negative), counting `known` rows only."""
    at = np.arange(len(layout.rows))
    if known is None or far == 0:
        there = at + far
    else:
        upto: I64 = np.cumsum(known)  # known ones up to and including each
        there = _nth(np.flatnonzero(known), upto + (far - 1) if far > 0 else upto - known + far)
    return np.where((there >= layout.head) & (there < layout.end), there, -1)


def nth(frames: FrameEnds, number: int, known: Mask | None) -> I64:
    """Return the n-th position of each frame, from 1; from the end if negative, from -1."""
    low, high = frames
    if known is None:
        there = low + number - 1 if number > 0 else high + number
    else:
        spots = np.flatnonzero(known)
        before = np.append(0, np.cumsum(known))  # known ones before each
        there = _nth(
            spots, before[low] + number - 1 if number > 0 else before[np.maximum(high, low)] + number
        )
    return np.where((there >= low) & (there < high), there, -1)


def _nth(spots: I64, number: I64) -> I64:
    if not len(spots):
        return np.full(len(number), -1)
    inside = (number >= 0) & (number < len(spots))
    return np.where(inside, spots[np.clip(number, 0, len(spots) - 1)], -1)


@nb.njit(cache=True, nogil=True)
def extreme(codes: I64, known: Mask, low: I64, high: I64, head: I64, greatest: bool) -> I64:
    """Return the first position of each frame with the least or greatest code. O(rows).

    Positions that could still become the extreme of a later frame wait in a queue; those before `low` leave it at
    the front, those that a later one outdoes at the back.
    """
    size = codes.shape[0]
    found = np.full(size, -1, np.int64)
    queue = np.empty(size, np.int64)
    first, count, read = 0, 0, 0
    for i in range(size):
        if i == head[i]:
            first, count, read = 0, 0, i
        if low[i] > read:
            read = low[i]
        while read < high[i]:
            if known[read]:
                while count > 0:
                    other = codes[queue[first + count - 1]]
                    if (other >= codes[read]) if greatest else (other <= codes[read]):
                        break
                    count -= 1
                queue[first + count] = read
                count += 1
            read += 1
        while count > 0 and queue[first] < low[i]:
            first += 1
            count -= 1
        if count > 0 and low[i] < high[i]:
            found[i] = queue[first]
    return found


@nb.njit(cache=True, nogil=True)
def session_heads(times: I64, known: Mask, head: I64, gap: int) -> Mask:
    """Return which positions begin a session: the time before is more than the gap earlier. `times` ascend."""
    found = np.zeros(times.shape[0], np.bool_)
    for i in range(times.shape[0]):
        found[i] = i == head[i] or not known[i - 1] or not known[i] or times[i] - times[i - 1] > gap
    return found

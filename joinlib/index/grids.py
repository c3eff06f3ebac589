"""Counts the rows in a rectangle of positions, from counts at the corners of a grid and the strips beside it.

    positions by b
      b  |. : . : .           D(a, b): rows before a by one order and before b by the other
         |# # : o :           = the grid's count at the corner below (#)
      ---+----:---:---        + rows of the strip between corner and a that are before b (o)
         |# # : o :           + rows of the strip between corner and b that are before the corner
                a             a rectangle is D(high, high) - D(low, high) - D(high, low) + D(low, low)

So the cost of a count does not grow with the run; sweeping bits costs O(rows) per batch, which is too much
for small batches. Cost: O(step) per probe, vectorised; O(rows) to build; at most 4 bytes per row, as a step
is at least the square root of the rows.
"""

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64
from joinlib.index.spans import Spans

_LEAST = 8  # log2 of the shortest step


def shift(rows: int) -> int:
    """Return log2 of the step, which is 2^shift positions."""
    return max(_LEAST, (max(rows - 1, 1).bit_length() + 1) // 2)


@nb.njit(cache=True, nogil=True)
def grid(place: I32, by: int) -> I32:
    """Return the counts, shape (corners, corners).

    at[i, j] is the number of rows before i * 2^by in dimension 0 and before j * 2^by in the other.
    """
    corners = (place.shape[0] >> by) + 1
    at = np.zeros((corners, corners), np.int32)
    for i in range(1, corners):
        row = at[i]
        for p in range((i - 1) << by, i << by):
            j = (place[p] >> by) + 1
            if j < corners:
                row[j] += 1
        here = 0
        for j in range(corners):
            here += row[j]
            row[j] = at[i - 1, j] + here
    return at


@nb.njit(cache=True, inline="always")
def _before(at: I32, by: int, perm: I32, place: I32, a: int, b: int) -> int:
    """Return D(a, b)."""
    rows = place.shape[0]
    if a >= rows:
        return b
    if b >= rows:
        return a
    i, j = a >> by, b >> by
    corner = i << by
    return int(at[i, j]) + _fewer(place[corner:a], b) + _fewer(perm[j << by : b], corner)


@nb.njit(cache=True, inline="always")
def _fewer(positions: I32, limit: int) -> int:
    found, most = np.int32(0), np.int32(limit)
    for at in range(positions.shape[0]):  # 32 bits throughout, to get vectors of eight
        found += np.int32(positions[at] < most)
    return int(found)


@nb.njit(cache=True, nogil=True)
def count(at: I32, by: int, perm: I32, place: I32, spans: Spans) -> I64:
    """Return the number of matches of every probe, shape (probes,)."""
    lows, highs = spans.lows, spans.highs
    found = np.empty(lows.shape[1], np.int64)
    for i in range(lows.shape[1]):
        a, high_a, b, high_b = lows[0, i], highs[0, i], lows[1, i], highs[1, i]
        if a >= high_a or b >= high_b:
            found[i] = 0
            continue
        matches = _before(at, by, perm, place, high_a, high_b)
        if a > 0:
            matches -= _before(at, by, perm, place, a, high_b)
        if b > 0:
            matches -= _before(at, by, perm, place, high_a, b)
        if a > 0 and b > 0:
            matches += _before(at, by, perm, place, a, b)
        found[i] = matches
    return found

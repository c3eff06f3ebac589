"""How many rows lie in a rectangle of positions? Counts for every corner of a grid, and the strips beside it.

    positions by b
      b  |. . : . :           D(a, b): rows before a by one order and before b by the other
         |# # : o :           = the grid's count at the corner below (#)
      ---+----:---:---        + rows of the strip between corner and a that are before b (o)
         |# # : o :           + rows of the strip between corner and b that are before the corner
                a             a rectangle is D(high, high) - D(low, high) - D(high, low) + D(low, low)

So what a probe counts does not grow with the run: sweeping bits costs O(rows) a batch, which small batches cannot share out.
Cost: O(step) a probe, with vectors; O(rows) to build; at most 4 bytes a row, as a step is at least the root of the rows.
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.index.spans import Spans

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

_LEAST = 8  # bits of the shortest step


def shift(rows: int) -> int:
    """A step is 2^shift positions."""
    return max(_LEAST, (max(rows - 1, 1).bit_length() + 1) // 2)


@nb.njit(cache=True, nogil=True)
def grid(place: I32, by: int) -> I32:
    """at[i, j]: rows before i * 2^by in dimension 0 and before j * 2^by in the other."""
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
    """D(a, b)."""
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
    for at in range(positions.shape[0]):  # 32 bits throughout: vectors of eight
        found += np.int32(positions[at] < most)
    return int(found)


@nb.njit(cache=True, nogil=True)
def count(at: I32, by: int, perm: I32, place: I32, spans: Spans) -> I64:
    """The matches of every probe."""
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

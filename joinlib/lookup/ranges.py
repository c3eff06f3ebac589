"""Finds the rows of a table whose range holds a point: low <= x and y <=
high, with equal keys (BS-Join, section 5).

    rows by (hash of key, code of low)          k: 3 4 9 | 1 2 7   the last row with low <= x, then backwards
    tops: highest code of high so far, by key      5 9 9 | 8 8 8   until tops < y: none before reaches y

A probe searches sorted arrays, O(log rows), and then walks back over its matches: where ranges are equally
wide (`s.t BETWEEN t.t - a AND t.t + b`) each step is a match. A range that is much wider than others makes
the walks past it longer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, U64

_PAIRS = 1 << 20  # pairs in one chunk


@dataclass(frozen=True)
class RangeIndex:
    """The codes of the rows, in the order of (hash, low)."""

    hashes: U64
    lows: U64
    highs: U64
    tops: U64

    @classmethod
    def of(cls, hashes: U64, lows: U64, highs: U64) -> "RangeIndex":
        """Build the index of rows that are in order."""
        return cls(hashes, lows, highs, _tops(hashes, highs))

    def probe(self, wanted: U64, x: U64, y: U64, limit: int = _PAIRS) -> Iterator[tuple[I32, I32]]:
        """Yield pairs (position, row) of equal hash with low <= x and y <=
        high, by their codes, `limit` at a time.

        Probes are sorted first, which costs 0.06 µs each: a search then begins where the one before ended,
        and every array is walked forward. In random order each probe would touch twenty lines of memory.
        """
        by = _by(wanted, x, len(self.hashes))
        wanted, x, y = wanted[by], x[by], y[by]
        at, row, near = 0, -1, 0
        room = min(limit, max(2 * len(wanted), 64))
        while at < len(wanted):
            positions, rows = np.empty(room, np.int32), np.empty(room, np.int32)
            found, at, row, near = _probe(
                self.hashes, self.lows, self.highs, self.tops, wanted, x, y, at, row, near, positions, rows
            )
            if found:
                yield np.take(by, positions[:found]), rows[:found]
            room = limit


def order(hashes: U64, lows: U64, highs: U64) -> npt.NDArray[np.intp]:
    """Return the order of rows: by hash, low, high.

    Equal lows ordered by their highs let a walk end early.
    """
    return np.lexsort((highs, lows, hashes))


def _by(wanted: U64, x: U64, rows: int) -> I32:
    """Return the order of probes by hash, then x, as far as that makes
    searches short; searches tolerate the rest.

    The top bits of both and the probe's number make one word, and words sort fastest: four times as fast as
    an argsort of the values.
    """
    if not len(wanted):
        return np.zeros(0, np.int32)
    number = max(len(wanted) - 1, 1).bit_length()
    one_key = wanted.min() == wanted.max()  # rows without a key all have one hash
    top = 0 if one_key else min(rows.bit_length() + 4, 64 - number)
    low = x.min()
    width = int(x.max() - low).bit_length()
    room = 64 - number - top
    words = _words(wanted, x, number, top, low, max(width - room, 0))
    words.sort()
    return (words & np.uint64((1 << number) - 1)).astype(np.int32)


@nb.njit(cache=True, nogil=True)
def _words(wanted: U64, x: U64, number: int, top: int, low: np.uint64, lost: int) -> U64:
    """Pack (top bits of the hash, x - low without its `lost` lowest bits,
    number of the probe) into one word each.
    """
    words = np.empty(wanted.shape[0], np.uint64)
    hash_bits = ~np.uint64(0) << np.uint64(64 - top) if top else np.uint64(0)
    for i in range(wanted.shape[0]):
        words[i] = (
            (wanted[i] & hash_bits)
            | (((x[i] - low) >> np.uint64(lost)) << np.uint64(number) if lost < 64 else np.uint64(0))
            | np.uint64(i)
        )
    return words


@nb.njit(cache=True, nogil=True)
def _tops(hashes: U64, highs: U64) -> U64:
    tops = highs.copy()
    for row in range(1, tops.shape[0]):
        if hashes[row] == hashes[row - 1] and tops[row - 1] > tops[row]:
            tops[row] = tops[row - 1]
    return tops


@nb.njit(cache=True, inline="always")
def _at_most(hashes: U64, lows: U64, row: int, sought: np.uint64, x: np.uint64) -> bool:
    return hashes[row] < sought or (hashes[row] == sought and lows[row] <= x)


@nb.njit(cache=True, nogil=True)
def _behind(hashes: U64, lows: U64, near: int, sought: np.uint64, x: np.uint64) -> int:
    """Return the row behind the last one that is at most (sought, x), searched from `near` on.

    O(log distance).
    """
    step = 1
    if near > 0 and not _at_most(hashes, lows, near - 1, sought, x):
        high = near - 1
        while high - step >= 0 and not _at_most(hashes, lows, high - step, sought, x):
            high -= step
            step *= 2
        near = max(high - step, -1) + 1
        return _between(hashes, lows, near, high, sought, x)
    while near + step <= hashes.shape[0] and _at_most(hashes, lows, near + step - 1, sought, x):
        near += step
        step *= 2
    return _between(hashes, lows, near, min(near + step - 1, hashes.shape[0]), sought, x)


@nb.njit(cache=True, inline="always")
def _between(hashes: U64, lows: U64, near: int, high: int, sought: np.uint64, x: np.uint64) -> int:
    """Return the row behind the last one that is at most (sought, x), by
    binary search from `near` to `high`.
    """
    while near < high:
        middle = (near + high) >> 1
        if _at_most(hashes, lows, middle, sought, x):
            near = middle + 1
        else:
            high = middle
    return near


@nb.njit(cache=True, nogil=True)
def _probe(
    hashes: U64,
    lows: U64,
    highs: U64,
    tops: U64,
    wanted: U64,
    x: U64,
    y: U64,
    at: int,
    row: int,
    near: int,
    out_wanted: I32,
    out_row: I32,
) -> tuple[int, int, int, int]:
    """Fill the out arrays from wanted row `at` and table row `row` (-1: its last) on, walking backwards."""
    found, room = 0, out_row.shape[0]
    while at < wanted.shape[0]:
        sought = wanted[at]
        if row < 0:
            near = _behind(hashes, lows, near, sought, x[at])
            row = near
        while row > 0 and hashes[row - 1] == sought and tops[row - 1] >= y[at]:
            if highs[row - 1] >= y[at]:
                if found == room:
                    return found, at, row, near
                out_wanted[found] = at
                out_row[found] = row - 1
                found += 1
            row -= 1
        at += 1
        row = -1
    return found, at, row, near

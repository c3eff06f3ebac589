"""Finds rows that ascend by hash by walking forward, with a Bloom filter and fences.

    hashes   3 5 5 9 | 12 12 14 20 | 21 ...   a segment's memory-mapped column, read only where rows are found
    fences   3         12            21       the first hash of every page; few, so they stay in memory
    filter   10 bits per hash                 1.5 % of the absent hashes pass and are searched

A probe costs a test of the filter; then a walk along the fences and a search in one page of 4 KiB.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from joinlib.arrays import I32, U64
from joinlib.index.bloom import Bloom, bloom, of_words, passes

PAGE = 512  # hashes between two fences: one page of memory or disk


class Guide(NamedTuple):
    """Locates hashes in a segment; built from the hashes alone."""

    fences: U64
    filter: Bloom
    last: int  # the greatest hash
    keys: int  # number of distinct hashes

    @property
    def first(self) -> int:
        """The least hash."""
        return int(self.fences[0])

    @property
    def nbytes(self) -> int:
        return self.fences.nbytes + self.filter.words.nbytes


def guide(hashes: U64) -> Guide:
    """Return the guide of ascending hashes, at least one. O(hashes)."""
    keys = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
    return Guide(hashes[::PAGE].copy(), bloom(hashes), int(hashes[-1]), keys)


def restored(fences: U64, words: U64, last: int, keys: int) -> Guide:
    """Return the guide with these parts."""
    return Guide(fences, of_words(words, int(fences[0]), last), last, keys)


@nb.njit(cache=True, nogil=True)
def probe(
    hashes: U64,
    fences: U64,
    filter: Bloom,
    wanted: U64,
    at: int,
    stop: int,
    row: int,
    first: int,
    positions: I32,
    rows: I32,
    found: int,
) -> tuple[int, int, int]:
    """Append pairs (position in `wanted`, row) of equal hash after the `found` pairs already in the arrays.

    `wanted` ascends; the positions [at, stop) are searched, whose hashes must lie between the first hash
    and the last. The search of position `at` resumes with row `row` (-1: not begun). Rows are numbered from
    `first` on. Returns found, at and row to resume with; at == stop when the search is complete.
    """
    room, end = rows.shape[0], hashes.shape[0]
    page, near = 0, 0
    while at < stop:
        sought = wanted[at]
        if row < 0:
            if not passes(filter, sought):
                at += 1
                continue
            page = _page(fences, page, sought)
            near = _within(hashes, max(near, page * PAGE), min((page + 1) * PAGE, end), sought)
            row = near
        while row < end and hashes[row] == sought:
            if found == room:
                return found, at, row
            positions[found] = at
            rows[found] = first + row
            found += 1
            row += 1
        at += 1
        row = -1
    return found, at, row


@nb.njit(cache=True, inline="always")
def _page(fences: U64, page: int, sought: int) -> int:
    """Return the last page, from `page` on, that begins before `sought`.

    The first row of that hash is in this page or directly after it.
    """
    step, last = 1, fences.shape[0] - 1
    while page + step <= last and fences[page + step] < sought:
        page += step
        step *= 2
    high = min(page + step - 1, last)
    while page < high:
        middle = (page + high + 1) >> 1
        if fences[middle] < sought:
            page = middle
        else:
            high = middle - 1
    return page


@nb.njit(cache=True, inline="always")
def _within(hashes: U64, low: int, high: int, sought: int) -> int:
    """Return the first row in [low, high] that is not less than `sought`, without unpredictable branches."""
    size = high - low
    while size > 0:
        half = (size + 1) >> 1
        before = hashes[low + half - 1] < sought
        low += half if before else 0
        size = size - half if before else half - 1
    return low

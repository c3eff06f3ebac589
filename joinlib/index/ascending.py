"""Rows in ascending order of their hashes: found by a walk forward, behind a Bloom filter and fences.

    hashes   3 5 5 9 | 12 12 14 20 | 21 ...   the column of a segment, mapped: read where rows are found, and nowhere else
    fences   3         12            21       the first hash of every page; small, so they stay in memory
    filter   10 bits a hash                   of hashes that are not there 1.5 % are looked for

A probe costs a look at the filter; then a step along the fences and a search in one page of 4 KiB.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.index.bloom import Bloom, bloom, of_words, passes

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]

PAGE = 512  # hashes between two fences: one page of memory, or of a disk


class Guide(NamedTuple):
    """Tells where a hash may be found; made of the hashes alone."""

    fences: U64
    filter: Bloom
    last: int  # the greatest hash
    keys: int  # how many different hashes there are

    @property
    def first(self) -> int:
        """The least hash."""
        return int(self.fences[0])

    @property
    def nbytes(self) -> int:
        return self.fences.nbytes + self.filter.words.nbytes


def guide(hashes: U64) -> Guide:
    """Of ascending hashes, of which there is one at least. O(hashes)."""
    keys = 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))
    return Guide(hashes[::PAGE].copy(), bloom(hashes), int(hashes[-1]), keys)


def restored(fences: U64, words: U64, last: int, keys: int) -> Guide:
    """The guide that has these parts."""
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
    """Writes pairs (position in `wanted`, row) of equal hash behind the `found` that are there already.

    `wanted` ascends; asked are [at, stop), which lie between the first hash and the last. Goes on with row `row` of `at`
    (-1: not yet looked for). Rows are numbered from `first` on. Returns found, at and row to go on with; at == stop when
    all is done.
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
    """The last page from `page` on that begins before `sought`: the first row of that hash is there, or right behind it."""
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
    """The first row from `low` to `high` that is not before `sought`. No branch can be mistaken."""
    size = high - low
    while size > 0:
        half = (size + 1) >> 1
        before = hashes[low + half - 1] < sought
        low += half if before else 0
        size = size - half if before else half - 1
    return low

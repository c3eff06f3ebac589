"""Skip lists over sorted arrays, random and ideal (BS-Join, section 5.3, equation 4, algorithm 4), with
counters.

    level(i) of 12 rows:  1 2 1 3 1 2 1 4 1 2 1 3        ideal: the index alone tells the level, so nothing is stored

Both find what a binary search in the sorted array finds, which is what runs by default: the lists are here to
be compared. Law: position(x) = the number of keys <= x. Cost: O(log rows) comparisons, for the ideal list
never more than 2 a level.
"""

from dataclasses import dataclass

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64, U64


def level(i: int) -> int:
    """Equation 4, with levels from 1: how many lists the row i of the ideal list is in."""
    if (i + 1) & i == 0:
        return (i + 1).bit_length()
    return level((i + 1) % (1 << ((i + 1).bit_length() - 1)) - 1)


@dataclass(frozen=True)
class Ideal:
    """Row i is in list l if 2^l divides i + 1: the row behind it there is i + 2^l."""

    keys: U64

    def positions(self, wanted: U64) -> tuple[I64, I64]:
        """For each wanted key the number of keys <= it, and the comparisons that it took."""
        return _ideal(self.keys, wanted)


@dataclass(frozen=True)
class Random:
    """Levels are drawn: each list holds about half of the one below.

    `rows` of all lists, the topmost first.
    """

    keys: U64
    rows: I32
    below: I32  # of each entry, its place in the list below
    bounds: I64  # where each list begins, and the end

    @classmethod
    def of(cls, keys: U64, seed: int) -> "Random":
        """A list over keys that are in order."""
        draw = np.random.default_rng(seed)
        lists = [np.arange(len(keys), dtype=np.int32)]
        places = [np.zeros(0, np.int32)]
        while len(lists[-1]) > 1:
            risen = np.flatnonzero(draw.random(len(lists[-1])) < 0.5).astype(np.int32)
            lists.append(lists[-1][risen])
            places.append(risen)
        places = [np.arange(len(keys), dtype=np.int32), *places[1:]]
        lists, places = lists[::-1], places[::-1]
        bounds = np.cumsum([0, *(len(part) for part in lists)]).astype(np.int64)
        return cls(keys, np.concatenate(lists), np.concatenate(places), bounds)

    def positions(self, wanted: U64) -> tuple[I64, I64]:
        """As `Ideal.positions`."""
        return _random(self.keys, self.rows, self.below, self.bounds, wanted)


@nb.njit(cache=True, nogil=True)
def _ideal(keys: U64, wanted: U64) -> tuple[I64, I64]:
    found, compared = np.empty(wanted.shape[0], np.int64), np.zeros(wanted.shape[0], np.int64)
    rows = keys.shape[0]
    top = 0
    while (1 << (top + 1)) <= rows:
        top += 1
    for i in range(wanted.shape[0]):
        at, count = -1, 0  # before the first row: it is in every list
        for step in range(top, -1, -1):
            ahead = at + (1 << step)
            while ahead < rows:
                count += 1
                if keys[ahead] > wanted[i]:
                    break
                at = ahead
                ahead = at + (1 << step)
        found[i] = at + 1
        compared[i] = count
    return found, compared


@nb.njit(cache=True, nogil=True)
def _random(keys: U64, rows: I32, below: I32, bounds: I64, wanted: U64) -> tuple[I64, I64]:
    found, compared = np.empty(wanted.shape[0], np.int64), np.zeros(wanted.shape[0], np.int64)
    lists = bounds.shape[0] - 1
    for i in range(wanted.shape[0]):
        place, count, last = -1, 0, -1  # a place in the list; -1: before its first
        for number in range(lists):
            start, stop = bounds[number], bounds[number + 1]
            while start + place + 1 < stop:
                count += 1
                row = rows[start + place + 1]
                if keys[row] > wanted[i]:
                    break
                place += 1
                last = row
            if place >= 0:
                place = below[start + place]
        found[i] = last + 1
        compared[i] = count
    return found, compared

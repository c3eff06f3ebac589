"""Finds matches by bit arrays, a bit per row in dimension 0's order (SPO-Join, section 3.4, algorithm 4;
IEJoin).

    probes in the order of dimension d   bits of rows in the probe's span of d   span of dimension 0 is read
    x = 2                                0 1 0 0 1 0 0 0                         [2, 8): row at 4
    x = 3   its span has one row more    0 1 0 0 1 0 1 0                         [0, 7): rows at 1, 4, 6

The paper sets the bits for every tuple from scratch. Here a batch of probes is sorted and only the
difference between neighbours is flipped, so a one-sided comparison sets each bit once per batch. The number
of set bits in each block of 512 is kept too: a range is counted by adding these numbers, and empty blocks
are skipped. O(flips + n / 512 + matches) per probe.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64, U64
from joinlib.index.scans import LiveRows, keeps
from joinlib.index.spans import Spans
from joinlib.index.words import lowest, ones

BLOCK = 512
_ALL, _ONE = np.uint64(2**64 - 1), np.uint64(1)


class Bits(NamedTuple):
    """A bit is set where a row lies in the span now[0] to now[1] of the swept dimension.

    counts: the number of set bits in each block.
    """

    words: U64
    counts: I32
    now: I64

    @classmethod
    def of(cls, rows: int) -> "Bits":
        """Return bits for this number of rows, all zero."""
        return cls(
            np.zeros(rows // 64 + 1, np.uint64), np.zeros(rows // BLOCK + 1, np.int32), np.zeros(2, np.int64)
        )


@nb.njit(cache=True, inline="always")
def _flip(bits: Bits, rows: LiveRows, perm: I32, low: int, high: int, by: int) -> None:
    """Flip the bits of live rows at the positions [low, high) of the swept dimension.

    by: the change of the counts, 1 or -1.
    """
    words, counts, _ = bits
    every = rows.first <= 0 and rows.stop >= rows.order.shape[0]
    for q in range(low, high):
        p = np.uint64(perm[q])
        if every or rows.first <= rows.order[p] < rows.stop:
            words[p >> np.uint64(6)] ^= np.uint64(1) << (p & np.uint64(63))
            counts[p >> np.uint64(9)] += by


@nb.njit(cache=True, nogil=True)
def _move(bits: Bits, rows: LiveRows, perm: I32, low: int, high: int) -> None:
    """Change the bits to those of the span [low, high)."""
    was_low, was_high = bits.now[0], bits.now[1]
    bits.now[0], bits.now[1] = low, high
    if low >= was_high or high <= was_low:
        _flip(bits, rows, perm, was_low, was_high, -1)
        _flip(bits, rows, perm, low, high, 1)
    else:
        _flip(bits, rows, perm, low, was_low, 1)
        _flip(bits, rows, perm, was_low, low, -1)
        _flip(bits, rows, perm, was_high, high, 1)
        _flip(bits, rows, perm, high, was_high, -1)


@nb.njit(cache=True, inline="always")
def _word(words: U64, at: int, end: int) -> np.uint64:
    """Return the bits [at, end) of the word that holds bit `at`, in place."""
    word = words[at >> 6] & (_ALL << np.uint64(at & 63))
    if end - (at & ~63) < 64:
        word &= ~(_ALL << np.uint64(end & 63))
    return word


@nb.njit(cache=True, inline="always")
def _matching(word: np.uint64, base: int, places: I32, spans: Spans, i: int) -> np.uint64:
    """Return the bits of the rows that satisfy the other comparisons too."""
    left = word
    while left:
        bit = left & (~left + _ONE)
        if not keeps(places, spans, i, base + int(lowest(left)), 0):
            word ^= bit
        left ^= bit
    return word


@nb.njit(cache=True, nogil=True)
def pairs(
    rows: LiveRows,
    spans: Spans,
    by: I64,
    swept: int,
    bits: Bits,
    k: int,
    step: int,
    out_probe: I64,
    out_row: I64,
) -> tuple[int, int, int]:
    """Fill the out arrays as `scans.pairs` does.

    Positions are unsigned in the inner loop, to avoid code for negative indexes.
    """
    order, places, lows, highs = rows.order, rows.places, spans.lows, spans.highs
    found, room = np.uint64(0), np.uint64(out_row.shape[0])
    plain = spans.hole_of.shape[0] == 0 and lows.shape[0] == 2
    while k < by.shape[0]:
        i = by[k]
        at, end = lows[0, i], highs[0, i]
        if step < 0:
            _move(bits, rows, rows.perms[swept - 1], lows[swept, i], highs[swept, i])
        else:
            at = step
        while at < end:
            if bits.counts[at >> 9] == 0:
                at = (at | (BLOCK - 1)) + 1
                continue
            word, base = _word(bits.words, at, end), at & ~63
            if not plain:
                word = _matching(word, base, places, spans, i)
            full = min(found + ones(word), room)
            while found < full:
                out_probe[found] = i
                out_row[found] = order[np.uint64(base) + lowest(word)]
                word &= word - _ONE
                found += _ONE
            if word:
                return int(found), k, base + int(lowest(word))
            at = base + 64
        k += 1
        step = -1
    return int(found), k, step


@nb.njit(cache=True, nogil=True)
def count(rows: LiveRows, spans: Spans, by: I64, swept: int, bits: Bits) -> I64:
    """Return the number of matches of every probe, shape (probes,)."""
    lows, highs = spans.lows, spans.highs
    found = np.zeros(by.shape[0], np.int64)
    plain = spans.hole_of.shape[0] == 0 and lows.shape[0] == 2
    for k in range(by.shape[0]):
        i = by[k]
        _move(bits, rows, rows.perms[swept - 1], lows[swept, i], highs[swept, i])
        if plain:
            found[i] = _ones(bits, lows[0, i], highs[0, i])
        else:
            found[i] = _checked(bits, rows.places, spans, i)
    return found


@nb.njit(cache=True, nogil=True)
def _ones(bits: Bits, at: int, end: int) -> int:
    """Return the number of set bits in [at, end), with whole blocks taken from `counts`. O(n / 512)."""
    matches = 0
    while at < end:
        if at & (BLOCK - 1) == 0 and at + BLOCK <= end:
            full = end >> 9
            for block in range(at >> 9, full):
                matches += bits.counts[block]
            at = int(full << 9)
        else:
            matches += int(ones(_word(bits.words, at, end)))
            at = (at & ~63) + 64
    return matches


@nb.njit(cache=True, nogil=True)
def _checked(bits: Bits, places: I32, spans: Spans, i: int) -> int:
    """Return the number of set bits in the probe's span of dimension 0 that satisfy the other comparisons."""
    at, end, matches = spans.lows[0, i], spans.highs[0, i], 0
    while at < end:
        if bits.counts[at >> 9] == 0:
            at = (at | (BLOCK - 1)) + 1
            continue
        word, base = _word(bits.words, at, end), at & ~63
        matches += int(ones(_matching(word, base, places, spans, i)))
        at = base + 64
    return matches

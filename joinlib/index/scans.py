"""Finds matches by walking the narrowest span of each probe and checking the other comparisons.

Cost: O(rows in that span) per probe.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64
from joinlib.index.spans import Spans


class LiveRows(NamedTuple):
    """The arrays of a run as kernels use them; rows [first, stop) are live."""

    order: I32  # the row at each position of dimension 0
    perms: I32  # perms[d - 1, q]: the position in dimension 0 of position q of dimension d
    places: I32  # places[d - 1, p]: the position in dimension d of position p of dimension 0
    first: int
    stop: int


@nb.njit(cache=True, inline="always")
def narrowest(lows: I32, highs: I32, i: int) -> int:
    """Return the dimension in which probe i has the fewest rows to examine."""
    best = 0
    for d in range(1, lows.shape[0]):
        if highs[d, i] - lows[d, i] < highs[best, i] - lows[best, i]:
            best = d
    return best


@nb.njit(cache=True, inline="always")
def keeps(places: I32, spans: Spans, i: int, p: int, walked: int) -> bool:
    """Return whether position p of dimension 0 matches probe i; dimension `walked` is known to match."""
    for d in range(spans.lows.shape[0]):
        if d != walked:
            at = p if d == 0 else places[d - 1, p]
            if at < spans.lows[d, i] or at >= spans.highs[d, i]:
                return False
    for h in range(spans.hole_of.shape[0]):
        at = p if spans.hole_of[h] == 0 else places[spans.hole_of[h] - 1, p]
        if spans.hole_lows[h, i] <= at < spans.hole_highs[h, i]:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def pairs(
    rows: LiveRows, spans: Spans, by: I64, k: int, step: int, out_probe: I64, out_row: I64
) -> tuple[int, int, int]:
    """Fill the out arrays, resuming at the k-th probe and position `step` (-1: its first).

    Return the number of pairs, and k and step to resume with.
    """
    order, perms, places, first, stop = rows
    lows, highs = spans.lows, spans.highs
    found, room = 0, out_row.shape[0]
    # Everything in the span matches.
    plain = spans.hole_of.shape[0] == 0 and lows.shape[0] == 1 and first <= 0 and stop >= order.shape[0]
    while k < by.shape[0]:
        i = by[k]
        walked = narrowest(lows, highs, i)
        end = highs[walked, i]
        if step < 0:
            step = lows[walked, i]
        if plain:
            end = min(end, step + room - found)
            for p in range(step, end):
                out_probe[found] = i
                out_row[found] = order[p]
                found += 1
            if end < highs[0, i]:
                return found, k, end
        else:
            for at in range(step, end):
                p = at if walked == 0 else perms[walked - 1, at]
                if keeps(places, spans, i, p, walked) and first <= order[p] < stop:
                    if found == room:
                        return found, k, at
                    out_probe[found] = i
                    out_row[found] = order[p]
                    found += 1
        k += 1
        step = -1
    return found, k, step


@nb.njit(cache=True, nogil=True)
def count(rows: LiveRows, spans: Spans, by: I64) -> I64:
    """Return the number of matches of every probe, shape (probes,)."""
    order, perms, places, first, stop = rows
    lows, highs = spans.lows, spans.highs
    found = np.zeros(by.shape[0], np.int64)
    whole = spans.hole_of.shape[0] == 0 and first <= 0 and stop >= order.shape[0]
    for k in range(by.shape[0]):
        i = by[k]
        walked = narrowest(lows, highs, i)
        low, high, matches = lows[walked, i], highs[walked, i], 0
        if whole and lows.shape[0] == 1:
            matches = high - low
        elif whole and lows.shape[0] == 2:
            other = places[0, low:high] if walked == 0 else perms[0, low:high]
            least, most = lows[1 - walked, i], highs[1 - walked, i]
            for at in range(other.shape[0]):  # no branch, so the compiler vectorises it
                matches += (other[at] >= least) & (other[at] < most)
        else:
            for at in range(low, high):
                p = at if walked == 0 else perms[walked - 1, at]
                if keeps(places, spans, i, p, walked):
                    matches += first <= order[p] < stop
        found[i] = matches
    return found

"""Finds the range of positions in each sorted dimension in which the matches of a probe lie.

    values of a dimension   1 3 3 5 8    probe x > y, x = 3: span [0, 1)    probe x <> y, x = 3: hole [1, 3)

Rows are sorted by (equality, value): the rows of one equality are one range of positions, the same in every
dimension. Cost: O(log distance) per probe, because a search begins where the previous one ended; of long
arrays only a few cache lines are read.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, I64
from joinlib.index.comparisons import Op, PreparedProbes, Shape
from joinlib.index.fences import Fences, find, onwards

F64 = npt.NDArray[np.float64]

_LOWER = (Op.LE, Op.GT, Op.NE)  # these need the first position that is not below the probe,
_UPPER = (Op.LT, Op.GE, Op.NE)  # these the first that is above it


class Spans(NamedTuple):
    """Probe i matches lows[d, i] <= position in d < highs[d, i] for every dimension d, but no hole.

    It is a tuple, so that kernels accept it.
    """

    lows: I32  # (dimensions, probes)
    highs: I32
    hole_of: I32  # the dimension of each hole
    hole_lows: I32  # (holes, probes)
    hole_highs: I32


def search(
    shape: Shape,
    values: I64,
    above: tuple[Fences, ...],
    starts: I32,
    group: I64 | None,
    asked: PreparedProbes,
) -> tuple[Spans, I64]:
    """Return the spans of all probes, and for each dimension the probes in key order, shape (dimensions,
    probes).

    above: the fences of the values, if there is no equality.
    group: the number of each probe's equality, -1 where no row has it; None if there is no equality.
    """
    probes, holes = len(asked.keys[0]), [c for c, op in enumerate(shape.ops) if op is Op.NE]
    lows, highs = np.empty((2, shape.dimensions, probes), np.int32)
    lows[:] = 0 if group is None else np.where(group < 0, 0, starts[group])
    highs[:] = starts[-1] if group is None else np.where(group < 0, 0, starts[group + 1])
    hole_lows, hole_highs = np.empty((2, len(holes), probes), np.int32)
    by = np.empty((shape.dimensions, probes), np.int64)

    def bounded(c: int, upper: bool) -> I32:
        d, rank, key = shape.of[c], asked.ranks[c], asked.keys[c]
        if group is None:
            return find(values[d], above[d], rank, key, upper)
        return bounds(values[d], starts, group, rank, key, upper)

    for c, (op, d) in enumerate(zip(shape.ops, shape.of)):
        if shape.of.index(d) == c:
            by[d] = asked.ranks[c]
        if op in _LOWER:
            low = bounded(c, False)
        if op in _UPPER:
            high = bounded(c, True)
        if op is Op.NE:
            hole_lows[holes.index(c)], hole_highs[holes.index(c)] = low, high
        elif op in (Op.LT, Op.LE):
            np.maximum(lows[d], low if op is Op.LE else high, out=lows[d])
        else:
            np.minimum(highs[d], low if op is Op.GT else high, out=highs[d])
    np.maximum(lows, highs, out=highs)
    return Spans(lows, highs, np.array([shape.of[c] for c in holes], np.int32), hole_lows, hole_highs), by


@nb.njit(cache=True, nogil=True)
def bounds(values: I64, starts: I32, group: I64, by: I64, x: I64, upper: bool) -> I32:
    """Return, for each probe, its group's first position with a value not below x (`upper`: above x)."""
    found = np.zeros(x.shape[0], np.int32)
    near, last = 0, -1
    for k in range(by.shape[0]):
        i = by[k]
        g = group[i]
        if g < 0:
            continue
        if g != last:
            near, last = starts[g], g
        near = onwards(values, near, starts[g + 1], x[i], upper)
        found[i] = near
    return found


@nb.njit(cache=True, nogil=True)
def effort(lows: I32, highs: I32, by: I64) -> tuple[float, F64, F64]:
    """Return the number of positions that finding the matches would read.

    These are: the positions if each probe takes its narrowest span; then for every dimension, the total
    width of the spans, and how far their ends move from probe to probe.
    """
    dimensions, probes = lows.shape
    narrow, widths, moves = 0.0, np.zeros(dimensions), np.zeros(dimensions)
    for i in range(probes):
        least = highs[0, i] - lows[0, i]
        for d in range(dimensions):
            width = highs[d, i] - lows[d, i]
            widths[d] += width
            least = min(least, width)
        narrow += least
    for d in range(1, dimensions):
        low, high = 0, 0
        for k in range(probes):
            i = by[d, k]
            if lows[d, i] >= high or highs[d, i] <= low:
                moves[d] += high - low + highs[d, i] - lows[d, i]
            else:
                moves[d] += abs(lows[d, i] - low) + abs(highs[d, i] - high)
            low, high = lows[d, i], highs[d, i]
    return narrow, widths, moves

"""Sums, means and variances of doubles over frames.

Law: the value of a frame depends on its rows and those before them in the partition, on no other partition.

A frame that begins with its partition goes on from the frame before (compensated sums; Welford). Others ask a tree
of the partition's rows: nothing is ever subtracted, so that an infinity leaves with its row.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64
from joinlib.over.frames import FrameEnds
from joinlib.over.layout import Layout
from joinlib.route.content import Mask

F64 = npt.NDArray[np.float64]


class Sums(NamedTuple):
    """A sum and what rounding took from it."""

    total: F64
    lost: F64


class Moments(NamedTuple):
    """How many values, their mean, the sum of the squares of their differences from it, by row or partition."""

    values: F64  # how many
    mean: F64
    squares: F64


def sums(values: F64, known: Mask, frames: FrameEnds, layout: Layout, begin: Sums) -> Sums:
    """Return the sum of each frame. `begin`: what sums begin with, for each partition. O(rows log rows)."""
    if (frames.low == layout.head).all():
        return Sums(*_running_sums(values, known, frames.high, layout.head, layout.part, *begin))
    found = _tree_sums(np.where(known, values, 0.0), *frames, layout.head, layout.end)
    return Sums(found, np.zeros_like(found))


def moments(values: F64, known: Mask, frames: FrameEnds, layout: Layout, begin: Moments) -> Moments:
    """Return the moments of each frame. `begin`: what they begin with, for each partition. O(rows log rows)."""
    if (frames.low == layout.head).all():
        return Moments(*_running_moments(values, known, frames.high, layout.head, layout.part, *begin))
    return Moments(*_tree_moments(values, known, *frames, layout.head, layout.end))


@nb.njit(cache=True, nogil=True)
def _running_sums(
    values: F64, known: Mask, high: I64, head: I64, part: I64, total: F64, lost: F64
) -> tuple[F64, F64]:
    size = values.shape[0]
    sums, rests = np.empty(size), np.empty(size)
    read, s, c = 0, 0.0, 0.0
    for i in range(size):
        if i == head[i]:
            read, s, c = i, total[part[i]], lost[part[i]]
        while read < high[i]:
            if known[read]:
                v = values[read]
                t = s + v
                if np.isfinite(t):
                    c += (s - t) + v if abs(s) >= abs(v) else (v - t) + s
                s = t
            read += 1
        sums[i] = s
        rests[i] = c if np.isfinite(s) else 0.0
    return sums, rests


@nb.njit(cache=True, nogil=True)
def _tree_sums(values: F64, low: I64, high: I64, head: I64, end: I64) -> F64:
    found = np.zeros(values.shape[0])
    tree = np.empty(0)
    for i in range(values.shape[0]):
        size = end[i] - head[i]
        if i == head[i]:
            tree = np.zeros(2 * size)
            tree[size:] = values[i : i + size]
            for node in range(size - 1, 0, -1):
                tree[node] = tree[2 * node] + tree[2 * node + 1]
        a, b, left, right = low[i] - head[i] + size, high[i] - head[i] + size, 0.0, 0.0
        while a < b:
            if a & 1:
                left += tree[a]
                a += 1
            if b & 1:
                b -= 1
                right = tree[b] + right
            a >>= 1
            b >>= 1
        found[i] = left + right
    return found


@nb.njit(cache=True, nogil=True, inline="always")
def _both(n1: float, m1: float, q1: float, n2: float, m2: float, q2: float) -> tuple[float, float, float]:
    """Return the moments of two collections together."""
    if n1 == 0.0:
        return n2, m2, q2
    if n2 == 0.0:
        return n1, m1, q1
    n, d = n1 + n2, m2 - m1
    return n, m1 + d * n2 / n, q1 + q2 + d * d * n1 * n2 / n


@nb.njit(cache=True, nogil=True)
def _running_moments(
    values: F64, known: Mask, high: I64, head: I64, part: I64, count: F64, mean: F64, squares: F64
) -> tuple[F64, F64, F64]:
    size = values.shape[0]
    counts, means, rests = np.empty(size), np.empty(size), np.empty(size)
    read, n, m, q = 0, 0.0, 0.0, 0.0
    for i in range(size):
        if i == head[i]:
            read, n, m, q = i, count[part[i]], mean[part[i]], squares[part[i]]
        while read < high[i]:
            if known[read]:
                n, m, q = _both(n, m, q, 1.0, values[read], 0.0)
            read += 1
        counts[i], means[i], rests[i] = n, m, q
    return counts, means, rests


@nb.njit(cache=True, nogil=True)
def _tree_moments(values: F64, known: Mask, low: I64, high: I64, head: I64, end: I64) -> tuple[F64, F64, F64]:
    found = np.zeros((3, values.shape[0]))
    tree = np.zeros((0, 3))
    for i in range(values.shape[0]):
        size = end[i] - head[i]
        if i == head[i]:
            tree = np.zeros((2 * size, 3))
            for at in range(size):
                if known[i + at]:
                    tree[size + at, 0], tree[size + at, 1] = 1.0, values[i + at]
            for node in range(size - 1, 0, -1):
                x, y = tree[2 * node], tree[2 * node + 1]
                tree[node, 0], tree[node, 1], tree[node, 2] = _both(x[0], x[1], x[2], y[0], y[1], y[2])
        a, b = low[i] - head[i] + size, high[i] - head[i] + size
        n1, m1, q1, n2, m2, q2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        while a < b:
            if a & 1:
                n1, m1, q1 = _both(n1, m1, q1, tree[a, 0], tree[a, 1], tree[a, 2])
                a += 1
            if b & 1:
                b -= 1
                n2, m2, q2 = _both(tree[b, 0], tree[b, 1], tree[b, 2], n2, m2, q2)
            a >>= 1
            b >>= 1
        found[0, i], found[1, i], found[2, i] = _both(n1, m1, q1, n2, m2, q2)
    return found[0], found[1], found[2]

"""Searches long sorted arrays by reading few cache lines (CSS-tree; SPO-Join, section 2).

    values  1 2 4 7 | 8 9 9 12 | 13 15      nodes of 4      fences  7 12      7 < 9 <= 12: search 8 9 9 12

A fence is the last value of each full node; fences have fences, until few are left. Nodes are compared as a
whole, without branches that could be mispredicted. Cost: 8 / (NODE - 1) bytes per value. A binary search
over 10 M values has 24 cache misses, this one 3.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64

NODE = 16
FEW = 4096  # for so few values, a search that resumes where the previous one ended costs no more


class Fences(NamedTuple):
    """The fences of all levels, the topmost first; level i is keys[starts[i]:starts[i + 1]]."""

    keys: I64
    starts: I64


def fences(values: I64) -> Fences:
    """Return the fences of ascending values. O(values / NODE)."""
    levels = [values[:0]]
    below = values
    while len(below) > FEW:
        below = np.ascontiguousarray(below[NODE - 1 :: NODE])
        levels.append(below)
    levels.reverse()
    return Fences(np.concatenate(levels), np.cumsum([0, *map(len, levels[:-1])]))


@nb.njit(cache=True, nogil=True)
def find(values: I64, above: Fences, by: I64, x: I64, upper: bool) -> I32:
    """Return, for each x, the number of values below it (`upper`: not above it), shape (x,).

    by: the positions of the x in ascending order of x.
    """
    keys, starts = above
    found = np.empty(x.shape[0], np.int32)
    levels = starts.shape[0] - 1
    top = keys[: starts[1]] if levels else values
    near = 0
    for k in range(by.shape[0]):
        sought = x[by[k]]
        near = onwards(top, near, top.shape[0], sought, upper)
        at = near
        for level in range(1, levels):
            at = _child(keys[starts[level] : starts[level + 1]], at, sought, upper)
        found[by[k]] = _child(values, at, sought, upper) if levels else at
    return found


@nb.njit(cache=True, inline="always")
def _child(keys: I64, node: int, sought: int, upper: bool) -> int:
    """Return the number of keys before `sought`, which does not lie after the node's last key."""
    first = node * NODE
    before = 0
    if upper:
        for key in keys[first : first + NODE]:
            before += key <= sought
    else:
        for key in keys[first : first + NODE]:
            before += key < sought
    return first + before


@nb.njit(cache=True, inline="always")
def onwards(values: I64, near: int, end: int, sought: int, upper: bool) -> int:
    """Return the first position, from `near` on, that is not before `sought`. O(log distance).

    `near` must not lie after that position.
    """
    step = 1
    while near + step <= end and _before(values[near + step - 1], sought, upper):
        near += step
        step *= 2
    high = min(near + step - 1, end)
    while near < high:
        middle = (near + high) >> 1
        if _before(values[middle], sought, upper):
            near = middle + 1
        else:
            high = middle
    return near


@nb.njit(cache=True, inline="always")
def _before(value: int, sought: int, upper: bool) -> bool:
    return value < sought or (upper and value == sought)

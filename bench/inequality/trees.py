"""B+tree and PIM-tree, the indexes that take rows in one by one: peers for inserting (figure 12) and probing.

PIM-tree (Shahvarani and Jacobsen, 2020): sealed rows in a CSS-tree; new ones in B+trees, one below each of
its nodes at some depth. A B+tree alone is the same with no sealed rows and one tree. All trees of a column
share the arrays of one arena.
"""

from typing import Any

import numba as nb
import numpy as np
from peers import NODE, ROOM, Array, _find, _keep, _levels

FAN = 32  # keys of a node of a B+tree
SPREAD = NODE**2  # B+trees below a CSS-tree


def arena(rows: int) -> tuple[Array, ...]:
    """keys, kids (of a leaf: rows), size, is it a leaf, the next leaf, how many nodes are used; half full at
    worst.
    """
    nodes = 4 * rows // FAN + 4096
    keys, kids = np.empty((nodes, FAN)), np.empty((nodes, FAN + 1), np.int32)
    return (
        keys,
        kids,
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.bool_),
        np.full(nodes, -1, np.int32),
        np.zeros(1, np.int64),
    )


@nb.njit(cache=True, nogil=True)
def _put(
    keys: Array, kids: Array, size: Array, node: int, at: int, key: float, kid: int, behind: int
) -> None:
    """Makes room at a place of a node that has room; `behind`: kids of an inner node stand behind their key."""
    for i in range(size[node], at, -1):
        keys[node, i] = keys[node, i - 1]
        kids[node, i + behind] = kids[node, i - 1 + behind]
    keys[node, at], kids[node, at + behind] = key, kid
    size[node] += 1


@nb.njit(cache=True, nogil=True)
def _insert(trees: tuple[Array, ...], roots: Array, tree: int, key: float, row: int) -> None:
    keys, kids, size, leaf, after, used = trees
    if roots[tree] < 0:
        roots[tree] = used[0]
        leaf[used[0]] = True
        used[0] += 1
    path, places, depth, node = np.empty(24, np.int64), np.empty(24, np.int64), 0, roots[tree]
    while True:
        at = 0
        while at < size[node] and keys[node, at] <= key:
            at += 1
        path[depth], places[depth] = node, at
        if leaf[node]:
            break
        node = kids[node, at]
        depth += 1
    kid, behind = row, 0
    while True:
        node, at = path[depth], places[depth]
        if size[node] < FAN:
            _put(keys, kids, size, node, at, key, kid, behind)
            return
        right, half = used[0], FAN // 2
        used[0] += 1
        leaf[right] = leaf[node]
        skip = half + behind  # the middle key of an inner node goes up
        middle = keys[node, half]
        size[right] = FAN - skip
        keys[right, : size[right]] = keys[node, skip:]
        kids[right, : size[right] + behind] = kids[node, skip : FAN + behind]
        size[node] = half
        if behind == 0:
            after[right], after[node] = after[node], right
        if at <= half:
            _put(keys, kids, size, node, at, key, kid, behind)
        else:
            _put(keys, kids, size, right, at - skip, key, kid, behind)
        key, kid, behind = middle, right, 1
        if depth == 0:
            top = used[0]
            used[0] += 1
            leaf[top], size[top] = False, 1
            keys[top, 0], kids[top, 0], kids[top, 1] = key, node, right
            roots[tree] = top
            return
        depth -= 1


@nb.njit(cache=True, nogil=True)
def _insert_all(trees: tuple[Array, ...], roots: Array, split: Array, column: Array, first: int) -> None:
    for i in range(column.shape[0]):
        _insert(trees, roots, np.searchsorted(split, column[i], side="right"), column[i], first + i)


@nb.njit(cache=True, nogil=True)
def _rows(trees: tuple[Array, ...], roots: Array, low: bool, sought: float, out: Array) -> int:
    """Rows of the mutable trees whose key is below `sought` (`low`), or above it."""
    keys, kids, size, leaf, after, _ = trees
    found = 0
    for tree in range(roots.shape[0]):
        node = roots[tree]
        if node < 0:
            continue
        while not leaf[node]:
            at = 0
            while not low and at < size[node] and keys[node, at] <= sought:
                at += 1
            node = kids[node, at]
        while node >= 0:
            for at in range(size[node]):
                key = keys[node, at]
                if low and key >= sought:
                    break
                if low or key > sought:
                    out[found] = kids[node, at]
                    found += 1
            if low and size[node] and keys[node, size[node] - 1] >= sought:
                break
            node = after[node]
    return found


@nb.njit(cache=True, nogil=True)
def _probe(
    sealed: tuple[Array, ...],
    x: tuple[Array, ...],
    x_roots: Array,
    y: tuple[Array, ...],
    y_roots: Array,
    p: Array,
    q: Array,
    bits: Array,
    some: Array,
    out: tuple[Array, Array],
    keep: bool,
) -> Array:
    """Both parts, by bit arrays, probe by probe."""
    xs, x_rows, x_tree, x_bounds, ys, y_rows, y_tree, y_bounds = sealed
    found, at_out = np.zeros(p.shape[0], np.int64), 0
    for i in range(p.shape[0]):
        bits[:] = 0
        for at in range(_find(xs, x_tree, x_bounds, p[i], False)):
            bits[x_rows[at] >> 6] |= np.uint64(1) << np.uint64(x_rows[at] & 63)
        for at in range(_rows(x, x_roots, True, p[i], some)):
            bits[some[at] >> 6] |= np.uint64(1) << np.uint64(some[at] & 63)
        count = _rows(y, y_roots, False, q[i], some)
        for at in range(_find(ys, y_tree, y_bounds, q[i], True), ys.shape[0]):
            some[count] = y_rows[at]
            count += 1
        for at in range(count):
            if bits[some[at] >> 6] >> np.uint64(some[at] & 63) & np.uint64(1):
                found[i] += 1
                if keep:
                    at_out = _keep(out, at_out, i, some[at])
    return found


class Trees:
    """Two columns: sealed rows in CSS-trees, and room for more in B+trees below them."""

    def __init__(self, x: Array, y: Array, room: int) -> None:
        self.rows, sealed, self.splits = len(x), [], []
        for column in (x, y):
            order = np.argsort(column, kind="stable")
            keys = column[order]
            sealed += [keys, order.astype(np.int32), *_levels(keys)]
            step = max(1, len(x) // SPREAD)
            self.splits.append(keys[step::step].copy())
        self.sealed: tuple[Array, ...] = tuple(sealed)
        self.trees = arena(room), arena(room)
        self.roots = [np.full(len(split) + 1, -1, np.int64) for split in self.splits]
        self.bits, self.some = np.empty(room // 64 + 1, np.uint64), np.empty(room, np.int32)
        self.out = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)

    def insert(self, x: Array, y: Array) -> None:
        for column, trees, roots, split in zip((x, y), self.trees, self.roots, self.splits, strict=True):
            _insert_all(trees, roots, split, column, self.rows)
        self.rows += len(x)

    def count(self, p: Array, q: Array) -> Any:
        return self._probe(p, q, keep=False)

    def pairs(self, p: Array, q: Array) -> Any:
        return self._probe(p, q, keep=True)

    def _probe(self, p: Array, q: Array, keep: bool) -> Any:
        (x, y), (x_roots, y_roots) = self.trees, self.roots
        return _probe(self.sealed, x, x_roots, y, y_roots, p, q, self.bits, self.some, self.out, keep)


def b_plus_trees(x: Array, y: Array) -> Trees:
    """Nothing is sealed."""
    trees = Trees(x[:0], y[:0], len(x))
    trees.insert(x, y)
    return trees


def pim_trees(x: Array, y: Array) -> Trees:
    """A tenth of the rows came since the last seal."""
    cut = len(x) * 9 // 10
    trees = Trees(x[:cut], y[:cut], len(x))
    trees.insert(x[cut:], y[cut:])
    return trees

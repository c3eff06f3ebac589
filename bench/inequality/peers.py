"""What the index is compared with: nested loop, CSS-trees with hash sets or bit arrays, the paper's probe,
DuckDB's IEJoin.

Each peer is built over two columns of a window and asked `probe.x > row.x AND probe.y < row.y`, as SPO-Join's
Q3: `count(p, q)` gives the matches of each probe, `pairs(p, q)` makes them, in one array that is used again.
"""

from typing import Any

import duckdb
import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]

NODE = 16  # keys of a node of a CSS-tree: two lines of the processor's cache
ROOM = 1 << 18
BLOCK = 256


@nb.njit(cache=True, nogil=True)
def _nested_count(x: Array, y: Array, p: Array, q: Array) -> Array:
    found = np.empty(p.shape[0], np.int64)
    for i in range(p.shape[0]):
        a, b, matches = p[i], q[i], 0
        for row in range(x.shape[0]):
            matches += (x[row] < a) & (y[row] > b)
        found[i] = matches
    return found


@nb.njit(cache=True, nogil=True)
def _nested_pairs(x: Array, y: Array, p: Array, q: Array, probes: Array, rows: Array) -> int:
    found = total = np.uint64(0)
    room = np.uint64(probes.shape[0] - BLOCK)
    for i in range(p.shape[0]):
        a, b = p[i], q[i]
        for start in range(0, x.shape[0], BLOCK):
            end, some = min(start + BLOCK, x.shape[0]), 0
            for row in range(start, end):
                some += (x[row] < a) & (y[row] > b)
            if some == 0:
                continue
            for row in range(start, end):  # written always, kept if it matches: no branch to be mistaken in
                probes[found], rows[found] = i, row
                found += np.uint64((x[row] < a) & (y[row] > b))
            if found >= room:
                total += found
                found = np.uint64(0)
    return total + found


class Nested:
    """Every probe with every row, the honest baseline."""

    def __init__(self, x: Array, y: Array) -> None:
        self.x, self.y = x, y
        self.out = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)

    def count(self, p: Array, q: Array) -> Any:
        return _nested_count(self.x, self.y, p, q)

    def pairs(self, p: Array, q: Array) -> Any:
        return _nested_pairs(self.x, self.y, p, q, *self.out)


def _levels(keys: Array) -> tuple[Array, Array]:
    """The nodes above the sorted keys, the topmost level first: every NODE-th key of the level below."""
    levels = [keys[NODE - 1 :: NODE]]
    while len(levels[-1]) > NODE:
        levels.append(levels[-1][NODE - 1 :: NODE])
    levels.reverse()
    return np.concatenate(levels), np.cumsum([0, *map(len, levels)])


@nb.njit(cache=True, inline="always")
def _find(keys: Array, tree: Array, bounds: Array, sought: float, upper: bool) -> int:
    """Keys below `sought` (`upper`: not above it), from the root down to the leaf."""
    node = 0
    for level in range(bounds.shape[0] - 1):
        at, end = bounds[level] + node * NODE, min(bounds[level] + node * NODE + NODE, bounds[level + 1])
        child = node * NODE
        while at < end and (tree[at] < sought or (upper and tree[at] == sought)):
            at += 1
            child += 1
        node = child
    at, end = node * NODE, min(node * NODE + NODE, keys.shape[0])
    while at < end and (keys[at] < sought or (upper and keys[at] == sought)):
        at += 1
    return at


@nb.njit(cache=True, inline="always")
def _keep(out: tuple[Array, Array], at: int, probe: int, row: int) -> int:
    """Writes a pair, over the first ones where there is no more room; the place of the next."""
    probes, rows = out
    if at == probes.shape[0]:
        at = 0
    probes[at], rows[at] = probe, row
    return at + 1


@nb.njit(cache=True, nogil=True)
def _hash_sets(
    trees: tuple[Array, ...], p: Array, q: Array, table: Array, out: tuple[Array, Array], keep: bool
) -> Array:
    """Rows that satisfy one comparison go into a hash set, rows of the other are looked up in it."""
    x, x_rows, x_tree, x_bounds, y, y_rows, y_tree, y_bounds = trees
    found = np.zeros(p.shape[0], np.int64)
    mask, at_out = np.uint32(table.shape[0] - 1), 0
    for i in range(p.shape[0]):
        table[:] = -1
        for at in range(_find(x, x_tree, x_bounds, p[i], False)):
            slot = (np.uint32(x_rows[at]) * np.uint32(2654435769)) >> np.uint32(8) & mask
            while table[slot] >= 0:
                slot = (slot + np.uint32(1)) & mask
            table[slot] = x_rows[at]
        for at in range(_find(y, y_tree, y_bounds, q[i], True), y.shape[0]):
            slot = (np.uint32(y_rows[at]) * np.uint32(2654435769)) >> np.uint32(8) & mask
            while table[slot] >= 0 and table[slot] != y_rows[at]:
                slot = (slot + np.uint32(1)) & mask
            if table[slot] >= 0:
                found[i] += 1
                if keep:
                    at_out = _keep(out, at_out, i, y_rows[at])
    return found


@nb.njit(cache=True, nogil=True)
def _bit_arrays(
    trees: tuple[Array, ...], p: Array, q: Array, table: Array, out: tuple[Array, Array], keep: bool
) -> Array:
    """A bit for each row that satisfies one comparison, set anew for every probe; rows of the other look at
    theirs.
    """
    x, x_rows, x_tree, x_bounds, y, y_rows, y_tree, y_bounds = trees
    found, at_out = np.zeros(p.shape[0], np.int64), 0
    for i in range(p.shape[0]):
        table[:] = 0
        for at in range(_find(x, x_tree, x_bounds, p[i], False)):
            table[x_rows[at] >> 6] |= np.uint64(1) << np.uint64(x_rows[at] & 63)
        for at in range(_find(y, y_tree, y_bounds, q[i], True), y.shape[0]):
            if table[y_rows[at] >> 6] >> np.uint64(y_rows[at] & 63) & np.uint64(1):
                found[i] += 1
                if keep:
                    at_out = _keep(out, at_out, i, y_rows[at])
    return found


class CssTree:
    """Two CSS-trees and a way to intersect what they find, probe by probe.

    A chain index has one such pair a sub-index.
    """

    kernel = staticmethod(_hash_sets)

    def table(self, rows: int) -> Array:
        return np.empty(1 << (2 * rows).bit_length(), np.int32)

    def __init__(self, x: Array, y: Array) -> None:
        trees: list[Array] = []
        for column in (x, y):
            order = np.argsort(column, kind="stable")
            keys = column[order]
            trees += [keys, order.astype(np.int32), *_levels(keys)]
        self.arrays = tuple(trees)
        self.out = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        self.scratch = self.table(len(x))

    def count(self, p: Array, q: Array) -> Any:
        return self.kernel(self.arrays, p, q, self.scratch, self.out, False)

    def pairs(self, p: Array, q: Array) -> Any:
        return self.kernel(self.arrays, p, q, self.scratch, self.out, True)


class CssBits(CssTree):
    """The same trees with bit arrays, the paper's second peer."""

    kernel = staticmethod(_bit_arrays)

    def table(self, rows: int) -> Array:
        return np.empty(rows // 64 + 1, np.uint64)


@nb.njit(cache=True, nogil=True)
def _per_tuple(
    arrays: tuple[Array, ...], p: Array, q: Array, bits: Array, out: tuple[Array, Array], keep: bool
) -> Array:
    """Algorithm 4 of the paper: two binary searches, bits by the permutation array, a scan of the bit array."""
    x, y, order, perm = arrays
    found, at_out = np.zeros(p.shape[0], np.int64), 0
    for i in range(p.shape[0]):
        bits[:] = 0
        for at in range(np.searchsorted(y, q[i], side="right"), y.shape[0]):
            bits[perm[at]] = 1
        for at in range(np.searchsorted(x, p[i])):
            if bits[at]:
                found[i] += 1
                if keep:
                    at_out = _keep(out, at_out, i, order[at])
    return found


class PerTuple:
    """The paper's PO-Join as it is written, bits set anew for every tuple."""

    def __init__(self, x: Array, y: Array) -> None:
        order, by_y = np.argsort(x), np.argsort(y)
        place = np.empty(len(x), np.int32)
        place[order] = np.arange(len(x), dtype=np.int32)
        self.arrays = x[order], y[by_y], order.astype(np.int32), place[by_y]
        self.bits = np.empty(len(x), np.uint8)
        self.out = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)

    def count(self, p: Array, q: Array) -> Any:
        return _per_tuple(self.arrays, p, q, self.bits, self.out, False)

    def pairs(self, p: Array, q: Array) -> Any:
        return _per_tuple(self.arrays, p, q, self.bits, self.out, True)


class DuckDB:
    """Its IEJoin, one thread: a table of the window and one of the batch."""

    query = "FROM probes JOIN stored ON probes.x > stored.x AND probes.y < stored.y"

    def __init__(self, x: Array, y: Array) -> None:
        self.database = duckdb.connect()
        self.database.execute("SET threads = 1")
        self.database.execute("CREATE TABLE stored (x DOUBLE, y DOUBLE, row BIGINT)")
        self.database.register("given", pa.table({"x": x, "y": y, "row": np.arange(len(x))}))
        self.database.execute("INSERT INTO stored SELECT x, y, row FROM given")

    def _give(self, p: Array, q: Array) -> None:
        self.database.register("probes", pa.table({"x": p, "y": q, "i": np.arange(len(p))}))

    def count(self, p: Array, q: Array) -> Any:
        self._give(p, q)
        return self.database.execute(f"SELECT count(*) {self.query}").fetchall()[0]

    def pairs(self, p: Array, q: Array) -> Any:
        self._give(p, q)
        for _ in self.database.sql(f"SELECT i, row {self.query}").to_arrow_reader(ROOM):
            pass

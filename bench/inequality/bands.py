"""Q2 of SPO-Join, a band in two dimensions, in others' indexes: `ABS(probe.x - row.x) < width`, and `y` likewise.

As in `peers`: each is built over two columns of a window, and `pairs(p, q)` makes the pairs in one array that is used
again.
"""

import numba as nb
import numpy as np
from peers import BLOCK, Array, CssTree, DuckDB, Nested, _find, _keep

WIDTH = 0.03


@nb.njit(cache=True, nogil=True)
def _nested_pairs(x: Array, y: Array, p: Array, q: Array, probes: Array, rows: Array) -> int:
    found = total = np.uint64(0)
    room = np.uint64(probes.shape[0] - BLOCK)
    for i in range(p.shape[0]):
        a, b = p[i], q[i]
        for start in range(0, x.shape[0], BLOCK):
            end, some = min(start + BLOCK, x.shape[0]), 0
            for row in range(start, end):
                some += (abs(x[row] - a) < WIDTH) & (abs(y[row] - b) < WIDTH)
            if some == 0:
                continue
            for row in range(start, end):  # as in `peers`: no branch to be mistaken in
                probes[found], rows[found] = i, row
                found += np.uint64((abs(x[row] - a) < WIDTH) & (abs(y[row] - b) < WIDTH))
            if found >= room:
                total += found
                found = np.uint64(0)
    return total + found


@nb.njit(cache=True, nogil=True)
def _bit_arrays(
    trees: tuple[Array, ...], p: Array, q: Array, table: Array, out: tuple[Array, Array], keep: bool
) -> Array:
    """A bit for each row of the range by `x`, cleared again; rows of the range by `y` look at theirs."""
    x, x_rows, x_tree, x_bounds, y, y_rows, y_tree, y_bounds = trees
    found, at_out = np.zeros(p.shape[0], np.int64), 0
    table[:] = 0
    for i in range(p.shape[0]):
        first = _find(x, x_tree, x_bounds, p[i] - WIDTH, True)
        stop = _find(x, x_tree, x_bounds, p[i] + WIDTH, False)
        for at in range(first, stop):
            table[x_rows[at] >> 6] |= np.uint64(1) << np.uint64(x_rows[at] & 63)
        for at in range(
            _find(y, y_tree, y_bounds, q[i] - WIDTH, True), _find(y, y_tree, y_bounds, q[i] + WIDTH, False)
        ):
            if table[y_rows[at] >> 6] >> np.uint64(y_rows[at] & 63) & np.uint64(1):
                found[i] += 1
                if keep:
                    at_out = _keep(out, at_out, i, y_rows[at])
        for at in range(first, stop):
            table[x_rows[at] >> 6] = 0
    return found


class NestedBand(Nested):
    """Every probe with every row."""

    def pairs(self, p: Array, q: Array) -> int:
        return _nested_pairs(self.x, self.y, p, q, *self.out)


class CssBand(CssTree):
    """Two CSS-trees, each asked for a range, and a bit array."""

    kernel = staticmethod(_bit_arrays)

    def table(self, rows: int) -> Array:
        return np.empty(rows // 64 + 1, np.uint64)


class DuckDBand(DuckDB):
    """DuckDB's IEJoin."""

    query = (
        f"FROM probes JOIN stored ON probes.x < stored.x + {WIDTH} AND probes.x > stored.x - {WIDTH}"
        f" AND probes.y < stored.y + {WIDTH} AND probes.y > stored.y - {WIDTH}"
    )

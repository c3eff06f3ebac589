"""Finds the least or the greatest living value of groups in their bags, without reading all values.

Law: the rows that are returned are those that the whole bag has at this end of the group, each with its whole
weight; there is a living one among them, if there is one in the group.

A bag lies in a few sorted segments, and a value that is in one may be taken back in another. Of each segment a
window of the group's rows is read from its end. What lies behind the end of a window is unknown, so a value
counts only if it is not behind the end of any window. Groups that have no living value before that are read
again, through windows eight times as wide. O(groups * segments) where few of the outermost values are dead;
merges drop the dead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate import bag as bags
from joinlib.aggregate.members import members
from joinlib.arrays import I64, U64
from joinlib.model.bags import Bag
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH, WEIGHT

WINDOW, WIDER = 16, 8
Mask = npt.NDArray[np.bool_]


def ends(
    parts: Sequence[pa.RecordBatch], groups: pa.RecordBatch, grouping: Grouping, bag: Bag, last: bool
) -> pa.RecordBatch:
    """Return rows of these groups in the bag that is the sum of the parts, from its first or last value on.

    parts: each sorted, with each row once.
    """
    found: list[pa.RecordBatch] = []
    parts = [*parts, pa.RecordBatch.from_pylist([], bags.schema(grouping, bag))]
    left, window = groups, WINDOW
    while left.num_rows:
        hashes = np.unique(left.column(HASH).to_numpy())
        windows = [_window(part, hashes, window, last) for part in parts]
        rows, cut = _known(windows, last)
        missing = members(rows, left, grouping, bag).empty
        again = missing & np.isin(left.column(HASH).to_numpy(), cut)
        left = left.filter(pa.array(again))
        more = np.isin(rows.column(HASH).to_numpy(), left.column(HASH).to_numpy())
        found.append(rows.filter(pa.array(~more)))
        window *= WIDER
    return bags.consolidated(found, bags.schema(grouping, bag))


@dataclass(frozen=True)
class _Window:
    """Rows of one part: for each hash those at one end."""

    rows: pa.RecordBatch
    edge: Mask  # of the rows: whether there are more behind it


def _window(part: pa.RecordBatch, hashes: U64, window: int, last: bool) -> _Window:
    stored = part.column(HASH).to_numpy()
    low, high = np.searchsorted(stored, hashes, "left"), np.searchsorted(stored, hashes, "right")
    some = high > low
    low, high = low[some], high[some]
    cut = high - low > window
    if last:
        low = np.maximum(low, high - window)
    else:
        high = np.minimum(high, low + window)
    counts = high - low
    before = np.cumsum(counts) - counts
    at = np.repeat(low - before, counts) + np.arange(int(counts.sum()))
    edge = np.zeros(len(at), bool)
    edge[(before if last else before + counts - 1)[cut]] = True
    return _Window(part.take(pa.array(at)), edge)


def _known(windows: Sequence[_Window], last: bool) -> tuple[pa.RecordBatch, U64]:
    """Return the rows that are not behind the edge of any window, summed; and the hashes that have edges."""
    rows = pa.concat_batches([w.rows for w in windows])
    edge = np.concatenate([w.edge for w in windows])
    if not rows.num_rows:
        return rows, np.zeros(0, np.uint64)
    names = rows.schema.names[:-1]
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names])
    rows, edge = rows.take(order), edge[order.to_numpy()]
    at = np.flatnonzero(bags.starts(rows, names))
    total = np.add.reduceat(np.asarray(rows.column(WEIGHT)), at)
    edges = np.logical_or.reduceat(edge, at)
    rows = rows.take(pa.array(at)).set_column(rows.num_columns - 1, WEIGHT, pa.array(total))
    hashes = rows.column(HASH).to_numpy()
    known = _before(hashes, edges, last) & (total != 0)
    return rows.filter(pa.array(known)), np.unique(hashes[edges])


def _before(hashes: U64, edges: Mask, last: bool) -> Mask:
    """Return a mask of the rows that no edge of the same hash lies before; `hashes` are sorted."""
    if last:
        return _before(hashes[::-1], edges[::-1], last=False)[::-1]
    seen: I64 = np.cumsum(edges) - edges  # edges before the row
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    counts = np.diff(np.append(first, len(hashes)))
    return seen == np.repeat(seen[first], counts)

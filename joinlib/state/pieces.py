"""Produces the rows of a merge that sorts runs by hash, one piece at a time.

The range from the least to the greatest hash is divided into parts of equal width; a piece has the rows of
the next part, of all runs. A pure function of (manifest, rows).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, I64, U64
from joinlib.state.manifest import Merge
from joinlib.state.run import LiveRun, time_values

_NONE = np.zeros(0, np.uint64)


class _Source(NamedTuple):
    """Some rows of one segment of a run."""

    live: LiveRun
    at: int  # index of the segment
    batch: pa.RecordBatch  # all its rows
    chosen: I64  # positions of the chosen rows in `batch`, ascending


class Piece(NamedTuple):
    """Rows sorted by hash, and for each row the number of its old run and its number there."""

    rows: pa.RecordBatch
    runs: I32
    numbers: I32


def ends(live: LiveRun) -> tuple[int, int]:
    """Return the least and the greatest hash of a run. O(rows) if it is not sorted."""
    columns = [b.column(0).to_numpy() for b in live.batches if b.num_rows]
    if live.run.level:
        return int(columns[0][0]), int(columns[-1][-1])
    return min(int(c.min()) for c in columns), max(int(c.max()) for c in columns)


def pieces(
    merge: Merge, old: Sequence[LiveRun], time: str | None, horizon: int, piece_bytes: int
) -> Iterator[Piece]:
    """Yield the next part of a merge: usually one piece, several where many rows share a hash, or none.

    time: the column of event times. horizon: rows up to this event time, µs, are left out.
    Cost: O(rows of the part); where runs are not sorted, all their hashes are read.
    """
    width = merge.high - merge.low + 1
    low = merge.low + width * merge.done // merge.pieces
    high = merge.low + width * (merge.done + 1) // merge.pieces - 1
    found = [
        (live, at, _between(live, at, low, high, time, horizon))
        for live in old
        for at in range(len(live.batches))
    ]
    sources = [_Source(live, at, live.in_order(at), rows) for live, at, rows in found if len(rows)]
    hashes = [source.batch.column(0).to_numpy()[source.chosen] for source in sources]
    order = np.argsort(np.concatenate([_NONE, *hashes]), kind="stable")
    size, rows = (sum(x) for x in zip(*((s.bytes, s.rows) for live in old for s in live.run.segments)))
    most = max(1, 2 * piece_bytes * rows // max(size, 1))
    for start in range(0, len(order), most):
        yield _gathered(sources, order[start : start + most])


def _gathered(sources: list[_Source], chosen: I64) -> Piece:
    """Return the rows `chosen`, numbered through all sources, in this order."""
    ends = np.cumsum([len(source.chosen) for source in sources])
    whole = len(chosen) == ends[-1]
    there = np.arange(len(chosen)) if whole else np.sort(chosen)
    cuts = np.searchsorted(there, ends)
    taken, runs, numbers = [], [], []
    for (live, at, batch, rows), end, a, b in zip(sources, ends, [0, *cuts], cuts):
        own = rows[there[a:b] - (end - len(rows))]
        taken.append(_take(batch, own))
        runs.append(np.full(len(own), live.run.number, np.int32))
        numbers.append((live.starts[at] + own).astype(np.int32))
    back = chosen if whole else np.searchsorted(there, chosen)
    rows = pa.concat_batches(taken).take(pa.array(back))
    return Piece(rows, np.concatenate(runs)[back], np.concatenate(numbers)[back])


def _take(batch: pa.RecordBatch, rows: I64) -> pa.RecordBatch:
    """Return rows by ascending numbers; consecutive rows are not copied."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return batch.slice(int(rows[0]), len(rows))
    return batch.take(pa.array(rows))


def _between(live: LiveRun, at: int, low: int, high: int, time: str | None, horizon: int) -> I64:
    """Return the positions of a segment's rows with a hash in [low, high] that live and are later than
    `horizon`.
    """
    found = _of_hashes(live, at, low, high)
    if live.dead:
        found = found[live.living((live.starts[at] + found).astype(np.int32))]
    if time is None or live.run.segments[at].low > horizon:
        return found
    return found[time_values(live.in_order(at).column(time).take(pa.array(found))) > horizon]


def _of_hashes(live: LiveRun, at: int, low: int, high: int) -> I64:
    """Return the positions of a segment's rows with a hash in [low, high]."""
    hashes: U64 = live.batches[at].column(0).to_numpy()
    if live.run.level:
        first = np.searchsorted(hashes, np.uint64(low))
        return np.arange(first, np.searchsorted(hashes, np.uint64(high), "right"))
    return np.flatnonzero((hashes >= np.uint64(low)) & (hashes <= np.uint64(high)))

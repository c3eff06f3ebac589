"""Finds candidate pairs of new and stored rows by comparison; with a key, among rows of the same hash.

    scan      every pair is examined, by comparing words
    sorted    the segments of a run are sealed runs of SPO-Join: sorted words and permutations
              (index.inequality); small neighbours share one (index.neighbours)

Law: every pair that matches is found once. The part of the predicate that words cannot express, and time
bounds that some rows of the run break, are checked on the pairs found. Frames are bounded.

A window is asked as further comparisons only where they leave out nearly all rows of a run, since each comparison
beyond two makes every probe check its rows one by one (`bench/inequality/window.py`: 9 ms and 680). A run inside
the window is asked for the others alone (BiStream, section 3.3), and so are those rows of a run at its edge that
lie in it for some probe, a range of numbers if they came by time.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, I64
from joinlib.chunks import chunked
from joinlib.expr.compare import MIRROR
from joinlib.index.comparisons import PreparedProbes
from joinlib.index.inequality import Op, PermutedRun, build
from joinlib.index.neighbours import shared
from joinlib.index.nested import pairs
from joinlib.join.rows import Tuples
from joinlib.join.words import words
from joinlib.model.operator import Operator
from joinlib.state.run import LiveRun
from joinlib.state.sorted import SortedIndexes

Candidates = Iterator[tuple[I32, I32, I64]]
Pairs = Iterator[tuple[I32, I32]]
_UP = (">", ">=")
_NARROW = 1 / 256  # where a window keeps less, finding its rows first is cheaper; measured


def candidates(
    op: Operator, side: int, tuples: Tuples, live: LiveRun, indexes: SortedIndexes, limit: int
) -> Candidates:
    """Yield the pairs of `tuples` and stored rows of `side` that may match.

    Each chunk is (positions, rows, end of each segment's rows), with at most `limit` pairs.
    """
    signs = [m.sign if side == 1 else MIRROR[m.sign] for m in op.index_conditions]
    probes = [
        words(m.left, tuples.column, len(tuples), -m.shift, sign in _UP)
        if side == 1
        else words(m.right, tuples.column, len(tuples), m.shift, sign in _UP)
        for m, sign in zip(op.index_conditions, signs, strict=True)
    ]
    if op.index == "sorted":
        hashes = tuples.hashes().view(np.int64) if op.sides[side].keys else None
        found = _sorted(op, side, probes, hashes, signs, live, indexes, limit)
    else:
        found = _scanned(op, side, probes, signs, live, limit, len(tuples))
    for positions, rows in map(_joined, chunked(found, lambda pairs: len(pairs[1]), limit)):
        yield live.grouped(positions, rows)


def _scanned(
    op: Operator, side: int, probes: list[I64], signs: list[str], live: LiveRun, limit: int, count: int
) -> Pairs:
    for first, batch in zip(live.starts, live.batches):
        for positions, rows in pairs(
            probes, stored_words(op, side, batch), signs, count, batch.num_rows, limit
        ):
            yield positions, rows + first


def _sorted(
    op: Operator,
    side: int,
    probes: list[I64],
    hashes: I64 | None,
    signs: list[str],
    live: LiveRun,
    indexes: SortedIndexes,
    limit: int,
) -> Pairs:
    segments, asked, ops = live.run.segments, None, [Op(sign) for sign in signs]
    for start, stop in shared([s.rows for s in segments]):
        make = partial(_index, op, side, live.batches[start:stop], signs)
        run = indexes.of([s.name for s in segments[start:stop]], make).asked(ops)  # a twin's are mirrored
        asked = asked or run.shape.prepare(probes, hashes)  # sorted once for all indexes
        for positions, rows in matches(run, asked, _limits(op), limit):
            yield positions.astype(np.int32), (rows + live.starts[start]).astype(np.int32)


def matches(run: PermutedRun, asked: PreparedProbes, limits: int, limit: int) -> Iterator[tuple[I64, I64]]:
    """Yield pairs of a run that may match; the last `limits` comparisons are the window's.

    They are asked only where they leave out nearly all rows; otherwise of the rows that they reach.
    """
    others = len(asked.keys) - limits
    window = range(others, len(asked.keys))
    without = run.first(others) if limits and run.kept(asked, window) > _NARROW else None
    if without is None:
        return run.probe(asked, limit=limit)
    return without.probe(asked.first(others), limit=limit, alive=run.reach(asked, window))


def _limits(op: Operator) -> int:
    """Return how many of the index conditions are limits of time bounds; these are the last ones."""
    return sum(limit is not None for bound in op.bounds for limit in (bound.low_us, bound.high_us))


def _joined(held: list[tuple[I32, I32]]) -> tuple[I32, I32]:
    if len(held) == 1:
        return held[0]
    positions, rows = zip(*held, strict=True)
    return np.concatenate(positions), np.concatenate(rows)


def stored_words(op: Operator, side: int, batch: pa.RecordBatch) -> list[I64]:
    """Return the words of stored rows, one array for each comparison; equal values share one array."""
    values = [m.right if side == 1 else m.left for m in op.index_conditions]
    once = {v.node: words(v, batch.column, batch.num_rows) for v in values}
    return [once[v.node] for v in values]


def _index(op: Operator, side: int, batches: list[pa.RecordBatch], signs: list[str]) -> PermutedRun:
    parts = [stored_words(op, side, batch) for batch in batches]
    joined: dict[tuple[int, ...], I64] = {}  # equal values share one array here too
    columns = [joined.setdefault(tuple(map(id, c)), np.concatenate(c)) for c in zip(*parts, strict=True)]
    keyed = bool(op.sides[side].keys)
    hashes = np.concatenate([b.column(0).to_numpy() for b in batches]).view(np.int64) if keyed else None
    return build(columns, [Op(sign) for sign in signs], hashes)

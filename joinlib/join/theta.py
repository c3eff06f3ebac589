"""New rows meet stored rows by comparison, without a key: which pairs may match?

    scan      every pair is looked at, by comparing words
    sorted    each segment of a run is a sealed run of SPO-Join: sorted words, permutations, offsets (index.inequality)

Law: every pair that matches is found, once, and none that a time bound forbids; what the words cannot say of the predicate is
checked on what is found. Frames are bounded.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from joinlib.expr.compare import MIRROR
from joinlib.index.comparisons import Asked
from joinlib.index.inequality import Op, Run, build
from joinlib.index.nested import pairs
from joinlib.join.layout import Operator
from joinlib.join.rows import Tuples
from joinlib.join.words import I64, words
from joinlib.state.run import I32, LiveRun
from joinlib.state.sorted import SortedIndexes

Found = Iterator[tuple[I32, I32, I64]]
_UP = (">", ">=")


def candidates(
    op: Operator, side: int, tuples: Tuples, live: LiveRun, indexes: SortedIndexes, limit: int
) -> Found:
    """(position, row, where each segment's rows end) of the pairs of `tuples` with stored rows of `side` that may match."""
    signs = [m.sign if side == 1 else MIRROR[m.sign] for m in op.meets]
    probes = [
        words(m.left, tuples.column, len(tuples), -m.shift, sign in _UP)
        if side == 1
        else words(m.right, tuples.column, len(tuples), m.shift, sign in _UP)
        for m, sign in zip(op.meets, signs, strict=True)
    ]
    asked: Asked | None = None  # sorted once for all segments
    for at, batch in enumerate(live.batches):
        first = live.starts[at]
        ends = np.where(np.arange(len(live.batches)) >= at, 1, 0)
        if op.index == "sorted":
            run = _sorted(op, side, live, at, indexes)
            asked = asked or run.shape.asked(probes)
            for positions, rows in run.probe(asked, limit=limit):
                yield positions.astype(np.int32), (rows + first).astype(np.int32), ends * len(rows)
        else:
            stored = stored_words(op, side, batch)
            for places, found in pairs(probes, stored, signs, len(tuples), batch.num_rows, limit):
                yield places, found + first, ends * len(found)


def stored_words(op: Operator, side: int, batch: pa.RecordBatch) -> list[I64]:
    """The words of stored rows, one array a comparison; equal values are one array."""
    values = [m.right if side == 1 else m.left for m in op.meets]
    once = {v.node: words(v, batch.column, batch.num_rows) for v in values}
    return [once[v.node] for v in values]


def _sorted(op: Operator, side: int, live: LiveRun, at: int, indexes: SortedIndexes) -> Run:
    signs = [Op(m.sign if side == 1 else MIRROR[m.sign]) for m in op.meets]
    return indexes.of(
        live.run.segments[at].name, lambda: build(stored_words(op, side, live.batches[at]), signs)
    )

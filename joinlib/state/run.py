"""Open runs: the index of a run and its memory-mapped segments.

    UnsortedRun   rows in arrival order, with hash chains; the only kind that takes inserts
    SortedRun     rows sorted by hash, located by guides

Rows are numbered through all segments. A merge of neighbouring segments changes neither numbers nor index.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I32, I64, U64
from joinlib.index.chains import Chains
from joinlib.index.kernels import group
from joinlib.index.sealed import HashProbes, Sealed
from joinlib.index.unchained import Unchained
from joinlib.model.time import ALWAYS
from joinlib.state import segment
from joinlib.state.guides import Guides
from joinlib.state.manifest import Run, Segment

_NONE = np.zeros(0, np.uint64)


class LiveRun(ABC):
    """One run: `index` finds rows, and `batches` holds them, one for each segment of `run`."""

    index: Chains | Unchained | Sealed
    run: Run
    batches: list[pa.RecordBatch]
    starts: I32  # the number of each segment's first row, and the number of all rows
    scattered = False  # whether pages of `batches` are read one by one

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._set(Run(0, False, ()), [])

    @abstractmethod
    def open(self, run: Run) -> None:
        """Make index and rows those of `run`, with as little work as possible."""

    @abstractmethod
    def probe(self, asked: HashProbes, limit: int) -> Iterator[tuple[I32, I32, I64]]:
        """Yield pairs of equal hash as (positions, rows, ends); O(pairs).

        positions: positions in `asked`. rows: row numbers, grouped by segment.
        ends: the end of each segment's pairs. limit: the maximum number of pairs per chunk.
        """

    def in_order(self, at: int) -> pa.RecordBatch:
        """Return the rows of a segment for a reader that reads many of them sequentially."""
        return self.batches[at]

    def grouped(self, positions: I32, rows: I32) -> tuple[I32, I32, I64]:
        """Group pairs by segment; also return the end of each group."""
        if len(self.batches) == 1:
            return positions, rows, np.array([len(rows)])
        grouped, other = np.empty_like(rows), np.empty_like(positions)
        ends = group(rows, self.starts, positions, grouped, other)
        return other, grouped, ends

    def times(self, column: str) -> I64:
        """Return the event time of every row, µs; a row without one never expires."""
        every = map(self.in_order, range(len(self.batches)))
        return np.concatenate([time_values(batch.column(column)) for batch in every])

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        # The index holds the rows of the segments.
        assert self.index.rows == self.run.rows

    def _set(self, run: Run, batches: list[pa.RecordBatch]) -> None:
        self.run, self.batches = run, batches
        self.starts = np.array([*accumulate((s.rows for s in run.segments), initial=0)], np.int32)


class UnsortedRun(LiveRun):
    """A run whose rows are in arrival order. Until it is sealed, it takes inserts."""

    index: Chains | Unchained

    def __init__(
        self, folder: Path, schema: pa.Schema, path: Path, skip_bits: int, chained: bool = True
    ) -> None:
        """Create a run without rows.

        folder: the folder of the segments. path: the file of the index.
        skip_bits: top bits that are equal in all hashes. chained: whether rows are searched by hash.
        """
        super().__init__(schema)
        self.folder = folder
        self.index = (Chains if chained else Unchained)(path, skip_bits)

    def open(self, run: Run) -> None:
        """Make index and rows those of `run`, with as little work as possible."""
        if run != self.run:
            known = {s.name: b for s, b in zip(self.run.segments, self.batches, strict=True)}
            for s in run.segments:
                if s.name not in known:
                    segment.verify(self.folder, s)
                    known[s.name] = self._read(s)
            self._set(run, [known[s.name] for s in run.segments])
        self._catch_up()

    def append(self, added: Segment, batch: pa.RecordBatch) -> I64:
        """Add the rows of a segment that is already stored to rows and index; return their numbers."""
        start = self.run.rows
        self._set(Run(self.run.number, False, (*self.run.segments, added)), [*self.batches, batch])
        self.index.begin()
        self.index.insert(_hashes(batch))
        return np.arange(start, start + added.rows)

    def replace(self, run: Run) -> None:
        """Replace the segments by others with the same rows, after a merge."""
        known = {s.name: b for s, b in zip(self.run.segments, self.batches, strict=True)}
        self._set(run, [known.get(s.name) or self._read(s) for s in run.segments])

    def probe(self, asked: HashProbes, limit: int) -> Iterator[tuple[I32, I32, I64]]:
        """Yield pairs of equal hash, as described in `LiveRun.probe`."""
        assert isinstance(self.index, Chains), "rows without chains are not found by their hashes"
        for positions, rows in self.index.probe(asked.hashes, limit):
            yield self.grouped(positions, rows)

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        super().check()
        if isinstance(self.index, Chains):
            self.index.check()
            # The index has the rows in the order of the segments.
            assert np.array_equal(self.index.hashes, np.concatenate([_NONE, *map(_hashes, self.batches)]))

    def _read(self, s: Segment) -> pa.RecordBatch:
        return segment.read(self.folder, s, self.schema)

    def _catch_up(self) -> None:
        if self.index.stale:
            self._reopen()
        if not self.index.dirty and self.index.token == self.run.token and self.index.rows == self.run.rows:
            return
        tokens = [0, *(s.token for s in self.run.segments)]
        clean = not self.index.dirty and self.index.token in tokens
        known = tokens.index(self.index.token) if clean else 0
        if not clean or self.index.rows != self.starts[known]:
            self.index.path.unlink(missing_ok=True)
            self._reopen()
            known = 0
        marks_token = self.index.marks_token
        self.index.begin()
        for batch in self.batches[known:]:
            self.index.insert(_hashes(batch))
        self.index.finish(self.run.token, marks_token)

    def _reopen(self) -> None:
        path, skip_bits = self.index.path, self.index.skip_bits
        if isinstance(self.index, Unchained):
            self.index = Unchained(path, skip_bits)
        else:
            self.index = Chains(path, skip_bits, self.run.rows)


class SortedRun(LiveRun):
    """A run whose rows ascend by hash through all its segments; `index` only locates them."""

    index: Sealed
    scattered = True

    def __init__(self, schema: pa.Schema, path: Path, guides: Guides, marked: bool) -> None:
        super().__init__(schema)
        self.guides = guides
        self.index = Sealed(path, marked)

    def open(self, run: Run) -> None:
        """Make index and rows those of `run`; pages of both are read on access."""
        if run != self.run:
            pieces = [self.guides.open(s, self.schema) for s in run.segments]
            self._set(run, [rows for rows, _ in pieces])
            self.index.hold([(_hashes(rows), guide) for rows, guide in pieces])
        self.index.reopen()

    def in_order(self, at: int) -> pa.RecordBatch:
        """Return the rows of a segment from a second map: that of `batches` is for scattered reads."""
        return segment.read(self.guides.segments, self.run.segments[at], self.schema)

    def probe(self, asked: HashProbes, limit: int) -> Iterator[tuple[I32, I32, I64]]:
        """Yield pairs of equal hash, as described in `LiveRun.probe`; ascending rows are already grouped."""
        for positions, rows in self.index.probe(asked, limit):
            yield positions, rows, np.searchsorted(rows, self.starts[1:])

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        super().check()
        self.index.check()


def time_values(column: pa.Array) -> I64:
    """Return event times in µs, shape (rows,); NULL becomes ALWAYS."""
    values = column.view(pa.int64()) if column.type.bit_width == 64 else pc.cast(column, pa.int64())
    if values.null_count:
        values = pc.fill_null(values, ALWAYS)
    return values.to_numpy(zero_copy_only=False)


def _hashes(batch: pa.RecordBatch) -> U64:
    return batch.column(0).to_numpy()

"""Open runs: the index of a run and its memory-mapped segments.

    UnsortedRun   rows in arrival order, with hash chains; the only kind that takes inserts
    SortedRun     rows sorted by hash, located by guides

Rows are numbered through all segments. A merge of neighbouring segments changes neither numbers nor index.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I32, I64, U64
from joinlib.index.chains import Chains
from joinlib.index.kernels import DEAD, DYING, group
from joinlib.index.sealed import HashProbes, Sealed
from joinlib.index.unchained import Unchained
from joinlib.model.time import ALWAYS
from joinlib.route.content import content_hash, same, values
from joinlib.state import segment
from joinlib.state.guides import Guides
from joinlib.state.manifest import Run, Segment

_NONE = np.zeros(0, np.uint64)
_MOST = 1 << 18  # pairs of equal hash that are found together
_FEW, _SOME = 4, 1 << 12  # stored rows for each deleted one, and for all, that are compared without an index
_I = TypeVar("_I", Chains, Unchained, Chains | Unchained)
Mask = npt.NDArray[np.bool_]


class LiveRun(ABC):
    """One run: `index` finds rows, and `batches` holds them, one for each segment of `run`."""

    index: Chains | Unchained | Sealed
    run: Run
    batches: list[pa.RecordBatch]
    starts: I32  # the number of each segment's first row, and the number of all rows
    scattered = False  # whether pages of `batches` are read one by one
    dead = 0  # number of rows that were deleted and are still stored, those that are dying among them

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._set(Run(0, False, ()), [])

    @abstractmethod
    def open(self, run: Run) -> None:
        """Make index and rows those of `run`, with as little work as possible."""

    @abstractmethod
    def finish(self, marks: int) -> None:
        """Declare what was changed valid, with the marks that the token `marks` identifies."""

    @abstractmethod
    def probe(self, asked: HashProbes, limit: int) -> Iterator[tuple[I32, I32, I64]]:
        """Yield pairs of equal hash as (positions, rows, ends); O(pairs).

        positions: positions in `asked`. rows: row numbers, grouped by segment.
        ends: the end of each segment's pairs. limit: the maximum number of pairs per chunk.
        """

    @abstractmethod
    def alike(self, rows: pa.RecordBatch) -> tuple[I64, I64]:
        """Find the stored rows that may equal `rows`: pairs (position in `rows`, number of a row).

        rows: in the columns of the segments.
        """

    def living(self, rows: I32) -> Mask:
        """Return which of the rows were not deleted, shape (rows,)."""
        return self.index.marks[rows] & (DEAD | DYING) == 0

    def lived(self, rows: I32) -> Mask:
        """Return which of the rows were not deleted before the last batch, shape (rows,)."""
        return self.index.marks[rows] & DEAD == 0

    def equal(self, rows: pa.RecordBatch) -> tuple[I64, I64]:
        """Find the living rows that equal `rows`, in their hash too: pairs (position, number), by position, then by number."""
        positions, found = self.alike(rows)
        alive = self.living(found.astype(np.int32))
        positions, found = positions[alive], found[alive]
        order = np.lexsort((found, positions))
        positions, found = positions[order], found[order]
        wanted = [column.take(pa.array(positions)) for column in rows.columns]
        mask = same(wanted, self.rows(found).columns, len(found))
        return positions[mask], found[mask]

    def of_hashes(self, hashes: U64) -> tuple[I64, I64]:
        """Find the living rows with these hashes: pairs (position in `hashes`, number of a row)."""
        positions, found = _pairs((p, rows) for p, rows, _ in self.probe(HashProbes(hashes), _MOST))
        alive = self.living(found.astype(np.int32))
        return positions[alive], found[alive]

    def rows(self, numbers: I64) -> pa.RecordBatch:
        """Return the rows with these numbers, in this order."""
        homes = np.searchsorted(self.starts, numbers, side="right") - 1
        order = np.argsort(homes, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        parts = []
        for at in np.unique(homes).tolist():
            own = order[homes[order] == at]
            parts.append(self.batches[at].take(pa.array(numbers[own] - self.starts[at])))
        empty = pa.RecordBatch.from_pylist([], self.schema)
        return pa.concat_batches([empty, *parts]).take(pa.array(back))

    @property
    def index_bytes(self) -> int:
        """Memory or disk that the indexes take, in bytes."""
        return self.index.allocated_bytes

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

    def named(self, schema: pa.Schema) -> "LiveRun":
        """Return the same run with its columns under the names of `schema`, to be searched only."""
        view = copy(self)
        view.schema, view.batches = schema, [renamed(batch, schema) for batch in self.batches]
        return view

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
    contents: Chains | None = None  # finds rows by all their columns, once keys with many rows lose some

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
        self._sized: tuple[Run | None, Chains | Unchained | None, int] = None, None, 0

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
        if self.contents is not None:
            self.contents.begin()
            self.contents.insert(_contents(batch))
        return np.arange(start, start + added.rows)

    @property
    def index_bytes(self) -> int:
        """Memory or disk that the indexes take, in bytes; kept while no row comes, as in all runs but one."""
        run, contents, size = self._sized
        if run is not self.run or contents is not self.contents:
            size = self.index.allocated_bytes + (self.contents.allocated_bytes if self.contents else 0)
            self._sized = self.run, self.contents, size
        return size

    def finish(self, marks: int) -> None:
        """Declare the indexes valid: they hold the rows of `run` and the marks that the token identifies."""
        self.index.finish(self.run.token, marks)
        if self.contents is not None:
            self.contents.finish(self.run.token, 0)

    def alike(self, rows: pa.RecordBatch) -> tuple[I64, I64]:
        """Find the stored rows that may equal `rows`: by the hash of the key, or of all columns. O(rows).

        The index by all columns is made when keys turn out to have many rows; until then it would cost more
        than it saves.
        """
        if self.contents is None:
            if (found := self._by_key(rows)) is not None:
                return found
            made = Chains(contents_path(self.index.path), 0, self.run.rows)
            self.contents = self._caught_up(made, _contents)
        return _pairs(self.contents.probe(_contents(rows), _MOST))

    def _by_key(self, rows: pa.RecordBatch) -> tuple[I64, I64] | None:
        """Find the stored rows with the hash of `rows`' key; None if they are too many to be compared."""
        assert isinstance(self.index, Chains), "rows of this side are never deleted"
        parts, found = [], 0
        for positions, numbers in self.index.probe(_hashes(rows), _MOST):
            parts.append((positions, numbers))
            found += len(numbers)
            if found > _FEW * rows.num_rows + _SOME:
                return None
        return _pairs(iter(parts))

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
        self.index = self._caught_up(self.index, _hashes)
        if self.contents is not None:
            self.contents = self._caught_up(self.contents, _contents)

    def _caught_up(self, index: _I, hashes: Callable[[pa.RecordBatch], U64]) -> _I:
        """Return the index with the rows of `run`; it is built anew if it holds others."""
        if index.stale:
            index = self._reopened(index)
        if not index.dirty and index.token == self.run.token and index.rows == self.run.rows:
            return index
        tokens = [0, *(s.token for s in self.run.segments)]
        clean = not index.dirty and index.token in tokens
        known = tokens.index(index.token) if clean else 0
        if not clean or index.rows != self.starts[known]:
            index.path.unlink(missing_ok=True)
            index = self._reopened(index)
            known = 0
        marks_token = index.marks_token
        index.begin()
        for batch in self.batches[known:]:
            index.insert(hashes(batch))
        index.finish(self.run.token, marks_token)
        return index

    def _reopened(self, index: _I) -> _I:
        if isinstance(index, Unchained):
            return type(index)(index.path, index.skip_bits)
        return type(index)(index.path, index.skip_bits, self.run.rows)


def contents_path(index: Path) -> Path:
    """Return the file that finds the rows of an index by all their columns."""
    return index.with_suffix(".contents")


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

    def finish(self, marks: int) -> None:
        """Declare the marks to be those that the token identifies."""
        self.index.finish(self.run.token, marks)

    def alike(self, rows: pa.RecordBatch) -> tuple[I64, I64]:
        """Find the stored rows that may equal `rows`, by the hash of the key. O(rows of equal keys)."""
        return _pairs(self.index.probe(HashProbes(_hashes(rows)), _MOST))

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        super().check()
        self.index.check()


def renamed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same columns under the names of `schema`, without a copy."""
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def time_values(column: pa.Array) -> I64:
    """Return event times in µs, shape (rows,); NULL becomes ALWAYS."""
    values = column.view(pa.int64()) if column.type.bit_width == 64 else pc.cast(column, pa.int64())
    if values.null_count:
        values = pc.fill_null(values, ALWAYS)
    return values.to_numpy(zero_copy_only=False)


def _pairs(found: Iterator[tuple[I32, I32]]) -> tuple[I64, I64]:
    """Return all pairs that an index finds."""
    parts = list(found)
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    positions, rows = zip(*parts, strict=True)
    return np.concatenate(positions).astype(np.int64), np.concatenate(rows).astype(np.int64)


def _contents(batch: pa.RecordBatch) -> U64:
    return content_hash(values(batch), batch.num_rows)


def _hashes(batch: pa.RecordBatch) -> U64:
    return batch.column(0).to_numpy()

"""Finds rows of a sealed run by hash: consecutive pieces of ascending hashes, each with its guide.

It replaces the head's `Chains`, takes a bit more than one byte per row instead of twenty, and writes nothing.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, I64, U64
from joinlib.index import ascending
from joinlib.index.ascending import Guide
from joinlib.index.marks import MarkFile
from joinlib.index.pages import ahead_of_all, in_memory

# With at most this many rows per hash searched, the whole piece is prefetched.
_DENSE = 8 * ascending.PAGE


class HashProbes:
    """Hashes to search in several runs; they are sorted once, and only if a run needs that."""

    def __init__(self, hashes: U64) -> None:
        self.hashes = hashes

    @cached_property
    def ascending(self) -> tuple[U64, I64 | None]:
        """The hashes in ascending order, and the position of each in `hashes` (None: unchanged)."""
        if np.all(self.hashes[1:] >= self.hashes[:-1]):
            return self.hashes, None
        order = np.argsort(self.hashes, kind="stable")
        return self.hashes[order], order


class Sealed:
    """An index with the interface of `Chains`, except that it takes no inserts.

    marked: whether rows can be marked.
    """

    def __init__(self, path: Path, marked: bool) -> None:
        self.path, self._marked = path, marked
        self.rows = self.token = 0
        self._pieces: list[tuple[U64, Guide, int]] = []
        self._firsts = self._lasts = np.zeros(0, np.uint64)  # hashes of each piece
        self._marks: MarkFile | None = None

    def hold(self, pieces: Sequence[tuple[U64, Guide]]) -> None:
        """Replace the contents by these pieces: (hashes, guide)."""
        self._pieces, self.rows = [], 0
        for hashes, guide in pieces:
            self._pieces.append((hashes, guide, self.rows))
            self.rows += len(hashes)
        self._firsts = np.array([guide.first for _, guide in pieces], np.uint64)
        self._lasts = np.array([guide.last for _, guide in pieces], np.uint64)
        if self._marked and (self._marks is None or self._marks.rows != self.rows):
            self._marks = MarkFile(self.path, self.rows)

    def reopen(self) -> None:
        """Map the file of marks again if another process has replaced it."""
        if self._marks is not None:
            self._marks.reopen()

    def probe(self, asked: HashProbes, limit: int) -> Iterator[tuple[I32, I32]]:
        """Yield pairs (position, row) of equal hash, at most `limit` at a time, ascending by row."""
        wanted, order = asked.ascending
        room = min(limit, max(2 * len(wanted), 64))
        positions, rows, found = np.empty(room, np.int32), np.empty(room, np.int32), 0
        starts = np.searchsorted(wanted, self._firsts).tolist()
        stops = np.searchsorted(wanted, self._lasts, "right").tolist()
        for (hashes, _, _), at, stop in zip(self._pieces, starts, stops, strict=True):
            if (stop - at) * _DENSE >= len(hashes):
                ahead_of_all(hashes)
        for (hashes, guide, first), at, stop in zip(self._pieces, starts, stops, strict=True):
            row = -1
            while at < stop:
                found, at, row = ascending.probe(
                    hashes, guide.fences, guide.filter, wanted, at, stop, row, first, positions, rows, found
                )
                if at < stop:  # the arrays are full
                    yield _back(positions, order), rows
                    positions, rows, found = np.empty(limit, np.int32), np.empty(limit, np.int32), 0
        if found:
            yield _back(positions[:found], order), rows[:found]

    def begin(self) -> None:
        """Declare the marks invalid until `finish` is called."""
        if self._marks is not None:
            self._marks.begin()

    def finish(self, token: int, marks_token: int) -> None:
        """Declare rows and marks to be those that the tokens identify."""
        self.token = token
        if self._marks is not None:
            self._marks.finish(marks_token)

    @property
    def marks_token(self) -> int:
        """The hash of the marks that are set; 0 if rows cannot be marked."""
        return 0 if self._marks is None else self._marks.token

    @property
    def marks(self) -> npt.NDArray[np.uint8]:
        return np.zeros(self.rows, np.uint8) if self._marks is None else self._marks.values

    def mark(self, rows: I32) -> I32:
        """Mark rows as matched; return those that were not marked before, each once."""
        return rows[:0] if self._marks is None else self._marks.mark(rows)

    def flag(self, rows: I32, flags: npt.NDArray[np.uint8]) -> None:
        """Set the flags of rows, instead of those that they have."""
        if self._marks is not None:
            self._marks.values[rows] = flags

    def clear_marks(self) -> None:
        if self._marks is not None:
            self._marks.values[:] = 0

    @property
    def keys(self) -> int:
        """The number of distinct hashes, counted in each piece."""
        return sum(guide.keys for _, guide, _ in self._pieces)

    @property
    def cached(self) -> float:
        """The share of the hashes that are in memory, by a sample of their pages."""
        shares = [(len(hashes), in_memory(hashes)) for hashes, _, _ in self._pieces]
        return sum(rows * share for rows, share in shares) / self.rows if self.rows else 1.0

    @property
    def allocated_bytes(self) -> int:
        """Memory or disk that guides and marks take, in bytes."""
        guides = sum(guide.nbytes for _, guide, _ in self._pieces)
        return guides + (0 if self._marks is None else self._marks.allocated_bytes)

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        behind = 0
        for hashes, guide, _ in self._pieces:
            # Hashes ascend in each piece and from one to the next; the guide is that of the piece.
            assert len(hashes) and np.all(hashes[1:] >= hashes[:-1]) and int(hashes[0]) >= behind
            own = ascending.guide(hashes)
            assert np.array_equal(own.fences, guide.fences) and (own.last, own.keys) == (
                guide.last,
                guide.keys,
            )
            assert np.array_equal(own.filter.words, guide.filter.words)
            behind = int(hashes[-1])


def _back(positions: I32, order: I64 | None) -> I32:
    return positions if order is None else order[positions].astype(np.int32)

"""What is read, and by whom? An input is an append-only list of slices; offset n says that slices [0, n)
were read.

    discover() ──► 5          slices(2, 5) ──► [Slice 2, Slice 3, Slice 4]        reader.read_many(...) ──► rows
    (driver: effects, log)    (driver: pure look-up)                             (any process: from the slice alone)

Laws: a slice, once numbered, never changes; reading it gives the same rows in the same order wherever and
whenever it is read; reading slices together gives what reading them one by one gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

SLICE_ROWS = 262_144  # the most rows of a parquet slice, and of any record batch


@dataclass(frozen=True)
class Piece:
    """A part of a file that is read at once: rows [start, stop) of a row group, or bytes [start, stop) of a text."""

    group: int
    start: int
    stop: int
    weight: int


@dataclass(frozen=True)
class Slice:
    """The unit of admission. Holds all that a reader needs besides its configuration."""

    index: int
    rows: int | None  # None where only reading can tell (text)
    weight: int  # rows, estimated where they are not known; at least 1
    path: str = ""  # a file or a topic; empty for generated rows
    size: int = 0  # bytes: of the whole file, or of a topic's messages, estimated
    mtime_ns: int = 0  # of the file; for generated rows, the time of row 0
    group: int = 0  # parquet row group, partition of a topic
    start: int = (
        0  # rows of the row group, bytes of a text, row numbers of a generator, offsets of a partition
    )
    stop: int = 0


class Reader(Protocol):
    """A picklable value that reads slices in any process."""

    @property
    def bad(self) -> int:
        """Messages that were no rows, among all that this object has read."""
        return 0

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The slices' rows in order: exactly these columns, of the declared types, at most SLICE_ROWS rows a batch."""
        ...

    def read(self, slice: Slice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of one slice."""
        return self.read_many([slice], columns)


class Input(Protocol):
    """A named stream, as the driver sees it."""

    @property
    def reader(self) -> Reader:
        """Reads this input's slices. Depends on configuration only: it may travel before anything is discovered."""
        ...

    def discover(self) -> int:
        """Look for more and log it, on disk before this returns; the number of slices known, which never falls."""
        ...

    def slices(self, start: int, stop: int) -> list[Slice]:
        """Slices [start, stop). StateError where the log does not reach that far."""
        ...

    def forget(self, before: int) -> None:
        """Nobody will ask for slices before this one again."""
        ...

    def lag(self, start: int = 0) -> dict[str, int]:
        """Figures about what is known beyond offset `start`: "slices", "rows" (estimated for text) and more."""
        ...

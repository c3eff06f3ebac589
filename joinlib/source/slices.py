"""Slices and their readers.

An input is an append-only list of slices; offset n means slices [0, n) were read.

    discover() ──► 5          slices(2, 5) ──► [Slice 2, Slice 3, Slice 4]    reader.read_many(...) ──► rows
    (driver: effects, log)    (driver: pure look-up)                          (any process: slice only)

Laws: a slice, once numbered, never changes; reading it gives the same rows in the same order wherever and
whenever it is read; reading slices together gives what reading them one by one gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64

BATCH_ROWS = 262_144  # the most rows of a record batch, and of a slice of a Parquet file
# The most rows of a slice of a topic or a generator. A generator's slices are in no log: offsets count them.
SLICE_ROWS = 65_536


@dataclass(frozen=True)
class FileRange:
    """A part of a file that is read at once.

    It is rows [start, stop) of a row group, or bytes [start, stop) of a text.
    """

    group: int
    start: int
    stop: int
    weight: int


@dataclass(frozen=True)
class Slice:
    """The unit of admission. Holds all that a reader needs besides its configuration."""

    index: int
    rows: int | None  # None if the number is known only after reading (text)
    weight: int  # rows, estimated if not known; at least 1
    path: str = ""  # a file or a topic; empty for generated rows
    size: int = 0  # bytes of the whole file, or estimated bytes of the slice's messages
    mtime_ns: int = 0  # the file's time of modification; for generated rows, the time of row 0
    group: int = 0  # row group of a Parquet file, partition of a topic
    # [start, stop): rows of the row group, bytes of a text, rows of a generator, offsets of a partition
    start: int = 0
    stop: int = 0


@dataclass(frozen=True)
class Refused:
    """A row that cannot be read, where the input says that such rows are kept."""

    file: str  # a path, or a topic
    partition: int | None  # of a topic
    at: int | None  # the offset of the message, or the row's number in the file, from 1; None: not known
    reason: str  # without values
    text: bytes | None = None  # what could not be decoded
    row: pa.RecordBatch | None = None  # what was decoded and does not fit


class SliceReader(Protocol):
    """A picklable value that reads slices in any process."""

    @property
    def bad(self) -> int:
        """The number of messages that could not be decoded, among all that this object has read."""
        return 0

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the slices' rows in order.

        Batches have exactly these columns, of the declared types, and at most BATCH_ROWS rows.

        Raises:
            InputError: A slice cannot be read.
        """
        ...

    def read(self, slice: Slice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one slice."""
        return self.read_many([slice], columns)

    def located(self, slice: Slice, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, I64]]:
        """Yield the rows of one slice with their places, as in `Refused.at`; -1: not known."""
        for rows in self.read(slice, columns):
            yield rows, np.full(rows.num_rows, -1)

    def pieces(self, slice: Slice, count: int) -> list[Slice]:
        """Cut a slice into at most so many parts of similar weight, which are read as slices are; not all can be cut."""
        return [slice]

    def together(self, one: Slice, following: Slice) -> bool:
        """Whether two slices, one behind the other, are decoded at once, so that one process had better read both."""
        return False

    def in_order(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        """Return slices in the order in which `read_many` yields their rows."""
        return slices


class StreamInput(Protocol):
    """A named stream, as the driver sees it."""

    @property
    def reader(self) -> SliceReader:
        """The reader of this input's slices.

        It depends on the configuration only, so it may be sent anywhere early.
        """
        ...

    def discover(self) -> int:
        """Look for new slices and log them on disk; return the number of slices known, which never falls."""
        ...

    def slices(self, start: int, stop: int) -> list[Slice]:
        """Return slices [start, stop).

        Raises:
            StateError: The log does not reach that far.
        """
        ...

    def forget(self, before: int) -> None:
        """Release what only slices below `before` needed: they will not be read again."""
        ...

    def lag(self, start: int = 0) -> dict[str, int]:
        """Return figures on what is known beyond offset `start`, such as "slices" and "rows".

        "read" is the number of rows before it. Rows of text files are estimated.
        """
        ...

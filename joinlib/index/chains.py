"""A growable hash-chain index in one memory-mapped file, which every worker process of the executor can open.

    header | hashes u64[capacity] | nexts i32[capacity] | heads i32[2^bits] | marks u8[capacity]

Insert and probe cost O(1) per row. About 17 bytes per row are touched (8 hash, 4 next, 4 to 8 heads; marks
only where an outer join sets them). The file is sparse: space that is not used soon takes neither memory
nor disk. Space that will be used is reserved a sixteenth of the file at a time, so that a full disk raises
an error instead of killing the process.

The file is a cache. `token` identifies the rows it holds, and `dirty` means that a change was interrupted.
The process that opens it compares the token with the manifest and rebuilds the index if they differ.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, U64
from joinlib.errors import StateError
from joinlib.files import reserve, whole
from joinlib.index import kernels
from joinlib.index.mapped import Mapped

_MAGIC = 0x31494A53  # "SJI1"
_HEADER = 4096
_MAGIC_AT, _ROWS, _CAPACITY, _BITS, _SKIP_BITS, _DIRTY, _TOKEN, _MARKS_TOKEN = range(8)
_SMALLEST = 1024
_SAMPLE = 1 << 14  # buckets from which the number of keys is estimated


class Chains:
    """Hash chains over the rows 0..rows-1 of one run.

    The `skip_bits` top bits of all hashes are equal, because they chose the unit.
    """

    def __init__(self, path: Path, skip_bits: int, capacity: int = _SMALLEST) -> None:
        """Open the file at `path`; create an empty one where there is none, or that of another number of units.

        capacity: initial number of rows for which a new file has space.
        """
        self.path = path
        if not _fits(path, skip_bits):
            _allocate(path, skip_bits, max(capacity, _SMALLEST))
        self._map()

    def _map(self) -> None:
        self._file = Mapped(self.path)
        view = self._file.view
        header = np.frombuffer(view, np.int64, 16)
        capacity, bits = int(header[_CAPACITY]), int(header[_BITS])
        at = _HEADER
        self._header = header
        self._hashes = np.frombuffer(view, np.uint64, capacity, at)
        at += 8 * capacity
        self._nexts = np.frombuffer(view, np.int32, capacity, at)
        at += 4 * capacity
        self._heads = np.frombuffer(view, np.int32, 1 << bits, at)
        at += 4 << bits
        self._marks = np.frombuffer(view, np.uint8, capacity, at)
        self._bits = bits
        self._reserved = 0  # rows whose disk space this process has reserved
        self._marks_reserved = False

    @property
    def rows(self) -> int:
        return int(self._header[_ROWS])

    @property
    def token(self) -> int:
        """A chained hash of the segments whose rows the index holds; 0: no rows."""
        return int(self._header[_TOKEN])

    @property
    def marks_token(self) -> int:
        """A chained hash of the log of marks that are set; 0: no marks."""
        return int(self._header[_MARKS_TOKEN])

    @marks_token.setter
    def marks_token(self, token: int) -> None:
        self._header[_MARKS_TOKEN] = token

    @property
    def dirty(self) -> bool:
        """Whether a change was interrupted, so that the index must be rebuilt."""
        return bool(self._header[_DIRTY])

    @property
    def stale(self) -> bool:
        """Whether another process has replaced the file by a larger one."""
        return self._file.stale

    @property
    def hashes(self) -> U64:
        return self._hashes[: self.rows]

    @property
    def marks(self) -> npt.NDArray[np.uint8]:
        return self._marks[: self.rows]

    @property
    def slots(self) -> int:
        return len(self._heads)

    @property
    def keys(self) -> int:
        """The approximate number of distinct hashes; O(1).

        This is linear counting (Whang et al., 1990) over the first buckets.
        """
        sample = self._heads[:_SAMPLE]
        empty = len(sample) - int(np.count_nonzero(sample))
        return min(self.rows, round(self.slots * math.log(len(sample) / empty))) if empty else self.rows

    @property
    def allocated_bytes(self) -> int:
        """Memory or disk that the file takes, in bytes; updated each time a sixteenth of it is filled."""
        capacity = len(self._marks)
        return self._file.allocated((capacity, 16 * self.rows // capacity))

    def begin(self) -> None:
        """Declare the index invalid until `finish` is called."""
        self._header[_DIRTY] = 1

    def finish(self, token: int, marks_token: int) -> None:
        """Declare the index valid, with the rows and marks that the tokens identify."""
        self._header[_TOKEN] = token
        self._header[_MARKS_TOKEN] = marks_token
        self._header[_DIRTY] = 0

    def insert(self, hashes: U64) -> int:
        """Append rows and return the number of the first. Call between `begin` and `finish`.

        Raises:
            StateError: the run would have more than 2^31 rows.
        """
        start = self.rows
        stop = start + len(hashes)
        if stop >= 2**31 - 1:
            raise StateError(f"{self.path}: more than 2^31 rows in one run")
        if stop > len(self._hashes):
            self._grow(stop)
        self._reserve(stop)
        self._hashes[start:stop] = hashes
        kernels.insert(self._heads, self._nexts, self._hashes, start, stop, self.skip_bits, self._bits)
        self._header[_ROWS] = stop
        return start

    def probe(self, wanted: U64, limit: int) -> Iterator[tuple[I32, I32]]:
        """Yield pairs (position in `wanted`, row) of equal hash, by position, at most `limit` at a time."""
        at, link = 0, -1
        room = min(limit, max(2 * len(wanted), 64))
        while at < len(wanted):
            positions, rows = np.empty(room, np.int32), np.empty(room, np.int32)
            found, at, link = kernels.probe(
                self._heads,
                self._nexts,
                self._hashes,
                wanted,
                self.skip_bits,
                self._bits,
                at,
                link,
                positions,
                rows,
            )
            if found:
                yield positions[:found], rows[:found]
            room = limit

    def mark(self, rows: I32) -> I32:
        """Mark rows as matched; return those that were not marked before, each once."""
        self._reserve_marks()
        fresh = np.empty(len(rows), np.int32)
        return fresh[: kernels.mark(self._marks, rows, fresh)]

    def flag(self, rows: I32, flags: npt.NDArray[np.uint8]) -> None:
        """Set the flags of rows, instead of those that they have."""
        self._reserve_marks()
        self._marks[rows] = flags

    def clear_marks(self) -> None:
        self._reserve_marks()
        self._marks[:] = 0

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        heads, nexts, hashes, rows = self._heads, self._nexts, self._hashes, self.rows
        # The header fits the arrays, and the last row lies within them.
        assert 0 <= rows <= len(hashes) and 1 << self._bits == len(heads), (rows, len(hashes), self._bits)
        # Links lead to older rows only, so every chain ends.
        assert np.all(nexts[:rows] <= np.arange(rows)), "a chain leads to a newer row"
        # Each row is in the chain of its bucket exactly once.
        seen = np.zeros(rows, np.int64)
        for bucket in np.flatnonzero(heads):
            link = heads[bucket]
            while link:
                seen[link - 1] += 1
                own = (int(hashes[link - 1]) << self.skip_bits & (2**64 - 1)) >> (64 - self._bits)
                assert own == bucket, (own, bucket)
                link = nexts[link - 1]
        assert np.all(seen == 1), "a row is not in its chain exactly once"

    @property
    def skip_bits(self) -> int:
        return int(self._header[_SKIP_BITS])

    def _grow(self, rows: int) -> None:
        capacity = len(self._hashes)
        while capacity < rows:
            capacity *= 2
        old, used = self, self.rows
        hashes, marks, skip_bits = old._hashes, old._marks, self.skip_bits
        header = self._header[:].copy()
        _allocate(self.path, skip_bits, capacity)
        self._map()
        self._reserve(used)
        self._hashes[:used] = hashes[:used]
        if marks[:used].any():
            self._reserve_marks()
            self._marks[:used] = marks[:used]
        self._header[_ROWS], self._header[_DIRTY] = used, 1
        self._header[_TOKEN], self._header[_MARKS_TOKEN] = header[_TOKEN], header[_MARKS_TOKEN]
        kernels.insert(self._heads, self._nexts, self._hashes, 0, used, skip_bits, self._bits)

    def _reserve(self, rows: int) -> None:
        """Reserve all buckets, since any may be used, and the rows up to the next sixteenth of the file."""
        if rows <= self._reserved:
            return
        capacity, first = len(self._hashes), self._reserved or self.rows
        upto = min(capacity, (16 * rows // capacity + 1) * capacity // 16)
        nexts = _HEADER + 8 * capacity
        reserve(self.path, _HEADER + 8 * first, 8 * (upto - first))
        reserve(self.path, nexts + 4 * first, 4 * (upto - first))
        if not self._reserved:
            reserve(self.path, nexts + 4 * capacity, 4 << self._bits)
        self._reserved = upto

    def _reserve_marks(self) -> None:
        if not self._marks_reserved:
            reserve(self.path, len(self._file.view) - len(self._marks), len(self._marks))
            self._marks_reserved = True


def _fits(path: Path, skip_bits: int) -> bool:
    """Return whether the file is an index of rows whose hashes have so many equal top bits."""
    try:
        header = np.fromfile(path, np.int64, 16)
    except FileNotFoundError:
        return False
    return len(header) == 16 and header[_MAGIC_AT] == _MAGIC and header[_SKIP_BITS] == skip_bits


def _allocate(path: Path, skip_bits: int, capacity: int) -> None:
    """Create an empty index at `path`, atomically: an interrupted call leaves no invalid file."""
    capacity = 1 << (capacity - 1).bit_length()
    bits = capacity.bit_length() - 1
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as aside, open(aside, "wb") as file:
        file.truncate(_HEADER + 8 * capacity + 4 * capacity + (4 << bits) + capacity)
        header = np.zeros(16, np.int64)
        header[_MAGIC_AT], header[_CAPACITY], header[_BITS], header[_SKIP_BITS] = (
            _MAGIC,
            capacity,
            bits,
            skip_bits,
        )
        file.write(header.tobytes())

"""Stores the entries of an incremental cache and the list of its pieces
in a memory-mapped file of any process.

    header i64[512] | pieces i64[64, 6] | heads i64[2^bits] | entries i64[2^bits, 6]

The file is only a cache: if `dirty` says that a change was interrupted, the process that opens it starts with
an empty one.
"""

from pathlib import Path

import numpy as np

from joinlib.arrays import I64, U64
from joinlib.files import reserve, whole
from joinlib.index.mapped import Mapped
from joinlib.lookup import kernels
from joinlib.lookup.kernels import WIDTH

_MAGIC = 0x314C4A53  # "SJL1"
_HEADER = 4096
_MAGIC_AT, _BITS, _TAIL, _HEAD, _DIRTY, _PIECES, _NEXT_PIECE, _NEXT_ROW = range(8)
NUMBER, FIRST, ENTRIES, ROW, ROWS, BYTES = range(6)
MOST_PIECES = 64
_LINE = 8 * (WIDTH + 1)  # bytes of an entry and its head
_FIXED = _HEADER + 8 * 6 * MOST_PIECES


def bits_for(budget: int) -> int:
    """Return the base-2 logarithm of the number of entries that take at most half of a budget of bytes."""
    entries = max(budget - _FIXED, 0) // 2 // _LINE
    return max(min(entries.bit_length() - 1, 30), 4)


def bytes_for(bits: int) -> int:
    """Return the size of the file, in bytes."""
    return _FIXED + (_LINE << bits)


class Entries:
    """A ring of entries in a file; the entries with numbers `tail`..`head`-1 are alive."""

    def __init__(self, path: Path, bits: int) -> None:
        """Open the file at `path`; create an empty one where there is none that can be used."""
        self.path, self.bits = path, bits
        if path.exists():
            self._map()
            if self._header[_MAGIC_AT] == _MAGIC and self._header[_BITS] == bits and not self._header[_DIRTY]:
                return
        self.reset()

    def reset(self) -> None:
        """Replace the file by an empty one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        header = np.zeros(8, np.int64)
        header[_MAGIC_AT], header[_BITS] = _MAGIC, self.bits
        with whole(self.path) as aside, open(aside, "wb") as file:
            file.truncate(bytes_for(self.bits))
            file.write(header.tobytes())
        self._map()

    def _map(self) -> None:
        self._file = Mapped(self.path)
        view = self._file.view
        self._header = np.frombuffer(view, np.int64, 8)
        if len(view) != bytes_for(self.bits):
            self._header = np.zeros(8, np.int64)
            return
        self._pieces = np.frombuffer(view, np.int64, 6 * MOST_PIECES, _HEADER).reshape(-1, 6)
        self.heads = np.frombuffer(view, np.int64, 1 << self.bits, _FIXED)
        lines = np.frombuffer(view, np.int64, WIDTH << self.bits, _FIXED + (8 << self.bits))
        self.lines = lines.reshape(-1, WIDTH)

    @property
    def usable(self) -> bool:
        """Whether the mapped file is still the current one, and no change of it was interrupted."""
        return not (self._file.stale or self._header[_DIRTY])

    @property
    def tail(self) -> int:
        return int(self._header[_TAIL])

    @property
    def head(self) -> int:
        return int(self._header[_HEAD])

    @property
    def alive(self) -> int:
        return self.head - self.tail

    @property
    def capacity(self) -> int:
        return 1 << self.bits

    @property
    def next_row(self) -> int:
        return int(self._header[_NEXT_ROW])

    @property
    def pieces(self) -> I64:
        """A line for each piece, oldest first: number, first entry, entries, first row, rows, bytes."""
        return self._pieces[: self._header[_PIECES]]

    @property
    def bytes(self) -> int:
        """The size of this file and of all pieces."""
        return bytes_for(self.bits) + int(self.pieces[:, BYTES].sum())

    @property
    def held(self) -> int:
        """The bytes of this file and all pieces that are allocated: pages
        that were never written take nothing.
        """
        return self._file.allocated(self._header.tobytes()) + int(self.pieces[:, BYTES].sum())

    def begin(self) -> None:
        """Mark the file as dirty until `finish`."""
        self._header[_DIRTY] = 1

    def finish(self) -> None:
        self._header[_DIRTY] = 0

    def new_number(self) -> int:
        """Return a number that no piece of this file has had."""
        self._header[_NEXT_PIECE] += 1
        return int(self._header[_NEXT_PIECE])

    def append(self, number: int, hashes: U64, expiry: I64, counts: I64, rows: int, size: int) -> None:
        """Add entries whose rows are consecutive in the piece `number`. O(entries)."""
        first, row = self.head, self.next_row
        self._reserve(first % self.capacity, len(hashes))
        starts = row + np.cumsum(counts) - counts
        kernels.append(self.heads, self.lines, self.bits, first, hashes, expiry, starts, counts)
        self._pieces[self._header[_PIECES]] = (number, first, len(hashes), row, rows, size)
        self._header[_PIECES] += 1
        self._header[_HEAD] += len(hashes)
        self._header[_NEXT_ROW] += rows

    def _reserve(self, at: int, count: int) -> None:
        """Allocate disk space for `count` entries from `at` on, and for all heads.

        After a full round all are allocated.
        """
        if self.head < self.capacity:
            upto = min(at + count, self.capacity)
            reserve(self.path, _FIXED, 8 << self.bits)
            reserve(self.path, _FIXED + (8 << self.bits) + 8 * WIDTH * at, 8 * WIDTH * (upto - at))

    def drop_oldest(self) -> None:
        """Remove the oldest piece and its entries. O(pieces)."""
        count = int(self._header[_PIECES])
        self._header[_TAIL] = self._pieces[0, FIRST] + self._pieces[0, ENTRIES]
        self._pieces[: count - 1] = self._pieces[1:count].copy()
        self._header[_PIECES] = count - 1

    def join_pieces(self, at: int, number: int, size: int) -> None:
        """Replace the pieces `at` and `at` + 1 by one; entries and rows keep their numbers. O(pieces)."""
        count = int(self._header[_PIECES])
        both = self._pieces[at : at + 2, [ENTRIES, ROWS]].sum(axis=0)
        self._pieces[at, [NUMBER, ENTRIES, ROWS, BYTES]] = (number, both[0], both[1], size)
        self._pieces[at + 1 : count - 1] = self._pieces[at + 2 : count].copy()
        self._header[_PIECES] = count - 1

    def check(self) -> None:
        """Assert every invariant. O(entries)."""
        # Pieces hold the living entries and their rows without a gap.
        entry, row = self.tail, None
        for piece in self.pieces:
            assert piece[FIRST] == entry, "entries of the pieces have a gap"
            assert row is None or piece[ROW] == row, "rows of the pieces have a gap"
            entry, row = entry + piece[ENTRIES], piece[ROW] + piece[ROWS]
        assert entry == self.head and (row is None or row == self.next_row)
        assert self.alive <= self.capacity
        # Each living entry is in the chain of its bucket once, and chains lead to older entries.
        seen = []
        for head in self.heads:
            link = int(head) - 1
            while link >= self.tail:
                seen.append(link)
                older = int(self.lines[link % self.capacity, kernels.NEXT]) - 1
                assert older < link, "a chain leads to a newer entry"
                link = older
        assert sorted(seen) == list(range(self.tail, self.head)), "an entry is not in its chain exactly once"

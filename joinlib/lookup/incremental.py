"""Caches what a database has answered so far, within a budget (BS-Join, section 3.2, algorithm 1).

    keys ─► entries of equal hash ─► equal keys? ─► rows of the pieces
                    └─ no entry ─► one query for all of them ─► rows, and a new piece

A key that the table does not have is an entry without rows. Entries are evicted in the order in which they
came, a piece at a time; those that have been used since are written once more (CLOCK, which approximates LRU
without moving an entry when it is used). An entry is void once it has expired. Law: the answer is that of the
query, whatever is cached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib import fault
from joinlib.arrays import I64, U64
from joinlib.lookup import kernels
from joinlib.lookup.entries import BYTES, FIRST, MOST_PIECES, NUMBER, ROW, ROWS, Entries, bits_for
from joinlib.lookup.hashed import distinct, match, same_keys, take
from joinlib.lookup.pieces import Pieces
from joinlib.model.keys import hash_is_key
from joinlib.route.hash import key_hash

# Fetches all rows of the table that have one of these distinct keys.
Fetch = Callable[[list[pa.Array]], pa.RecordBatch]
FOR_EVER = 2**63 - 1
_FILE_BYTES = 2048  # size of a piece's file without its columns
_PARTS = 8  # pieces are merged up to this fraction of the budget


@dataclass(frozen=True)
class Answer:
    """The rows that were found: row i of `rows` belongs to the key at `positions[i]`."""

    positions: I64
    rows: pa.RecordBatch


@dataclass(frozen=True)
class LookupFigures:
    """Counts what lookups have cost."""

    probes: int = 0
    hits: int = 0
    expired: int = 0  # misses for which there was an answer that had expired
    queries: int = 0


@dataclass(frozen=True)
class _Block:
    """Entries with their rows, in one order."""

    keys: pa.RecordBatch
    hashes: U64
    expiry: I64
    counts: I64
    rows: pa.RecordBatch

    @property
    def bytes(self) -> int:
        return self.keys.nbytes + self.rows.nbytes + 2 * _FILE_BYTES

    def slice(self, start: int, stop: int) -> "_Block":
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        rows = self.rows.slice(ends[start], ends[stop] - ends[start])
        keys = self.keys.slice(start, stop - start)
        return _Block(keys, self.hashes[start:stop], self.expiry[start:stop], self.counts[start:stop], rows)


class LookupCache:
    """The cache of one table in one folder. It serves one task at a time: the caller holds a lock.

    `rows` is the schema of what a fetch returns, `keys` names its key columns, and `budget` is in bytes.
    """

    def __init__(
        self, folder: Path, rows: pa.Schema, keys: Sequence[str], budget: int, hash_bits: int = 64
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.budget, self.key_names, self.hash_bits = budget, list(keys), hash_bits
        types = [rows.field(k).type for k in keys]
        self.exact = hash_is_key(types, hash_bits)
        self._keys = Pieces(
            folder, "keys", pa.schema([] if self.exact else [(str(i), t) for i, t in enumerate(types)])
        )
        self._rows = Pieces(folder, "rows", rows)
        self.entries = Entries(folder / "entries", bits_for(budget))
        self.figures = LookupFigures()

    def lookup(self, keys: list[pa.Array], fetch: Fetch, now: int, expiry: int = FOR_EVER) -> Answer:
        """Return the table's rows for keys, none of which is NULL.

        What is fetched is valid until `expiry`, which is on the same clock as `now`.
        """
        self._open()
        hashes = key_hash(keys, self.hash_bits)
        found, starts, counts = self._find(keys, hashes, now)
        missing = np.flatnonzero(found < 0)
        answers = [self._stored(np.flatnonzero(found >= 0), starts, counts)]
        known = self.figures
        self.figures = LookupFigures(
            known.probes + len(found),
            known.hits + len(found) - len(missing),
            known.expired + self._expired(hashes[missing], now),
            known.queries + bool(len(missing)),
        )
        if len(missing):
            answers.append(self._fetched(missing, take(keys, missing), hashes[missing], fetch, now, expiry))
        if len(answers) == 1:
            return answers[0]
        return Answer(
            np.concatenate([a.positions for a in answers]), pa.concat_batches([a.rows for a in answers])
        )

    @property
    def rows(self) -> int:
        """The number of the table's rows that are kept."""
        return int(self.entries.pieces[:, ROWS].sum())

    @property
    def bytes(self) -> int:
        """The size that index and files may reach: at most the budget, or
        the least that an empty cache takes.
        """
        return self.entries.bytes

    @property
    def held(self) -> int:
        """The bytes that index and files take now."""
        return self.entries.held

    def check(self) -> None:
        """Assert every invariant. O(entries)."""
        self.entries.check()
        assert len(self.entries.pieces) <= 1 or self.bytes <= self.budget

    def _open(self) -> None:
        if not self.entries.usable:
            self.entries = Entries(self.entries.path, self.entries.bits)
        for pieces in (self._keys, self._rows):
            pieces.keep(self.entries.pieces[:, NUMBER].tolist())

    def _find(self, keys: list[pa.Array], hashes: U64, now: int) -> tuple[I64, I64, I64]:
        """Return the entry of each key, -1 if there is none; the first of its rows, and their number."""
        e = self.entries
        found, starts, counts = _three(len(hashes))
        first = np.full(len(hashes), -1, np.int64)
        kernels.find(e.heads, e.lines, e.bits, e.tail, now, hashes, first, found, starts, counts)
        if self.exact:
            return found, starts, counts
        open_ = np.flatnonzero(found >= 0)
        while len(open_):  # as often as some chain has another key of equal hash
            stored, order = self._keys.gather(*self._homes(FIRST), found[open_])
            open_ = open_[order]
            equal = same_keys(take(keys, open_), stored.columns, False)
            open_ = open_[~equal]
            more = _three(len(open_))
            kernels.find(e.heads, e.lines, e.bits, e.tail, now, hashes[open_], found[open_], *more)
            found[open_], starts[open_], counts[open_] = more
            open_ = open_[more[0] >= 0]
        return found, starts, counts

    def _expired(self, hashes: U64, now: int) -> int:
        e = self.entries
        return kernels.expired(e.heads, e.lines, e.bits, e.tail, now, hashes)

    def _stored(self, positions: I64, starts: I64, counts: I64) -> Answer:
        """Return the rows of the keys at these positions, each with the position of its key."""
        owners, numbers = _expanded(starts[positions], counts[positions])
        rows, order = self._rows.gather(*self._homes(ROW), numbers)
        return Answer(positions[owners[order]], rows)

    def _homes(self, column: int) -> tuple[I64, I64]:
        return self.entries.pieces[:, NUMBER], self.entries.pieces[:, column]

    def _fetched(
        self, missing: I64, keys: list[pa.Array], hashes: U64, fetch: Fetch, now: int, expiry: int
    ) -> Answer:
        """Fetch the rows of all missing keys, each key once, and keep them."""
        first, owner = distinct(keys, hashes, self.exact)
        asked, asked_hashes = take(keys, first), hashes[first]
        rows = fetch(asked)
        of = match(
            [rows.column(k) for k in self.key_names],
            rows.column(0).to_numpy(),
            asked,
            asked_hashes,
            self.exact,
        )
        order = np.argsort(of, kind="stable")[np.count_nonzero(of < 0) :]
        rows = rows.take(pa.array(order))
        counts = np.bincount(of[order], minlength=len(first)).astype(np.int64)
        starts = np.cumsum(counts) - counts
        self._keep(asked, asked_hashes, counts, rows, now, expiry)
        owners, numbers = _expanded(starts[owner], counts[owner])
        return Answer(missing[owners], rows.take(pa.array(numbers)))

    # --- keeping ----------------------------------------------------------------------------------------

    def _keep(
        self, keys: list[pa.Array], hashes: U64, counts: I64, rows: pa.RecordBatch, now: int, expiry: int
    ) -> None:
        """Write a piece with what was fetched and what is old but in use; evict
        the oldest pieces if there is no room.
        """
        stored = pa.record_batch([] if self.exact else keys, self._keys.schema)
        new = _Block(stored, hashes, np.full(len(hashes), expiry), counts, rows)
        self.entries.begin()
        blocks = [new]
        while len(self.entries.pieces) and not self._fits(blocks):
            blocks.insert(0, self._oldest(now))
        self._write(self._cut(_joined(blocks) if len(blocks) > 1 else new))
        fault.point("cached", self.figures.queries)
        self._settle()
        self.entries.finish()

    def _fits(self, blocks: list[_Block]) -> bool:
        entries = sum(len(b.hashes) for b in blocks) + self.entries.alive
        room = self.budget - self.entries.bytes
        return entries <= self.entries.capacity and sum(b.bytes for b in blocks) <= room

    def _oldest(self, now: int) -> _Block:
        """Evict the oldest piece and return what stays of it: entries used
        since then and not expired, half at most.
        """
        number, first, entries, _, _, _ = self.entries.pieces[0].tolist()
        lines = self.entries.lines[np.arange(first, first + entries) % self.entries.capacity].T
        used = np.flatnonzero((lines[kernels.USED] > 0) & (lines[kernels.EXPIRY] > now))
        used = used[-max(entries // 2, 1) :]
        lines = np.ascontiguousarray(lines[:, used])
        keys = (
            pa.record_batch([], self._keys.schema)
            if self.exact
            else self._keys.read(number).take(pa.array(used))
        )
        counts = lines[kernels.COUNT]
        _, numbers = _expanded(lines[kernels.START], counts)
        rows, _ = self._rows.gather(*self._homes(ROW), numbers)
        block = _Block(keys, lines[kernels.HASH].view(np.uint64), lines[kernels.EXPIRY], counts, rows)
        self.entries.drop_oldest()
        self._delete(number)
        return block

    def _cut(self, block: _Block) -> _Block:
        """Return the newest part of a block that fits the budget."""
        room, entries = self.budget - self.entries.bytes, len(block.hashes)
        while entries and (entries > self.entries.capacity - self.entries.alive or block.bytes > room):
            least = min(entries, self.entries.capacity) * min(1.0, max(room, 0) / block.bytes)
            keep = min(int(least), entries - 1)
            block, entries = block.slice(entries - keep, entries), keep
        return block

    def _write(self, block: _Block) -> None:
        if not len(block.hashes):
            return
        number = self.entries.new_number()
        size = self._write_files(number, block.keys, block.rows)
        self.entries.append(number, block.hashes, block.expiry, block.counts, block.rows.num_rows, size)

    def _write_files(self, number: int, keys: pa.RecordBatch, rows: pa.RecordBatch) -> int:
        return self._rows.write(number, rows) + (0 if self.exact else self._keys.write(number, keys))

    def _settle(self) -> None:
        """Merge small pieces into larger ones, so that there are few; each
        row is written a handful of times.
        """
        limit = self.budget // _PARTS
        while len(sizes := self.entries.pieces[:, BYTES]) > 1:
            both = int(sizes[-1] + sizes[-2])
            if len(sizes) >= MOST_PIECES - 1:
                self._join(int(np.argmin(sizes[1:] + sizes[:-1])))
            elif sizes[-2] <= 2 * sizes[-1] and both <= limit:
                self._join(len(sizes) - 2)
            else:
                break
        while self.entries.bytes > self.budget and len(self.entries.pieces):
            number = int(self.entries.pieces[0, NUMBER])
            self.entries.drop_oldest()
            self._delete(number)

    def _join(self, at: int) -> None:
        old = self.entries.pieces[at : at + 2, NUMBER].tolist()
        keys = pa.record_batch([], self._keys.schema) if self.exact else _both(self._keys, old)
        number = self.entries.new_number()
        self.entries.join_pieces(at, number, self._write_files(number, keys, _both(self._rows, old)))
        for gone in old:
            self._delete(gone)

    def _delete(self, number: int) -> None:
        self._keys.delete(number)
        self._rows.delete(number)


def _three(rows: int) -> tuple[I64, I64, I64]:
    return np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)


def _expanded(starts: I64, counts: I64) -> tuple[I64, I64]:
    """List every row of every span as (number of the span, row). Mostly a table has one row for each key."""
    if len(counts) and counts.min() == counts.max() == 1:
        return np.arange(len(counts)), starts
    return kernels.expand(starts, counts, int(counts.sum()))


def _both(pieces: Pieces, numbers: list[int]) -> pa.RecordBatch:
    return pa.concat_batches([pieces.read(n) for n in numbers])


def _joined(blocks: list[_Block]) -> _Block:
    keys = [b.keys for b in blocks]
    return _Block(
        pa.concat_batches(keys) if len(keys[0].schema) else keys[0],
        np.concatenate([b.hashes for b in blocks]),
        np.concatenate([b.expiry for b in blocks]),
        np.concatenate([b.counts for b in blocks]),
        pa.concat_batches([b.rows for b in blocks]),
    )

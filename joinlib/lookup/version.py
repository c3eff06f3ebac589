"""Stores a whole table as it was once loaded: an immutable folder that any
number of processes map (full cache).

    00000003/rows.arrow     the table's rows in the order of their keys' hashes, "$hash" first
    00000003/starts.i32     the directory over the hashes
    00000003/lows.u64 …     where ranges are looked for: the codes of their ends, see `ranges`
    00000003/digests        the checksums of all these files

A table that exceeded its budget while it was loaded is in parts, 07.rows.arrow and so on: each was sorted by itself, and has a
range of hashes, if there is a key. A version is written aside and renamed, so it exists completely or not at all; one that is
damaged later is never joined. In the order of hashes the share of a unit, which is a range of hashes, is a range of
pages: pages that a unit never needs do not stay in memory.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, I64, U64
from joinlib.errors import NotReady, StateError
from joinlib.files import room, sync
from joinlib.index.order import codes
from joinlib.join.rows import Picked
from joinlib.lookup.digests import damage, seal
from joinlib.lookup.hashed import Keys, SortedHashes, same_keys, take
from joinlib.lookup.ranges import RangeIndex, order
from joinlib.model.joins import Range
from joinlib.model.keys import hash_is_key
from joinlib.route.hash import key_hash
from joinlib.route.split import split

Points = tuple[pa.Array | None, pa.Array | None]
Part = Callable[[], pa.RecordBatch]  # reads the rows of one range of hashes, once
_MOST = np.uint64(2**64 - 1)


def write(folder: Path, rows: pa.RecordBatch, range: Range | None = None, synced: bool = False) -> None:
    """Write these rows, "$hash" first, as the version `folder`, unless it exists undamaged. O(rows log rows).

    `synced`: flush it to disk, so that it survives a power cut.
    """
    write_parts(folder, [lambda: rows], range, synced)


def write_parts(
    folder: Path,
    parts: Sequence[Part],
    range: Range | None = None,
    synced: bool = False,
    *,
    whole: bool = False,
) -> None:
    """Write a version, whose parts have the rows of so many equal ranges of hashes, or without a key any rows.

    As many are sorted at once as there are cores. whole: they are kept as one then.

    Raises:
        NotReady: The disk is full.
    """
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    aside.mkdir(parents=True)
    try:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            if whole:
                _write_sorted(aside, range, "", pa.concat_batches(pool.map(partial(_sorted, range), parts)))
            else:
                list(pool.map(partial(_write_part, aside, range), _prefixes(len(parts)), parts))
        seal(aside, synced)
        if folder.exists() and damage(folder):
            shutil.rmtree(folder)
        aside.rename(folder)
        if synced:
            sync([folder.parent])
    except OSError:
        if damage(folder):
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_part(aside: Path, range: Range | None, prefix: str, part: Part) -> None:
    _write_sorted(aside, range, prefix, _sorted(range, part))


def _sorted(range: Range | None, part: Part) -> pa.RecordBatch:
    """Return the rows of a part by their hashes, and by the ends of their ranges."""
    rows = part()
    hashes, ends = rows.column(0).to_numpy(), _ends(rows, range)
    by = np.argsort(hashes, kind="stable") if ends is None else order(hashes, *ends)
    return rows.take(pa.array(by))


def _write_sorted(aside: Path, range: Range | None, prefix: str, rows: pa.RecordBatch) -> None:
    hashes, ends = rows.column(0).to_numpy(), _ends(rows, range)
    with room(aside):
        with (
            pa.OSFile(str(aside / f"{prefix}rows.arrow"), "wb") as file,
            pa.ipc.new_stream(file, rows.schema) as writer,
        ):
            writer.write_batch(rows)
        if ends is not None:
            made = RangeIndex.of(hashes, *ends)
            for name, codes_ in (("lows", made.lows), ("highs", made.highs), ("tops", made.tops)):
                codes_.tofile(aside / f"{prefix}{name}.u64")
        SortedHashes.of(hashes).starts.tofile(aside / f"{prefix}starts.i32")


def _prefixes(parts: int) -> list[str]:
    """Return with what the names of each part's files begin; the part number, of a version that has several."""
    return [f"{number:02d}." for number in range(parts)] if parts > 1 else [""]


def _ends(rows: pa.RecordBatch, range: Range | None) -> tuple[U64, U64] | None:
    """The codes of each row's range; a missing end is unbounded."""
    if range is None:
        return None
    low = codes(rows.column(range.low)) if range.low else np.zeros(rows.num_rows, np.uint64)
    high = codes(rows.column(range.high)) if range.high else np.full(rows.num_rows, _MOST)
    return low, high


class _OpenPart:
    """The rows of one range of hashes."""

    def __init__(self, folder: Path, prefix: str, ranged: bool) -> None:
        with pa.ipc.open_stream(pa.memory_map(str(folder / f"{prefix}rows.arrow")).read_buffer()) as reader:
            self.rows = reader.read_next_batch()
        starts = np.memmap(folder / f"{prefix}starts.i32", np.int32, "r")
        ends = (
            [_mapped(folder / f"{prefix}{name}.u64") for name in ("lows", "highs", "tops")] if ranged else []
        )
        self.hashed = SortedHashes(self.rows.column(0).to_numpy(), starts)
        self.ranges = RangeIndex(self.hashed.hashes, *ends) if ranged else None


class Version:
    """An open version. `keys`: its key columns; `ranged`: whether it is searched by ranges.

    Raises:
        NotReady: if the version is damaged.
        StateError: if it cannot be opened.
    """

    def __init__(self, folder: Path, keys: Sequence[str], hash_bits: int = 64, ranged: bool = False) -> None:
        self.folder, self.hash_bits, self._names = folder, hash_bits, keys
        if why := damage(folder):
            raise NotReady(f"table {folder} is damaged ({why}); run again, it is loaded again")
        try:
            prefixes = _prefixes(sum(1 for _ in folder.glob("*rows.arrow")))
            self._parts = [_OpenPart(folder, prefix, ranged) for prefix in prefixes]
        except (OSError, ValueError, pa.ArrowException) as e:
            raise StateError(
                f"table {folder}: cannot be opened ({e}); delete this folder and run again"
            ) from e
        self._batches = [part.rows for part in self._parts]
        self._starts = np.array([*accumulate((rows.num_rows for rows in self._batches), initial=0)])
        self._exact = not keys or hash_is_key([self._batches[0].column(k).type for k in keys], hash_bits)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._starts[-1])

    @property
    def rows(self) -> pa.RecordBatch:
        """All rows as one batch; copied, if there are several parts."""
        return self._batches[0] if len(self._batches) == 1 else pa.concat_batches(self._batches)

    def find(self, keys: Keys, points: Points | None = None) -> Iterator[tuple[I64 | I32, Picked]]:
        """Yield positions and aligned rows, as described in `probe`."""
        for part, positions, rows in self._found(keys, points):
            yield positions, Picked(self._batches[part], rows)

    def probe(self, keys: Keys, points: Points | None = None) -> Iterator[tuple[I64 | I32, I64 | I32]]:
        """Yield pairs (position, number of a row) of equal keys, in chunks. O(keys + pairs), and O(keys) a part.

        Nothing in keys or points is NULL. With points (x, y) only rows whose ranges hold them are found;
        where codes are not exact, also some whose ranges nearly do.
        """
        for part, positions, rows in self._found(keys, points):
            yield positions, rows + self._starts[part]

    def _found(self, keys: Keys, points: Points | None) -> Iterator[tuple[int, I64 | I32, I32]]:
        """Yield the number of a part, positions, and the numbers of rows in that part."""
        x, y = (None, None) if points is None else points
        length = next(len(c) for c in (*keys, x, y) if c is not None)
        hashes = key_hash(keys, self.hash_bits) if keys else np.zeros(length, np.uint64)
        if len(self._parts) == 1 or not keys:  # without a key a row may be in any part
            for number in range(len(self._parts)):
                yield from ((number, *found) for found in self._candidates(number, keys, hashes, points))
            return
        at = pa.array(np.arange(length))
        asked = [c for c in (*keys, x, y) if c is not None]
        rows = pa.record_batch([pa.array(hashes), at, *asked], [*map(str, range(2 + len(asked)))])
        for number, own in split(rows, len(self._parts)):
            mine, (places, *values) = own.column(0).to_numpy(), own.columns[1:]
            ends = iter(values[len(keys) :])
            wanted = None
            if points is not None:
                wanted = None if x is None else next(ends), None if y is None else next(ends)
            for positions, found in self._candidates(number, values[: len(keys)], mine, wanted):
                yield number, places.to_numpy()[positions], found

    def _candidates(
        self, number: int, keys: Keys, hashes: U64, points: Points | None
    ) -> Iterator[tuple[I32, I32]]:
        """Yield pairs of equal keys in one part."""
        part, own = self._parts[number], [self._batches[number].column(name) for name in self._names]
        if points is None:
            found = part.hashed.probe(hashes)
        else:
            assert part.ranges is not None
            x, y = (np.zeros(len(hashes), np.uint64) if p is None else codes(p) for p in points)
            found = part.ranges.probe(hashes, x, y)
        for positions, rows in found:
            if not self._exact:
                equal = same_keys(take(keys, positions), take(own, rows), False)
                positions, rows = positions[equal], rows[equal]
            if len(rows):
                yield positions, rows

    @cached_property
    def bytes(self) -> int:
        """The size on disk, and in memory if all of it is used."""
        return sum(f.stat().st_size for f in self.folder.iterdir())


def _mapped(path: Path) -> U64:
    return np.memmap(path, np.uint64, "r") if path.stat().st_size else np.zeros(0, np.uint64)

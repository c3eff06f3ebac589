"""Stores a whole table as it was once loaded: an immutable folder that any
number of processes map (full cache).

    00000003/rows.arrow     the table's rows in the order of their keys' hashes, "$hash" first
    00000003/starts.i32     the directory over the hashes
    00000003/lows.u64 …     where ranges are looked for: the codes of their ends, see `ranges`
    00000003/digests        the checksums of all these files

A version is written aside and renamed, so it exists completely or not at all; one that is damaged later is
never joined. In the order of hashes the share of a unit, which is a range of hashes, is a range of pages:
pages that a unit never needs do not stay in memory.
"""

import shutil
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32, U64
from joinlib.errors import NotReady, StateError
from joinlib.files import sync
from joinlib.index.order import codes
from joinlib.lookup.digests import damage, seal
from joinlib.lookup.hashed import Keys, SortedHashes, same_keys, take
from joinlib.lookup.ranges import RangeIndex, order
from joinlib.model.joins import Range
from joinlib.model.keys import hash_is_key
from joinlib.route.hash import key_hash

Points = tuple[pa.Array | None, pa.Array | None]
_MOST = np.uint64(2**64 - 1)


def write(folder: Path, rows: pa.RecordBatch, range: Range | None = None, synced: bool = False) -> None:
    """Write these rows, "$hash" first, as the version `folder`, unless it exists undamaged. O(rows log rows).

    `synced`: flush it to disk, so that it survives a power cut.
    """
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    aside.mkdir(parents=True)
    try:
        hashes, ends = rows.column(0).to_numpy(), _ends(rows, range)
        by = np.argsort(hashes, kind="stable") if ends is None else order(hashes, *ends)
        rows = rows.take(pa.array(by))
        with (
            pa.OSFile(str(aside / "rows.arrow"), "wb") as file,
            pa.ipc.new_stream(file, rows.schema) as writer,
        ):
            writer.write_batch(rows)
        if ends is not None:
            made = RangeIndex.of(hashes[by], ends[0][by], ends[1][by])
            for name, codes_ in (("lows", made.lows), ("highs", made.highs), ("tops", made.tops)):
                codes_.tofile(aside / f"{name}.u64")
        SortedHashes.of(hashes[by]).starts.tofile(aside / "starts.i32")
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


def _ends(rows: pa.RecordBatch, range: Range | None) -> tuple[U64, U64] | None:
    """The codes of each row's range; a missing end is unbounded."""
    if range is None:
        return None
    low = codes(rows.column(range.low)) if range.low else np.zeros(rows.num_rows, np.uint64)
    high = codes(rows.column(range.high)) if range.high else np.full(rows.num_rows, _MOST)
    return low, high


class Version:
    """An open version. `keys`: its key columns; `ranged`: whether it is searched by ranges.

    Raises:
        NotReady: if the version is damaged.
        StateError: if it cannot be opened.
    """

    def __init__(self, folder: Path, keys: Sequence[str], hash_bits: int = 64, ranged: bool = False) -> None:
        self.folder, self.hash_bits = folder, hash_bits
        if why := damage(folder):
            raise NotReady(f"table {folder} is damaged ({why}); run again, it is loaded again")
        try:
            with pa.ipc.open_stream(pa.memory_map(str(folder / "rows.arrow")).read_buffer()) as reader:
                self.rows = reader.read_next_batch()
            starts = np.memmap(folder / "starts.i32", np.int32, "r")
            ends = [_mapped(folder / f"{name}.u64") for name in ("lows", "highs", "tops")] if ranged else []
        except (OSError, ValueError, pa.ArrowException) as e:
            raise StateError(
                f"table {folder}: cannot be opened ({e}); delete this folder and run again"
            ) from e
        self._hashed = SortedHashes(self.rows.column(0).to_numpy(), starts)
        self._ranges = RangeIndex(self._hashed.hashes, *ends) if ranged else None
        self._keys = [self.rows.column(k) for k in keys]
        self._exact = not keys or hash_is_key([k.type for k in self._keys], hash_bits)

    def probe(self, keys: Keys, points: Points | None = None) -> Iterator[tuple[I32, I32]]:
        """Yield pairs (position, row of the table) of equal keys, in chunks. O(keys + pairs).

        Nothing in keys or points is NULL. With points (x, y) only rows whose ranges hold them are found;
        where codes are not exact, also some whose ranges nearly do.
        """
        for positions, rows in self._candidates(keys, points):
            if not self._exact:
                equal = same_keys(take(keys, positions), take(self._keys, rows), False)
                positions, rows = positions[equal], rows[equal]
            if len(rows):
                yield positions, rows

    def _candidates(self, keys: Keys, points: Points | None) -> Iterator[tuple[I32, I32]]:
        if points is None:
            return self._hashed.probe(key_hash(keys, self.hash_bits))
        assert self._ranges is not None
        length = next(len(c) for c in (*keys, *points) if c is not None)
        x, y = (np.zeros(length, np.uint64) if p is None else codes(p) for p in points)
        wanted = key_hash(keys, self.hash_bits) if keys else np.zeros(length, np.uint64)
        return self._ranges.probe(wanted, x, y)

    @cached_property
    def bytes(self) -> int:
        """The size on disk, and in memory if all of it is used."""
        return sum(f.stat().st_size for f in self.folder.iterdir())


def _mapped(path: Path) -> U64:
    return np.memmap(path, np.uint64, "r") if path.stat().st_size else np.zeros(0, np.uint64)

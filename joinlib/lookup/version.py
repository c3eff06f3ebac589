"""A whole table as it was once loaded: an immutable folder that any number of processes map (full cache).

    00000003/rows.arrow     the table's rows in the order of their keys' hashes, "$hash" first
    00000003/starts.i32     the directory over the hashes

Written aside and renamed, so a version is there whole or not at all. In the order of hashes the share of a unit, which is a
range of hashes, is a range of pages: what a unit never asks for is never in memory.
"""

import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.errors import StateError
from joinlib.lookup.hashed import I32, Hashed, Keys, same_keys, take
from joinlib.route.hash import exact, key_hash

MOST_ROWS = 2**31 - 1


def write(folder: Path, rows: pa.RecordBatch) -> None:
    """Makes `folder` the version of these rows, "$hash" first; does nothing if it is there. O(rows log rows)."""
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}")
    aside.mkdir(parents=True)
    try:
        hashes = rows.column(0).to_numpy()
        order = np.argsort(hashes, kind="stable")
        rows = rows.take(pa.array(order))
        with (
            pa.OSFile(str(aside / "rows.arrow"), "wb") as file,
            pa.ipc.new_stream(file, rows.schema) as writer,
        ):
            writer.write_batch(rows)
        Hashed.of(rows.column(0).to_numpy()).starts.tofile(aside / "starts.i32")
        aside.rename(folder)
    except OSError:
        if not (folder / "starts.i32").exists():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


class Version:
    """A version that is open. `keys`: its key columns."""

    def __init__(self, folder: Path, keys: Sequence[str], hash_bits: int = 64) -> None:
        self.folder, self.hash_bits = folder, hash_bits
        try:
            with pa.ipc.open_stream(pa.memory_map(str(folder / "rows.arrow")).read_buffer()) as reader:
                self.rows = reader.read_next_batch()
            starts = np.memmap(folder / "starts.i32", np.int32, "r")
        except (OSError, ValueError, pa.ArrowException) as e:
            raise StateError(f"table {folder}: cannot be opened ({e}); run again, it is loaded anew") from e
        self._hashed = Hashed(self.rows.column(0).to_numpy(), starts)
        self._keys = [self.rows.column(k) for k in keys]
        self._exact = exact([k.type for k in self._keys], hash_bits)

    def probe(self, keys: Keys) -> Iterator[tuple[I32, I32]]:
        """Pairs (position, row of the table) of equal keys, in chunks. Keys are not NULL. O(keys + pairs)."""
        for positions, rows in self._hashed.probe(key_hash(keys, self.hash_bits)):
            if not self._exact:
                equal = same_keys(take(keys, positions), take(self._keys, rows), False)
                positions, rows = positions[equal], rows[equal]
            if len(rows):
                yield positions, rows

    @property
    def bytes(self) -> int:
        """On disk, and in memory where all of it is used."""
        return sum(f.stat().st_size for f in self.folder.iterdir())

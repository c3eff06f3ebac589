"""Stores the rows and keys of an incremental cache in immutable Arrow files, each mapped once by a process.

A piece holds consecutive entries: `N.keys` has a row for each entry (where hashes alone do not identify
keys), `N.rows` the rows of the table, in the order of their entries.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64


class Pieces:
    """The files `NUMBER.NAME` of one folder and schema."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self.folder, self.name, self.schema = folder, name, schema
        self._open: dict[int, pa.RecordBatch] = {}

    def write(self, number: int, rows: pa.RecordBatch) -> int:
        """Write a piece and return its size in bytes."""
        path = self._path(number)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, self.schema) as writer:
            writer.write_batch(rows)
        return path.stat().st_size

    def read(self, number: int) -> pa.RecordBatch:
        """Map the whole piece."""
        if number not in self._open:
            with pa.ipc.open_stream(pa.memory_map(str(self._path(number))).read_buffer()) as reader:
                self._open[number] = reader.read_next_batch()
        return self._open[number]

    def keep(self, numbers: Sequence[int]) -> None:
        """Unmap all other pieces, which another process may have deleted."""
        for number in self._open.keys() - set(numbers):
            del self._open[number]

    def delete(self, number: int) -> None:
        self._open.pop(number, None)
        self._path(number).unlink(missing_ok=True)

    def gather(self, numbers: I64, firsts: I64, wanted: I64) -> tuple[pa.RecordBatch, I64]:
        """Gather rows by number, piece by piece, with the index in `wanted` of each.

        `firsts`: the first row number of each piece, ascending.
        """
        if not len(wanted):
            return empty(self.schema), wanted
        # Small integers sort fast.
        homes = (np.searchsorted(firsts, wanted, side="right") - 1).astype(np.int8)
        order = np.argsort(homes, kind="stable")
        ends = np.cumsum(np.bincount(homes, minlength=len(firsts)))
        parts, start = [], 0
        for at, end in enumerate(ends.tolist()):
            if end > start:
                rows = pa.array(wanted[order[start:end]] - firsts[at])
                parts.append(pc.take(self.read(int(numbers[at])), rows, boundscheck=False))
            start = end
        return (parts[0] if len(parts) == 1 else pa.concat_batches(parts)), order

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.{self.name}"


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.record_batch([pa.array([], f.type) for f in schema], schema)

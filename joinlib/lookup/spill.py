"""Rows of a table that exceed its budget while it is loaded, aside on the disk: a file for each range of hashes.

    blocks ─► by the top bits of their hashes ─► as many as fit ─► 64 files ─► a part of the version each

Each file is sorted by itself (`version.write_parts`), so a 64th of the table is in memory for each core.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa

from joinlib.files import room
from joinlib.lookup.version import Part

PARTS = 64


class Spill:
    """The files in a folder, while they are written. Whoever made it deletes the folder."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._open = ExitStack()
        self._writers = []
        for path in self._paths:
            file = self._open.enter_context(pa.OSFile(str(path), "wb"))
            self._writers.append(self._open.enter_context(pa.ipc.new_stream(file, schema)))

    def add(self, shares: Sequence[Sequence[pa.RecordBatch]]) -> None:
        """Write rows, "$hash" first, those of each range of hashes.

        Raises:
            NotReady: The disk is full.
        """
        with room(self.folder):
            for writer, blocks in zip(self._writers, shares, strict=True):
                for rows in blocks:
                    writer.write_batch(rows)

    def complete(self) -> list[Part]:
        """Close the files; return what reads them, in the order of their hashes.

        Raises:
            NotReady: The disk is full.
        """
        with room(self.folder):
            self._open.close()
        return [partial(_read, path) for path in self._paths]

    @property
    def _paths(self) -> list[Path]:
        return [self.folder / f"{number:02d}.arrow" for number in range(PARTS)]


def _read(path: Path) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.memory_map(str(path)).read_buffer()) as reader:
        batches = [pa.RecordBatch.from_pylist([], reader.schema), *reader]
    return pa.concat_batches(batches)

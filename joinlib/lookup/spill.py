"""Rows of a table that exceed its budget while it is loaded, aside on the disk.

With a key there is a file for each range of hashes; without one, where each probe asks every part, for as many rows as fit:

    blocks ─► by the top bits of their hashes ─► as many as fit ─► 64 files ─► a part of the version each

    blocks ─► as many as fit ─► a file, which is a part

Each file is sorted by itself (`version.write_parts`): in memory is a 64th of the table for each core, or a part of the budget.
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


class KeylessSpill:
    """The files in a folder, one for each time that something is added. Whoever made it deletes the folder."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self._schema, self._paths = folder, schema, list[Path]()
        folder.mkdir(parents=True)

    def add(self, shares: Sequence[Sequence[pa.RecordBatch]]) -> None:
        """Write rows, if there are some, "$hash" first, of the one range of hashes that there is.

        Raises:
            NotReady: The disk is full.
        """
        (blocks,) = shares
        if not blocks:
            return
        path = self.folder / f"{len(self._paths)}.arrow"
        with (
            room(self.folder),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, self._schema) as writer,
        ):
            for rows in blocks:
                writer.write_batch(rows)
        self._paths.append(path)

    def complete(self) -> list[Part]:
        """Return what reads the files."""
        return [partial(_read, path) for path in self._paths]


def _read(path: Path) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.memory_map(str(path)).read_buffer()) as reader:
        batches = [pa.RecordBatch.from_pylist([], reader.schema), *reader]
    return pa.concat_batches(batches)

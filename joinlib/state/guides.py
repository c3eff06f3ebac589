"""Guides of sorted segments, which locate hashes in them, in files of the executor's local folder.

A segment never changes, so neither does its guide. The guide's file is named after the segment and
identifies (by inode, time and size) the segment file that was read whole and compared with the manifest.
The same file need not be read again, which would be expensive for state larger than memory. The file is a
cache: if it is missing, truncated or belongs to another segment file, it is rebuilt.
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.files import whole
from joinlib.index.ascending import Guide, guide, restored
from joinlib.state import segment
from joinlib.state.manifest import Segment

_FENCES, _WORDS, _LAST, _KEYS, _STAMP = 0, 1, 2, 3, 4  # positions in the header
_HEADER = 8


class Guides:
    """The guides of one side of one join."""

    def __init__(self, segments: Path, indexes: Path, number: int) -> None:
        self.segments, self.indexes = segments, indexes
        self._prefix = f"g{number}-"
        self.names: set[str] = set()  # segments whose guide files this process has read or written

    def open(self, piece: Segment, schema: pa.Schema) -> tuple[pa.RecordBatch, Guide]:
        """Return the memory-mapped rows of a sorted segment, and its guide.

        Raises:
            StateError: the segment is damaged; it is only verified where no guide of it is cached.
        """
        found = None if piece.content is not None else self._read(piece)
        if found is None:
            segment.verify(self.segments, piece)
        rows = segment.read(self.segments, piece, schema, scattered=True)
        if found is not None:
            self.names.add(piece.name)
        return rows, found or self.make(piece, rows)

    def make(self, piece: Segment, rows: pa.RecordBatch) -> Guide:
        """Build the guide of a segment that is known to be whole, and cache it. O(rows)."""
        made = guide(rows.column(0).to_numpy())
        if piece.content is None:
            self._write(piece, made)
            self.names.add(piece.name)
        return made

    def keep(self, alive: set[str]) -> None:
        """Delete all guides but those of the segments `alive`. O(files)."""
        self.names &= alive
        for path in self.indexes.glob(f"{self._prefix}*"):
            if path.name.removeprefix(self._prefix) not in alive:
                path.unlink(missing_ok=True)

    def _path(self, piece: Segment) -> Path:
        return self.indexes / f"{self._prefix}{piece.name}"

    def _write(self, piece: Segment, made: Guide) -> None:
        last = np.array([made.last], np.uint64).view(np.int64)[0]
        sizes = [len(made.fences), len(made.filter.words), last, made.keys]
        header = np.array([*sizes, *_stamp(self.segments / piece.name), 0], np.int64)
        with whole(self._path(piece)) as aside, open(aside, "wb") as file:
            file.writelines(array.tobytes() for array in (header, made.fences, made.filter.words))

    def _read(self, piece: Segment) -> Guide | None:
        try:
            data = pa.memory_map(str(self._path(piece))).read_buffer()
            words = np.frombuffer(data, np.uint64)
            header = words[:_HEADER].view(np.int64)
            behind = _HEADER + int(header[_FENCES])
            whole = len(words) == behind + int(header[_WORDS])
            if not whole or tuple(header[_STAMP : _STAMP + 3]) != _stamp(self.segments / piece.name):
                return None
        except (OSError, ValueError, IndexError):
            return None
        last, keys = int(words[_LAST]), int(header[_KEYS])
        return restored(words[_HEADER:behind], words[behind:], last, keys)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what identifies a file: inode, modification time (ns) and size (bytes)."""
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns, found.st_size

"""Marks which rows of a sealed run have been matched, in a file mapped by every worker process.

    header | marks u8[rows]

It is a cache, as `Chains` is: `token` identifies the marks that are set, and a flag an interrupted change.
"""

import os
from pathlib import Path

import numpy as np

from joinlib.arrays import I32
from joinlib.files import whole
from joinlib.index import kernels
from joinlib.index.mapped import Mapped

_HEADER = 4096
_TOKEN, _DIRTY = range(2)
UNKNOWN = -1  # the token after an interrupted change


class MarkFile:
    """The marks of the rows 0..rows-1."""

    def __init__(self, path: Path, rows: int) -> None:
        """Open the file at `path`, or create one without marks."""
        self.path, self.rows = path, rows
        self._map()

    def _map(self) -> None:
        size = _HEADER + self.rows
        if not self.path.exists() or os.stat(self.path).st_size != size:
            with whole(self.path) as aside, open(aside, "wb") as file:
                file.truncate(size)
                # Otherwise setting a mark on a full disk would kill the process.
                os.posix_fallocate(file.fileno(), 0, size)
        self._file = Mapped(self.path)
        self._header = np.frombuffer(self._file.view, np.int64, 2)
        self.values = np.frombuffer(self._file.view, np.uint8, self.rows, _HEADER)

    def reopen(self) -> None:
        """Map the file again if another process has replaced or deleted it."""
        if self._file.stale:
            self._map()

    @property
    def token(self) -> int:
        """The hash that identifies the marks that are set; UNKNOWN after an interrupted change."""
        return UNKNOWN if self._header[_DIRTY] else int(self._header[_TOKEN])

    def begin(self) -> None:
        """Declare the marks invalid until `finish` is called."""
        self._header[_DIRTY] = 1

    def finish(self, token: int) -> None:
        """Declare the marks valid: they are those that the token identifies."""
        self._header[_TOKEN] = token
        self._header[_DIRTY] = 0

    def mark(self, rows: I32) -> I32:
        """Mark rows; return those that were not marked before, each once."""
        fresh = np.empty(len(rows), np.int32)
        return fresh[: kernels.mark(self.values, rows, fresh)]

    @property
    def allocated_bytes(self) -> int:
        """Memory or disk that the file takes, in bytes."""
        return self._file.allocated(self._header.tobytes())

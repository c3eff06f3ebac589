"""Which rows of a sealed run have been matched: one byte a row, in a file that every worker process of the executor maps.

    header | marks u8[rows]

A cache, as `Chains` is: `token` says which marks are set, and a change that was cut off says so.
"""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.files import whole
from joinlib.index import kernels
from joinlib.index.mapped import Mapped

I32 = npt.NDArray[np.int32]

_HEADER = 4096
_TOKEN, _DIRTY = range(2)
UNKNOWN = -1  # no token


class MarkFile:
    """The marks of the rows 0..rows-1."""

    def __init__(self, path: Path, rows: int) -> None:
        """Opens the file at `path`, or makes one without a mark."""
        self.path, self.rows = path, rows
        self._map()

    def _map(self) -> None:
        size = _HEADER + self.rows
        if not self.path.exists() or os.stat(self.path).st_size != size:
            with whole(self.path) as aside, open(aside, "wb") as file:
                file.truncate(size)
                # Or a mark that finds no room would kill the process.
                os.posix_fallocate(file.fileno(), 0, size)
        self._file = Mapped(self.path)
        self._header = np.frombuffer(self._file.view, np.int64, 2)
        self.values = np.frombuffer(self._file.view, np.uint8, self.rows, _HEADER)

    def reopen(self) -> None:
        """If another process has made the file anew, or it is gone."""
        if self._file.stale:
            self._map()

    @property
    def token(self) -> int:
        """Which marks are set."""
        return UNKNOWN if self._header[_DIRTY] else int(self._header[_TOKEN])

    def begin(self) -> None:
        """Says that what follows is not to be trusted until `finish`."""
        self._header[_DIRTY] = 1

    def finish(self, token: int) -> None:
        """The marks are those that the token says."""
        self._header[_TOKEN] = token
        self._header[_DIRTY] = 0

    def mark(self, rows: I32) -> I32:
        """Marks rows; returns those that were not marked, each once."""
        fresh = np.empty(len(rows), np.int32)
        return fresh[: kernels.mark(self.values, rows, fresh)]

    @property
    def allocated_bytes(self) -> int:
        """Memory or disk that the file really takes."""
        return self._file.allocated(self._header.tobytes())

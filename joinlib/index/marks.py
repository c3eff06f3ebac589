"""Which rows of a sealed run have been matched: one byte a row, in a file that every worker process of the executor maps.

    header | marks u8[rows]

A cache, as `Chains` is: `token` says which marks are set, and a change that was cut off says so.
"""

import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.index import kernels

I32 = npt.NDArray[np.int32]

_HEADER = 4096
_TOKEN, _DIRTY = range(2)
UNKNOWN = -1  # no token


class Marks:
    """Those of the rows 0..rows-1."""

    def __init__(self, path: Path, rows: int) -> None:
        """Opens the file at `path`, or makes one without a mark."""
        self.path, self.rows = path, rows
        self._map()

    def _map(self) -> None:
        try:
            whole = os.stat(self.path).st_size == _HEADER + self.rows
        except FileNotFoundError:
            whole = False
        if not whole:
            aside = self.path.with_suffix(f".{os.getpid()}.new")
            with open(aside, "wb") as file:
                file.truncate(_HEADER + self.rows)
            os.replace(aside, self.path)
        with open(self.path, "r+b") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            view = memoryview(mmap.mmap(file.fileno(), 0))
        self._header = np.frombuffer(view, np.int64, 2)
        self.values = np.frombuffer(view, np.uint8, self.rows, _HEADER)

    def reopen(self) -> None:
        """If another process has made the file anew, or it is gone."""
        try:
            stale = os.stat(self.path).st_ino != self._inode
        except FileNotFoundError:
            stale = True
        if stale:
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
        return os.stat(self.path).st_blocks * 512

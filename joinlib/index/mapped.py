"""Maps files of an executor's local folder as memory shared by its processes, until they are replaced."""

import mmap
import os
from collections.abc import Hashable
from pathlib import Path

from joinlib.files import mappable


class Mapped:
    """A file mapped for reading and writing; `view` has all its bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with mappable(path), open(path, "r+b") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            self.view = memoryview(mmap.mmap(file.fileno(), 0))
        self._sized: tuple[Hashable, int] = None, 0  # the last state, and the file's size in that state

    @property
    def stale(self) -> bool:
        """Whether the file at this path has been replaced or deleted."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except FileNotFoundError:
            return True

    def allocated(self, state: Hashable) -> int:
        """Return the bytes of memory or disk that the file takes.

        The kernel is only called when `state` differs from that of the previous call.
        """
        if self._sized[0] != state:
            self._sized = state, os.stat(self.path).st_blocks * 512
        return self._sized[1]

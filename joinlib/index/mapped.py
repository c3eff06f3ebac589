"""Files of an executor's local folder as memory that its processes share, until others take their place."""

import mmap
import os
from collections.abc import Hashable
from pathlib import Path

from joinlib.files import mappable


class Mapped:
    """A file as memory, for all its bytes to be read and written: `view`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with mappable(path), open(path, "r+b") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            self.view = memoryview(mmap.mmap(file.fileno(), 0))
        self._sized: tuple[Hashable, int] = None, 0  # the state, and what the file took when it was so

    @property
    def stale(self) -> bool:
        """Another file has its place by now, or none."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except FileNotFoundError:
            return True

    def allocated(self, state: Hashable) -> int:
        """Bytes of memory or disk that the file really takes. The kernel is asked only when `state` is another than before."""
        if self._sized[0] != state:
            self._sized = state, os.stat(self.path).st_blocks * 512
        return self._sized[1]

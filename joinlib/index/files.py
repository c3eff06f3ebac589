"""Files of an executor's local folder, which its processes share: whole or not there, and mapped for as long as they are it.

    PATH.PID.TID ─► PATH      written aside, then one rename; whoever has mapped the file that was there keeps that one

The name aside begins as the file's own: whoever sweeps by how names begin sweeps what was cut off as well.
"""

import mmap
import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Gives the name to write to; the file takes the place of `path` at the end, unless something is raised."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


class Mapped:
    """A file as memory, for all its bytes to be read and written: `view`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "r+b") as file:
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

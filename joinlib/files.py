"""Files that are whole or not there, whoever reads them and whoever else writes them.

    PATH.a1b2c3d4 ─► PATH      written aside, then one rename; whoever has opened the file that was there keeps that one

Attempts of one task may write the same file in two containers, which share neither process ids nor clocks.

A disk that is full, of bytes or of inodes, is a word that names the folder.

A rename is seen at once by all processes, but survives a power cut only after `sync` of the file before it, and of its folder
behind it. Caches, which may be lost, are not synced. What must not be lost is listed in `joinlib.spark.batches`. These two
functions are all that it needs, and no store with `put` and `get`: segments are mapped where they lie, results are renamed by
the folder, and a task syncs many files at once.
"""

import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from joinlib.errors import NotReady

_AT_ONCE = 8  # a file system writes one journal entry for all files that are synced at the same time


def sync(paths: Iterable[Path]) -> None:
    """Waits until files, and the names in folders, are on the disk. Each path once, several at the same time."""
    wanted = list(dict.fromkeys(paths))
    if len(wanted) < 2:
        for path in wanted:
            _sync(path)
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as threads:
        list(threads.map(_sync, wanted))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def room(folder: Path) -> Iterator[None]:
    """Says of which folder the disk is full, if that is what happens within: NotReady, since nothing is lost by it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NotReady(f"the disk is full: {folder} has {_left(folder)} left; {_FREE}") from error


_FREE = "free space there and run again, the job goes on where it was (nothing is lost)"


def _left(folder: Path) -> str:
    found = os.statvfs(folder)
    return f"{found.f_bavail * found.f_frsize >> 10} KiB and {found.f_favail} inodes"


def reserve(path: Path, start: int, size: int) -> None:
    """Has the disk keep so many bytes of a sparse file, in memory a map of which is written to later.

    A page that finds no room on the disk when it is written to through a map kills the process (SIGBUS).
    """
    if size:
        with room(path.parent), open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), start, size)


@contextmanager
def mappable(path: Path) -> Iterator[None]:
    """Tells that a process has as many memory maps as it may from a file that is damaged."""
    try:
        yield
    except OSError as error:
        if os.strerror(errno.ENOMEM) not in str(error):  # Arrow's errors have no number
            raise
        limit = Path("/proc/sys/vm/max_map_count").read_text().strip()
        raise NotReady(
            f"{path} cannot be mapped: this process has as many memory maps as vm.max_map_count allows ({limit});"
            f" {_MORE_MAPS}"
        ) from error


_MORE_MAPS = (
    "raise it (sysctl -w vm.max_map_count=1048576) or have more executors, and run again: nothing is damaged"
)


@contextmanager
def whole(path: Path, hidden: bool = False, synced: bool = False) -> Iterator[Path]:
    """Gives the name to write to; the file takes the place of `path` at the end, unless something is raised.

    That name begins as the file's own: whoever sweeps by how names begin sweeps what was cut off as well. `hidden`: behind a
    dot, so that whoever lists the folder does not take it for a file. `synced`: it survives a power cut as well.
    """
    aside = path.with_name(f"{'.' if hidden else ''}{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with room(path.parent):
            yield aside
            if synced:
                _sync(aside)
            os.replace(aside, path)
            if synced:
                _sync(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise

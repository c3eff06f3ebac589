"""Atomic file writes: write aside, then rename.

    PATH.a1b2c3d4 ─► PATH      a process that has the old file open keeps the old one

The name aside is random because attempts of one task may write the same file in two containers, which share
neither process ids nor clocks. A full disk, of bytes or of inodes, is an error that names the folder.

A rename is seen at once by all processes. It survives a power cut only after `sync` of the file before it,
and of its folder after it. Caches, which may be lost, are not synced; `joinlib.checkpoint.batches` lists what
must not be lost. `sync` and `whole` are all that this needs. There is no store with `put` and `get`, because
segments are mapped where they lie, results are renamed by the folder, and a task syncs many files at once.
"""

import ctypes
import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path

from joinlib.errors import NotReady

_AT_ONCE = 8  # a file system writes one journal entry for all files that are synced concurrently


def sync(paths: Iterable[Path]) -> None:
    """Wait until files, and the names in folders, are on the disk.

    Syncs each path once, several concurrently.
    """
    wanted = list(dict.fromkeys(paths))
    if len(wanted) < 2:
        for path in wanted:
            _sync(path)
        return
    list(_threads(os.getpid()).map(_sync, wanted))


@lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Return this process's threads, which wait for the next files; a process that was forked has none of them."""
    return ThreadPoolExecutor(_AT_ONCE)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def begin_writing(path: Path) -> None:
    """Begin to write a file to the disk, so that `sync` waits less for it later."""
    handle = os.open(path, os.O_RDONLY)
    try:
        _libc().sync_file_range(handle, ctypes.c_int64(0), ctypes.c_int64(0), _WRITE)
    finally:
        os.close(handle)


_WRITE = 2  # SYNC_FILE_RANGE_WRITE: does not wait, and needs no `fsync` less


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@contextmanager
def room(folder: Path) -> Iterator[None]:
    """Raise NotReady, naming the folder, if the disk is full in the block: nothing is lost by it."""
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
    """Reserve disk space for `size` bytes of a sparse file from `start` on, before a map of it is written to.

    A page that finds no room on the disk when it is written to through a map kills the process (SIGBUS).
    """
    if size:
        with room(path.parent), open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), start, size)


@contextmanager
def mappable(path: Path) -> Iterator[None]:
    """Raise NotReady if the block fails because the process has too many memory maps, not a damaged file."""
    try:
        yield
    except OSError as error:
        if os.strerror(errno.ENOMEM) not in str(error):  # Arrow's errors have no number
            raise
        limit = Path("/proc/sys/vm/max_map_count").read_text().strip()
        raise NotReady(
            f"{path} cannot be mapped: this process has as many memory maps as vm.max_map_count allows"
            f" ({limit}); {_MORE_MAPS}"
        ) from error


_MORE_MAPS = (
    "raise it (sysctl -w vm.max_map_count=1048576) or have more executors, and run again: nothing is damaged"
)


@contextmanager
def whole(path: Path, hidden: bool = False, synced: bool = False) -> Iterator[Path]:
    """Yield a temporary name to write to; at the end of the block the file replaces `path`, unless it raised.

    The temporary name begins with the file's own, so that cleaning up by prefix removes left-overs as well.
    Errors name the file itself, which is the one that people know.

    Args:
        path: The file to write.
        hidden: Whether the temporary name begins with a dot, so that listings of the folder skip it.
        synced: Whether the file survives a power cut.
    """
    if not path.name:  # the working folder, or the root
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    aside = path.with_name(f"{'.' if hidden else ''}{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with room(path.parent):
            yield aside
            if synced:
                _sync(aside)
            os.replace(aside, path)
            if synced:
                _sync(path.parent)
    except BaseException as error:
        if isinstance(error, OSError) and str(error.filename) == str(aside):
            error.filename = str(path)
        with suppress(OSError):
            aside.unlink()
        raise

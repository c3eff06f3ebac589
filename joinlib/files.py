"""Files that are whole or not there, whoever reads them and whoever else writes them.

    PATH.a1b2c3d4 ─► PATH      written aside, then one rename; whoever has opened the file that was there keeps that one

Attempts of one task may write the same file in two containers, which share neither process ids nor clocks.

A rename is seen at once by all processes, but survives a power cut only after `sync` of the file before it, and of its folder
behind it. Caches, which may be lost, are not synced. What must not be lost is listed in `joinlib.spark.batches`. These two
functions are all that it needs, and no store with `put` and `get`: segments are mapped where they lie, results are renamed by
the folder, and a task syncs many files at once.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

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
def whole(path: Path, hidden: bool = False, synced: bool = False) -> Iterator[Path]:
    """Gives the name to write to; the file takes the place of `path` at the end, unless something is raised.

    That name begins as the file's own: whoever sweeps by how names begin sweeps what was cut off as well. `hidden`: behind a
    dot, so that whoever lists the folder does not take it for a file. `synced`: it survives a power cut as well.
    """
    aside = path.with_name(f"{'.' if hidden else ''}{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield aside
        if synced:
            _sync(aside)
        os.replace(aside, path)
        if synced:
            _sync(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise

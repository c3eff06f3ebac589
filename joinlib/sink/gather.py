"""Gathers the results of small batches into one folder before readers see them: `output.files.compact`.

    .waiting/batch=7/, batch=8/     published like other batches, but behind a dot, where readers do not look
    batch=8/                        the rows of both, by one rename; then the waiting folder is removed

Law: a folder that readers see never changes, and each row is in exactly one of them. Joining visible folders
could not keep this law: a reader lists the folders first and each folder's files later, so a row that moves
in between is seen twice or not at all.

Killed at any moment: waiting batches are released when the job starts again, unless the folder of the last of
them exists already.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joinlib import fault
from joinlib.files import sync
from joinlib.sink.publish import (
    discard,
    fresh,
    is_there,
    marks,
    named,
    numbers,
    publish,
    show,
    sweep,
    waiting,
)
from joinlib.spec.output import Compact

_ROWS = 100_000  # per row group, about
_LARGE = 2  # files of at least 1/_LARGE of the target size are linked, not rewritten


class Gathering:
    """The waiting batches of a run. Thread-safe."""

    def __init__(
        self, folder: Path, compact: Compact, synced: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._compact, self._synced, self._clock = folder, compact, synced, clock
        self._bytes = 0
        self._since = 0.0  # when the oldest waiting batch was added
        self._lock = threading.Lock()

    def add(self, batch: int, files: Sequence[str], mark: str) -> None:
        """Add the staged files of a batch; release all that waits if it is large enough, or old enough."""
        with self._lock:
            if is_there(self._folder / f"batch={batch}", mark):
                discard(self._folder, batch)
                return
            publish(self._folder, batch, files, mark, self._synced, hidden=True)
            self._since = self._since if self._bytes else self._clock()
            kept = waiting(self._folder) / f"batch={batch}"
            self._bytes += sum(file.stat().st_size for file in kept.glob("part-*"))
            if self.due or self._bytes >= self._compact.size_bytes:
                self._release()

    def end(self) -> None:
        """Release all waiting batches."""
        with self._lock:
            self._release()

    @property
    def due(self) -> bool:
        """Whether the oldest batch has waited for long enough."""
        return self._bytes > 0 and self._clock() - self._since >= self._compact.every_us / 1e6

    def _release(self) -> None:
        release(self._folder, self._synced, self._compact.size_bytes)
        self._bytes = 0


def release(folder: Path, synced: bool, size: int = 0) -> None:
    """Turn all waiting batches into one visible folder, if any wait.

    Files of at least half of `size` bytes keep their content and are linked.
    """
    kept = waiting(folder)
    if not (batches := sorted(numbers(kept))):
        return
    last = batches[-1]
    target = folder / f"batch={last}"
    if not target.exists():  # it exists if an earlier release was killed before its `sweep`
        mark = min(marks(kept / target.name), default="")
        ready = fresh(folder, last)
        files = [file for batch in batches for file in sorted((kept / f"batch={batch}").glob("part-*"))]
        merge(files, ready, mark, size // _LARGE)
        if synced:
            sync(ready.iterdir())
        fault.point("gathered", last)
        show(ready, target, mark, synced)
        fault.point("released", last)
    sweep(folder, kept.name)


def merge(files: Sequence[Path], ready: Path, mark: str, large: int) -> None:
    """Collect the rows of all files in `ready`: small files of a format become one, others are linked."""
    small: dict[str, list[Path]] = {}
    linked = []
    for file in files:
        if 0 < large <= file.stat().st_size:
            linked.append(file)
        else:
            small.setdefault(file.suffix, []).append(file)
    for number, file in enumerate(linked, len(small)):
        os.link(file, ready / named(number, mark, file.name))
    for number, (suffix, some) in enumerate(small.items()):
        target = ready / named(number, mark, some[0].name)
        _parquet(some, target) if suffix == ".parquet" else _text(some, target)


def _parquet(files: Sequence[Path], target: Path) -> None:
    schema = pq.read_schema(files[0])
    with pq.ParquetWriter(target, schema) as writer:
        for frame in _frames(batch for file in files for batch in pq.ParquetFile(file).iter_batches(_ROWS)):
            writer.write_table(frame)


def _frames(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.Table]:
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        kept.append(batch)
        if sum(b.num_rows for b in kept) >= _ROWS:
            yield pa.Table.from_batches(kept)
            kept = []
    if kept:
        yield pa.Table.from_batches(kept)


def _text(files: Sequence[Path], target: Path) -> None:
    with target.open("wb") as out:
        for number, file in enumerate(files):
            content = file.read_bytes()
            out.write(content[_header(content) :] if number and file.suffix == ".csv" else content)


def _header(content: bytes) -> int:
    """Return where the rows of a CSV file begin: after the first line break outside quotes."""
    end = content.find(b"\n") + 1
    while content.count(b'"', 0, end) % 2:
        end = content.find(b"\n", end) + 1
    return end

"""`streamjoin status`: what a checkpoint holds, and whether a run is alive.

Read from its files: Spark is not started, nothing is written.

    CHECKPOINT/lock                 held while a run is alive
    CHECKPOINT/streamjoin.json      id and name
    CHECKPOINT/spark/offsets/N      batch N has begun: the offset envelope, including the lag
    CHECKPOINT/spark/commits/N      batch N is done
    CHECKPOINT/partitions           tasks that joined at once in the latest batch
    CHECKPOINT/state/S/UNIT/        segments
    CHECKPOINT/state/manifests/     manifests of the latest batches
"""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.cli import words
from jobs.cli.summary import near
from joinlib.checkpoint import batches
from joinlib.errors import StateError
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output
from joinlib.state import manifests
from joinlib.state.manifest import Segment, decode


def status(document: StreamJoin) -> str:
    """Return several lines for people."""
    checkpoint = document.spec.checkpoint.folder
    if not (checkpoint / "streamjoin.json").exists():
        return f"no run so far: {near(checkpoint)} holds no checkpoint"
    return "\n".join(f"{label:11} {text}" for label, text in _lines(document, checkpoint))


def _lines(document: StreamJoin, checkpoint: Path) -> Iterator[tuple[str, str]]:
    identity = _json(checkpoint / "streamjoin.json")
    holder = _holder(checkpoint / "lock")
    yield "job", f"{identity['name']}, {f'running (process {holder})' if holder else 'not running'}"
    yield "checkpoint", f"{near(checkpoint)}, id {identity['id']}"
    begun = batches.begun(checkpoint / "spark")
    yield "batch", _batch(begun, batches.done(checkpoint / "spark"))
    if (partitions := batches.partitions(checkpoint / "spark")) is not None:
        yield "partitions", f"{partitions} of the state: tasks that can join at once"
    if begun is not None:
        yield from _offsets(batches.offset(checkpoint / "spark", begun))
    yield "state", _state(checkpoint)
    for name, output in document.spec.results.items():
        for label, text in _output(output):
            yield label, f"{name}: {text}" if label and name else text


def _output(output: Output) -> Iterator[tuple[str, str]]:
    """Yield where an output's results are, and what becomes of rows that change."""
    if files := output.files:
        yield "output", f"{_amount(Path(files.path), 'batch=*/*', 'files')} in {near(files.path)}"
    if kafka := output.kafka:
        yield "output", f"topic {kafka.topic} at {kafka.bootstrap_servers}"
    if table := output.postgres:
        at = f"{table.database} at {table.host}" if table.host else f"the database of {table.uri_env}"
        yield "output", f"table {table.table} in {at}"
    if output.mode != "append":
        by = f" by {', '.join(output.key)}" if output.key else ""
        yield "", f"{output.mode}{by}: rows are taken back when they change"


def _batch(begun: int | None, done: int | None) -> str:
    if begun is None:
        return "none so far"
    last = "none is committed" if done is None else f"{done} is the last that is committed"
    return last if begun == done else f"{last}; {begun} was begun and runs again"


def _offsets(envelope: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was read of each source, and what was known but not read when the batch began."""
    for at, (source, offset) in enumerate(envelope["inputs"].items()):
        lag = envelope.get("lag", {}).get(source, {})
        known = [words.counted(lag[k], text) for k, text in _LAG.items() if lag.get(k) is not None]
        yield "" if at else "read", ", ".join([f"{source}: {words.counted(offset, 'slices')}", *known])
    for at, (table, version) in enumerate(envelope.get("tables", {}).items()):
        took = envelope.get("loads", {}).get(table)
        loaded = f", loaded in {words.seconds(took['seconds'])}" if took else ""
        yield "" if at else "tables", f"{table}: version {version}{loaded}"
    if envelope.get("closed"):
        yield "", "the inputs are closed: this checkpoint takes no more rows"


_LAG = {
    "rows": "rows not read yet",
    "files": "files seen",
    "skipped": "files skipped",
    "lost": "messages gone before they were read",
}


def _state(checkpoint: Path) -> str:
    """Return how much the state is: segments in files, and those in manifests, which are too small for files."""
    files = _amount(checkpoint / "state", "[0-9]*/*/*", "files")
    small = _small(checkpoint)
    if not small:
        return files
    count, size = sum(s.rows for s in small), sum(s.bytes for s in small)
    return f"{files}; {words.rows(count)} in manifests, {words.size(size)}"


def _small(checkpoint: Path) -> list[Segment]:
    """Return the segments in the manifests of the last batch that is done; none where they cannot be read.

    A job that goes on deletes them; what is damaged is told by the next run.
    """
    states, done = checkpoint / "state", batches.done(checkpoint / "spark")
    if done is None:
        return []
    stages = {int(f.name.partition("-")[0]) for f in manifests.folder(states, done).glob("[0-9]*")}
    try:
        units = [m for s in stages for m in manifests.everything(states, done, s).values()]
        sides = [side for unit in units for side in decode(unit).sides]
    except (StateError, FileNotFoundError):
        return []
    return [s for side in sides for s in side.segments if s.content is not None]


def _json(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError) as e:
        raise StateError(f"{file}: cannot be read: restore the checkpoint, or start with a new one") from e


def _holder(lock: Path) -> str | None:
    """Return the process that holds the lock, if one does."""
    if not lock.exists():
        return None
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip() or "unknown"
    return None


def _amount(folder: Path, pattern: str, what: str) -> str:
    sizes = [f.stat().st_size for f in folder.glob(pattern) if f.is_file()]
    return f"{words.counted(len(sizes), what)}, {words.size(sum(sizes))}"

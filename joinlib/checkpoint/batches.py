"""Which batches does a checkpoint know, and what does each depend on? Reads Spark's logs without Spark.

    CHECKPOINT/spark/offsets/N    batch N has begun: lines with version, Spark's settings and each source
    CHECKPOINT/spark/commits/N    batch N is done
    CHECKPOINT/partitions         number of tasks of the latest batch; written before it ran

Law: a batch counts once it cannot be lost. What batch N depends on is on the disk (with `checkpoint.sync`)

    once              streamjoin.json, state/epochs/E, spark/metadata             before anything runs
    to run it again   sources/NAME.jsonl, tables/T/V, offsets/N, partitions       before its tasks begin
    its outcome       segments and the manifests that name them, results,         before commits/N
                      dead letters

Each file is written aside, synced and renamed, and its folder is synced: by `files`, `LocalFiles` and
`source.log`. Segments and results are synced by the task that makes them count, many at a time. Nothing
depends on the rest: indexes, guides and sorted indexes of the executors, `sources/census`, `logs`, `lock` and
Hadoop's checksums are caches, hints or valid for this boot only; `timeline` is for questions, and synced like the
logs of inputs. All functions take the folder `CHECKPOINT/spark`, which need not exist.
"""

import json
import time
import uuid
import zlib
from pathlib import Path
from typing import Any

import xxhash

from joinlib.errors import WAY_BACK, StateError
from joinlib.files import sync, whole

PARTITIONS = "partitions"
KEPT = 8  # batches before the current one whose logs are kept
_OFFSETS, _COMMITS, _METADATA = "offsets", "commits", "metadata"
# What Spark would log of the first batch, without its settings: it goes on with those of the session.
_FIRST_OFFSET = ("v1", '{"batchWatermarkMs":0,"conf":{}}')
_FIRST_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
_CHECKED = b"crc\0" + (512).to_bytes(4, "big")  # header of Hadoop's checksums: one per 512 bytes follows


def make(spark: Path, *, synced: bool) -> None:
    """Make the folders of the logs: Spark would make them too, but not sync their names."""
    for name in (_OFFSETS, _COMMITS):
        (spark / name).mkdir(parents=True, exist_ok=True)
    if synced:
        sync([spark, spark.parent])


def identify(spark: Path, *, synced: bool) -> None:
    """Write the identity of a query, if it has none yet: without one, Spark refuses logs that hold batches."""
    file = spark / _METADATA
    if not file.exists():
        with whole(file, hidden=True, synced=synced) as aside:
            aside.write_text(json.dumps({"id": str(uuid.uuid4())}))


def logged(spark: Path, batch: int) -> list[Path]:
    """Return the files of the logs by which Spark goes on behind a batch: it looks at the one before, too."""
    before = [spark / _OFFSETS / str(batch - 1)] if batch else []
    return [*before, spark / _OFFSETS / str(batch), spark / _COMMITS / str(batch)]


def begun(spark: Path) -> int | None:
    """Return the latest batch that has begun."""
    return max(_logged(spark / _OFFSETS), default=None)


def all_begun(spark: Path) -> list[int]:
    """Return the batches that have begun and are still known, oldest first."""
    return sorted(_logged(spark / _OFFSETS))


def done(spark: Path) -> int | None:
    """Return the latest batch that is done."""
    return max(all_done(spark), default=None)


def all_done(spark: Path) -> list[int]:
    """Return the batches that are done and still known, oldest first."""
    return sorted(_logged(spark / _COMMITS))


def cut_off(spark: Path) -> int | None:
    """Return the batch that has begun and is not done; it runs again."""
    latest = begun(spark)
    return None if latest == done(spark) else latest


def interrupted(spark: Path) -> tuple[int, float] | None:
    """Return the batch that has begun and is not done, and how many seconds ago it began."""
    if (batch := cut_off(spark)) is None:
        return None
    return batch, time.time() - (spark / "offsets" / str(batch)).stat().st_mtime


def mark(spark: Path, batch: int) -> str:
    """Return a digest of what steers a batch: 16 hex digits, which tell batches of the same number apart."""
    *_, envelope = (spark / _OFFSETS / str(batch)).read_bytes().splitlines()
    return xxhash.xxh3_64_hexdigest(envelope)


def ends(spark: Path) -> list[dict[str, Any]]:
    """Return the offsets at which the batches end that the log still has, oldest first."""
    return [offset(spark, batch) for batch in all_begun(spark)]


def partitions(spark: Path) -> int | None:
    """Return the number of tasks of the latest batch; None if none has begun, or the file cannot be read."""
    try:
        return int((spark.parent / PARTITIONS).read_text())
    except (OSError, ValueError):
        return None


def offset(spark: Path, batch: int) -> dict[str, Any]:
    """Return how far a batch reads: the envelope of our only source (`engine.composer`).

    Raises:
        StateError: The log cannot be read.
    """
    return dict(_lines(spark / _OFFSETS / str(batch), 3)[2])


def check_done(spark: Path, batch: int) -> None:
    """Check that what Spark has logged of a batch that is done can be read.

    Raises:
        StateError: It cannot be read.
    """
    offset(spark, batch)
    _lines(spark / _COMMITS / str(batch), 2)


def envelope(spark: Path, batch: int) -> str:
    """Return the text of how far a batch reads, as it was logged."""
    return (spark / _OFFSETS / str(batch)).read_text().splitlines()[-1]


def begin(spark: Path, batch: int, envelope: str, *, synced: bool) -> None:
    """Log that a batch begins, as Spark does, and drop what is logged of old ones: Spark's settings are those before.

    Raises:
        StateError: It has begun already, so another run uses the checkpoint.
    """
    if batch:
        version, settings, _ = (spark / _OFFSETS / str(batch - 1)).read_text().splitlines()
    else:
        identify(spark, synced=synced)
        version, settings = _FIRST_OFFSET
    known = {**json.loads(settings), "batchTimestampMs": int(time.time() * 1000)}
    _log(spark / _OFFSETS / str(batch), "\n".join([version, json.dumps(known), envelope]), synced)
    for log in (spark / _OFFSETS, spark / _COMMITS):
        _drop(log, batch - KEPT - 1)


def finish(spark: Path, batch: int, *, synced: bool) -> None:
    """Log that a batch is done, as Spark does.

    Raises:
        StateError: It is done already, so another run uses the checkpoint.
    """
    content = (spark / _COMMITS / str(batch - 1)).read_text() if batch else _FIRST_COMMIT
    _log(spark / _COMMITS / str(batch), content, synced)


def _log(file: Path, content: str, synced: bool) -> None:
    if file.exists():
        raise StateError(f"{file} is there already; two runs must not share a checkpoint")
    with whole(file, hidden=True, synced=synced) as aside:
        aside.write_text(content)


def _drop(log: Path, batch: int) -> None:
    (log / str(batch)).unlink(missing_ok=True)
    (log / f".{batch}.crc").unlink(missing_ok=True)


def forget(spark: Path, after: int) -> None:
    """Drop the batches after batch `after`, newest first."""
    for log in (spark / _COMMITS, spark / _OFFSETS):
        for batch in sorted(_logged(log), reverse=True):
            if batch > after:
                _drop(log, batch)
        sync([log])


def _lines(file: Path, count: int) -> list[Any]:
    """Return the lines of a log file: the first as text, the others parsed as JSON."""
    try:
        raw = file.read_bytes()
        version, *rest = raw.decode().splitlines()
        found = [version, *(json.loads(line) for line in rest if line.startswith("{"))]
    except FileNotFoundError as error:
        raise StateError(f"{file}: is missing; {WAY_BACK}") from error
    except (OSError, ValueError) as error:
        raise StateError(f"{file}: cannot be read ({error}); {WAY_BACK}") from error
    if len(found) < count or not _fits(raw, file.with_name(f".{file.name}.crc")):
        raise StateError(f"{file}: cannot be read, it is damaged; {WAY_BACK}")
    return found


def _fits(raw: bytes, checksums: Path) -> bool:
    """Return whether Hadoop would accept the checksums; it ignores missing and truncated ones."""
    sums = checksums.read_bytes() if checksums.exists() else b""
    if not sums.startswith(_CHECKED):
        return True
    made = [zlib.crc32(raw[at : at + 512]).to_bytes(4, "big") for at in range(0, len(raw), 512)]
    return sums == _CHECKED + b"".join(made)


def _logged(log: Path) -> list[int]:
    return [int(f.name) for f in log.glob("*") if f.name.isdigit()]

"""Which batches does a checkpoint know, and what does one depend on? Read without Spark.

    CHECKPOINT/spark/offsets/N    batch N was begun: a line with the version, one with Spark's settings, one for each source
    CHECKPOINT/spark/commits/N    batch N is done
    CHECKPOINT/partitions         among so many tasks the units of the latest batch were spread; written before it ran

Law: a batch counts when it cannot be lost any more. What batch N depends on is on the disk (with `checkpoint.sync`)

    once              streamjoin.json, state/epochs/E, spark/metadata             before anything runs
    to run it again   sources/NAME.jsonl, tables/T/V, offsets/N, partitions       before its tasks begin
    its outcome       segments and the manifests that name them, results,         before commits/N
                      dead letters

Each is written aside, synced, renamed, and its folder synced: by `files`, `LocalFiles` and `source.log`. Segments and results
are synced by the task that has them count, many at a time. Nothing depends on the rest: indexes, guides and sorted indexes of
the executors, `sources/census`, `logs`, `lock`, and Hadoop's checksums are caches, hints or of this boot.
All functions take the folder `CHECKPOINT/spark`, which need not be there.
"""

import json
import zlib
from pathlib import Path
from typing import Any

import xxhash

from joinlib.errors import WAY_BACK, StateError
from joinlib.files import sync

PARTITIONS = "partitions"
_OFFSETS, _COMMITS = "offsets", "commits"
_CHECKED = b"crc\0" + (512).to_bytes(4, "big")  # what Hadoop's checksums begin with: one for each 512 bytes


def make(spark: Path, *, synced: bool) -> None:
    """The folders of the logs: Spark would make them, and not sync their names."""
    for name in (_OFFSETS, _COMMITS):
        (spark / name).mkdir(parents=True, exist_ok=True)
    if synced:
        sync([spark, spark.parent])


def begun(spark: Path) -> int | None:
    """The latest batch that was begun."""
    return max(_logged(spark / _OFFSETS), default=None)


def done(spark: Path) -> int | None:
    """The latest batch that is done."""
    return max(all_done(spark), default=None)


def all_done(spark: Path) -> list[int]:
    """The batches that are done and still known, oldest first."""
    return sorted(_logged(spark / _COMMITS))


def cut_off(spark: Path) -> int | None:
    """The batch that was begun and is not done: it runs again."""
    latest = begun(spark)
    return None if latest == done(spark) else latest


def mark(spark: Path, batch: int) -> str:
    """Tells a batch that was begun from others of its number: sixteen hexadecimal digits, of what steers it (see `source`)."""
    *_, envelope = (spark / _OFFSETS / str(batch)).read_bytes().splitlines()
    return xxhash.xxh3_64_hexdigest(envelope)


def ends(spark: Path) -> list[dict[str, Any]]:
    """Where the batches end that the log still has, oldest first."""
    return [offset(spark, batch) for batch in sorted(_logged(spark / _OFFSETS))]


def partitions(spark: Path) -> int | None:
    """Those of the latest batch; None: nothing was begun, or they cannot be read."""
    try:
        return int((spark.parent / PARTITIONS).read_text())
    except (OSError, ValueError):
        return None


def offset(spark: Path, batch: int) -> dict[str, Any]:
    """How far a batch reads: the envelope of our only source, see `source`. Raises StateError where it cannot be read."""
    return dict(_lines(spark / _OFFSETS / str(batch), 3)[2])


def check_done(spark: Path, batch: int) -> None:
    """Raises StateError unless what Spark notes of a batch that is done can be read."""
    offset(spark, batch)
    _lines(spark / _COMMITS / str(batch), 2)


def forget(spark: Path, after: int) -> None:
    """Drops the batches behind `after`, newest first."""
    for log in (spark / _COMMITS, spark / _OFFSETS):
        for batch in sorted(_logged(log), reverse=True):
            if batch > after:
                (log / str(batch)).unlink()
                (log / f".{batch}.crc").unlink(missing_ok=True)
        sync([log])


def _lines(file: Path, count: int) -> list[Any]:
    """The lines of a log's file: the first as it is, the others as JSON."""
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
    """As Hadoop sees it, to which checksums that are not there or cut off are none."""
    sums = checksums.read_bytes() if checksums.exists() else b""
    if not sums.startswith(_CHECKED):
        return True
    made = [zlib.crc32(raw[at : at + 512]).to_bytes(4, "big") for at in range(0, len(raw), 512)]
    return sums == _CHECKED + b"".join(made)


def _logged(log: Path) -> list[int]:
    return [int(f.name) for f in log.glob("*") if f.name.isdigit()]

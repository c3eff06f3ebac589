"""Which batches does a checkpoint know? Read from Spark's own logs, without Spark.

    CHECKPOINT/spark/offsets/N    batch N was begun: a line with the version, one with Spark's settings, one for each source
    CHECKPOINT/spark/commits/N    batch N is done
    CHECKPOINT/partitions         among so many tasks the units of the latest batch were spread; written before it ran

All functions take the folder `CHECKPOINT/spark`, which need not be there.
"""

import json
from pathlib import Path
from typing import Any

import xxhash

PARTITIONS = "partitions"


def begun(spark: Path) -> int | None:
    """The latest batch that was begun."""
    return _latest(spark / "offsets")


def done(spark: Path) -> int | None:
    """The latest batch that is done."""
    return _latest(spark / "commits")


def cut_off(spark: Path) -> int | None:
    """The batch that was begun and is not done: it runs again."""
    latest = begun(spark)
    return None if latest == done(spark) else latest


def mark(spark: Path, batch: int) -> str:
    """Tells a batch that was begun from others of its number: sixteen hexadecimal digits, of what steers it (see `source`)."""
    return xxhash.xxh3_64_hexdigest(_offset(spark / "offsets" / str(batch)))


def ends(spark: Path) -> list[dict[str, Any]]:
    """Where the batches end that the log still has, oldest first."""
    logged = sorted((f for f in (spark / "offsets").glob("*") if f.name.isdigit()), key=lambda f: int(f.name))
    return [json.loads(_offset(file)) for file in logged]


def partitions(spark: Path) -> int | None:
    """Those of the latest batch; None: nothing was begun, or they cannot be read."""
    try:
        return int((spark.parent / PARTITIONS).read_text())
    except (OSError, ValueError):
        return None


def _latest(log: Path) -> int | None:
    return max((int(f.name) for f in log.glob("*") if f.name.isdigit()), default=None)


def _offset(entry: Path) -> bytes:
    *_, offset = entry.read_bytes().splitlines()
    return offset
